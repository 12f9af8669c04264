"""Files with secrets: a broker refuses an exposed key, and names other exposed files with a `chmod` command."""

import logging
import os
from pathlib import Path

import pytest

from gapless.errors import ConfigError
from gapless.private_files import exposure, exposure_of_key
from gapless.runtime.event_loop import run
from gapless.runtime.tls import client_context
from gapless.security.certificates import Authority
from gapless.security.credentials import Credentials
from tests.conftest import Cli
from tests.runtime.logged import logged
from tests.runtime.secure import secure

OWN = os.getuid()


@pytest.fixture
def ann(tmp_path: Path) -> Path:
    authority = Authority.make("test")
    authority.write(tmp_path / "authority.pem", tmp_path / "authority.key")
    authority.issue(tmp_path / "ann.pem", tmp_path / "ann.key", uri="gapless://shop/user/ann", name="ann")
    return tmp_path


def test_a_private_key_that_others_can_read_is_refused_until_it_is_private(ann: Path) -> None:
    key = ann / "ann.key"
    client_context(ann / "authority.pem", ann / "ann.pem", key)
    key.chmod(0o644)
    with pytest.raises(ConfigError) as caught:
        client_context(ann / "authority.pem", ann / "ann.pem", key)
    assert str(caught.value) == f"{key}: this private key can be used by others (mode 0644); run: chmod 600 {key}"
    key.chmod(0o600)
    client_context(ann / "authority.pem", ann / "ann.pem", key)


def test_the_key_of_an_authority_is_refused_too(ann: Path) -> None:
    (ann / "authority.key").chmod(0o604)
    with pytest.raises(ConfigError, match=r"authority.key: this private key can be used by others \(mode 0604\)"):
        Authority.load(ann / "authority.pem", ann / "authority.key")


@pytest.mark.parametrize(("mode", "owner_reads", "root_reads"), [(0o600, True, True), (0o640, False, True),
    (0o440, False, True), (0o660, False, False), (0o604, False, False), (0o644, False, False)])  # fmt: skip
def test_a_group_may_read_a_key_only_if_root_owns_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: int, owner_reads: bool, root_reads: bool
) -> None:
    key = tmp_path / "b0.key"
    key.touch()
    key.chmod(mode)
    facts = list(key.stat())
    for owner, reads in ((1000, owner_reads), (0, root_reads)):
        facts[4] = owner
        about = os.stat_result(facts)
        monkeypatch.setattr("gapless.private_files._about", lambda path, about=about: about)
        assert (exposure_of_key(key) == "") is reads


def test_credentials_with_a_token_that_others_can_read_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "ann.toml"
    file.write_text("token = 'ann:secret'\n", encoding="utf-8")
    file.chmod(0o600)
    with caplog.at_level(logging.WARNING, "gapless.client"):
        Credentials.load(file)
        assert caplog.messages == []
        file.chmod(0o646)
        Credentials.load(file)
    assert caplog.messages == [f"{file}: others can change it (mode 0646); run: chmod 600 {file}"]


def test_a_file_without_a_secret_may_be_read_but_not_changed_by_others(tmp_path: Path) -> None:
    file = tmp_path / "ann.toml"
    file.touch()
    file.chmod(0o644)
    assert exposure(file, is_secret=False) == ""
    file.chmod(0o664)
    assert "others can change it" in exposure(file, is_secret=False)
    assert exposure(tmp_path / "missing", is_secret=True) == ""


def test_a_broker_and_the_command_that_checks_name_a_users_file_that_others_can_read(tmp_path: Path, cli: Cli) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={}) as network:
            file = tmp_path / "users.toml"
            file.chmod(0o666)
            sentence = f"{file}: others can change it (mode 0666); run: chmod 600 {file}"
            with logged() as log:
                await network.reload()
                assert sentence in log.text
            assert f"warning: {sentence}" in cli("security", "check", str(file)).err
            file.chmod(0o600)
            with logged() as log:
                await network.reload()
                assert "chmod" not in log.text

    run(main())

"""`gapless security`, and a secure network of processes: one command creates it, and one variable holds the
credentials.
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from gapless.cli.up import _secured
from gapless.overlay import chain
from gapless.runtime.fleet import Fleet, free_ports, local_network
from gapless.runtime.network_file import load_network
from gapless.runtime.settings import RuntimeSettings
from gapless.security.certificates import Authority, expiry_of
from gapless.security.tokens import matches
from gapless.security.users_file import load_users
from tests.conftest import Cli

PROGRAM = [sys.executable, "-m", "gapless"]
QUICK = RuntimeSettings(heartbeat_ms=100, suspect_ms=20_000, join_ms=1_000, drain_ms=500)


def _network(tmp_path: Path) -> Path:
    file = tmp_path / "network.toml"
    file.write_text(local_network(chain(2), f=0, name="shop").to_toml(), encoding="utf-8")
    return file


def test_init_makes_what_a_network_needs_and_keeps_what_is_there(cli: Cli, tmp_path: Path) -> None:
    file, made = _network(tmp_path), tmp_path / "security"
    completed = cli("security", "init", str(made), "--config", str(file))
    assert completed.code == 0
    assert "[security]" in completed.out
    for name in ("authority.key", "brokers/b0.key", "brokers/b1.key", "users/admin.key", "users/admin.toml"):
        assert (made / name).stat().st_mode & 0o777 == 0o600, name
    before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
    (made / "brokers" / "b1.pem").unlink()
    again = json.loads(cli("security", "init", str(made), "--config", str(file), "--json").out)
    assert again["made"] == [str(made / "brokers" / "b1.pem")]
    after = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
    changed = {path.name for path in before if before[path] != after[path]}
    assert changed == {"b1.pem", "b1.key"}
    section = "\n".join(["", "[security]", *(f'{key} = "{value}"' for key, value in again["security"].items()), ""])
    file.write_text(file.read_text(encoding="utf-8") + section, encoding="utf-8")
    config = load_network(file)
    assert config.security is not None
    assert Path(config.security.files("b1")["certificate"]) == made / "brokers" / "b1.pem"
    assert config.url.startswith("gapless+tls://")


def test_a_named_user_is_added_and_existing_users_are_shown(cli: Cli, tmp_path: Path) -> None:
    file, made = _network(tmp_path), tmp_path / "security"
    completed = cli("security", "init", str(made), "--config", str(file), "--user", "boss")
    assert f"--credentials {made}/users/boss.toml" in completed.out
    assert _secured(load_network(file), made)[1] == "boss"
    assert not (made / "users" / "admin.toml").exists()
    again = cli("security", "init", str(made), "--config", str(file))
    assert "already contains everything" in again.out
    assert f"--credentials {made}/users/boss.toml" in again.out
    second = json.loads(cli("security", "init", str(made), "--config", str(file), "--user", "second", "--json").out)
    assert second["made"] == [str(made / "users.toml"), str(made / "users" / "second.toml")]
    assert second["user"] == "second"
    users = load_users(made / "users.toml").by_name
    assert list(users) == ["boss", "second"]
    assert users["second"].operate
    (made / "users" / "second.toml").unlink()
    cli("security", "init", str(made), "--config", str(file), "--user", "second")
    assert (made / "users" / "second.toml").exists()
    assert _secured(load_network(file), made)[1] == "boss"


def test_expired_certificates_are_created_again(cli: Cli, tmp_path: Path) -> None:
    file, made = _network(tmp_path), tmp_path / "security"
    cli("security", "init", str(made), "--config", str(file))
    authority = Authority.load(made / "authority.pem", made / "authority.key")
    for kind, name in (("brokers", "b0"), ("users", "admin")):
        place = made / kind / f"{name}.pem"
        authority.issue(place, place.with_suffix(".key"), uri="gapless://x", name=name, days=-1)
    again = json.loads(cli("security", "init", str(made), "--config", str(file), "--json").out)
    assert again["made"] == [str(made / "brokers" / "b0.pem"), str(made / "users" / "admin.pem")]
    assert all(expiry_of(Path(path)) > time.time() + 86_400 for path in again["made"])
    Authority.make("old", days=-1).write(made / "authority.pem", made / "authority.key")
    whole = json.loads(cli("security", "init", str(made), "--config", str(file), "--json").out)
    names = ("authority.pem", "brokers/b0.pem", "brokers/b1.pem", "users/admin.pem")
    assert whole["made"] == [str(made / name) for name in names]


def test_a_token_and_the_hash_of_it_belong_together(cli: Cli) -> None:
    completed = json.loads(cli("security", "token", "ann", "--json").out)
    user, _, secret = completed["token"].partition(":")
    assert user == "ann"
    assert matches(completed["token"], completed["hash"])
    assert not matches(completed["token"] + "x", completed["hash"])
    assert secret not in completed["hash"]
    bad = cli("security", "token", "ann:bob")
    assert (bad.code, "is not a valid name of a user" in bad.err) == (64, True)


def test_a_users_file_is_checked_as_brokers_do(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    file.write_text('[[users]]\nname = "ann"\npublsh = ["TRUE"]\n', encoding="utf-8")
    completed = cli("security", "check", str(file))
    assert completed.code == 64
    assert "users[0].publsh: there is no such key; did you mean 'publish'?" in completed.err
    file.write_text('[[users]]\nname = "ann"\npublish = ["TRUE"]\n', encoding="utf-8")
    assert cli("security", "check", str(file)).code == 0


def test_a_secure_network_of_processes_reads_its_files_again_on_sighup(cli: Cli, tmp_path: Path) -> None:
    config, user = _secured(local_network(chain(2), runtime=QUICK), tmp_path / "security")
    assert user == "admin"
    with Fleet(config, tmp_path / "fleet") as fleet:
        fleet.start_all()
        asyncio.run(fleet.until_whole(60))
        admin = ["--credentials", str(tmp_path / "security" / "users" / "admin.toml")]
        assert cli("status", "--url", config.url, *admin).code == 0
        assert cli("status", "--config", str(fleet.file)).code == 0
        assert cli("status", "--url", config.url).code == 64
        event = ["--event", '{"n": 1}']
        assert cli("pub", "--url", config.url, *admin, *event).code == 0
        refused = cli("pub", "--url", config.url, *event)
        assert (refused.code, "not trusted here" in refused.err) == (64, True)
        os.kill(fleet.pid("b0"), signal.SIGHUP)
        deadline = time.monotonic() + 30
        while not re.search(r"reloaded certificates and users .*because=SIGHUP", fleet.log("b0").read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert fleet.is_alive("b0")


def test_up_makes_a_network_secure_by_itself(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    made = tmp_path / "security"
    command = [*PROGRAM, "up", "--brokers", "1", "--port", str(port), "--secure", "--security", str(made)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path) as up:
        try:
            assert up.stdout is not None
            assert f"up: gapless+tls://127.0.0.1:{port}" in up.stdout.readline()
            credentials = up.stdout.readline().strip().rpartition("=")[2]
            asked = subprocess.run(
                [*PROGRAM, "status", "--url", f"gapless+tls://127.0.0.1:{port}"], capture_output=True, text=True,
                env={**os.environ, "GAPLESS_CREDENTIALS": credentials}, timeout=60, check=False,
            )  # fmt: skip
            assert asked.returncode == 0, asked.stderr
        finally:
            up.send_signal(signal.SIGINT)
            up.communicate(timeout=60)
    assert list(load_users(made / "users.toml").by_name) == ["admin"]

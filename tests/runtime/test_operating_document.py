"""The page for operators is correct: its metrics exist, and its messages are those of brokers."""

import asyncio
import re
from pathlib import Path

from gapless.client import connect
from gapless.overlay import chain
from gapless.runtime import waiting
from gapless.runtime.event_loop import run
from gapless.runtime.network_file import load_network
from gapless.security.tokens import hash_token
from gapless.security.users_file import load_users

from .local import local
from .test_operator_messages import fetch, with_http

TEXT = (Path(__file__).parents[2] / "docs" / "OPERATING.md").read_text(encoding="utf-8")


def test_every_metric_is_there() -> None:
    async def main() -> str:
        async with local(chain(2)) as network, connect(network.at("b0")) as client:
            await client.advertise("TRUE")
            endpoint, url = await with_http(network, "b0")
            text = (await asyncio.to_thread(fetch, f"{url}/metrics"))[1].decode()
            endpoint.stop()
            return text

    text = run(main())
    documented = re.findall(r"`((?:gapless|process|python)_\w+)", TEXT)
    assert len(documented) > 15
    for name in documented:
        assert re.search(rf"^# HELP {name}", text, re.MULTILINE), name


def test_the_network_in_it_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "network.toml"
    file.write_text(re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)[0], encoding="utf-8")
    config = load_network(file)
    assert [broker.name for broker in config.brokers] == ["b0", "b1", "b2"]
    shown = re.search(r"curl http://(\S+)/metrics", TEXT)
    assert shown is not None
    assert [broker.http for broker in config.brokers if broker.http] == [shown[1]]


def test_the_users_in_it_can_be_read(tmp_path: Path) -> None:
    example = next(block for block in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL) if "[[users]]" in block)
    file = tmp_path / "users.toml"
    file.write_text(example.replace("sha256$…", hash_token("ann:secret")), encoding="utf-8")
    ann = load_users(file).by_name["ann"]
    assert ann.may_subscribe.covers("topic = 'shop/shoes' AND price < 10")
    assert not ann.may_subscribe.covers("topic = 'bank'")


def test_the_roles_in_it_can_be_read(tmp_path: Path) -> None:
    example = next(block for block in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL) if "[[roles]]" in block)
    file = tmp_path / "users.toml"
    file.write_text(example.replace("sha256$…", hash_token("bob:secret")), encoding="utf-8")
    bob = load_users(file).by_name["bob"]
    assert bob.may_subscribe.covers("topic LIKE 'shop/%' AND NOT topic LIKE 'shop/internal/%'")
    assert not bob.may_subscribe.covers("topic LIKE 'shop/%'")
    assert bob.may_publish.test({"topic": "orders/bob"})


def test_the_wait_of_a_broker_is_described() -> None:
    source = Path(waiting.__file__).read_text(encoding="utf-8")
    for words in (
        "in a handover around ",
        "to rejoin: its neighbours have not accepted it yet",
        "it reaches too few of them to continue",
        "for a majority of the registry replicas, to change ",
        "reads history that is kept there",
    ):
        assert words in TEXT
        assert words in source
    assert f"{waiting.LONG_S:.0f}" == "5"
    assert "five seconds or more" in TEXT

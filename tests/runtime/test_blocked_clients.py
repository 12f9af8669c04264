"""A stopped or dead client: no other client waits for it, and operators see it and can end it."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gapless.client import Client, Subscription, blocked_reason, connect
from gapless.errors import ConnectError
from gapless.overlay import chain
from gapless.protocol import Suspected, Trusted
from gapless.runtime.access import Access
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import ProtocolEntry
from gapless.runtime.settings import RuntimeSettings
from tests.conftest import Cli

from .local import QUICK, Local, local
from .logged import logged
from .secure import secure
from .test_links import MembershipLog

PATIENT = msgspec.structs.replace(QUICK, suspect_ms=30_000)
SMALL: dict[str, Any] = {"window": 50, "delivery_window": 10, "lag_window": 50, "wave_ms": 20}
EVENTS = 500


async def until(condition: object, patience_s: float = 20) -> None:
    assert callable(condition)
    async with asyncio.timeout(patience_s):
        while not condition():
            await asyncio.sleep(0.02)


async def exhaust(subscription: Subscription) -> None:
    while await subscription.take():
        pass


async def publish_all(client: Client) -> int:
    return await client.publish_many({"n": number} for number in range(EVENTS))


def test_a_stalled_consumer_delays_no_other_and_receives_everything_later() -> None:
    async def main() -> None:
        opening = local(chain(3), runtime=PATIENT, **SMALL)
        async with (
            opening as network,
            connect(network.at("b0"), name="ann") as ann,
            connect(network.at("b2"), name="slow") as slow,
            connect(network.at("b2"), name="quick") as quick,
        ):
            await ann.advertise("TRUE")
            late, prompt = await slow.subscribe("TRUE"), await quick.subscribe("TRUE")
            taking = asyncio.create_task(_numbers(prompt))
            assert await asyncio.wait_for(publish_all(ann), 60) == EVENTS
            assert await asyncio.wait_for(taking, 60) == list(range(EVENTS))
            assert slow.name in network.brokers["b2"].report()["overview"]["lagging"]
            assert await asyncio.wait_for(_numbers(late), 60) == list(range(EVENTS))
            await until(lambda: not network.brokers["b2"].report()["overview"]["lagging"])
            await ann.publish({"n": EVENTS})
            [last] = await asyncio.wait_for(late.take(), 20)
            assert last.attributes == {"n": EVENTS}

    run(main())


def test_a_stalled_consumer_is_named_and_an_operator_can_end_its_session(cli: Cli) -> None:
    async def main() -> None:
        opening = local(chain(3), runtime=PATIENT, **SMALL)
        async with opening as network, connect(network.at("b0"), name="ann") as ann:
            await ann.advertise("TRUE")
            stuck = await connect(network.at("b2"), name="stuck")
            subscription = await stuck.subscribe("TRUE")
            broker = network.brokers["b2"]
            with logged() as log:
                assert await asyncio.wait_for(publish_all(ann), 60) == EVENTS
                await until(lambda: bool(log.of("b2", f"client {stuck.name} lags")))
            await until(lambda: broker.report()["overview"]["history"]["waiting"])
            output = await said(cli, "status", "--url", network.at("b0"))
            assert f"client {stuck.name} reads history at b2, " in output
            assert "and waits for the client to take events" in output
            assert ann.blocked_reason == ""
            unknown = await asyncio.to_thread(cli, "client", "end", "nobody", "--url", network.at("b0"))
            assert (unknown.code, "no broker has a session of 'nobody'" in unknown.out) == (1, True)
            output = await said(cli, "client", "end", "stuck", "--url", network.at("b0"))
            assert f"names that begin with it: {stuck.name}" in output
            ended = await asyncio.to_thread(cli, "client", "end", stuck.name, "--url", network.at("b0"))
            assert (ended.code, f"b2 ended the session of {stuck.name}" in ended.out) == (0, True)
            with pytest.raises(ConnectError, match="an operator ended the session of this client"):
                await asyncio.wait_for(exhaust(subscription), 20)
            await stuck.close()

    run(main())


async def said(cli: Cli, *line: str) -> str:
    return " ".join((await asyncio.to_thread(cli, *line)).out.split())


async def _numbers(subscription: Subscription) -> list[object]:
    got: list[object] = []
    while len(got) < EVENTS:
        got += [event.attributes["n"] for event in await subscription.take()]
    return got


def test_a_connection_without_a_goodbye_is_detected_at_once() -> None:
    async def main() -> None:
        async with local(1, f=0, runtime=PATIENT) as network, connect(network.url, name="ann") as ann:
            await ann.advertise("TRUE")
            broker = network.brokers["b0"]
            news = MembershipLog(broker)
            link = broker.links.links[ann.name]
            assert link.connection is not None
            link.connection.abort()
            await news.wait_for(Suspected(ann.name))
            await news.wait_for(Trusted(ann.name))
            report = broker.report()
            assert (report["suspicions"], report["lost_clients"]) == (0, 1)
            await ann.publish({"n": 1})

    run(main())


def test_a_stopped_subscriber_delays_no_other(tmp_path: Path) -> None:
    runtime = RuntimeSettings(suspect_ms=60_000, join_ms=2_000)
    config = local_network(chain(3), runtime=runtime, protocol=ProtocolEntry("gapless", SMALL))

    async def main(fleet: Fleet) -> None:
        await fleet.until_whole(60)
        command = [sys.executable, "-m", "gapless", "sub", "--url"]
        command += [f"gapless://{config.addresses['b2']}"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as subscriber:
            assert subscriber.stderr is not None
            assert "subscribed" in await asyncio.to_thread(subscriber.stderr.readline)
            subscriber.send_signal(signal.SIGSTOP)
            async with connect(f"gapless://{config.addresses['b0']}", name="ann") as ann:
                await ann.advertise("TRUE")
                assert await asyncio.wait_for(publish_all(ann), 20) == EVENTS, "it takes nothing, and is not gone"
                subscriber.kill()
                assert await ann.publish({"n": EVENTS})

    with Fleet(config, tmp_path) as fleet:
        fleet.start_all()
        run(main(fleet))


def test_a_protocol_without_sessions_reports_it(cli: Cli) -> None:
    async def main() -> None:
        async with local(1, f=0, protocol="locaps") as network:
            ran = await asyncio.to_thread(cli, "client", "end", "ann", "--url", network.url)
            assert (ran.code, "protocol 'locaps' has no sessions; stop the client" in ran.out) == (1, True)

    run(main())


def test_a_publisher_learns_what_blocks_its_publications_until_they_are_confirmed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(blocked_reason, "PATIENCE_S", 0.5)

    async def main() -> None:
        async with local(chain(3)) as network, connect(network.at("b0"), name="ann") as ann:
            await ann.advertise("TRUE")
            await network.crash("b1")
            await network.crash("b2")
            publishing = asyncio.create_task(ann.publish({"n": 1}))
            await until(lambda: "b1 does not answer" in ann.blocked_reason)
            await until(lambda: "b0 waits for" in ann.blocked_reason)
            await network.start("b1")
            await network.start("b2")
            await asyncio.wait_for(publishing, 30)
            await until(lambda: ann.blocked_reason == "")
            output = [record.getMessage() for record in caplog.records if "publications of" in record.getMessage()]
            assert output
            assert not any("none waits" in each for each in output)

    run(main())


def test_a_user_who_may_not_see_why_its_publications_wait_is_informed(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": {"publish": ["TRUE"]}}) as network:
            access = Access.to(network.at("b0"), network.by_token("ann"))
            blocked = blocked_reason.BlockedReason("ann:1", network.config.addresses, None, access)
            assert await blocked._ask() == "only users with the right `status` can see the reason"

    run(main())


def test_publications_without_confirmation_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked_reason, "PATIENCE_S", 0.05)

    async def main() -> None:
        async with local(1, f=0, protocol="locaps") as network, connect(network.url) as client:
            await client.advertise("TRUE")
            await client.publish({"n": 1})
            await asyncio.sleep(0.5)
            assert client.blocked_reason == ""

    run(main())


def test_clients_are_counted_and_not_their_connections() -> None:
    async def main(network: Local) -> None:
        async with connect(network.at("b0"), name="ann") as ann:
            await ann.advertise("TRUE")
            ann._connection_manager._links.open("b1")  # as if it had tried this broker once
            spare = network.brokers["b1"]
            await until(lambda: spare.links.client_count == 1)
            assert spare.report()["clients"] == 0
            assert spare.report()["connections"] == 1
            assert network.brokers["b0"].report()["clients"] == 1

    async def with_network() -> None:
        async with local(chain(2)) as network:
            await main(network)

    run(with_network())

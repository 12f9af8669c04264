"""More than f real brokers are lost: an operator forgets them, and the others continue."""

import asyncio
import socket

import pytest

from gapless.cli import network_forget
from gapless.client import connect
from gapless.overlay import chain
from gapless.protocol import PublicationsLost
from gapless.runtime import report_query
from gapless.runtime.address import split_address
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import local_network
from tests.conftest import Cli

from .local import QUICK, Local, local
from .test_backpressure import until


def waits(network: Local) -> bool:
    overview = network.brokers["b2"].report()["overview"]
    return bool(overview["suspected"] or overview["handovers"] or overview["isolated"])


def test_others_continue_without_brokers_that_an_operator_forgets(cli: Cli) -> None:
    async def forget(network: Local, name: str) -> tuple[int, str]:
        ran = await asyncio.to_thread(cli, "network", "forget", name, "--url", network.at("b0"))
        return ran.code, " ".join(ran.out.split())

    async def main() -> None:
        async with local(chain(5), f=1) as network:
            async with asyncio.timeout(90):
                for name in ("b3", "b4"):
                    await network.crash(name)
                await until(lambda: set(network.brokers["b2"].report()["overview"]["suspected"]) == {"b3", "b4"})
                assert await forget(network, "b0") == (
                    1,
                    "no broker forgets b0: 'b0' is this broker, and it is running",
                )
                unknown = await forget(network, "b9")
                assert unknown == (1, "no broker forgets b9: there is no broker 'b9' in this network")
                for name in ("b4", "b3"):
                    code, said = await forget(network, name)
                    assert (code, f"no broker waits for {name} any longer (accepted by b0, b1, b2)" in said) == (
                        0,
                        True,
                    )
                await until(lambda: not waits(network))
                async with connect(network.at("b0"), name="ann") as ann, connect(network.at("b2"), name="bob") as bob:
                    await ann.advertise("TRUE")
                    subscription = await bob.subscribe("TRUE")
                    await ann.publish({"n": 1})
                    assert (await anext(subscription)).attributes == {"n": 1}

    run(main())


def test_a_paused_broker_is_not_forgotten_before_its_process_ends(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (network_forget, report_query):
        monkeypatch.setattr(module, "PATIENCE_S", 0.5)

    async def main() -> None:
        async with local(chain(3), f=1) as network:
            await network.crash("b2")
            with socket.create_server(split_address(network.config.addresses["b2"])):  # nobody accepts
                ran = await asyncio.to_thread(cli, "network", "forget", "b2", "--url", network.at("b0"))
            said = " ".join(ran.out.split())
            assert ran.code == 1
            assert "accepts connections, but 'b2' does not answer" in said
            assert "end it first" in said
            assert network.brokers["b0"].report()["overview"]["forgotten"] == []
            ran = await asyncio.to_thread(cli, "network", "forget", "b2", "--url", network.at("b0"))
            assert (ran.code, "no broker waits for b2 any longer" in " ".join(ran.out.split())) == (0, True)

    run(main())


def test_a_publisher_is_called_when_what_it_published_is_lost() -> None:
    async def main() -> None:
        network = Local(local_network(chain(2), f=0, runtime=QUICK))
        await asyncio.gather(*(network.start(name) for name in ("b0", "b1")))
        try:
            async with connect(network.at("b0"), name="ann") as ann:
                reported: list[list[tuple[int, int]]] = []
                ann.on_publications_lost = reported.append
                ann._connection_manager._handlers[PublicationsLost](PublicationsLost([(3, 5)]))
                assert reported == [[(3, 5)]]
                assert ann.lost_publications == [(3, 5)]
        finally:
            await network.stop()

    run(main())

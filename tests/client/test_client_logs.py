"""A client's log messages contain the object and the reason, because most handlers show nothing else."""

import logging

import pytest

from gapless.client import connect
from gapless.overlay import chain
from gapless.protocol import PublicationsLost
from gapless.runtime.event_loop import run
from gapless.runtime.logs import client_logger
from tests.runtime.local import local


def test_a_message_names_the_client_and_the_broker(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "gapless.client")

    async def main() -> str:
        async with local(chain(2)) as network, connect(network.at("b0"), name="ann") as client:
            await client.advertise("TRUE")
            await client.publish({"n": 1})
            return client.name

    name = run(main())
    messages = [record.getMessage() for record in caplog.records if record.name == "gapless.client"]
    assert any(message.startswith(f"client {name}: connected (peer b0, address 127.0.0.1:") for message in messages)


def test_lost_publications_are_named_in_the_message(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> str:
        async with local(1, f=0) as network, connect(network.url) as client:
            client._publishing.on_lost(PublicationsLost([(3, 5), (7, 7)]))
            return client.name

    name = run(main())
    [said] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert said.startswith(f"client {name}: publications 3 to 5, 7 were confirmed and are now lost")


def test_names_of_peers_cannot_start_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    client_logger("ann").warning("disconnected", extra={"peer": "b0\nERROR forged %s"})
    assert caplog.messages == ["client ann: disconnected (peer b0\\nERROR forged %s)"]

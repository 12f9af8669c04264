"""A broker as a process: from its start to its exit code.

SIGTERM and SIGINT let it leave in good order. On SIGHUP it reads its certificates and users again, if there are any,
and does nothing else: a terminal that is closed sends SIGHUP, too. A bug of ours ends it at once, without a goodbye:
its state is in doubt, and the others bypass it. A broker whose disk fails says so in its goodbye. With `parent`, it
also leaves when that process is gone, so that no broker outlives the network it was started with.
"""

import asyncio
import gc
import os
import signal
from collections.abc import Callable
from typing import Any, Protocol

from gapless.errors import StorageError
from gapless.runtime.broker import Broker
from gapless.runtime.event_loop import run
from gapless.runtime.http_endpoint import HttpEndpoint
from gapless.runtime.network_file import NetworkConfig

__all__ = ["Endpoint", "run_broker"]

FAILED = 70
PARENT_S = 0.5


class Endpoint(Protocol):
    """The HTTP side of a broker."""

    async def start(self) -> None:
        """Listen where the network's file says."""

    def stop(self) -> None:
        """Listen no more."""


def run_broker(
    config: NetworkConfig, name: str, *, trace: str = "", parent: int = 0,
    endpoint: Callable[[Broker], Endpoint] = HttpEndpoint,
) -> int:  # fmt: skip
    """Serve until told to stop; return the exit code. `endpoint` makes the HTTP side, if the broker has one."""
    return run(_serve(config, name, trace, parent, endpoint))


async def _serve(config: NetworkConfig, name: str, trace: str, parent: int, make: Callable[[Broker], Endpoint]) -> int:
    broker = Broker(config, name, trace=trace)
    told_to_stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told_to_stop.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _hang_up, broker)
    endpoint = make(broker) if broker.entry.http else None
    if endpoint is not None:
        await endpoint.start()
    starting = asyncio.create_task(broker.start())
    stopping = asyncio.create_task(told_to_stop.wait())
    watching = asyncio.create_task(_watch(parent, told_to_stop))
    try:
        await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            _tune_cycle_collector()
            ends: list[asyncio.Future[Any]] = [stopping, broker.failure]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        else:
            starting.cancel()
        if broker.failure.done():
            error = broker.failure.result()
            if isinstance(error, StorageError):
                broker.logger.critical(f"leaves, for it has no disk any more: {error}")
                await broker.links.close(reason=str(error))
            else:
                broker.logger.critical("failed: this is a bug of ours", exc_info=error)
                await broker.links.close(with_goodbye=False)
            return FAILED
        await broker.stop()
        return 0
    finally:
        watching.cancel()
        if endpoint is not None:
            endpoint.stop()


def _hang_up(broker: Broker) -> None:
    if broker.broker_security is None:
        broker.logger.info("SIGHUP: the network's file is read at the start only; SIGTERM lets the broker leave")
    else:
        broker.reloading = asyncio.get_running_loop().create_task(broker.broker_security.reload("SIGHUP"))


def _tune_cycle_collector() -> None:
    """What is there by now stays. Cycles are looked for among what is young, a hundred thousand objects at a time, some
    ten milliseconds. What has grown old has none worth a turn of a second: clients that come and go leave nothing."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 4, 10_000)


async def _watch(parent: int, told_to_stop: asyncio.Event) -> None:
    while parent and os.getppid() == parent:
        await asyncio.sleep(PARENT_S)
    if parent:
        told_to_stop.set()

"""Runs a broker as a process, from its start to its exit code.

SIGTERM and SIGINT stop it gracefully. SIGHUP makes it reload its certificates and users, if there
are any, and does nothing else, because closing a terminal sends SIGHUP, too. After an internal
error it exits at once, without a goodbye: its state is in doubt, and the other brokers bypass it. A
broker whose disk fails says so in its goodbye. With `parent`, it also stops when that process has
ended, so that no broker outlives the network it was started with.
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
"""The exit code after an internal error."""
UNUSABLE_DATA = 64
"""The exit code after a failure of the disk, and if the data directory cannot be opened at the start. A restart does
not repair it."""
PARENT_S = 0.5


class Endpoint(Protocol):
    """The HTTP endpoint of a broker, which the caller can replace."""

    async def start(self) -> None:
        """Listen on the address in the network's file."""

    def stop(self) -> None:
        """Stop listening."""


def run_broker(
    config: NetworkConfig, name: str, *, trace: str = "", parent: int = 0,
    endpoint: Callable[[Broker], Endpoint] = HttpEndpoint,
) -> int:  # fmt: skip
    """Run a broker until a signal arrives or it fails. Return the exit code. `endpoint` creates the HTTP endpoint, if
    the broker has one.
    """
    return run(_serve(config, name, trace, parent, endpoint))


async def _serve(config: NetworkConfig, name: str, trace: str, parent: int, make: Callable[[Broker], Endpoint]) -> int:
    broker = Broker(config, name, trace=trace)
    stop_requested = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_requested.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _on_sighup, broker)
    endpoint = make(broker) if broker.entry.http else None
    if endpoint is not None:
        await endpoint.start()
    starting = asyncio.create_task(broker.start())
    stopping = asyncio.create_task(stop_requested.wait())
    watching = asyncio.create_task(_watch(parent, stop_requested))
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
                broker.logger.critical(
                    f"shutting down, because the data directory is unusable: {error}",
                    extra={"event": "broker.disk_failed"},
                )
                await broker.links.close(reason=str(error))
                return UNUSABLE_DATA
            broker.logger.critical("failed: this is a bug in Gapless", exc_info=error, extra={"event": "broker.failed"})
            await broker.links.close(with_goodbye=False)
            return FAILED
        await broker.stop()
        return 0
    finally:
        watching.cancel()
        if endpoint is not None:
            endpoint.stop()


def _on_sighup(broker: Broker) -> None:
    if broker.broker_security is None:
        broker.logger.info(
            "SIGHUP: the network's file is read only at the start; send SIGTERM to stop the broker",
            extra={"event": "broker.sighup"},
        )
    else:
        broker.reloading = asyncio.get_running_loop().create_task(broker.broker_security.reload("SIGHUP"))


def _tune_cycle_collector() -> None:
    """Exempt existing objects from garbage collection, and collect only young ones: a hundred thousand at a time, in
    about ten milliseconds. A collection of old objects would take a second and find nothing, because clients leave no
    cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 4, 10_000)


async def _watch(parent: int, stop_requested: asyncio.Event) -> None:
    while parent and os.getppid() == parent:
        await asyncio.sleep(PARENT_S)
    if parent:
        stop_requested.set()

"""A network in this process: brokers on free ports of loopback, in the event loop of the test."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import msgspec

from gapless.overlay import Overlay
from gapless.runtime.broker import Broker
from gapless.runtime.fleet import local_network
from gapless.runtime.network_file import NetworkConfig, ProtocolEntry
from gapless.runtime.settings import RuntimeSettings
from gapless.security.limits import Limits

__all__ = ["QUICK", "Local", "local"]

QUICK = RuntimeSettings(heartbeat_ms=50, suspect_ms=400, hello_ms=400, join_ms=500, drain_ms=500, redial_max_ms=100)
"""Settings for short tests that also work on a busy machine."""

UNCHANGED = Limits()


class Local:
    """The brokers of one network."""

    def __init__(self, config: NetworkConfig) -> None:
        self.config = config
        self.brokers: dict[str, Broker] = {}
        self.ahead_s: dict[str, float] = {}
        """How far the clock of each broker's host is ahead; tests can change it while the broker runs."""

    def _wall_ns(self, name: str) -> int:
        return time.time_ns() + int(self.ahead_s[name] * 1e9)

    @property
    def url(self) -> str:
        return self.config.url

    def at(self, name: str) -> str:
        return f"gapless://{self.config.addresses[name]}"

    async def start(self, name: str, *, ahead_s: float = 0.0) -> Broker:
        """Start or restart a broker, optionally with a wrong clock."""
        self.ahead_s[name] = ahead_s
        wall_ns = partial(self._wall_ns, name)
        broker = self.brokers[name] = Broker(self.config, name, wall_ns=wall_ns)
        await broker.start()
        return broker

    async def crash(self, name: str) -> None:
        await self.brokers.pop(name).crash()

    async def stop(self) -> None:
        for name in list(self.brokers):
            await self.brokers.pop(name).stop()


@asynccontextmanager
async def local(
    overlay: Overlay | int,
    *,
    f: int | None = None,
    protocol: str = "gapless",
    runtime: RuntimeSettings = QUICK,
    limits: Limits = UNCHANGED,
    **options: float | str,
) -> AsyncIterator[Local]:
    config = local_network(overlay, f=f, protocol=ProtocolEntry(protocol, dict(options)), runtime=runtime)
    config = msgspec.structs.replace(config, limits=limits)
    network = Local(config)
    try:
        await asyncio.gather(*(network.start(name) for name in config.overlay.brokers))
        yield network
    finally:
        failures = [broker.failure.result() for broker in network.brokers.values() if broker.failure.done()]
        await network.stop()
        for failure in failures:
            raise failure  # instead of the error that the failure caused in the test

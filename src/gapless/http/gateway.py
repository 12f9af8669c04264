"""The state that all requests to one broker's HTTP interface share."""

import asyncio
from contextlib import suppress

from gapless.http.callers import Callers
from gapless.http.clients import Clients
from gapless.http.durable import DurableStreams
from gapless.http.durable_lists import DurableLists
from gapless.http.feed import Feeds
from gapless.http.idempotency import Outcomes
from gapless.http.network_view import NetworkView
from gapless.http.step_meter import StepMeter
from gapless.runtime.broker import Broker
from gapless.runtime.metrics import Metrics

__all__ = ["Gateway"]

PRUNE_S = 5.0


class Gateway:
    """Holds the shared parts of one broker's gateway, and starts and stops them."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.settings = broker.config.http
        self.metrics = Metrics(broker)
        self.callers = Callers(broker)
        self.durable = DurableStreams()
        self.outcomes = Outcomes()
        self.steps = StepMeter(broker.links.meter)
        self.clients = Clients(broker, self.callers, self.steps)
        self.durables = DurableLists(self.clients, self.steps)
        self.network = NetworkView(broker, self.steps)
        self.feeds = Feeds()
        self.is_stopping = asyncio.Event()
        """Set when the broker stops; all streams then end."""
        self._tidying: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the periodic tasks, before the first request."""
        self._tidying = asyncio.get_running_loop().create_task(self._prune())

    async def _prune(self) -> None:
        while True:
            await asyncio.sleep(PRUNE_S)
            self.clients.prune()
            self.outcomes.prune()
            self.durables.prune()

    def stop(self) -> None:
        """End all streams, and stop the periodic tasks."""
        self.is_stopping.set()
        if self._tidying is not None:
            self._tidying.cancel()

    async def close(self) -> None:
        """Close all clients."""
        if self._tidying is not None:
            with suppress(asyncio.CancelledError):
                await self._tidying
        await self.clients.close()

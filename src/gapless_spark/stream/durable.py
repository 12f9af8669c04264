"""The durable position of a query, stored by brokers.

It is a durable subscription of the network without an attached client. `gapless subscriptions` lists it with its lag.
"""

import logging

from gapless.client import Client
from gapless.errors import GaplessError, SparkError
from gapless.names import DurableInfo
from gapless.positions import Position
from gapless_spark.stream.connection import in_time
from gapless_spark.stream.options import Options

__all__ = ["DurablePosition"]

_logger = logging.getLogger("gapless.spark")


class DurablePosition:
    """The durable position of one query, set by the option `durable`."""

    def __init__(self, options: Options, client: Client) -> None:
        self._options = options
        self._client = client
        self._moved: Position | None = None

    async def find(self) -> Position | None:
        """Return the position; None if the network does not know it. Raise a `SparkError` if it belongs to another
        user."""
        found = await self._info()
        if found is None:
            return None
        name = self._options.durable
        if found.client or found.is_shared:
            raise SparkError(
                f"the durable subscription {name!r} is used by client {found.client or 'of a group'}; give this query "
                "another name with the option 'durable'"
            )
        if found.filter != self._options.filter:
            raise SparkError(
                f"the durable subscription {name!r} has the filter {found.filter!r}, not {self._options.filter!r}; "
                f"give this query another name with the option 'durable', or delete it (gapless subscriptions delete)"
            )
        self._moved = found.position
        return found.position

    async def create(self, position: Position) -> None:
        """Create the durable subscription in the network, at this position."""
        subscription = await self._client.durable(self._options.durable, self._options.filter, ack="manual")
        await subscription.close()
        await self._client.admin.move(self._options.durable, position)
        self._moved = position

    async def move(self, position: Position) -> None:
        """Record that everything up to this position is processed. If brokers cannot store that now, a later call
        stores it."""
        if self._moved is not None and position <= self._moved:
            return
        try:
            await in_time(self._options, self._client.admin.move(self._options.durable, position))
            self._moved = position
        except GaplessError as error:
            _logger.warning(f"the durable position {self._options.durable!r} was not moved this time: {error}")

    async def _info(self) -> DurableInfo | None:
        listed = await self._client.admin.list()
        return next((each for each in listed if each.name == self._options.durable), None)

"""The send queues of one node's peers, and the back-pressure that they apply.

The messages for one peer in one turn of the event loop leave in as few frames as possible, in one
write. If a connection takes no more, messages wait in the peer's outbox. From `queue_pause`
messages on, clients are not read, which applies back-pressure to publishers. At `queue_max` the
connection is closed. No message is ever removed from the middle.
"""

import asyncio
from collections.abc import Callable

from gapless.errors import WireError
from gapless.runtime.codec import Codec
from gapless.runtime.connection import Connection, Link
from gapless.runtime.counters import Counters
from gapless.runtime.logs import Logger
from gapless.runtime.settings import RuntimeSettings

__all__ = ["Queues"]

ROOM_S = 0.005


class Queues:
    """The outboxes of one node's links. `give_up` closes a connection whose queue is full."""

    def __init__(
        self,
        links: dict[str, Link],
        settings: RuntimeSettings,
        codec: Codec,
        counters: Counters,
        *,
        give_up: Callable[[Link], None],
        logger: Logger,
    ) -> None:
        self.is_paused = False
        """Whether reading from clients is paused because a queue is too long."""
        self._links = links
        self._settings = settings
        self._codec = codec
        self._counters = counters
        self._give_up = give_up
        self._logger = logger
        self._congested: dict[Link, None] = {}

    # ---- sending ------------------------------------------------------------------------------------------

    def flush(self, dirty: list[Link]) -> None:
        """Send the pending messages of these links, as far as their connections accept data."""
        for link in dirty:
            connection = link.connection
            if connection is None:
                self._keep_or_lose(link)
            elif connection.is_congested:
                self._congested[link] = None
            else:
                self._send(link, connection)
        self.look()

    def _keep_or_lose(self, link: Link) -> None:
        if link.was_up or len(link.outbox) > self._settings.queue_max:
            self._counters.lost += len(link.outbox)
            link.outbox.clear()

    def _send(self, link: Link, connection: Connection) -> None:
        outbox = link.outbox
        batch_max = self._settings.batch_max
        try:
            if len(outbox) <= batch_max:
                self._counters.messages_out += len(outbox)
                connection.write(self._codec.frames(outbox))
                outbox.clear()
                return
            start = 0
            while start < len(outbox) and not connection.is_congested:
                connection.write(self._codec.frames(outbox[start : start + batch_max]))
                start += batch_max
            self._counters.messages_out += min(start, len(outbox))
            del outbox[:start]
        except WireError as error:
            self._logger.error(
                f"a message cannot be sent: {error}", extra={"event": "message.unsendable", "peer": link.name}
            )
            self._give_up(link)
            return
        if outbox:
            self._congested[link] = None

    def drained(self, connection: Connection) -> None:
        """Continue to send to a peer whose connection accepts data again."""
        link = connection.link
        if link is not None and self._congested.pop(link, 0) is None:
            self._send(link, connection)
            self._look()

    def forget(self, link: Link) -> None:
        """Discard the queue of a closed connection."""
        link.outbox.clear()
        if self._congested.pop(link, 0) is None:
            self._look()

    def leave(self, link: Link) -> None:
        """Drop the link. Its connection still sends the messages that it has accepted."""
        self._congested.pop(link, None)

    # ---- back-pressure --------------------------------------------------------------------------------------

    def look(self) -> None:
        """Check the queues of congested connections, which grow without being sent."""
        if self._congested:
            self._look()

    def _look(self) -> None:
        longest = 0
        for link in list(self._congested):
            waiting = len(link.outbox)
            if waiting > self._settings.queue_max:
                self._logger.error(
                    "closed a connection: its send queue is full",
                    extra={"event": "connection.congested", "peer": link.name},
                )
                self._give_up(link)
            else:
                longest = max(longest, waiting)
        if not self.is_paused and longest > self._settings.queue_pause:
            self.pause(True)
        elif self.is_paused and longest <= self._settings.queue_pause // 2:
            self.pause(False)

    def pause(self, is_paused: bool) -> None:
        """Pause or resume reading from clients."""
        self.is_paused = is_paused
        for link in self._links.values():
            if link.is_client and link.connection is not None:
                if is_paused:
                    link.connection.pause_reading()
                elif not link.connection.is_held:
                    link.connection.resume_reading()

    async def wait_for_room(self) -> None:
        """Wait until no queue is too long."""
        while any(len(link.outbox) >= self._settings.queue_pause for link in self._links.values()):
            await asyncio.sleep(ROOM_S)

    @property
    def unsent(self) -> int:
        """Return the number of messages and bytes that are not sent yet."""
        return sum(
            len(link.outbox) + link.connection.unsent() for link in self._links.values() if link.connection is not None
        )

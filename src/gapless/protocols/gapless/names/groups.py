"""What one broker does for groups that share a durable subscription: it passes on what their clients say to each other.

The client that listens deals out what comes to all in the group (see `groups/dealer`). It does so by messages to the
members, and not by events. One thing could go wrong, and brokers prevent it: a member could be dealt an event that has
not come by its broker, and publish an effect that reaches others sooner than the event does. So what is dealt waits at
the member's broker until a position is final there that lies after the event. By then the event has left for all its
destinations, before the wave that says so came by here (see `waves`). Whatever is published here follows it, as if the
event had been read out of history.

A broker knows which clients are in the group of a name, because they opened the name here, which needs a right. With
each attachment a client has to open it again, so that its rights of then count. The broker hears nobody else, and lets
nobody speak for another. A message for a client that has gone is lost, as any message may be: clients say everything
again.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from gapless.protocols.gapless.client_messages import ClientHand, NameHanded
from gapless.protocols.gapless.clients.desk import Desk
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.name_messages import GroupDeal, GroupReport, HandName
from gapless.protocols.gapless.retention.waves import Waves

__all__ = ["Groups"]

WAITING_MAX = 64
"""How many messages for one client wait for a position."""


class Groups:
    """Those of the clients of one broker."""

    def __init__(
        self,
        broker: str,
        desk: Desk,
        waves: Waves,
        send: Callable[[str, HandName], None],
        send_client: Callable[[str, Any], None],
        is_broker: Callable[[str], bool],
    ) -> None:
        """Clients say at which broker the other is: `is_broker` tells whether there is one."""
        self._is_broker = is_broker
        self._broker = broker
        self._desk = desk
        self._waves = waves
        self._send = send
        self._send_client = send_client
        self._lines: dict[str, tuple[int, dict[str, str]]] = {}
        """By client: its attempt; and by name, the subscription under which it is in the group since then."""
        self._waiting: dict[str, deque[HandName]] = {}
        """By client: what was dealt to it and lies after the last final position."""
        self._final = 0

    def enter(self, session: Session, name: str, subscription: str) -> None:
        """A client has opened a name that a group shares, or deals for it."""
        self._lines[session.client] = (session.attempt, {**self._lines_of(session), name: subscription})

    def _lines_of(self, session: Session) -> dict[str, str]:
        attempt, lines = self._lines.get(session.client, (-1, {}))
        return lines if attempt == session.attempt else {}

    def say(self, session: Session, call: ClientHand) -> None:
        """A client has something to say to another."""
        is_in = self._lines_of(session).get(call.name) == call.subscription
        is_own = not isinstance(call.word, GroupReport) or call.word.line == call.subscription
        if is_in and is_own and self._is_broker(call.broker):
            self._send(call.broker, HandName(call.name, session.client, self._broker, call.client, call.word))

    def hear(self, message: HandName) -> None:
        """A client elsewhere, or here, has something to say to one of this broker's."""
        if not isinstance(message.word, GroupDeal) or self._is_final(message.word):
            self._pass_on(message)
            return
        waiting = self._waiting.setdefault(message.to, deque())
        if len(waiting) < WAITING_MAX:
            waiting.append(message)

    def _is_final(self, deal: GroupDeal) -> bool:
        return max((event.stamp for _, event, _ in deal.items), default=0) <= self._waves.final

    def _pass_on(self, message: HandName) -> None:
        session = self._desk.sessions.get(message.to)
        line = None if session is None else self._lines_of(session).get(message.name)
        if session is not None and line is not None and not session.is_orphan:
            self._send_client(
                message.to, NameHanded(session.attempt, line, message.client, message.broker, message.word)
            )

    def go_on(self) -> None:
        """A later position may be final."""
        if self._waves.final == self._final:
            return
        self._final = self._waves.final
        for client in [client for client in self._lines if client not in self._desk.sessions]:
            del self._lines[client]
        for client in list(self._waiting):
            waiting = self._waiting.pop(client)
            for message in waiting:
                self.hear(message)

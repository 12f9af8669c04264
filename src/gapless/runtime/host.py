"""Runs one protocol node: passes it one input at a time, and carries out its effects.

It implements the contract of `gapless.protocol`: all effects are carried out before the next input,
time never goes backwards, and setting a timer again replaces it. The loop in `receive` is the hot
path of a broker. A message costs one step of the node, and for each resulting message a dictionary
lookup and an append. The links encode and write once per turn of the event loop, for everything
that has gathered.

If a client's message makes the node raise an external error (such as an unreadable filter), that
client is disconnected. Any other exception is a bug: the state of the node is in doubt, so the host
stops permanently and reports it, and the network bypasses this broker like any failed one.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gapless.errors import GaplessError
from gapless.protocol import Input, Node, Received, Send, SetTimer, TimerFired
from gapless.runtime.clock import SteadyClock, now_us
from gapless.runtime.connection import Link
from gapless.runtime.deferred_work import DeferredWork
from gapless.runtime.turn_meter import TurnMeter

__all__ = ["UNJUDGED", "NodeHost"]


LONG_TURN_US = 1_000
"""The duration in microseconds above which a turn of the event loop sends its messages before it ends."""


class _Unjudged:
    """The type of the value that `judge` returns if it had no time to check all of a message. The check is repeated in
    a later turn.
    """


UNJUDGED = _Unjudged()
AT_ONCE = 256
"""The number of peers to which messages are sent before other connections are read: each is a system call."""


class NodeHost:
    """Runs one node, and sends its messages."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        links: dict[str, Link],
        meter: TurnMeter,
        deferred: DeferredWork,
        *,
        open_link: Callable[[str], Link],
        flush: Callable[[list[Link]], None],
        failed: Callable[[BaseException], None],
        handlers: Mapping[type, Callable[[Any], None]],
        clock: SteadyClock,
    ) -> None:
        self.node: Node | None = None
        self.steps = 0
        self.clock = clock
        """The clock of the node."""
        self._loop = loop
        self._links = links
        self._meter = meter
        self._deferred = deferred
        self._open_link = open_link
        self._flush = flush
        self._failed = failed
        self._handlers: dict[type, Callable[[Any], None]] = {**handlers, SetTimer: self._set_timer}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._dirty: list[Link] = []
        """The peers with unsent messages."""
        self._sending: list[Link] = []
        """The peers to send to in this turn, in reverse order."""
        self._is_flush_planned = False
        self._dirty_since = 0

    def set_node(self, node: Node) -> None:
        """Run this node. The previous one is dropped with its timers."""
        self.leave()
        self.clock.set()
        self.node = node

    def leave(self) -> None:
        """Stop passing inputs to the node."""
        self.node = None
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    # ---- inputs -------------------------------------------------------------------------------------------

    def give(self, item: Input) -> None:
        """Pass one input to the node."""
        if self.node is None:
            return
        self.steps += 1
        begun = self._meter.begin()
        try:
            self.carry_out(self.node.step(item, self.clock()))
        except Exception as error:
            self._fail(error)
        finally:
            self._meter.end(begun, "", item)

    def receive(
        self, link: Link, messages: list[Any], deadline_us: int, judge: Callable[[Link, Any], Any] | None = None
    ) -> list[Any]:
        """Process messages of a peer while there is time; return the rest. At least one is processed, or a part of it
        checked.

        `judge` returns each message as the node may see it, None if it is refused, or `UNJUDGED`. Errors that the
        sender caused are raised, so that the caller can notify it.
        """
        node = self.node
        if node is None:
            return []
        peer, step, now = link.name, node.step, self.clock()
        links, dirty, handlers = self._links, self._dirty, self._handlers
        taken = 0
        try:
            for message in messages:
                if taken and now_us() > deadline_us:
                    break
                if judge is not None:
                    message = judge(link, message)
                    if message is UNJUDGED:
                        break
                taken += 1
                if message is None:
                    continue
                for effect in step(Received(peer, message), now):
                    if effect.__class__ is Send:
                        target = links.get(effect.peer)
                        if target is None:
                            target = self._open_link(effect.peer)
                        outbox = target.outbox
                        if not outbox:
                            dirty.append(target)
                        outbox.append(effect.message)
                    else:
                        handlers[effect.__class__](effect)
        except GaplessError as error:
            if link.is_client:
                raise
            self._fail(error)
        except Exception as error:
            self._fail(error)
        self.steps += taken
        if dirty and not self._is_flush_planned:
            self._plan_flush()
        elif dirty and now_us() - self._dirty_since > LONG_TURN_US:
            self.flush()
        return messages[taken:] if self.node is node else []

    def carry_out(self, effects: Sequence[Any]) -> None:
        """Carry out effects, in order."""
        for effect in effects:
            if effect.__class__ is Send:
                target = self._links.get(effect.peer) or self._open_link(effect.peer)
                if not target.outbox:
                    self._dirty.append(target)
                target.outbox.append(effect.message)
            else:
                self._handlers[effect.__class__](effect)
        if self._dirty and not self._is_flush_planned:
            self._plan_flush()

    def _fail(self, error: Exception) -> None:
        self.leave()
        self._failed(error)

    # ---- effects ------------------------------------------------------------------------------------------

    def _plan_flush(self) -> None:
        self._is_flush_planned = True
        self._dirty_since = now_us()
        self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send the pending messages to all peers. With very many peers, send to some of them now and to the others in
        later turns.

        The peer with the latest message comes first. A broker confirms an event before it forwards it, and on few
        processors the publisher that receives the confirmation delays the broker by some tenths of a millisecond.
        """
        begun = self._meter.begin()
        self._is_flush_planned = False
        if not self._sending:
            self._sending = self._dirty.copy()
            self._dirty.clear()
        chosen = [link for link in self._sending[: -AT_ONCE - 1 : -1] if link.outbox]
        del self._sending[-AT_ONCE:]
        try:
            self._flush(chosen)
        finally:
            self._meter.end(begun, f"sending to {len(chosen)} peers", "")
            if self._sending or self._dirty:
                self._plan_flush()

    def _set_timer(self, effect: SetTimer) -> None:
        running = self._timers.get(effect.key)
        if running is not None:
            running.cancel()
        self._timers[effect.key] = self._loop.call_later(effect.delay_us / 1e6, self._fire, effect.key)

    def _fire(self, key: str) -> None:
        del self._timers[key]
        self._deferred.do(partial(self._fire_timer, self.node, key))

    def _fire_timer(self, node: Node | None, key: str) -> None:
        if node is self.node and key not in self._timers:
            self.give(TimerFired(key))

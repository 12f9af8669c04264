"""The host: gives one node its inputs, one at a time, and carries out what they cause.

It keeps the promises of `gapless.protocol`: each effect is carried out before the next input, time does not run
backwards, a timer set again replaces the one that runs. The loop in `receive` is the hot path of a broker. A message
costs one step of the node, and for each message that this causes a dictionary lookup and an append; encoding and
writing are done by the links, once a turn of the event loop, for all that has gathered.

If a node fails on what a client sent with an error of the outside world (a filter that cannot be read), that client is
sent away. Any other exception is a bug of ours: the node's state is in doubt, so the host stops for good and says so,
and the network goes round this broker as round any dead one.
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
"""A turn of the event loop that takes longer sends what it has, so that others need not wait for its end."""


class _Unjudged:
    """What `judge` returns if there was no time to judge all of a message: it comes again in a later turn."""


UNJUDGED = _Unjudged()
AT_ONCE = 256
"""To so many peers it is sent before others are heard: each is a call of the system."""


class NodeHost:
    """Drives one node."""

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
        """What the node is told the time by."""
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
        """Peers for whom something has gathered."""
        self._sending: list[Link] = []
        """Of those, who has his turn; the last comes first."""
        self._is_flush_planned = False
        self._dirty_since = 0

    def inhabit(self, node: Node) -> None:
        """Let this node live here; one that did is forgotten, with its timers."""
        self.leave()
        self.clock.set()
        self.node = node

    def leave(self) -> None:
        """Nothing is given to the node any more."""
        self.node = None
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    # ---- inputs -------------------------------------------------------------------------------------------

    def give(self, item: Input) -> None:
        """One input."""
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
        """Messages from a peer; returns those for which there was no time, but takes one at least, or judges a part.

        `judge` returns each as the node may see it, None if it may not, or `UNJUDGED`.
        An error of the outside world is raised, for its sender to hear of.
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
        """Send what has gathered, to all peers; if they are very many, to some, and to the others in the next turns.

        Who was spoken to last comes first. A broker confirms an event before it passes it on, and where processors are
        few, the publisher that hears of it takes the broker's away for some tenths of a millisecond.
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
        self._deferred.do(partial(self._tell_time, self.node, key))

    def _tell_time(self, node: Node | None, key: str) -> None:
        """It is time, unless the timer was set again since, or nobody waits for it any more."""
        if node is self.node and key not in self._timers:
            self.give(TimerFired(key))

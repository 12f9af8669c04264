"""The causal multicast: a message to a broker is processed there after all messages sent there before it.

Each message belongs to a **stream** and has a number in it: the events of a publisher are a stream, and each broker's
own messages are one. A broker processes a message when it has all the messages it must have before, and then forwards
it (`regions`), on each link in the order of processing. Messages arrive by several paths; the first copy counts.

**Causal metadata.** A broker keeps, for each other broker, the highest number of each stream that it knows to be in
transit to it: from its own messages, and from the metadata of messages that it processed. A message carries this table
as it was when it was sent. Its receiver looks up its own row, and waits until it has processed those numbers. Streams
are processed in order, so one number covers all earlier ones. This is the matrix of Raynal, Schiper and Toueg, for
multicast messages; the paper on LoCaMu restricts it to the neighbourhood, we restrict it to messages in transit.
Receivers report to the origin what they have processed (`Done`); messages processed by all are *settled*, and are
removed from the tables.

**Failures.** A failed broker needs no messages, and its own messages that were not received everywhere are void: they
concerned its own subscriptions and publishers. Events are never void: the broker that takes over their publisher sends
them again under the same numbers. While at most f brokers in a row fail (in other graphs: in all), every message keeps
a path.

**Carrying.** A broker can add receivers to a message that its origin did not know of; it is forwarded to them after all
messages forwarded before. They are not in the table, so the caller must ensure that this is sufficient.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from gapless.protocols.parts.forgetting import forget_oldest
from gapless_papers.protocols.locamu.regions import Regions

__all__ = ["CausalMulticast", "Due", "Packet"]

Due: TypeAlias = dict[str, dict[str, int]]
"""By broker and stream, the number up to which the broker must have processed the stream first."""

Packet: TypeAlias = Any
"""A message with the fields `stream`, `number`, `origin`, `ends`, `due`, `settled` and `content`."""

COPIES_MAX = 10_000
"""The number of messages whose origins and added receivers are remembered, so that each copy is forwarded once."""


_NOTHING: Due = {}
_NOBODY: dict[str, int] = {}


class _Arrived:
    """A message that has arrived and waits for others."""

    def __init__(self, packet: Packet) -> None:
        self.packet = packet
        self.senders: dict[str, None] = {}
        self.extra: dict[str, None] = {}
        self.again: dict[str, Packet] = {}
        """Copies of the message by other origins, which sent it again and possibly to further receivers.

        The smallest counterexample: p's broker b2 sends event 1 to b0 by way of b5, where it waits, and crashes. b0
        takes over p and sends event 1 to all brokers. If b5 treated that as a mere copy, b4 would not get it.
        """


class CausalMulticast:
    """One broker's part of the multicast."""

    def __init__(
        self,
        name: str,
        regions: Regions,
        make_packet: Callable[..., Packet],
        send: Callable[[str, Packet, tuple[str, ...]], None],
        deliver: Callable[[Packet], None],
        carry: Callable[[Packet], Iterable[str]],
        settled: Callable[[str, int], None],
    ) -> None:
        self.name = name
        self.due: Due = {}
        self.processed: dict[str, int] = {}
        self.settled: dict[str, int] = {}
        self.dead: dict[str, None] = {}
        self._regions = regions
        self._make = make_packet
        self._send = send
        self._deliver = deliver
        self._carry = carry
        self._send_settled = settled
        self._said = 0
        self._last_received: dict[str, Due] = {}
        """The latest table received from each broker; its rows have been merged."""
        self._waiting: dict[tuple[str, int], _Arrived] = {}
        self._carried: dict[tuple[str, int], dict[str, None]] = {}
        self._origins: dict[tuple[str, int], dict[str, None]] = {}
        self._open: dict[str, dict[int, dict[str, None]]] = {}
        """Own messages by stream and number, with the brokers that have not processed them."""
        self._thanks: dict[str, dict[str, int]] = {}
        """By origin and stream, the number up to which messages were processed here and not reported yet."""

    @property
    def waiting(self) -> int:
        """Return how many messages wait for others."""
        return len(self._waiting)

    @property
    def unsettled(self) -> int:
        """Return how many own messages are not processed by all receivers."""
        return sum(map(len, self._open.values()))

    # ---- sending ------------------------------------------------------------------------------------------

    def say(self, ends: Iterable[str], content: Any) -> int:
        """Send a message of this broker's own stream."""
        self._said += 1
        self.send(self.name, self._said, ends, content)
        return self._said

    def send(self, stream: str, number: int, ends: Iterable[str], content: Any) -> None:
        """Send the next message of a stream that originates here; this broker counts as having processed it."""
        goal = tuple(sorted({end for end in ends if end != self.name}))
        self.processed[stream] = number
        if not goal:
            self._settle(stream)
            return
        packet = self._packet(stream, number, goal, dict(self.due), content)
        self._seen(packet)
        self._note(packet)
        self._pass_on(packet, (), ())

    def send_again(self, stream: str, number: int, ends: Iterable[str], due: Due, content: Any) -> None:
        """Send a message of another origin again, with its original past. It is processed here in turn."""
        goal = tuple(sorted({end for end in ends if end != self.name}))
        self.receive(self.name, self._packet(stream, number, goal, due, content), ())

    def _packet(self, stream: str, number: int, goal: tuple[str, ...], due: Due, content: Any) -> Packet:
        region = self._regions.of(self.name, goal)
        missing = dict.fromkeys(name for name in region.brokers if name != self.name and name not in self.dead)
        self._open.setdefault(stream, {})[number] = missing
        return self._make(stream, number, self.name, goal, due, self.settled, content)

    # ---- receiving ----------------------------------------------------------------------------------------

    def receive(self, sender: str, packet: Packet, extra: tuple[str, ...]) -> None:
        """Process a copy of a message."""
        key = (packet.stream, packet.number)
        self._receive_settled(packet.settled)
        if packet.number <= self.processed.get(packet.stream, 0):
            self._repeat(packet, extra)
            return
        arrived = self._waiting.get(key)
        if arrived is None:
            arrived = self._waiting[key] = _Arrived(packet)
        if packet.origin != arrived.packet.origin:
            arrived.again[packet.origin] = packet
        arrived.senders[sender] = None
        arrived.extra.update(dict.fromkeys(extra))
        self._drain()

    def _drain(self) -> None:
        """Process the messages that need not wait any longer, in the order of arrival."""
        again = True
        while again:
            again = False
            for key, arrived in list(self._waiting.items()):
                if key not in self._waiting:
                    continue
                if self._is_due(arrived.packet):
                    del self._waiting[key]
                    self._process(arrived)
                    for packet in arrived.again.values():
                        self._repeat(packet, ())
                    again = True
                    break

    def _is_due(self, packet: Packet) -> bool:
        needed = packet.due.get(self.name)
        return not needed or self.has(needed)

    def has(self, needed: dict[str, int]) -> bool:
        """Return whether this broker has processed each stream up to its number, or no longer has to."""
        processed, settled, dead = self.processed, self.settled, self.dead
        return all(
            processed.get(stream, 0) >= number or settled.get(stream, 0) >= number or stream in dead
            for stream, number in needed.items()
        )

    def _process(self, arrived: _Arrived) -> None:
        packet = arrived.packet
        stream, number = packet.stream, packet.number
        if number <= self.processed.get(stream, 0):
            self._repeat(packet, tuple(arrived.extra))
            return
        self.processed[stream] = number
        self._receive_due(packet.origin, packet.due)
        self._seen(packet)
        self._note(packet)
        self._thank(packet)
        arrived.extra.update(dict.fromkeys(end for end in self._carry(packet) if end not in packet.ends))
        extra = tuple(arrived.extra)
        if extra:
            self._remember(packet, extra)
        self._pass_on(packet, extra, tuple(arrived.senders))
        self._deliver(packet)

    def _pass_on(self, packet: Packet, extra: tuple[str, ...], senders: tuple[str, ...]) -> None:
        following = dict.fromkeys(self._regions.of(packet.origin, packet.ends).following.get(self.name, ()))
        for end in extra:
            following.update(dict.fromkeys(self._regions.way(packet.origin, end).following.get(self.name, ())))
        for name in following:
            if name not in self.dead and (name not in senders or extra):
                self._send(name, packet, extra)

    # ---- copies -------------------------------------------------------------------------------------------

    def _repeat(self, packet: Packet, extra: tuple[str, ...]) -> None:
        """Forward another copy of a processed message if it comes from another origin, or goes to new receivers."""
        if self._seen(packet):
            self._thank(packet)
            self._note(packet)
            self._pass_on(packet, extra, ())
            return
        done = self._carried.get((packet.stream, packet.number))
        fresh = tuple(end for end in extra if end not in packet.ends and (done is None or end not in done))
        if not fresh:
            return
        self._remember(packet, fresh)
        for end in fresh:
            for name in self._regions.way(packet.origin, end).following.get(self.name, ()):
                if name not in self.dead:
                    self._send(name, packet, fresh)

    def _seen(self, packet: Packet) -> bool:
        """Record the origin of a message; return whether it is new."""
        key = (packet.stream, packet.number)
        origins = self._origins.setdefault(key, {})
        if packet.origin in origins:
            return False
        forget_oldest(self._origins, COPIES_MAX)
        origins[packet.origin] = None
        return True

    def _thank(self, packet: Packet) -> None:
        if packet.origin != self.name:
            self._thanks.setdefault(packet.origin, {})[packet.stream] = self.processed[packet.stream]

    def _remember(self, packet: Packet, ends: tuple[str, ...]) -> None:
        key = (packet.stream, packet.number)
        self._carried.setdefault(key, {}).update(dict.fromkeys(ends))
        forget_oldest(self._carried, COPIES_MAX)

    # ---- messages in transit -------------------------------------------------------------------------------

    def _note(self, packet: Packet) -> None:
        """Record that every broker in the message's region must process it."""
        stream, number = packet.stream, packet.number
        if number <= self.settled.get(stream, 0):
            return
        for name in self._regions.of(packet.origin, packet.ends).brokers:
            if name != self.name and name not in self.dead:
                row = self.due.get(name)
                if row is None:
                    self.due[name] = {stream: number}
                elif row.get(stream, 0) < number:
                    self.due[name] = {**row, stream: number}

    def _receive_due(self, sender: str, due: Due) -> None:
        self.take_over(due, self._last_received.get(sender, _NOTHING))
        self._last_received[sender] = due

    def take_over(self, due: Due, before: Due = _NOTHING) -> None:
        """Merge a table into this broker's; rows that are unchanged since `before` are skipped."""
        settled = self.settled
        for name, row in due.items():
            if before.get(name) is row or name == self.name or name in self.dead:
                continue
            own = self.due.get(name, _NOBODY)
            news = {
                stream: number
                for stream, number in row.items()
                if number > own.get(stream, 0) and number > settled.get(stream, 0)
            }
            if news:
                self.due[name] = row if len(news) == len(row) and not own else {**own, **news}

    # ---- settled messages ---------------------------------------------------------------------------

    def thanks(self) -> dict[str, dict[str, int]]:
        """Return the report for each origin: how far this broker has processed its streams."""
        due_thanks, self._thanks = self._thanks, {}
        return {origin: done for origin, done in due_thanks.items() if origin not in self.dead}

    def receive_done(self, sender: str, done: dict[str, int], due: Due) -> None:
        """Process a receiver's report, and merge its table."""
        self._receive_due(sender, due)
        for stream, number in done.items():
            for own, missing in self._open.get(stream, {}).items():
                if own <= number:
                    missing.pop(sender, None)
            self._settle(stream)

    def _settle(self, stream: str) -> None:
        """Report how far the stream is settled, if that has changed."""
        open_ = self._open.get(stream, {})
        for number in [number for number, missing in open_.items() if not missing]:
            if number == next(iter(open_)):
                del open_[number]
        last = next(iter(open_)) - 1 if open_ else self.processed.get(stream, 0)
        if last > self.settled.get(stream, 0):
            self._receive_settled({stream: last})
            self._send_settled(stream, last)

    def _receive_settled(self, settled: dict[str, int]) -> None:
        if settled is self.settled:
            return
        news = {stream: number for stream, number in settled.items() if number > self.settled.get(stream, 0)}
        if news:
            self.settled = {**self.settled, **news}
            for name, row in list(self.due.items()):
                if any(row.get(stream, 0) and row[stream] <= number for stream, number in news.items()):
                    kept = {stream: n for stream, n in row.items() if n > news.get(stream, 0)}
                    if kept:
                        self.due[name] = kept
                    else:
                        del self.due[name]

    # ---- failures -----------------------------------------------------------------------------------------

    def exclude(self, name: str) -> None:
        """Exclude a broker that has failed permanently."""
        self.dead[name] = None
        self.due.pop(name, None)
        for stream, open_ in list(self._open.items()):
            for missing in open_.values():
                missing.pop(name, None)
            self._settle(stream)
        self._drain()

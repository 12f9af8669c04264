"""The causal multicast: what is sent to a broker arrives there after all that was sent there before it.

Each message belongs to a **stream** and has a number in it: the events of a publisher are a stream, and what a broker
says itself is one. A broker processes a message when everything is there that it must have had before, then passes it
on (`regions`), each link in the order of processing. Messages come by several ways; the first counts.

**Who must have what.** A broker keeps, for each other broker, the highest number of each stream that it knows to be
on its way there: from its own messages, and from what the messages that it processed knew. A message carries this
table as it was when it was sent. Its receiver looks up itself, and waits until it has processed so much. Streams are
processed in order, so one number stands for all before it. This is the matrix of Raynal, Schiper and Toueg, for
messages that go to many; the paper on LoCaMu keeps it to the neighbourhood, we keep it to what is on its way:
receivers tell the origin when they are done (`Done`), what all are done with is *settled*, and nobody mentions it any
more.

**Failures.** A broker that failed needs nothing, and what it said itself but did not bring through is void: it was
about subscriptions and publishers of its own. Events are never void: whoever takes their publisher over brings them
again under the same numbers. While at most f fail in a row (in other graphs: in all), every way leaves one for each
message.

**Carrying.** A broker can add ends to a message that its origin did not know of; it is passed on to them, behind all
that was passed on before. They are not in the table, so the caller has to know why that is enough.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from gapless.protocols.parts.forgetting import forget_oldest
from gapless_papers.protocols.locamu.regions import Regions

__all__ = ["CausalMulticast", "Due", "Packet"]

Due: TypeAlias = dict[str, dict[str, int]]
"""By broker and stream, the number up to which the broker has to have what it is sent."""

Packet: TypeAlias = Any
"""A message with the fields `stream`, `number`, `origin`, `ends`, `due`, `settled` and `content`."""

COPIES_MAX = 10_000
"""Messages whose origins and added ends are remembered, so that each copy is passed on once."""


_NOTHING: Due = {}
_NOBODY: dict[str, int] = {}


class _Arrived:
    """A message that is here and waits for others."""

    def __init__(self, packet: Packet) -> None:
        self.packet = packet
        self.senders: dict[str, None] = {}
        self.extra: dict[str, None] = {}
        self.again: dict[str, Packet] = {}
        """By origin: the same message from others who sent it again. They may mean further ends.

        The smallest story: p's broker b2 sends 1 to b0 by way of b5, where it waits, and fails. b0 takes p over, and
        sends 1 again, to everyone. If b5 took that for a further copy, it would not pass it on to b4.
        """


class CausalMulticast:
    """The part that one broker takes in it."""

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
        self._tell_settled = settled
        self._said = 0
        self._heard: dict[str, Due] = {}
        """The table that each broker sent last: its rows have been taken over."""
        self._waiting: dict[tuple[str, int], _Arrived] = {}
        self._carried: dict[tuple[str, int], dict[str, None]] = {}
        self._origins: dict[tuple[str, int], dict[str, None]] = {}
        self._open: dict[str, dict[int, dict[str, None]]] = {}
        """Of own messages, by stream and number: who is not done with it yet."""
        self._thanks: dict[str, dict[str, int]] = {}
        """By origin: what this broker is done with and has not said."""

    @property
    def waiting(self) -> int:
        """Messages that wait for others."""
        return len(self._waiting)

    @property
    def unsettled(self) -> int:
        """Own messages that someone is not done with."""
        return sum(map(len, self._open.values()))

    # ---- sending ------------------------------------------------------------------------------------------

    def say(self, ends: Iterable[str], content: Any) -> int:
        """Send a message of this broker's own stream."""
        self._said += 1
        self.send(self.name, self._said, ends, content)
        return self._said

    def send(self, stream: str, number: int, ends: Iterable[str], content: Any) -> None:
        """Send the next message of a stream that begins here; this broker itself is done with it."""
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
        """Send a message that began elsewhere, with the past that it had there. It is processed here in its turn."""
        goal = tuple(sorted({end for end in ends if end != self.name}))
        self.receive(self.name, self._packet(stream, number, goal, due, content), ())

    def _packet(self, stream: str, number: int, goal: tuple[str, ...], due: Due, content: Any) -> Packet:
        region = self._regions.of(self.name, goal)
        missing = dict.fromkeys(name for name in region.brokers if name != self.name and name not in self.dead)
        self._open.setdefault(stream, {})[number] = missing
        return self._make(stream, number, self.name, goal, due, self.settled, content)

    # ---- receiving ----------------------------------------------------------------------------------------

    def receive(self, sender: str, packet: Packet, extra: tuple[str, ...]) -> None:
        """A copy of a message."""
        key = (packet.stream, packet.number)
        self._hear_settled(packet.settled)
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
        """Process what has waited long enough, in the order of arrival."""
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
        """Whether this broker has processed so much of each stream, or need not."""
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
        self._hear_due(packet.origin, packet.due)
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
        """Another copy of what was processed: pass it on if it comes from another origin, or to ends that are new."""
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
        """Note the origin of a message; whether it is new."""
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

    # ---- who must have what -------------------------------------------------------------------------------

    def _note(self, packet: Packet) -> None:
        """Everyone in its region must have the message."""
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

    def _hear_due(self, sender: str, due: Due) -> None:
        self.take_over(due, self._heard.get(sender, _NOTHING))
        self._heard[sender] = due

    def take_over(self, due: Due, before: Due = _NOTHING) -> None:
        """Learn what others must have; rows that are the same as before are known."""
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

    # ---- what all are done with ---------------------------------------------------------------------------

    def thanks(self) -> dict[str, dict[str, int]]:
        """What to tell each origin now: up to where this broker is done with its streams."""
        told, self._thanks = self._thanks, {}
        return {origin: done for origin, done in told.items() if origin not in self.dead}

    def receive_done(self, sender: str, done: dict[str, int], due: Due) -> None:
        """A receiver is done with messages of this broker, and knew this by then."""
        self._hear_due(sender, due)
        for stream, number in done.items():
            for own, missing in self._open.get(stream, {}).items():
                if own <= number:
                    missing.pop(sender, None)
            self._settle(stream)

    def _settle(self, stream: str) -> None:
        """Tell how far the stream has come through, if that has changed."""
        open_ = self._open.get(stream, {})
        for number in [number for number, missing in open_.items() if not missing]:
            if number == next(iter(open_)):
                del open_[number]
        last = next(iter(open_)) - 1 if open_ else self.processed.get(stream, 0)
        if last > self.settled.get(stream, 0):
            self._hear_settled({stream: last})
            self._tell_settled(stream, last)

    def _hear_settled(self, settled: dict[str, int]) -> None:
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

    def bury(self, name: str) -> None:
        """A broker has failed for good."""
        self.dead[name] = None
        self.due.pop(name, None)
        for stream, open_ in list(self._open.items()):
            for missing in open_.values():
                missing.pop(name, None)
            self._settle(stream)
        self._drain()

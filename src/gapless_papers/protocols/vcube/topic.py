"""The state of one topic that a broker's clients use or have used."""

from collections import deque
from enum import Enum
from typing import TypeVar

from gapless.events import Event
from gapless_papers.protocols.vcube.causal_order import CausalOrder
from gapless_papers.protocols.vcube.messages import Answer, Cuts, Entry, Pub
from gapless_papers.protocols.vcube.view import View

__all__ = ["Answers", "Phase", "Topic", "Wave", "raise_to"]

Key = TypeVar("Key")


class Phase(Enum):
    """The broker's membership, a cycle of these states."""

    OUT = "out"
    JOINING = "joining"
    """Its `Sub` is in flight: others may count it as a member already, and it buffers messages."""
    MEMBER = "member"
    LEAVING = "leaving"
    """Its `Uns` is in flight: others may still count it as a member."""


class Answers:
    """The answers to a new member so far."""

    __slots__ = ("_entries", "last", "settled")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self.settled: dict[int, int] = {}
        self.last: dict[str, int] = {}

    def add(self, answer: Answer) -> None:
        """Add one answer."""
        self._entries += answer.entries
        raise_to(self.settled, answer.settled)
        raise_to(self.last, answer.last)

    def summary(self) -> Answer:
        """Return all answers merged into one."""
        return Answer(tuple(self._entries), self.settled, self.last)


class Wave:
    """A broadcast whose acknowledgements this broker awaits."""

    __slots__ = ("answers", "left", "name", "number", "parent")

    def __init__(self, topic: str, source: int, number: int, parent: int | None, left: int) -> None:
        self.name = (topic, source)
        """The identifier of the broadcast, unique at a time."""
        self.number = number
        self.parent = parent
        """The broker to notify when all receivers have acknowledged; None if the broadcast is this broker's own."""
        self.left = left
        self.answers: Answers | None = None

    def collect(self, answer: Answer) -> None:
        """Merge the answer of a broker behind this one."""
        if self.answers is None:
            self.answers = Answers()
        self.answers.add(answer)


class Topic:
    """One topic at one broker."""

    __slots__ = (
        "busy", "clock", "held", "last", "name", "on_its_way", "order", "phase", "queue", "subscribers", "uses", "view",
        "withheld",
    )  # fmt: skip

    def __init__(self, name: str, order: CausalOrder) -> None:
        self.name = name
        self.phase = Phase.OUT
        self.clock = 0
        """The number of the broker's latest `Sub` or `Uns`."""
        self.busy = False
        """Whether a broadcast of this broker is not acknowledged yet."""
        self.view = View()
        self.order = order
        self.last: dict[str, int] = {}
        """By publisher, the number of its last event that is settled here."""
        self.held: list[Pub] = []
        """Messages that arrived while joining."""
        self.withheld: list[Wave] = []
        """Acknowledgements withheld because too many messages wait."""
        self.queue: deque[Event] = deque()
        """Publications of clients that are not broadcast yet. (The paper's br_queue.)"""
        self.on_its_way: Event | None = None
        self.uses: dict[tuple[str, int], bool] = {}
        """The clients' subscriptions (True) and advertisements (False): while there are any, the broker is a member."""
        self.subscribers: dict[str, tuple[int, ...]] = {}
        """By client, the numbers of its subscriptions."""

    @property
    def is_member(self) -> bool:
        """Return whether the broker wants the topic's events."""
        return self.phase is Phase.MEMBER or self.phase is Phase.JOINING

    @property
    def backlog(self) -> int:
        """Return how many messages were received but not delivered."""
        return len(self.held) + self.order.waiting

    def use(self, client: str, number: int, delivers: bool) -> None:
        """Add a client's subscription or advertisement."""
        self.uses[client, number] = delivers
        if delivers:
            self.subscribers[client] = (*self.subscribers.get(client, ()), number)

    def end(self, client: str, number: int) -> None:
        """Remove a client's subscription or advertisement."""
        if self.uses.pop((client, number), False):
            rest = tuple(other for other in self.subscribers.pop(client) if other != number)
            if rest:
                self.subscribers[client] = rest

    def cuts(self) -> Cuts:
        """Return the cuts of a subscription that starts now."""
        return {publisher: seq + 1 for publisher, seq in self.last.items()}

    def answer(self, own: int, with_cuts: bool) -> Answer:
        """Return this broker's answer to a new member."""
        entry = (own, self.clock, self.is_member)
        return Answer((entry,), dict(self.order.settled), dict(self.last)) if with_cuts else Answer((entry,), {}, {})


def raise_to(numbers: dict[Key, int], others: dict[Key, int]) -> None:
    """Raise each key to the larger of both numbers."""
    for key, number in others.items():
        if number > numbers.get(key, 0):
            numbers[key] = number

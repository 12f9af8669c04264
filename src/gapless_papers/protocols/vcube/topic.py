"""What a broker keeps of one topic that its clients use, or have used."""

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
    """Where the broker stands; it goes round and round."""

    OUT = "out"
    JOINING = "joining"
    """Its `Sub` is on its way: it is counted as a member already, and keeps what it receives."""
    MEMBER = "member"
    LEAVING = "leaving"
    """Its `Uns` is on its way: some may still count it as a member."""


class Answers:
    """What was said to a new member, as far as it has come in."""

    __slots__ = ("_entries", "last", "settled")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self.settled: dict[int, int] = {}
        self.last: dict[str, int] = {}

    def add(self, answer: Answer) -> None:
        """One more answer."""
        self._entries += answer.entries
        raise_to(self.settled, answer.settled)
        raise_to(self.last, answer.last)

    def summary(self) -> Answer:
        """All of it as one answer."""
        return Answer(tuple(self._entries), self.settled, self.last)


class Wave:
    """A broadcast for which this broker awaits acknowledgements."""

    __slots__ = ("answers", "left", "name", "number", "parent")

    def __init__(self, topic: str, source: int, number: int, parent: int | None, left: int) -> None:
        self.name = (topic, source)
        """There is one of that name at a time."""
        self.number = number
        self.parent = parent
        """Who is to be told when all is acknowledged; None if it is the broker's own."""
        self.left = left
        self.answers: Answers | None = None

    def collect(self, answer: Answer) -> None:
        """Keep what someone behind has said."""
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
        """A broadcast of the broker's own is not acknowledged yet."""
        self.view = View()
        self.order = order
        self.last: dict[str, int] = {}
        """By publisher, the number of its last event that is settled here."""
        self.held: list[Pub] = []
        """What came while joining."""
        self.withheld: list[Wave] = []
        """What is not acknowledged because too much waits."""
        self.queue: deque[Event] = deque()
        """What clients have published and is not broadcast yet. (The paper's br_queue.)"""
        self.on_its_way: Event | None = None
        self.uses: dict[tuple[str, int], bool] = {}
        """The clients' subscriptions (True) and advertisements (False): while there are any, the broker is a member."""
        self.subscribers: dict[str, tuple[int, ...]] = {}
        """By client, the numbers of its subscriptions."""

    @property
    def is_member(self) -> bool:
        """Does the broker want what is published?"""
        return self.phase is Phase.MEMBER or self.phase is Phase.JOINING

    @property
    def backlog(self) -> int:
        """How much was received and is not delivered."""
        return len(self.held) + self.order.waiting

    def use(self, client: str, number: int, delivers: bool) -> None:
        """A client subscribes or advertises."""
        self.uses[client, number] = delivers
        if delivers:
            self.subscribers[client] = (*self.subscribers.get(client, ()), number)

    def end(self, client: str, number: int) -> None:
        """A client no longer does."""
        if self.uses.pop((client, number), False):
            rest = tuple(other for other in self.subscribers.pop(client) if other != number)
            if rest:
                self.subscribers[client] = rest

    def cuts(self) -> Cuts:
        """Where a subscription starts that starts now."""
        return {publisher: seq + 1 for publisher, seq in self.last.items()}

    def answer(self, own: int, with_cuts: bool) -> Answer:
        """What this broker says to a new member."""
        entry = (own, self.clock, self.is_member)
        return Answer((entry,), dict(self.order.settled), dict(self.last)) if with_cuts else Answer((entry,), {}, {})


def raise_to(numbers: dict[Key, int], others: dict[Key, int]) -> None:
    """The larger number of each key."""
    for key, number in others.items():
        if number > numbers.get(key, 0):
            numbers[key] = number

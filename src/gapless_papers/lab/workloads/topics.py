"""The common set-up of the experiments on topics (paper 002, section IV).

Every pair of brokers has a link, and each broker has one client. A broker transmits one copy after the other, so that a
queue builds up (`gapless.simulator.queueing`); after that, the copy takes the propagation time and the processing time.
One unit of the paper's time is a millisecond here. Members of topics are members from the start, and all brokers know
them, as in the paper's experiments.

Three choices follow from the paper's results. *Processing is a delay*, not a second queue: a message "must wait in
queue before being transmitted", and the queues of Table I fit better than with one. *Acknowledgements cost nothing* but
propagation: with one message of each of 1,024 nodes "any node transmits exactly 1024 messages", which leaves none for
them. *The message to the root* of a tree costs nothing either: the leaves of SRPT's tree, which transmit nothing else,
are listed with empty queues.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from gapless.errors import ExperimentError
from gapless.simulator import Scenario
from gapless.simulator.scenario import (
    Action,
    Client,
    Fault,
    LatencySpec,
    Network,
    NodeModelSpec,
    ProtocolChoice,
    Reply,
    Run,
    SubscribeAction,
)
from gapless_papers.lab.measures import Measure, Observed, Pair
from gapless_papers.lab.workloads.tree_queues import TreeQueues
from gapless_papers.lab.workloads.workload import ScenarioWorkload
from gapless_papers.protocols.srpt import PROTOCOL as SRPT
from gapless_papers.protocols.srpt.tree import root_of
from gapless_papers.protocols.vcube import PROTOCOL as VCUBE

__all__ = ["TopicWorkload", "Wanted"]

START_MS = 10.0
"""The time of the first action."""
SETTLE_MS = 1e7
"""How long a run can go on after the last call. It ends earlier if nothing is left to do, so a large value costs
nothing.
"""

Wanted = Mapping[str, Sequence[int]]
"""By topic, the numbers of the brokers that subscribe from the start."""


class TopicWorkload(ScenarioWorkload, frozen=True):
    """All times are milliseconds."""

    nodes: int
    """The number of nodes, a power of two."""
    propagation_ms: float = 100.0
    processing_ms: float = 1.0
    transmission_ms: float = 1.0
    jitter_ms: float = 0.0
    """The upper bound of an additional delay, drawn for each message."""
    first: Literal["largest", "smallest"] = "largest"
    """The part of the tree that a node sends to first."""
    free: tuple[str, ...] = ("Ack", "ToRoot")
    """Kinds of messages whose transmission takes no time."""
    processing_queue: bool = False
    """Whether messages also queue for the processor."""

    is_model: bool = False
    """Whether to compute latencies and queues from the trees alone (`tree_queues`), if the workload supports it. The
    results are the same as those of a run of the protocol, and much faster to get.
    """

    own_measures: ClassVar[tuple[str, ...]] = ("pub-messages",)

    def __post_init__(self) -> None:
        if self.nodes < 2 or self.nodes & (self.nodes - 1):
            raise ValueError(f"nodes is {self.nodes}, but must be a power of two")

    def measures(self) -> Mapping[str, Measure]:
        """Return the measure `pub-messages`, which counts the messages that the paper calls PUB."""
        return {"pub-messages": _pub_messages}

    def check_model(self) -> None:
        """Reject parameters that make messages wait for anything but transmitters, which models do not support."""
        if self.processing_queue or set(self.free) != {"Ack", "ToRoot"}:
            raise ExperimentError("is_model supports no queue for the processor, and no cost of an Ack or ToRoot")

    def compute(
        self, protocol: str, topics: Sequence[str], publications: Sequence[tuple[float, int, str]]
    ) -> Mapping[str, Iterable[Pair]]:
        """Return the queues of a run in which all nodes subscribe to everything, given the time, node, and topic of
        each call.
        """
        self.check_model()
        if self.jitter_ms:
            raise ExperimentError("is_model supports no jitter here")
        queues = TreeQueues(
            self.nodes, round(1000 * (self.propagation_ms + self.processing_ms)), round(1000 * self.transmission_ms),
            largest_first=self.first == "largest",
        )  # fmt: skip
        roots = {topic: root_of(topic, self.nodes) for topic in topics} if protocol == SRPT.name else None
        calls = [(round(1000 * at_ms), number, topic) for at_ms, number, topic in publications]
        return queues.run(calls, roots)

    def assemble(
        self, name: str, protocol: str, options: Mapping[str, Any], seed: int, wanted: Wanted, *,
        actions: Iterable[Action] = (), replies: Iterable[Reply] = (), faults: Iterable[Fault] = (),
    ) -> Scenario:  # fmt: skip
        """Return a scenario with these members and calls."""
        members = {topic: [f"b{number}" for number in numbers] for topic, numbers in wanted.items()}
        measured = {"measured": True} if protocol == VCUBE.name else {}
        order = {"first": self.first} if self.first != "largest" else {}
        busy_ms = self.processing_ms if self.processing_queue else 0.0
        latency_ms = self.propagation_ms + self.processing_ms - busy_ms
        latency = LatencySpec(ms=latency_ms, direct=True)
        if self.jitter_ms:
            latency = LatencySpec("jitter", min_ms=latency_ms, max_ms=latency_ms + self.jitter_ms, direct=True)
        return Scenario(
            name=name,
            network=Network(
                "chain", brokers=self.nodes, f=0, latency=latency,
                node_model=NodeModelSpec(busy_ms, self.transmission_ms, self.free),
            ),
            protocol=ProtocolChoice(protocol, {"initial_members": members, **measured, **order, **options}),
            run=Run(seed=seed, settle_ms=SETTLE_MS, max_steps=1_000_000_000),
            clients=tuple(Client(f"c{number}", f"b{number}") for number in range(self.nodes)),
            actions=(*_subscriptions(wanted), *actions),
            replies=tuple(replies),
            faults=tuple(faults),
        )  # fmt: skip


def _subscriptions(wanted: Wanted) -> Iterator[Action]:
    for topic, numbers in wanted.items():
        for number in numbers:
            yield SubscribeAction(0.0, f"c{number}", f"{topic}.{number}", f"topic = '{topic}'")


def _pub_messages(run: Observed) -> Iterator[Pair]:
    """Return the messages that carry an event from broker to broker, to the tree's root and down the tree.

    The paper's ratio at 8 nodes, 2.7, is that of the trees alone: 19/7, where two of eight nodes subscribe and one of
    the two publishes.
    """
    counts = run.result.message_counts
    yield "down", counts.get("Pub", 0)
    yield "to-root", counts.get("ToRoot", 0)

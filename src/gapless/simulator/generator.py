"""Generates random scenarios that provoke failures. Each depends only on its seed and can be saved as a file.

A tree has links with very different delays; `generator_scales` sets its size. A few publishers also
subscribe and answer events, so that effects race with their causes over several paths.
Subscriptions cover one another, and come and go while events are in flight: the covering ones end
first. Publishers advertise late and publish at once. `fault_plan` and `rolling_plan` place the
faults where they do most damage. At the end the network gets time to settle, and everything that is
due must have arrived.

For a protocol that supports only topics, every filter names a topic, replies stay on the topic of
the answered event, so that causal chains form within topics, and any two brokers are linked
directly. A source that waits for acknowledgements before it continues is slow, so links are faster,
and there is more time to settle.
"""

import random
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from gapless.errors import ScenarioError
from gapless.events import Attributes
from gapless.overlay import chain, random_tree
from gapless.protocol import ProtocolSpec, convert_options, largest_f
from gapless.registry import find_protocol, protocol_names
from gapless.simulator.ack_plan import draw_single_acks
from gapless.simulator.clock_plan import CLOCK, draw_clocks, draws_clocks
from gapless.simulator.deletion_plan import DELETE, draw_deletions, draws_deletions
from gapless.simulator.disk_plan import DISK_KINDS, DiskPlan
from gapless.simulator.durable_plan import draw_names
from gapless.simulator.fault_plan import FAULT_KINDS, FaultPlan, Hazards, fault_kinds
from gapless.simulator.generator_scales import SCALES, SMALL, GeneratorLimits, Scale, choose_scale
from gapless.simulator.generator_trees import draw_tree
from gapless.simulator.group_plan import GROUP_MS, draw_group, draw_misfits, draw_moves
from gapless.simulator.in_flight import operations_of
from gapless.simulator.over_budget_plan import BEYOND, OverBudgetPlan
from gapless.simulator.partition_plan import PARTITION, PartitionPlan
from gapless.simulator.rolling_plan import RollingPlan
from gapless.simulator.scenario import (
    Action,
    AdvertiseAction,
    Client,
    Delay,
    LatencySpec,
    LeaveAction,
    Network,
    ProtocolChoice,
    PublishAction,
    Reply,
    Run,
    Scenario,
    SubscribeAction,
    UnadvertiseAction,
    UnsubscribeAction,
)  # fmt: skip

__all__ = ["GeneratorLimits", "generate"]

_TOPICS = ("a", "b", "c")
_RANGES = ((0, 99), (10, 89), (25, 74), (40, 59))
"""Ranges of values, each within the one before."""
_CONSUME_MS = (5.0, 20.0, 80.0)
_REBALANCE_MS = (100.0, 700.0, 5_000.0)
_LAG_WINDOWS = (2, 8, 16_384)
_FAR_MS = (40.0, 250.0)
_READING_MS = 8_000.0
_LOSSES = (0.02, 0.1, 0.3)
_FURTHER: tuple[tuple[str, ...], ...] = ((PARTITION,), (BEYOND,), *([()] * 6))
"""The choices of additional faults for a run with all kinds of faults; most choices are empty."""


def generate(
    seed: int, protocol: str, faults: str = "none", options: Mapping[str, Any] | None = None,
    limits: GeneratorLimits | None = None, scale: str = SMALL,
) -> Scenario:  # fmt: skip
    """Return the random scenario of a seed. `faults` is `none`, `all`, or a list of kinds separated by commas (see
    `fault_plan`). `scale` is explained in `generator_scales`. `limits` apply to small scenarios; the others use only
    its f.
    """
    spec = find_protocol(protocol) if protocol in protocol_names() else None
    draft = _Draft if spec is None or not spec.topics_only else _TopicDraft
    chosen = choose_scale(scale, seed)
    given = limits or GeneratorLimits()
    drawn = SCALES[chosen]
    drawn = msgspec.structs.replace(
        drawn, limits=given if chosen == SMALL else msgspec.structs.replace(drawn.limits, f=given.f)
    )
    name = f"random-{faults}-{seed}" if chosen == SMALL else f"random-{faults}-{chosen}-{seed}"
    kinds = fault_kinds(faults)
    if faults == "all" and spec is not None and spec.keeps_disks:
        kinds += random.Random(f"{seed}/whole network").choice(_FURTHER)
    if faults == "all" and spec is not None and CLOCK in spec.copes_with and draws_clocks(seed):
        kinds += (CLOCK,)
    if faults == "all" and spec is not None and spec.deletes and draws_deletions(seed):
        kinds += (DELETE,)
    return draft(spec, seed, kinds, drawn, options or {}).scenario(protocol, name)


class _Publisher(msgspec.Struct):
    """A publisher, and the range of its events, which match its advertisement."""

    name: str
    topic: str | None
    values: tuple[int, int]
    since_ms: float
    until_ms: float


class _Draft:
    """A scenario that is being drawn."""

    def __init__(
        self, spec: ProtocolSpec | None, seed: int, kinds: tuple[str, ...], scale: Scale, options: Mapping[str, Any]
    ) -> None:  # fmt: skip
        self._rng = rng = random.Random(f"{seed}/scenario")
        self._spec = spec
        self._seed = seed
        self._options = options
        self._disk_kinds = tuple(kind for kind in kinds if kind in DISK_KINDS)
        self._is_parted = PARTITION in kinds
        self._is_beyond = BEYOND in kinds
        self._has_clocks = CLOCK in kinds
        self._deletes = DELETE in kinds
        self._kinds = tuple(kind for kind in kinds if kind not in (*DISK_KINDS, PARTITION, BEYOND, CLOCK, DELETE))
        if "disk" in kinds and not self._kinds:
            self._kinds = ("crash",)
        self._scale = scale
        self._limits = limits = scale.limits
        brokers = self._draw_size()
        self._tree = (
            draw_tree(rng, brokers, scale.depth)
            if scale.is_wide
            else random_tree(brokers, seed, rng.choice([None, 3, 4]))
        )
        self._f = self._fitting_f(self._draw_f(brokers))
        self._electorates: Mapping[str, Collection[str]] | None = None
        if spec is not None and spec.electorates is not None:
            self._electorates = spec.electorates(self._tree, self._f)
        self._end_ms = float(rng.randint(*limits.active_ms))
        self._network = self._draw_network(brokers)
        self._clients: list[Client] = []
        self._actions: list[Action] = []
        self._replies: list[Reply] = []
        self._ids = 0

    def scenario(self, protocol: str, name: str) -> Scenario:
        """Draw the whole scenario."""
        rng, limits, options = self._rng, self._limits, self._options
        rolling = RollingPlan(rng, self._tree, self._hazards()) if self._scale.is_rolling else None
        if rolling is not None:
            rolling.roll(self._kinds)
            self._end_ms = max(self._end_ms, self._moment(rolling.end_ms, rolling.end_ms + 1000))
        publishers = [self._draw_publisher(number) for number in range(rng.randint(*limits.publishers))]
        for number in range(rng.randint(*limits.subscribers)):
            self._draw_client(f"c{number}", 0.3)
        self._draw_subscriptions(publishers)
        for _ in range(rng.randint(*limits.publications)):
            self._draw_publication(rng.choice(publishers))
        self._draw_leaving()
        known = self._spec
        if known is not None and known.keeps_history:
            self._draw_positions()
            options = {**self._draw_slow(), **options}
            self._draw_far()
        if known is not None and known.keeps_names and not self._is_beyond:
            self._draw_names()
        self._actions.sort(key=lambda action: action.at_ms)
        plan = FaultPlan(rng, self._tree, self._hazards(), rolling)
        network = self._with_losses()
        faults = plan.draw(self._kinds, self._scale.faults) if self._kinds else ()
        scenario = Scenario(
            name=name,
            network=network,
            protocol=ProtocolChoice(protocol, dict(options)),
            run=Run(seed=self._seed, settle_ms=self._settle_ms(options), max_steps=2_000_000),
            clients=tuple(self._clients),
            actions=tuple(self._actions),
            replies=tuple(self._replies),
            faults=faults,
        )
        if known is not None and known.keeps_disks:
            scenario = self._with_disks(scenario)
        if self._is_beyond:
            scenario = self._beyond_f(scenario)
        if self._is_parted:
            scenario = self._with_partition(scenario)
        if self._kinds:
            options = {**self._draw_return(), **scenario.protocol.options}
            scenario = msgspec.structs.replace(scenario, protocol=ProtocolChoice(protocol, options))
        if self._has_clocks:
            faults = draw_clocks(self._seed, self._tree, scenario.faults, self._end_ms)
            scenario = msgspec.structs.replace(scenario, faults=faults)
        if self._deletes:
            names = [publisher.name for publisher in publishers]
            faults = draw_deletions(self._seed, self._tree.brokers, names, self._hazards(), scenario.faults)
            scenario = msgspec.structs.replace(scenario, faults=faults)
        return scenario

    def _with_partition(self, scenario: Scenario) -> Scenario:
        """Return the scenario with cuts of the network added."""
        plan = PartitionPlan(self._seed, self._tree, self._hazards())
        return msgspec.structs.replace(scenario, faults=plan.draw(scenario.faults))

    def _beyond_f(self, scenario: Scenario) -> Scenario:
        """Return the scenario with a crash of more than f brokers of one neighbourhood, possibly with disks."""
        plan = OverBudgetPlan(self._seed, self._tree, self._hazards())
        options: dict[str, Any] = {}
        with_disks = plan.draw_disks() or scenario.network.disks is not None
        if with_disks and scenario.network.disks is None:
            disks = DiskPlan(self._seed, self._tree, self._hazards())
            scenario = msgspec.structs.replace(
                scenario, network=msgspec.structs.replace(scenario.network, disks=disks.draw_disks())
            )
            options = self._known(disks.draw_options())
        return msgspec.structs.replace(
            scenario,
            protocol=ProtocolChoice(scenario.protocol.name, {**options, **scenario.protocol.options}),
            faults=plan.draw(scenario.faults, with_disks=with_disks),
            run=msgspec.structs.replace(
                scenario.run, settle_ms=scenario.run.settle_ms + 2 * _READING_MS, may_lose=True
            ),
        )

    def _with_disks(self, scenario: Scenario) -> Scenario:
        """Return the scenario with disks, if they are requested. Disks have a separate random generator, so that the
        rest of the scenario is unchanged."""
        plan = DiskPlan(self._seed, self._tree, self._hazards())
        kinds = plan.draw_kinds() if self._kinds == FAULT_KINDS and not self._disk_kinds else self._disk_kinds
        if not kinds:
            return scenario
        options = {**self._known(plan.draw_options()), **scenario.protocol.options}
        return msgspec.structs.replace(
            scenario,
            network=msgspec.structs.replace(scenario.network, disks=plan.draw_disks()),
            protocol=ProtocolChoice(scenario.protocol.name, options),
            faults=plan.draw(scenario.faults, kinds),
            run=msgspec.structs.replace(scenario.run, settle_ms=scenario.run.settle_ms + _READING_MS),
        )

    def _known(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that the protocol has. Return an empty dictionary if it refuses their values for this
        scenario.
        """
        if self._spec is None:
            return {}
        known = {name: value for name, value in options.items() if name in self._spec.options.__struct_encode_fields__}
        is_refused = self._spec.refuses(self._tree, self._f, convert_options(self._spec, known)) is not None
        return {} if is_refused else known

    def _settle_ms(self, options: Mapping[str, Any]) -> float:
        """Return the time that the run takes to settle. If messages are lost, repetitions can be lost too, on each link
        of the path. A client that reads history also waits for waves and for answers of other brokers, and a distant
        one for each batch.
        """
        is_reading = any(getattr(action, "since_ms", -1) >= 0 or _is_named(action) for action in self._actions)
        is_reading |= self._electorates is not None and bool(
            self._kinds or self._is_parted
        )  # a client that moves reads history
        reading_ms = _READING_MS if is_reading else 0.0
        slowest_ms = max(client.consume_ms for client in self._clients)
        if "delivery_window" in options:
            farthest_ms = max(client.latency_ms or 0.0 for client in self._clients)
            slowest_ms += 2 * farthest_ms / int(options["delivery_window"])
        if any(isinstance(action, SubscribeAction) and action.group for action in self._actions):
            reading_ms += GROUP_MS
        return self._limits.settle_ms * (3 if "loss" in self._kinds else 1) + reading_ms + 600 * slowest_ms

    # ---- the network

    def _draw_size(self) -> int:
        least, most = self._limits.brokers
        return self._rng.randint(least if self._limits.f is None else max(least, self._limits.f + 2), most)

    def _draw_f(self, brokers: int) -> int:
        if self._limits.f is not None:
            return min(self._limits.f, brokers - 2)
        is_hurt = self._kinds or self._is_parted or self._is_beyond
        return min(self._rng.randint(1, 3), brokers - 2) if is_hurt else self._rng.randint(0, 2)

    def _fitting_f(self, drawn: int) -> int:
        """Return the drawn f, or the largest smaller one that the protocol accepts for the tree."""
        if self._spec is None:
            return drawn
        return largest_f(self._spec, self._tree, convert_options(self._spec, self._options), drawn)

    def _draw_network(self, brokers: int) -> Network:
        rng = self._rng
        detect_ms = float(rng.randint(20, 80))
        jitter = rng.random() < 0.15
        return Network(
            shape="edges",
            edges=self._tree.edges,
            f=self._f,
            latency=LatencySpec(
                model="jitter" if jitter else "per-link",
                min_ms=rng.choice([0.5, 1.0, 5.0]),
                max_ms=float(rng.choice([10, 40, 80, 120])),
                client_ms=rng.choice([0.0, 0.0, 1.0]),
            ),
            detection=Delay(detect_ms, detect_ms + rng.randint(10, 150)),
            reconnect=Delay(0.0, float(rng.choice([0, 0, 20, 60]))),
        )

    def _with_losses(self) -> Network:
        drawn = {kind: self._rng.choice(_LOSSES) for kind in ("loss", "duplication") if kind in self._kinds}
        return msgspec.structs.replace(self._network, **drawn)

    def _hazards(self) -> Hazards:
        network = self._network
        starts = [action.at_ms for action in self._actions if isinstance(action, SubscribeAction)]
        return Hazards(
            f=self._f,
            slowest_link_ms=network.latency.max_ms or 0.0,
            detection=network.detection,
            reconnect_ms=network.reconnect.max_ms,
            until_ms=self._end_ms,
            subscribe_ms=tuple(starts),
            clients=tuple((client.name, client.broker) for client in self._clients),
            operations=operations_of(self._actions, self._clients),
            electorates=self._electorates,
            is_wide=self._scale.is_wide,
        )

    # ---- clients

    def _draw_client(self, name: str, late: float) -> Client:
        rng = self._rng
        join_ms = self._moment(0, self._end_ms * 0.6) if rng.random() < late else 0.0
        latency_ms = round(rng.uniform(0, 20), 3) if rng.random() < 0.3 else None
        client = Client(name, self._draw_place(), join_ms, latency_ms)
        self._clients.append(client)
        return client

    def _draw_place(self) -> str:
        """Return a broker for a client. In wide trees it is often far from an earlier client, or next to it."""
        rng, tree = self._rng, self._tree
        if not self._scale.is_wide or not self._clients or rng.random() < 0.5:
            return rng.choice(tree.brokers)
        other = rng.choice(self._clients).broker
        if rng.random() < 0.5:
            return rng.choice((other, *tree.neighbours(other)))
        farthest = max(tree.distance(other, name) for name in tree.brokers)
        return rng.choice([name for name in tree.brokers if tree.distance(other, name) == farthest])

    def _draw_publisher(self, number: int) -> _Publisher:
        rng = self._rng
        client = self._draw_client(f"p{number}", 0.15)
        late = rng.random() < 0.4
        since_ms = self._moment(client.join_ms, self._end_ms * 0.7) if late else client.join_ms
        publisher = _Publisher(client.name, *self._draw_offer(), since_ms, self._end_ms)
        self._advertise(publisher, since_ms)
        if late and rng.random() < 0.7:
            self._publish(publisher, since_ms)
        if rng.random() < 0.25:
            self._pause_advertising(publisher)
        return publisher

    def _draw_offer(self) -> tuple[str | None, tuple[int, int]]:
        """Return the topic and the range of values that a publisher publishes. The topic is None if it
        publishes any.
        """
        return self._rng.choice([None, None, *_TOPICS]), self._rng.choice(_RANGES[:3])

    def _advertise(self, publisher: _Publisher, at_ms: float) -> str:
        name = self._new_name("a")
        text = _filter_text(publisher.topic, publisher.values)
        self._actions.append(AdvertiseAction(at_ms, publisher.name, name, text))
        return name

    def _pause_advertising(self, publisher: _Publisher) -> None:
        """Withdraw the advertisement of a publisher. Often the publisher advertises again later, and publishes
        immediately."""
        rng = self._rng
        latest = next(action for action in reversed(self._actions) if isinstance(action, AdvertiseAction))
        stop_ms = self._moment((publisher.since_ms + self._end_ms) / 2, self._end_ms)
        self._actions.append(UnadvertiseAction(stop_ms, publisher.name, latest.advertisement))
        publisher.until_ms = stop_ms
        if rng.random() < 0.6:
            again_ms = self._moment(stop_ms, self._end_ms)
            self._advertise(publisher, again_ms)
            self._publish(publisher, again_ms)

    def _draw_publication(self, publisher: _Publisher) -> None:
        self._publish(publisher, self._moment(publisher.since_ms, publisher.until_ms))

    def _publish(self, publisher: _Publisher, at_ms: float) -> None:
        self._actions.append(PublishAction(at_ms, publisher.name, self._draw_attributes(publisher)))

    def _draw_attributes(self, publisher: _Publisher) -> Attributes:
        rng = self._rng
        return {"topic": publisher.topic or rng.choice(_TOPICS), "x": rng.randint(*publisher.values)}

    # ---- subscriptions

    def _draw_subscriptions(self, publishers: list[_Publisher]) -> None:
        rng = self._rng
        by_name = {publisher.name: publisher for publisher in publishers}
        left = rng.randint(*self._limits.subscriptions)
        holders = [client for client in self._clients if client.name in by_name]
        holders += [rng.choice(self._clients) for _ in range(left)]
        for client in holders[:left]:
            name, text = self._draw_subscription(client)
            if client.name in by_name and rng.random() < 0.6:
                self._draw_reply(by_name[client.name], name if rng.random() < 0.7 else None)
            self._draw_end(client, name, text)

    def _draw_subscription(self, client: Client) -> tuple[str, str]:
        rng = self._rng
        early = rng.random() < 0.3
        at_ms = self._moment(client.join_ms, min(client.join_ms + 50, self._end_ms) if early else self._end_ms * 0.85)
        return self._subscribe(client, at_ms, self._draw_filter())

    def _subscribe(self, client: Client, at_ms: float, text: str) -> tuple[str, str]:
        name = self._new_name("s")
        self._actions.append(SubscribeAction(at_ms, client.name, name, text))
        return name, text

    def _draw_filter(self) -> str:
        topic = self._rng.choice([None, *_TOPICS])
        return _filter_text(topic, self._rng.choice(_RANGES))

    def _draw_end(self, client: Client, name: str, text: str) -> None:
        """End subscriptions that cover many others before the run ends. Some of them start again, at once or later."""
        rng = self._rng
        if rng.random() > (0.6 if text == "TRUE" or "AND" not in text else 0.3):
            return
        begin_ms = self._actions[-1].at_ms
        end_ms = self._moment(begin_ms, min(self._end_ms, begin_ms + rng.choice([40, 400, 4000])))
        self._actions.append(UnsubscribeAction(end_ms, client.name, name))
        if rng.random() < 0.4:
            self._subscribe(client, self._moment(end_ms, end_ms + rng.choice([0, 30, 300])), text)

    def _draw_reply(self, publisher: _Publisher, subscription: str | None) -> None:
        rng = self._rng
        self._replies.append(
            Reply(
                publisher.name,
                self._draw_answer(publisher),
                subscription,
                probability=rng.choice([0.3, 0.7, 1.0]),
                at_most=rng.randint(2, 8),
                delay_ms=0.0 if rng.random() < 0.7 else self._moment(0, 50),
            )
        )

    def _draw_answer(self, publisher: _Publisher) -> Attributes:
        return self._draw_attributes(publisher)

    def _draw_positions(self) -> None:
        """Let some subscriptions begin in the past, and some of those end there. A separate random generator keeps the
        rest of a run the same for protocols without history.
        """
        rng = random.Random(f"{self._seed}/positions")
        ending = {action.subscription for action in self._actions if isinstance(action, UnsubscribeAction)}
        for place, action in enumerate(self._actions):
            if not isinstance(action, SubscribeAction) or rng.random() < 0.75:
                continue
            since_ms = rng.choice([0.0, round(rng.uniform(0, action.at_ms), 3)])
            until_ms = 0.0
            if action.subscription not in ending and rng.random() < 0.3 and not self._is_beyond:
                until_ms = rng.choice([-1.0, round(rng.uniform(since_ms, action.at_ms + 300), 3) or -1.0])
            self._actions[place] = msgspec.structs.replace(action, since_ms=since_ms, until_ms=until_ms)

    def _draw_slow(self) -> dict[str, Any]:
        """Make some clients slow, and return options with which brokers do not wait long for them."""
        rng = random.Random(f"{self._seed}/slow")
        if rng.random() < 0.5:
            return {}
        for place, client in enumerate(self._clients):
            if rng.random() < 0.4:
                self._clients[place] = msgspec.structs.replace(client, consume_ms=rng.choice(_CONSUME_MS))
        drawn = {
            "delivery_window": rng.choice([3, 16, 4096]),
            "lag_window": rng.choice(_LAG_WINDOWS),
        }
        return self._known(drawn)

    def _draw_return(self) -> dict[str, Any]:
        """Return options that say how soon clients that moved return to their brokers."""
        return self._known({"rebalance_ms": random.Random(f"{self._seed}/return").choice(_REBALANCE_MS)})

    def _draw_names(self) -> None:
        """Add durable subscriptions, if f failures leave a majority of the registry replicas."""
        if self._kinds and len(self._tree.brokers) < 2 * self._f + 1:
            return
        leaving = {action.client for action in self._actions if isinstance(action, LeaveAction)}
        clients = [client for client in self._clients if client.name not in leaving]
        filters = [_filter_text(topic, values) for topic in (None, *_TOPICS) for values in _RANGES[:2]]
        self._actions += draw_names(self._seed, clients, self._end_ms, filters)
        self._actions += draw_group(self._seed, clients, self._end_ms, filters)
        self._actions += draw_misfits(self._seed, self._actions, clients, self._end_ms)
        self._actions += draw_moves(self._seed, self._actions, clients, self._end_ms)
        if self._spec is not None and self._spec.keeps_names:
            self._actions = draw_single_acks(self._seed, self._actions)

    def _draw_far(self) -> None:
        """Make some clients so distant that they retry before the answer arrives."""
        rng = random.Random(f"{self._seed}/far")
        if rng.random() < 0.8:
            return
        for place, client in enumerate(self._clients):
            if rng.random() < 0.4:
                latency_ms = round(rng.uniform(*_FAR_MS), 3)
                self._clients[place] = msgspec.structs.replace(client, latency_ms=latency_ms)

    def _draw_leaving(self) -> None:
        rng = self._rng
        for client in self._clients:
            if rng.random() < 0.1:
                acts = [action.at_ms for action in self._actions if action.client == client.name]
                last = max(acts, default=client.join_ms)
                self._actions.append(LeaveAction(self._moment(last, last + 50), client.name))

    # ---- numbers and names

    def _moment(self, least_ms: float, most_ms: float) -> float:
        """Return a random time between two times, in whole microseconds."""
        return round(self._rng.uniform(least_ms, max(least_ms, most_ms)), 3)

    def _new_name(self, letter: str) -> str:
        self._ids += 1
        return f"{letter}{self._ids}"


class _TopicDraft(_Draft):
    """A scenario for a protocol that supports only topics."""

    def _draw_size(self) -> int:
        assert self._spec is not None, "the protocol supports only topics"
        least, most = self._limits.brokers
        options = convert_options(self._spec, self._options)
        sizes = [size for size in range(least, most + 1) if self._spec.refuses(chain(size), 0, options) is None]
        if not sizes:
            raise ScenarioError(
                f"limits.brokers: protocol {self._spec.name!r} supports no number of brokers from {least} to {most}"
            )
        return self._rng.choice(sizes)

    def _draw_network(self, brokers: int) -> Network:
        network = super()._draw_network(brokers)
        latency = network.latency
        most = max(latency.min_ms or 0.0, (latency.max_ms or 0.0) / 4)
        return msgspec.structs.replace(network, latency=msgspec.structs.replace(latency, max_ms=most, direct=True))

    def _settle_ms(self, options: Mapping[str, Any]) -> float:
        return 10 * self._limits.settle_ms

    def _draw_offer(self) -> tuple[str | None, tuple[int, int]]:
        return self._rng.choice(_TOPICS[:2]), _RANGES[0]

    def _draw_filter(self) -> str:
        return _filter_text(self._rng.choice(_TOPICS[:2]), _RANGES[0])

    def _draw_answer(self, publisher: _Publisher) -> Attributes:
        return {"topic": "$topic", "x": self._rng.randint(*publisher.values)}


def _is_named(action: Action) -> bool:
    return isinstance(action, SubscribeAction) and action.name != ""


def _filter_text(topic: str | None, values: tuple[int, int]) -> str:
    """Return a filter for this topic and this range of x, without trivial parts."""
    terms = [f"topic = '{topic}'"] if topic else []
    if values != _RANGES[0]:
        terms.append(f"x BETWEEN {values[0]} AND {values[1]}")
    return " AND ".join(terms) or "TRUE"

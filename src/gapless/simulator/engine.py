"""The simulation engine: runs the nodes of one protocol in virtual time.

Each node is given one input at a time by `step(input, now)`, and its effects are carried out, in
order, before anything else happens. Time does not advance during a step. A run is a function of the
tree, the protocol, the settings, the script and the seed: all random values come from generators
named after the seed and their purpose, and nothing depends on the order of a set.

Brokers start first, in the order of the tree, then clients in the order in which they were added,
all at time 0. The actions of the script (`call`, `crash`, `cut`…) happen at their time, in the
order in which they were added.

A run ends at `until`, or else when `settle` has passed since the last action of the script or reply
of a client. It is quiesced if that time has passed at its end, nothing is cut, and no live node is
suspected.

The loop in `_advance` is the hot path: a message on a link without faults costs one step of its
receiver, one tuple, one append, and one `Received` for all its copies.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Any, TypeAlias

from gapless.errors import ScenarioError
from gapless.names import (
    Acknowledge,
    Acknowledged,
    AcknowledgeEach,
    Attached,
    DeadLettered,
    DurableChanged,
    DurablesListed,
    EachAcknowledged,
    ExtendAck,
    JoinedGroup,
    MoveDurable,
    Nack,
    Revoked,
)
from gapless.overlay import Overlay
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    BrokerNode,
    BrokerPlace,
    CaughtUp,
    ClientPlace,
    Confirmed,
    Consumed,
    CutFixed,
    CutsVoided,
    Deliver,
    DeliverMany,
    Effect,
    Ended,
    Expel,
    Input,
    Invariants,
    Keep,
    Node,
    ProtocolSpec,
    PublicationsLost,
    Publish,
    Published,
    PublishedMany,
    PublishMany,
    Received,
    Rejected,
    Send,
    SetTimer,
    Skipped,
    Start,
    Subscribe,
    Superseded,
    Unadvertise,
    Unsubscribe,
    check_overlay,
)
from gapless.registry import find_protocol
from gapless.simulator.connections import Connections
from gapless.simulator.disks import Disks, DiskState
from gapless.simulator.event_queue import EventQueue
from gapless.simulator.failures import NodeError, RunawayError, SimulationError
from gapless.simulator.faults import Faults
from gapless.simulator.garbage_collection import without_cycle_collection
from gapless.simulator.nodes import Link, Slot, Timer
from gapless.simulator.options import convert_options, refusal
from gapless.simulator.priorities import PriorityQueue, depth_of
from gapless.simulator.queueing import BrokerQueues
from gapless.simulator.recording import MessageLog, Recording
from gapless.simulator.replies import Replies, ReplyRule
from gapless.simulator.result import LostPublications, Refusal, Result, StateSizes
from gapless.simulator.settings import Settings
from gapless.trace import Recorder

__all__ = ["Simulation"]

ClientCall: TypeAlias = Advertise | Unadvertise | Subscribe | Unsubscribe | Publish | PublishMany | MoveDurable


def _ignore(slot: Slot, effect: Any, now: int) -> None:
    """Ignore an effect that concerns only the application."""


class Simulation:
    """One run of a scenario. Add clients and a script, then call `run` once. All times are in microseconds."""

    def __init__(
        self, overlay: Overlay, protocol: str | ProtocolSpec, *, f: int = 1, options: Mapping[str, Any] | None = None,
        settings: Settings | None = None, seed: int = 0, recorder: Recorder | None = None, with_messages: bool = False,
        check_invariants: bool = False,
    ) -> None:  # fmt: skip
        self.overlay = overlay
        self.spec = find_protocol(protocol) if isinstance(protocol, str) else protocol
        self.options = convert_options(self.spec, options or {})
        check_overlay(self.spec, overlay, f, self.options)
        self.settings = settings or Settings()
        self.f = f
        self.seed = seed
        depth = depth_of(self.settings.schedule)
        self.event_queue = PriorityQueue(depth, seed) if depth else EventQueue()
        self.slots = {name: Slot(name, number) for number, name in enumerate(overlay.brokers)}
        self.refusals: list[Refusal] = []
        self._lost_publications: list[LostPublications] = []
        self._lost_deliveries = 0
        self._brokers = list(self.slots.values())
        self._nodes: dict[str, BrokerNode] = {}
        self._invariants: Invariants | None = None
        if check_invariants and self.spec.invariants is not None:
            self._invariants = self.spec.invariants(overlay, f, self.options)
            for slot in self._brokers:
                slot.watch = self._watch
        self._clients: list[Slot] = []
        self._recorder = recorder
        self._recording = None if recorder is None else Recording(recorder, self.spec)
        self._message_log = MessageLog(self.give) if with_messages else None
        self._counts: dict[type, int] = {}
        self._steps = 0
        self._last_act = 0
        self._until: int | None = None
        self._settle = 0
        self._dice = random.Random(f"{seed}/links")
        self._sizes = StateSizes()
        self._connections = Connections(
            overlay, f, self.slots, self.event_queue, self.settings, seed, self.give, recorded=with_messages
        )
        if self.settings.node_model is not None:
            self._connections.queues = BrokerQueues(self.settings.node_model, self._brokers, self.event_queue)
        self._disks = None
        if self.settings.sync_us is not None and self.spec.keeps_disks:
            self._disks = Disks(self.settings.sync_us, seed, self.event_queue, self.give)
        self._faults = Faults(
            overlay, f, self.slots, self.event_queue, self._connections, self._make_broker, self.give, self._disks
        )
        self._replies = Replies(seed, self._publish_later)
        self._last_delivery: dict[tuple[str, str], int] = {}
        """For each client and subscription, the number of the last delivery."""
        self._handlers = self._effect_handlers()
        self.event_queue.call(0, self._start)

    # ---- building the script

    def add_client(
        self, name: str, broker: str, *, at: int = 0, latency_us: int | None = None, consume_us: int = 0
    ) -> None:
        """Add a client at this broker. It can use any broker at most f + 1 links away. Its application takes deliveries
        after `consume_us`.
        """
        assert name not in self.slots, f"{name!r} already exists"
        slot = Slot(name, len(self.slots), broker, (broker, *self.overlay.within(broker, self.f + 1)))
        slot.latency_us = self.settings.latency.client_us if latency_us is None else latency_us
        slot.consume_us = consume_us
        slot.watch = None if self._invariants is None else self._watch
        self.slots[name] = slot
        if at == 0:
            self._clients.append(slot)
        else:
            self._act(at, partial(self._join, slot))

    def call(self, client: str, item: ClientCall, *, at: int) -> None:
        """Schedule a call of a client."""
        self._act(at, partial(self._call, self.slots[client], item))

    def acknowledge(self, client: str, subscription: str, *, at: int) -> None:
        """Schedule the acknowledgement of everything that a durable subscription has delivered to the client."""
        slot = self.slots[client]
        self._act(at, lambda: self.give(slot, Acknowledge(subscription, slot.delivered)))

    def give_back(self, client: str, subscription: str, delay_us: int, *, at: int) -> None:
        """Schedule a negative acknowledgement of the last delivery of a durable subscription to the client."""
        slot = self.slots[client]
        self._act(at, lambda: self.give(slot, Nack(subscription, self._last_of(slot, subscription), delay_us)))

    def acknowledge_last(self, client: str, subscription: str, *, at: int) -> None:
        """Schedule the acknowledgement of only the last delivery of a durable subscription to the client."""
        slot = self.slots[client]
        self._act(at, lambda: self.give(slot, AcknowledgeEach(subscription, self._last_of(slot, subscription))))

    def extend(self, client: str, subscription: str, *, at: int) -> None:
        """Schedule an extension of the redelivery timeout for the last delivery of a durable subscription to the
        client.
        """
        slot = self.slots[client]
        self._act(at, lambda: self.give(slot, ExtendAck(subscription, self._last_of(slot, subscription))))

    def _last_of(self, slot: Slot, subscription: str) -> list[int]:
        last = self._last_delivery.get((slot.name, subscription))
        return [] if last is None else [last]

    def leave(self, client: str, *, at: int) -> None:
        """Schedule the end of the client's subscriptions and advertisements."""
        self._act(at, partial(self._leave, self.slots[client]))

    def reply(self, rule: ReplyRule) -> None:
        """Add a rule by which a client answers events that are delivered to it."""
        self._replies.add(rule)

    def crash(self, broker: str, *, at: int) -> None:
        """Schedule a crash of the broker."""
        self._act(at, partial(self._faults.crash, broker))

    def restart(self, broker: str, *, at: int, memory: bool = False, disk: DiskState = "kept") -> None:
        """Schedule a restart of the broker: with a new node, or with the old one as after a long pause."""
        self._act(at, partial(self._faults.restart, broker, memory, disk))

    def cut(self, a: str, b: str, *, at: int, one_way: bool = False) -> None:
        """Schedule a cut between two nodes, in both directions or only from the first to the second."""
        self._act(at, partial(self._faults.cut, a, b, one_way))

    def heal(self, a: str, b: str, *, at: int) -> None:
        """Schedule the end of a cut."""
        self._act(at, partial(self._faults.heal, a, b))

    def suspect(self, observer: str, target: str, *, at: int) -> None:
        """Schedule a false suspicion."""
        self._act(at, partial(self._faults.suspect, observer, target))

    def trust(self, observer: str, target: str, *, at: int) -> None:
        """Schedule the end of a false suspicion."""
        self._act(at, partial(self._faults.trust, observer, target))

    def forget(self, broker: str, at_broker: str, *, at: int) -> None:
        """Schedule an operator's message that tells one broker, if it is running, that another will not return."""
        self._act(at, partial(self._faults.forget, broker, at_broker))

    def delete_events(self, publisher: str, at_broker: str, *, at: int) -> None:
        """Schedule an operator's message that tells one broker, if it is running, to delete a publisher's events."""
        self._act(at, partial(self._faults.delete_events, publisher, at_broker))

    def set_clock(self, broker: str, *, at: int, ahead: int = 0, drift: float = 0.0) -> None:
        """Schedule a change of the broker's clock: an offset from the run's time, and a drift."""
        self._act(at, partial(self._faults.set_clock, broker, ahead, drift))

    def relink(self, old: tuple[str, str], new: tuple[str, str], *, at: int, gap: int = 0) -> None:
        """Schedule the replacement of a link of the tree, at once or after a gap."""
        if "relink" not in self.spec.copes_with:
            raise ScenarioError(f"relink: {refusal(self.spec, 'relink')}")
        self._connections.expect_relinks()
        self._act(at, partial(self._faults.unlink, old, new))
        self._act(at + gap, partial(self._faults.link, new))

    def run(self, *, until: int | None = None, settle: int = 0) -> Result:
        """Run the simulation, and return its result."""
        self._until = until
        self._settle = settle
        if isinstance(self.event_queue, PriorityQueue):
            self.event_queue.plan(self._last_act)
        with without_cycle_collection():
            self._advance()
        self._sample()
        end = self._end()
        quiesced = end >= self._last_act + settle and self._connections.all_well()
        if self._recorder is not None and self._message_log is not None:
            self._message_log.write_to(self._recorder)
        queues = self._connections.queues
        return Result(
            trace=None if self._recorder is None else self._recorder.finish(quiesced=quiesced),
            quiesced=quiesced,
            message_counts={kind.__name__: n for kind, n in sorted(self._counts.items(), key=lambda c: c[0].__name__)},
            messages_lost=self._connections.lost,
            steps=self._steps,
            time_us=end,
            state_sizes=self._sizes.summary(),
            state_sizes_by_broker=self._sizes.by_broker(),
            queues={} if queues is None else queues.lengths(),
            refusals=tuple(self.refusals),
            lost_publications=tuple(self._lost_publications),
            lost_deliveries=self._lost_deliveries,
            confirmations={} if self._recorder is None else self._recorder.confirmations,
        )

    # ---- the main loop

    def _advance(self) -> None:
        event_queue, counts, handlers = self.event_queue, self._counts, self._handlers
        times, buckets = event_queue.times, event_queue.buckets
        steps, most = self._steps, self.settings.max_steps
        slot: Any = None
        item: Any = None
        try:
            while times and times[0] <= self._end():
                now = event_queue.now = heappop(times)
                entries = event_queue.rest = iter(buckets[now])
                for slot, item, _ in entries:
                    steps += 1
                    if steps > most:
                        raise RunawayError(
                            f"still busy after {most} steps, at {now / 1000:g} ms: the run may never end"
                        )
                    if slot is None:
                        item()
                        continue
                    message: Any = None
                    received: Any = None
                    for effect in slot.step(item, now):
                        if effect.__class__ is not Send:
                            handlers[effect.__class__](slot, effect, now)
                            continue
                        link = slot.links.get(effect.peer)
                        if link is None:
                            link = self._connections.open_link(slot, effect.peer)
                        if effect.message is not message:
                            message = effect.message
                            received = Received(slot.name, message)
                            kind = message.__class__
                        counts[kind] = counts.get(kind, 0) + 1
                        delay = link.delay
                        if delay < 0:
                            self._send_carefully(link, received, now)
                            continue
                        bucket = buckets.get(now + delay)
                        if bucket is None:
                            buckets[now + delay] = [(link.receiver, received, link)]
                            heappush(times, now + delay)
                        else:
                            bucket.append((link.receiver, received, link))
                del buckets[now]
        except SimulationError:
            raise
        except Exception as error:
            if slot is None:
                raise
            raise NodeError.of(slot.name, item, now, error) from error
        finally:
            self._steps = steps

    def give(self, slot: Slot, item: Input) -> None:
        """Pass an input to a node, and carry out the resulting effects."""
        now = self.event_queue.now
        try:
            for effect in slot.step(item, now):
                self._handlers[effect.__class__](slot, effect, now)
        except SimulationError:
            raise
        except Exception as error:
            raise NodeError.of(slot.name, item, now, error) from error

    def _end(self) -> int:
        return self._last_act + self._settle if self._until is None else self._until

    # ---- effects

    def _effect_handlers(self) -> dict[type, Callable[[Slot, Any, int], None]]:
        silent = (
            Published, CutFixed, CutsVoided, Activated, Ended, Advertised, Confirmed, Skipped, CaughtUp, Attached,
            Acknowledged, EachAcknowledged, DeadLettered, DurablesListed, DurableChanged, JoinedGroup, Revoked,
            Superseded,
        )  # fmt: skip
        handlers: dict[type, Callable[[Slot, Any, int], None]] = dict.fromkeys(silent, _ignore)
        if self._recording is not None:
            handlers |= self._recording.handlers()
        self._record_delivery = handlers.get(Deliver, _ignore)
        self._record_publication = handlers[Published]
        self._record_loss = handlers[Skipped]
        if self._disks is not None:
            handlers[Keep] = self._disks.keep
        return handlers | {
            Send: self._send, SetTimer: self._set_timer, Deliver: self._deliver, Rejected: self._refuse,
            Expel: self._expel, PublishedMany: self._publish_many, DeliverMany: self._deliver_many,
            PublicationsLost: self._lose_publications, Skipped: self._skip,
        }  # fmt: skip

    def _lose_publications(self, slot: Slot, effect: PublicationsLost, now: int) -> None:
        for first, last in effect.ranges:
            self._lost_publications.append(LostPublications(slot.name, first, last, now / 1000))

    def _skip(self, slot: Slot, effect: Skipped, now: int) -> None:
        self._lost_deliveries += sum(last - first + 1 for ranges in effect.lost.values() for first, last in ranges)
        self._record_loss(slot, effect, now)

    def _publish_many(self, slot: Slot, effect: PublishedMany, now: int) -> None:
        for event in effect.events:
            self._record_publication(slot, Published(event), now)

    def _deliver_many(self, slot: Slot, effect: DeliverMany, now: int) -> None:
        for event in effect.events:
            self._deliver(slot, Deliver(event, effect.subscription), now)

    def _send(self, slot: Slot, effect: Send, now: int) -> None:
        link = slot.links.get(effect.peer) or self._connections.open_link(slot, effect.peer)
        kind = effect.message.__class__
        self._counts[kind] = self._counts.get(kind, 0) + 1
        received = Received(slot.name, effect.message)
        if link.delay < 0:
            self._send_carefully(link, received, now)
        else:
            self.event_queue.put(now + link.delay, (link.receiver, received, link))

    def _send_carefully(self, link: Link, received: Received, now: int) -> None:
        """Send a message on a link that is down, or has delays, losses or a log."""
        between_brokers = link.sender.is_broker and link.receiver.is_broker
        gate = link.gate
        if self._message_log is not None:
            gate = self._message_log.add(link, received.message, now)
        if not link.up or (between_brokers and self.settings.loss and self._dice.random() < self.settings.loss):
            self._connections.lost += 1
            return
        departure = now
        if between_brokers and self._connections.queues is not None:
            departure = self._connections.queues.transmit(link.sender, received.message, now)
        self.event_queue.put(self._arrival(link, departure), (gate, received, link))
        if between_brokers and self.settings.duplication and self._dice.random() < self.settings.duplication:
            self.event_queue.put(self._arrival(link, departure), (link.gate, received, link))

    def _arrival(self, link: Link, departure: int) -> int:
        """Return the time at which a message that is sent now arrives, which is not before any earlier message of the
        link.
        """
        arrival = departure + link.base
        if link.spread:
            arrival += self._dice.randint(0, link.spread)
        link.last_arrival = max(link.last_arrival, arrival)
        return link.last_arrival

    def _set_timer(self, slot: Slot, effect: SetTimer, now: int) -> None:
        timer = slot.timers[effect.key] = Timer(slot, effect.key, self.give)
        self.event_queue.call(now + effect.delay_us, timer)

    def _expel(self, slot: Slot, effect: Expel, now: int) -> None:
        raise AssertionError(
            f"{effect.client} was expelled, although simulated clients send only valid messages: {effect.reason}"
        )

    def _deliver(self, slot: Slot, effect: Deliver, now: int) -> None:
        self._record_delivery(slot, effect, now)
        self._replies.delivered(slot.name, effect)
        if self.spec.paces:
            slot.delivered += 1
            self._last_delivery[slot.name, effect.subscription] = slot.delivered
            if not slot.is_consuming:
                slot.is_consuming = True
                self.event_queue.call(now + slot.consume_us, partial(self._consume, slot))

    def _consume(self, slot: Slot) -> None:
        slot.is_consuming = False
        self.give(slot, Consumed(slot.delivered))

    def _refuse(self, slot: Slot, effect: Rejected, now: int) -> None:
        self.refusals.append(Refusal(now, slot.name, type(effect.call).__name__, effect.reason))
        if isinstance(effect.call, Subscribe):
            slot.subscriptions.pop(effect.call.subscription, None)
            if self._recording is not None:
                self._recording.refused(effect.call)

    # ---- actions of the script

    def _act(self, at: int, action: Callable[[], None]) -> None:
        self._last_act = max(self._last_act, at)
        self.event_queue.call(at, action)

    def _make_broker(self, place: BrokerPlace) -> BrokerNode:
        node = self._nodes[place.name] = self.spec.broker(place, self.options)
        if self._invariants is not None:
            self._invariants.begin(place.name, node)
        return node

    def _watch(self, slot: Slot, item: Input, effects: Sequence[Effect]) -> None:
        assert self._invariants is not None
        assert slot.node is not None
        self._invariants.after_step(slot.name, slot.node, item, effects, self._live)

    def _live(self) -> dict[str, Node]:
        return {each.name: each.node for each in self._brokers if each.alive and each.node is not None}

    def broker_nodes(self) -> list[BrokerNode]:
        """Return the nodes of all brokers that have not lost their memory."""
        return [node for name, node in self._nodes.items() if self.slots[name].node is node]

    def _start(self) -> None:
        for slot in self._brokers:
            self._faults.begin(slot)
        for slot in self._brokers:
            self.give(slot, Start())
        for slot in self._clients:
            self._join(slot)
        if self.settings.sample_us:
            self.event_queue.call(self.settings.sample_us, self._sample_again)

    def _join(self, slot: Slot) -> None:
        assert slot.broker is not None
        slot.set_node(self.spec.client(ClientPlace(slot.name, slot.broker, slot.contacts), self.options))
        self._connections.know_client(slot)
        self.give(slot, Start())

    def _call(self, slot: Slot, item: Input) -> None:
        if isinstance(item, Subscribe):
            slot.subscriptions[item.subscription] = None
            if self._recording is not None:
                self._recording.subscribed(slot.name, item, self.event_queue.now)
        elif isinstance(item, MoveDurable) and self._recording is not None:
            self._recording.moved(item)
        elif isinstance(item, Unsubscribe):
            slot.subscriptions.pop(item.subscription, None)
        elif isinstance(item, Advertise):
            slot.advertisements[item.advertisement] = None
        elif isinstance(item, Unadvertise):
            slot.advertisements.pop(item.advertisement, None)
        self.give(slot, item)

    def _leave(self, slot: Slot) -> None:
        for subscription in list(slot.subscriptions):
            self._call(slot, Unsubscribe(subscription))
        for advertisement in list(slot.advertisements):
            self._call(slot, Unadvertise(advertisement))

    def _publish_later(self, client: str, call: Publish, delay_us: int) -> None:
        self._act(self.event_queue.now + delay_us, partial(self._call, self.slots[client], call))

    def _sample(self) -> None:
        alive = [slot for slot in self._brokers if slot.alive and slot.node is not None]
        self._sizes.sample((slot.name, slot.node.state_size()) for slot in alive if slot.node is not None)

    def _sample_again(self) -> None:
        self._sample()
        self.event_queue.call(self.event_queue.now + self.settings.sample_us, self._sample_again)

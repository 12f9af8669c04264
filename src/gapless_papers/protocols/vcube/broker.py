"""A broker of the `vcube` protocol: a node of the hypercube (Algorithms 1 and 2).

Its clients' calls make it join and leave topics. It broadcasts joining, leaving, and events down its own tree
(`hypercube`), and gets acknowledgements back; only then it broadcasts the next for the same topic. So all members
receive a source's messages on a topic in order, and an acknowledged broadcast has reached all receivers.

**Joining** (`Sub`) goes to every broker. Each present or former member acknowledges with what it has settled of each
source, itself included, at the moment at which it learns of the new member; from then on its messages go to the new
member. Settled sets are closed (`causal_order`), so the union of all answers is a consistent cut: everything after it
will arrive, and nothing before it is waited for. Until the last answer arrives the new member buffers its messages.

**An event** (`Pub`) goes to the members that its source knows, and each message names those to which its receiver has
to forward it: a broker on the path needs no knowledge of its own. **Leaving** (`Uns`) works in the same way.
"""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from gapless.events import Event
from gapless.protocol import BrokerNode, BrokerPlace, Effect, Input, Received, Send
from gapless_papers.protocols.topics.hypercube import branches, cluster_of, mask_of, numbering, pack, sub_cube, unpack
from gapless_papers.protocols.vcube.causal_order import CausalOrder
from gapless_papers.protocols.vcube.measures import Measures
from gapless_papers.protocols.vcube.messages import (
    Ack,
    Answer,
    ClientAdvertise,
    ClientEnd,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    FromBroker,
    FromClient,
    Pub,
    Ready,
    Refused,
    Sub,
    Taken,
    Uns,
)  # fmt: skip
from gapless_papers.protocols.vcube.options import VcubeOptions
from gapless_papers.protocols.vcube.topic import Phase, Topic, Wave, raise_to
from gapless_papers.protocols.vcube.view import View

__all__ = ["VcubeBroker"]


class VcubeBroker(BrokerNode):
    """A broker node."""

    def __init__(self, place: BrokerPlace, options: VcubeOptions) -> None:
        self._names = place.overlay.brokers
        self._numbers = numbering(self._names)
        self._own = self._numbers[place.name]
        self._dimension = cluster_of(0, len(self._names) - 1)
        self._options = options
        self._names_receivers = "receivers" not in options.switched_off
        self._has_cuts = "starting-cut" not in options.switched_off
        self._largest_first = options.first == "largest"
        self._clock = 0
        self._topics: dict[str, Topic] = {}
        self._waves: dict[tuple[str, int], Wave] = {}
        self._effects: list[Effect] = []
        self._now = 0
        self.measures = Measures() if options.measured else None
        for name, members in options.initial_members.items():
            self._begin_with(name, mask_of(self._names, members))

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Process one input. Only messages matter, because this protocol supports no failures."""
        if not isinstance(item, Received):
            return ()
        self._effects = []
        self._now = now
        sender = self._numbers.get(item.peer)
        if sender is not None:
            self._on_neighbour_message(sender, item.message)
        else:
            self._on_asked(item.peer, item.message)
        return self._effects

    def _on_neighbour_message(self, sender: int, message: FromBroker) -> None:
        match message:
            case Pub():
                self._on_pub(sender, message)
            case Ack():
                self._on_ack(sender, message)
            case Sub():
                self._on_sub(sender, message)
            case Uns():
                self._on_uns(sender, message)
            case _:
                assert_never(message)

    def _on_asked(self, client: str, call: FromClient) -> None:
        match call:
            case ClientPublish():
                self._on_client_publish(client, call)
            case ClientSubscribe():
                self._use(client, call.number, call.topic, delivers=True)
            case ClientAdvertise():
                self._use(client, call.number, call.topic, delivers=False)
            case ClientEnd():
                self._on_client_end(client, call)
            case _:
                assert_never(call)

    def measured(self) -> Mapping[str, Mapping[int, int]]:
        """Return the paper's measurements at this broker."""
        return {} if self.measures is None else self.measures.summary()

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the broker's tables; `waiting` counts messages received but not delivered, and
        `queued` those not broadcast."""
        topics = self._topics.values()
        return {
            "topics": len(topics),
            "members": sum(topic.view.members.bit_count() for topic in topics if topic.is_member),
            "barrier": sum(topic.order.barrier_size for topic in topics),
            "waiting": sum(topic.backlog for topic in topics),
            "queued": sum(len(topic.queue) for topic in topics),
            "waves": len(self._waves),
        }

    def _new_topic(self, name: str) -> Topic:
        return Topic(name, CausalOrder(reduces=self._options.barrier == "direct"))

    def _branches(self, height: int, members: int) -> list[tuple[int, int]]:
        return branches(self._own, height, members, largest_first=self._largest_first)

    def _begin_with(self, name: str, members: int) -> None:
        if members >> self._own & 1:
            topic = self._topics[name] = self._new_topic(name)
            topic.phase = Phase.MEMBER
            topic.view = View(members)

    def _send(self, broker: int, message: Any) -> None:
        self._effects.append(Send(self._names[broker], message))

    # ---- clients (Algorithm 1) ----------------------------------------------------------------------------

    def _use(self, client: str, number: int, name: str, *, delivers: bool) -> None:
        topic = self._topics.get(name)
        if topic is None:
            if len(self._topics) >= self._options.topics_max:
                reason = (
                    f"the broker already serves {len(self._topics):,} topics, which is the maximum; use one of "
                    "these, or another broker"
                )
                self._effects.append(Send(client, Refused(number, reason)))
                return
            topic = self._topics[name] = self._new_topic(name)
        topic.use(client, number, delivers)
        if topic.phase is Phase.MEMBER:
            self._send_ready(topic, client, number)
        else:
            self._advance(topic)

    def _on_client_end(self, client: str, call: ClientEnd) -> None:
        topic = self._topics.get(call.topic)
        if topic is not None:
            topic.end(client, call.number)
            self._advance(topic)

    def _on_client_publish(self, client: str, call: ClientPublish) -> None:
        topic = self._topics.get(call.topic)
        if topic is not None:
            topic.queue.append(call.event)
            self._advance(topic)

    def _send_ready(self, topic: Topic, client: str, number: int) -> None:
        cuts = topic.cuts() if topic.uses[client, number] and self._has_cuts else {}
        self._effects.append(Send(client, Ready(number, cuts)))

    def _hand_out(self, topic: Topic, event: Event) -> None:
        topic.last[event.publisher] = event.seq
        for client, numbers in topic.subscribers.items():
            self._effects.append(Send(client, Delivery(event, numbers)))

    # ---- own broadcasts (Algorithm 2, task T1) ---------------------------------------------------

    def _advance(self, topic: Topic) -> None:
        """Broadcast the next message, unless one is in flight. Publications go before leaving."""
        while not topic.busy:
            if topic.phase is Phase.MEMBER and topic.queue:
                self._publish(topic, topic.queue.popleft())
            elif topic.phase is Phase.MEMBER and not topic.uses:
                self._leave(topic)
            elif topic.phase is Phase.OUT and (topic.uses or topic.queue):
                self._join(topic)
            else:
                return

    def _join(self, topic: Topic) -> None:
        topic.phase = Phase.JOINING
        topic.clock = self._tick()
        topic.view = View(1 << self._own)
        message = Sub(self._own, topic.name, topic.clock)
        copies = [(self._own ^ 1 << level, message) for level in reversed(range(self._dimension))]
        self._broadcast(topic, topic.clock, copies)

    def _publish(self, topic: Topic, event: Event) -> None:
        number = self._tick()
        barrier = topic.order.publish(self._own, number)
        if self.measures is not None:
            self.measures.published[len(barrier)] += 1
        self._hand_out(topic, event)
        topic.on_its_way = event
        copies = [
            (broker, Pub(self._own, topic.name, number, event, barrier, pack(behind)))
            for broker, behind in self._branches(self._dimension, topic.view.members)
        ]
        self._broadcast(topic, number, copies)

    def _leave(self, topic: Topic) -> None:
        topic.phase = Phase.LEAVING
        topic.clock = self._tick()
        topic.order.drop_waiting()
        self._release(topic)
        copies = [
            (broker, Uns(self._own, topic.name, topic.clock, pack(behind)))
            for broker, behind in self._branches(self._dimension, topic.view.members)
        ]
        self._broadcast(topic, topic.clock, copies)

    def _broadcast(self, topic: Topic, number: int, copies: Sequence[tuple[int, Any]]) -> None:
        wave = Wave(topic.name, self._own, number, None, len(copies))
        for broker, message in copies:
            self._send(broker, message)
        if copies:
            topic.busy = True
            self._waves[wave.name] = wave
        else:
            self._complete(topic, wave)

    def _complete(self, topic: Topic, wave: Wave) -> None:
        """Finish a broadcast that has reached all receivers."""
        topic.busy = False
        if topic.phase is Phase.JOINING:
            self._start(topic, wave)
        elif topic.phase is Phase.LEAVING:
            topic.phase = Phase.OUT
            if not self._has_cuts:
                topic.order.forget()
        elif topic.on_its_way is not None:
            self._effects.append(Send(topic.on_its_way.publisher, Taken(topic.on_its_way.seq)))

    def _start(self, topic: Topic, wave: Wave) -> None:
        """Start the membership: all brokers know of it, and its starting cut is known."""
        topic.phase = Phase.MEMBER
        if wave.answers is not None:
            topic.order.adopt(wave.answers.settled)
            raise_to(topic.last, wave.answers.last)
        for client, number in topic.uses:
            self._send_ready(topic, client, number)
        held, topic.held = topic.held, []
        for message in held:
            self._deliver(topic, message)
        self._release(topic)

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    # ---- broadcasts of others (Algorithm 2, task T2) ------------------------------------------------------

    def _on_sub(self, sender: int, message: Sub) -> None:
        topic = self._topics.get(message.topic)
        answer = None
        if topic is not None and (self._has_cuts or topic.is_member):
            answer = topic.answer(self._own, self._has_cuts)
        if topic is not None and topic.is_member:
            topic.view.update([(message.source, message.number, True)])
        height = cluster_of(self._own, sender) - 1
        for level in reversed(range(height)):
            self._send(self._own ^ 1 << level, message)
        self._await(sender, message, height, answer)

    def _on_uns(self, sender: int, message: Uns) -> None:
        topic = self._topics.get(message.topic)
        if topic is not None and topic.is_member:
            topic.view.update([(message.source, message.number, False)])
        onward = self._onward(sender, message, topic)
        for broker, behind in onward:
            self._send(broker, Uns(message.source, message.topic, message.number, pack(behind)))
        self._await(sender, message, len(onward))

    def _on_pub(self, sender: int, message: Pub) -> None:
        topic = self._topics.get(message.topic)
        onward = self._onward(sender, message, topic)
        for broker, behind in onward:
            copy = Pub(message.source, message.topic, message.number, message.event, message.barrier, pack(behind))
            self._send(broker, copy)
        if topic is None or not topic.is_member:
            if self.measures is not None:
                self.measures.false_positives[len(message.barrier)] += 1
            self._await(sender, message, len(onward))
            return
        answer = None
        if not self._names_receivers and message.source not in topic.order.settled:
            answer = topic.answer(self._own, self._has_cuts)
        full = topic.backlog >= self._options.waiting_max
        wave = self._await(sender, message, len(onward) + full, answer)
        if full and wave is not None:
            topic.withheld.append(wave)
        if self.measures is not None:
            self.measures.arrive(topic.name, message.source, message.number, len(message.barrier), self._now)
        if topic.phase is Phase.JOINING and self._has_cuts:
            topic.held.append(message)
        else:
            self._deliver(topic, message)
            if topic.withheld:
                self._release(topic)

    def _onward(self, sender: int, message: Pub | Uns, topic: Topic | None) -> list[tuple[int, int]]:
        """Return the next hops of a message, with the members behind each."""
        if self._names_receivers and not message.behind:
            return []
        height = cluster_of(self._own, sender) - 1
        if self._names_receivers:
            members = unpack(message.behind)
        else:
            members = 0 if topic is None else sub_cube(topic.view.members, self._own, height)
        return self._branches(height, members)

    def _deliver(self, topic: Topic, message: Pub) -> None:
        for ready in topic.order.receive(message):
            if self.measures is not None:
                self.measures.deliver(topic.name, ready.source, ready.number, self._now)
            self._hand_out(topic, ready.event)

    # ---- acknowledgements ---------------------------------------------------------------------------------

    def _await(self, sender: int, message: Pub | Sub | Uns, copies: int, answer: Answer | None = None) -> Wave | None:
        """Acknowledge a message at once if it has no further receivers; otherwise wait for their acknowledgements."""
        if copies == 0:
            self._send(sender, Ack(message.source, message.topic, message.number, answer))
            return None
        wave = Wave(message.topic, message.source, message.number, sender, copies)
        self._waves[wave.name] = wave
        if answer is not None:
            wave.collect(answer)
        return wave

    def _on_ack(self, sender: int, message: Ack) -> None:
        wave = self._waves.get((message.topic, message.source))
        if wave is None or wave.number != message.number:
            return  # of an earlier incarnation of this broker
        if message.answer is not None:
            wave.collect(message.answer)
            topic = self._topics.get(message.topic)
            if topic is not None and topic.is_member:
                topic.view.update(message.answer.entries)
        self._count_down(wave)

    def _count_down(self, wave: Wave) -> None:
        wave.left -= 1
        if wave.left:
            return
        self._waves.pop(wave.name, None)
        name, source = wave.name
        if wave.parent is not None:
            answer = None if wave.answers is None else wave.answers.summary()
            self._send(wave.parent, Ack(source, name, wave.number, answer))
        else:
            topic = self._topics[name]
            self._complete(topic, wave)
            self._advance(topic)

    def _release(self, topic: Topic) -> None:
        """Send withheld acknowledgements once there is room again."""
        if topic.withheld and topic.backlog < self._options.waiting_max:
            withheld, topic.withheld = topic.withheld, []
            for wave in withheld:
                self._count_down(wave)

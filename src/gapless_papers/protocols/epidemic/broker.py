"""A broker of the `epidemic` protocol: a dispatcher of the paper.

An event goes along the tree over every link behind which a subscription matches, and to the matching clients here. It
is processed once, however often it arrives. An event that arrives by gossip is for this broker alone: others recover it
themselves.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_never

from gapless.protocol import (
    BrokerNode,
    BrokerPlace,
    Connected,
    Effect,
    Input,
    Linked,
    Send,
    SetTimer,
    Start,
    TimerFired,
    Unlinked,
)
from gapless.protocol import Received as ReceivedInput
from gapless_papers.protocols.epidemic.cache import EventCache
from gapless_papers.protocols.epidemic.dice import Dice
from gapless_papers.protocols.epidemic.gossip import BrokerView
from gapless_papers.protocols.epidemic.interval import Interval
from gapless_papers.protocols.epidemic.losses import Losses
from gapless_papers.protocols.epidemic.messages import (
    Accepted,
    ClientPublish,
    ClientState,
    ClientSubscribe,
    ClientUnsubscribe,
    Delivery,
    FromBroker,
    FromClient,
    Interest,
    InterestKnown,
    Publication,
    PublisherPull,
    PushDigest,
    Request,
    Retransmission,
    Stamped,
    SubscriberPull,
)
from gapless_papers.protocols.epidemic.numbering import Numbering
from gapless_papers.protocols.epidemic.options import EpidemicOptions
from gapless_papers.protocols.epidemic.pull import Pull
from gapless_papers.protocols.epidemic.push import Push
from gapless_papers.protocols.epidemic.received import Received
from gapless_papers.protocols.epidemic.subscription_table import Pattern, SubscriptionTable

__all__ = ["EpidemicBroker"]

_GOSSIP = "gossip"
_PUBLISHER_SHARES = {"subscriber-pull": 0.0, "publisher-pull": 1.0}


class EpidemicBroker(BrokerNode):
    """A broker node."""

    def __init__(self, place: BrokerPlace, options: EpidemicOptions) -> None:
        self._name = place.name
        self._options = options
        self._source = f"{place.name}/{place.incarnation}"
        self._interval = Interval(options)
        self._dice = Dice(f"{options.seed}/{place.name}/{place.incarnation}")
        self._table = SubscriptionTable(place.overlay.neighbours(place.name))
        self._cache = EventCache(options.buffer, options.discard, self._dice)
        self._received = Received(options.remembered)
        self._numbering = Numbering()
        self._losses = Losses(options.lost, round(options.give_up_ms * 1000))
        self._clients: dict[str, dict[int, str]] = {}
        self._recovered = 0
        self._rounds = 0
        self._waits_for_round = False
        self._effects: list[Effect] = []
        self._now = 0
        self._around = BrokerView(place.name, options, self._table, self._cache, self._received, self._dice, self._send)
        self._pull: Pull | None = None
        self._push: Push | None = None
        if options.pulls:
            share = _PUBLISHER_SHARES.get(options.recovery, options.publisher_probability)
            self._pull = Pull(self._around, self._losses, share)
        elif options.recovery == "push":
            self._push = Push(self._around)
        self._recovery = self._pull or self._push

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Process one input and return its effects."""
        self._effects = []
        self._now = now
        match item:
            case ReceivedInput():
                self._on_message(item.peer, item.message)
            case TimerFired():
                self._on_timer(item)
            case Connected():
                self._on_connected(item)
            case Linked():
                self._on_linked(item)
            case Unlinked():
                self._on_unlinked(item)
            case Start():
                self._on_start()
            case _:
                pass
        return self._effects

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the broker's tables; entries that end in `sent`, and those about losses, count since
        the start."""
        return {
            "patterns": len(self._table),
            "cached": len(self._cache),
            "remembered": len(self._received),
            "counters": len(self._numbering),
            "routes": 0 if self._pull is None else self._pull.routes,
            "lost": len(self._losses),
            "losses_detected": self._losses.detected,
            "losses_recovered": self._losses.recovered,
            "losses_given_up": self._losses.given_up,
            "events_recovered": self._recovered,
            "gossip_rounds": self._rounds,
            "gossip_sent": self._around.gossip_sent,
            "requests_sent": self._around.requests_sent,
            "retransmissions_sent": self._around.retransmissions_sent,
        }

    def _send(self, peer: str, message: Any) -> None:
        self._effects.append(Send(peer, message))

    def _on_message(self, peer: str, message: FromBroker | FromClient) -> None:
        match message:
            case Publication():
                self._on_publication(peer, message)
            case ClientPublish():
                self._on_publish(peer, message)
            case PushDigest() | Request():
                assert self._push is not None, "all brokers recover in the same way"
                self._push.receive(peer, message)
            case SubscriberPull() | PublisherPull():
                assert self._pull is not None, "all brokers recover in the same way"
                self._pull.receive(peer, message)
            case Retransmission():
                self._on_retransmission(message)
            case Interest():
                self._on_interest(peer, message)
            case InterestKnown():
                self._on_interest_known(peer, message)
            case ClientSubscribe():
                self._on_subscribe(peer, message)
            case ClientUnsubscribe():
                self._on_unsubscribe(peer, message)
            case ClientState():
                self._on_client_state(peer, message)
            case _:
                assert_never(message)

    # ---- events -------------------------------------------------------------------------------------------

    def _on_publish(self, client: str, call: ClientPublish) -> None:
        patterns = self._table.match(call.event.attributes)
        numbers = self._numbering.number(pattern.text for pattern in patterns) if self._pull is not None else {}
        stamped = Stamped(call.event, self._source, numbers)
        event = (call.event.publisher, call.event.seq)
        if self._received.enter(event) and self._received.pass_on(event):
            self._pass_on(stamped, patterns, client, ())
            self._take(stamped, patterns)

    def _on_publication(self, peer: str, message: Publication) -> None:
        stamped = message.stamped
        if self._pull is not None and message.route:
            self._pull.note_route(stamped.source, message.route)
        event = (stamped.event.publisher, stamped.event.seq)
        is_new = self._received.enter(event)
        if self._received.pass_on(event):
            patterns = self._table.match(stamped.event.attributes)
            self._pass_on(stamped, patterns, peer, message.route)
            if is_new:
                self._take(stamped, patterns)

    def _on_retransmission(self, message: Retransmission) -> None:
        event = message.stamped.event
        if self._received.enter((event.publisher, event.seq)):
            self._recovered += 1
            self._take(message.stamped, self._table.match(event.attributes))

    def _pass_on(self, stamped: Stamped, patterns: Iterable[Pattern], source: str, route: tuple[str, ...]) -> None:
        """Send an event over every link with a matching subscription, except the one it came from."""
        peers: dict[str, None] = {}
        for pattern in patterns:
            peers |= pattern.peers
        peers.pop(source, None)
        if peers:
            message = Publication(stamped, (*route, self._name) if self._options.follows_routes else ())
            for peer in peers:
                self._effects.append(Send(peer, message))

    def _take(self, stamped: Stamped, patterns: Sequence[Pattern]) -> None:
        """Deliver and cache an event that is new here, and detect losses."""
        clients: dict[str, list[int]] = {}
        own = [pattern for pattern in patterns if pattern.clients]
        for pattern in own:
            for client, numbers in pattern.clients.items():
                clients.setdefault(client, []).extend(numbers)
        for client, wanted in clients.items():
            self._send(client, Delivery(stamped.event, tuple(wanted)))
        if self._recovery is None:
            return
        is_own = bool(own) or stamped.source == self._source
        if is_own or self._options.cached == "all":
            texts = tuple(pattern.text for pattern in patterns) if self._push is not None else ()
            self._cache.add(stamped, texts, is_own)
        if self._pull is not None and stamped.source != self._source:
            detected = self._losses.detected
            self._losses.note(stamped, [pattern.text for pattern in own], self._now)
            if self._options.at_once and self._losses.detected > detected:
                self._start_round()
            elif len(self._losses) and not self._waits_for_round:
                self._wait_for_round(self._interval.after_round(self._news()))

    # ---- rounds -------------------------------------------------------------------------------------------

    def _on_start(self) -> None:
        if self._push is not None:
            self._wait_for_round(self._dice.below(self._interval.least_us) + 1)

    def _wait_for_round(self, delay_us: int) -> None:
        self._waits_for_round = True
        self._effects.append(SetTimer(_GOSSIP, delay_us))

    def _on_timer(self, item: TimerFired) -> None:
        kind, _, peer = item.key.partition("/")
        if kind == _GOSSIP:
            self._start_round()
        elif kind == "hold":
            self._table.release(peer)
            self._send_changes()
        elif peer in self._table.links:
            link = self._table.links[peer]
            if link.under_way is not None:
                self._send_change(peer, link.under_way)

    def _start_round(self) -> None:
        """Start a gossip round: push always, pull while something is missing."""
        self._waits_for_round = False
        self._losses.give_up(self._now)
        if self._recovery is not None and (self._push is not None or len(self._losses)):
            self._rounds += 1
            self._recovery.start_round()
            self._wait_for_round(self._interval.after_round(self._news()))

    def _news(self) -> int:
        """Return a counter that grows with every sign of a lost event."""
        if self._push is not None:
            return self._around.requests_sent + self._around.retransmissions_sent
        return self._losses.detected + self._recovered

    # ---- subscriptions ------------------------------------------------------------------------------------

    def _on_subscribe(self, client: str, call: ClientSubscribe) -> None:
        self._clients.setdefault(client, {})[call.number] = call.filter
        self._table.subscribe(client, call.number, call.filter)
        self._send(client, Accepted(call.number))
        self._send_changes()

    def _on_unsubscribe(self, client: str, call: ClientUnsubscribe) -> None:
        text = self._clients.get(client, {}).pop(call.number, None)
        if text is not None:
            self._table.unsubscribe(client, call.number, text)
            if not self._table.has_clients(text):
                self._losses.forget(text)
            self._send_changes()

    def _on_client_state(self, client: str, state: ClientState) -> None:
        """Replace the subscriptions of a client that has reconnected, because messages may have been lost."""
        for number in [number for number in self._clients.get(client, {}) if number not in state.filters]:
            self._on_unsubscribe(client, ClientUnsubscribe(number))
        for number, text in state.filters.items():
            if number not in self._clients.get(client, {}):
                self._on_subscribe(client, ClientSubscribe(number, text))

    def _send_changes(self) -> None:
        for link in self._table.links.values():
            change = link.next_change()
            if change is not None:
                self._send_change(link.peer, change)

    def _send_change(self, peer: str, change: Interest) -> None:
        self._send(peer, change)
        self._effects.append(SetTimer(self._table.links[peer].timer, round(self._options.resend_ms * 1000)))

    def _on_interest(self, peer: str, change: Interest) -> None:
        link = self._table.links.get(peer)
        if link is None:
            return
        self._send(peer, InterestKnown(change.version))
        if link.is_news(change):
            self._table.change(peer, change.whole, change.added, change.removed)
            self._send_changes()

    def _on_interest_known(self, peer: str, message: InterestKnown) -> None:
        link = self._table.links.get(peer)
        if link is not None:
            link.confirm(message.version)
            self._send_changes()

    # ---- the tree -----------------------------------------------------------------------------------------

    def _on_connected(self, item: Connected) -> None:
        link = self._table.links.get(item.peer)
        if link is not None:
            link.restart()
            self._send_changes()

    def _on_linked(self, item: Linked) -> None:
        self._table.link(item.peer)
        self._send_changes()

    def _on_unlinked(self, item: Unlinked) -> None:
        self._table.unlink(item.peer)
        self._effects.append(SetTimer(f"hold/{item.peer}", round(self._options.hold_ms * 1000)))

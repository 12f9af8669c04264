"""What comes along the tree: events, waves, subscriptions, advertisements, each to the part whose rule it is."""

from collections.abc import Callable
from typing import assert_never

from gapless.events import EventList
from gapless.protocols.gapless.event_course import EventCourse
from gapless.protocols.gapless.messages import (
    AddAdvertisement,
    AddSubscription,
    AdvertisementStable,
    Echo,
    Hurry,
    Marker,
    Publication,
    RemoveAdvertisement,
    RemoveSubscription,
    SubscriptionGone,
    Tree,
    TreeBody,
    Wave,
)
from gapless.protocols.gapless.pieces import Pieces, finish
from gapless.protocols.gapless.recovery.handovers import Handovers
from gapless.protocols.gapless.recovery.state import BrokerState
from gapless.protocols.gapless.routing.records import Link
from gapless.protocols.gapless.wave_course import WaveCourse
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["TreeCourse"]

CONTESTED_MAX = 1_000
"""So much is remembered that came from another side than it is known from."""


class TreeCourse:
    """One life's part in it."""

    def __init__(
        self,
        state: BrokerState,
        handovers: Handovers,
        events: EventCourse,
        waves: WaveCourse,
        send_tree: Callable[[Link, TreeBody], None],
    ) -> None:
        self._table = state.table
        self._clients = state.clients
        self._handovers = handovers
        self._events = events
        self._waves = waves
        self._send_tree = send_tree
        self._contested: dict[str, tuple[Link, AddAdvertisement | AddSubscription]] = {}
        """What came from another side than it is known from."""

    def receive(self, peer: str, message: Tree) -> None:
        """Take what came over a link that is installed here; keep what comes over one that will be."""
        link = self._table.links.get(peer)
        if link is not None and link.tag == message.tag:
            if type(message.body) is AddAdvertisement:
                self._clients.errand = self._add_advertisement(link, message.body)
            else:
                self.take(link, message.body)
        elif message.tag in self._handovers.under_way:
            self._handovers.under_way[message.tag].early.append((peer, message.body))

    def take(self, link: Link, body: TreeBody) -> None:
        """Something came over this link."""
        match body:
            case Publication():
                events = EventList(body.events) if isinstance(body.events, list) else body.events
                self._events.process(events, link.via, link)
            case Wave():
                self._waves.receive_wave(link, body)
            case Echo():
                self._waves.receive_echo(link, body)
            case Hurry():
                self._waves.hurry(again=body.again)
            case AddSubscription():
                self._add_subscription(link, body)
            case RemoveSubscription():
                self._remove_subscription(link, body)
            case SubscriptionGone():
                self._table.receive_gone(link, body.subscription)
            case Marker():
                self._table.receive_marker(link, body.subscription, body.cuts)
            case AddAdvertisement():
                finish(self._add_advertisement(link, body))
            case AdvertisementStable():
                self._table.receive_stable(link, body.advertisement, body.number)
            case RemoveAdvertisement():
                self._remove_advertisement(link, body)
            case _:
                assert_never(body)

    def _add_advertisement(self, link: Link, body: AddAdvertisement) -> Pieces[None]:
        known = self._table.advertisements.get(body.advertisement)
        if known is not None and known.origin is None:
            self._clients.give_up(known.publisher)
            known = self._table.advertisements.get(body.advertisement)
        if known is None or known.origin is link:
            yield from self._table.receive_advertisement(link, body)
        else:
            self._contest(body.advertisement, link, body)

    def _add_subscription(self, link: Link, body: AddSubscription) -> None:
        known = self._table.subscriptions.get(body.subscription)
        if known is not None and known.origin is None:
            self._clients.give_up(known.client)
            known = self._table.subscriptions.get(body.subscription)
        if known is None:
            self._table.receive_subscription(link, body)
        elif known.origin is not link:
            self._contest(body.subscription, link, body)

    def _contest(self, name: str, link: Link, body: AddAdvertisement | AddSubscription) -> None:
        """It is known from another side: two brokers have a session of one client, and one of them will give it up.

        For a moment that may be while a session moves; where brokers go on in a cut, for longer. The smallest story: b5
        is out, and b0 takes p over. b5 returns, and b4, which does not know that it is out itself, takes it in. p comes
        to b5, and advertises. b4 knows that from b0, and would never answer.
        """
        self._contested[name] = link, body
        forget_oldest(self._contested, CONTESTED_MAX)
        self._handovers.contest(name, link.tag)

    def _go_on_with(self, name: str) -> None:
        """What was known by that name is over: another may have waited for that."""
        link, body = self._contested.pop(name, (None, None))
        if link is not None and body is not None and self._table.links.get(link.peer) is link:
            self.take(link, body)

    def _remove_subscription(self, link: Link, body: RemoveSubscription) -> None:
        subscription = self._table.subscriptions.get(body.subscription)
        if subscription is not None and subscription.origin is link:
            self._table.remove_subscription(body.subscription)
            self._go_on_with(body.subscription)
        if body.answer:
            self._send_tree(link, SubscriptionGone(body.subscription))

    def _remove_advertisement(self, link: Link, body: RemoveAdvertisement) -> None:
        advertisement = self._table.advertisements.get(body.advertisement)
        if advertisement is not None and advertisement.origin is link:
            self._table.remove_advertisement(body.advertisement, was_lost=body.was_lost)
            self._clients.readiness.check()
            self._go_on_with(body.advertisement)

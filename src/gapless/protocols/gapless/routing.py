"""Advertisements and subscriptions on the tree, and the cuts of subscriptions.

An **advertisement** is flooded. A broker acknowledges it when all links behind it have acknowledged it, after sending
every overlapping subscription towards the publisher. So when the publisher's broker has all acknowledgements, it has
every earlier subscription, and only then admits events under the advertisement. The advertisement contains the
publisher's last number.

A **subscription** travels towards the advertisements that it overlaps with. When it arrives at the publisher's broker,
that broker answers with the publisher's next number: the **cut**. A subscription is not sent over a link if an *active*
subscription that covers it was sent there: that one represents it, and this broker is the pivot. The pivot answers for
all publishers behind the link, for each with one more than the last number it has seen: the active subscription brings
all later events, over a FIFO link.

Every attempt has a number; an answer to another attempt is ignored.
"""

from gapless.filters import parse
from gapless.protocols.gapless.client_messages import Stable
from gapless.protocols.gapless.client_state import LocalState
from gapless.protocols.gapless.identities import Attempt, Incarnation, Name
from gapless.protocols.gapless.link_messages import (
    ActivateSubscription,
    AddAdvertisement,
    AddSubscription,
    AdvertisementAck,
    CutAnswer,
    RemoveAdvertisement,
    RemoveSubscription,
    Void,
)
from gapless.protocols.gapless.routing_state import Advertisement, Link, Subscription
from gapless.protocols.gapless.state import BrokerState, Due
from gapless.protocols.parts.filter_pairs import overlap
from gapless.protocols.parts.messages import Cuts

__all__ = [
    "activate", "flood", "put_subscription", "receive_activation", "receive_advertisement", "receive_advertisement_ack",
    "receive_advertisement_end", "receive_answer", "receive_subscription", "receive_subscription_end", "receive_void",
    "refresh", "remove_advertisement", "remove_subscription", "send_subscription", "spread", "void",
]  # fmt: skip


# ---- subscriptions -----------------------------------------------------------------------------------------


def put_subscription(s: BrokerState, subscription: Subscription) -> None:
    """Add a subscription to the table, replacing an earlier attempt."""
    name = subscription.name
    if name in s.subscriptions:
        for link in s.links.values():
            _stop_representing(s, link, name)
        s.index.remove(name)
    s.subscriptions[name] = subscription
    s.index.add(name, subscription.filter)


def _stop_representing(s: BrokerState, link: Link, name: Name) -> None:
    """Record that a subscription no longer represents others on this link, and send the ones it represented."""
    if name in link.covers:
        link.covers.remove(name)
    cover = link.represented.pop(name, None)
    if cover is not None:
        link.represents[cover].pop(name, None)
    for other in link.represents.pop(name, {}):
        del link.represented[other]
        if other in s.subscriptions:
            offer(s, link, s.subscriptions[other])


def spread(s: BrokerState, subscription: Subscription) -> None:
    """Send a subscription towards the advertisements that it overlaps with. Answer for the publishers at this broker,
    and for remote ones if this broker is the pivot."""
    cuts: Cuts = {}
    for link in s.links.values():
        if link is not subscription.origin:
            cuts |= offer(s, link, subscription)
    for advertisement in s.advertisements.values():
        if advertisement.origin is None and overlap(advertisement.filter, subscription.filter):
            cuts[advertisement.publisher] = s.seen.get(advertisement.publisher, 0) + 1
    if cuts and not subscription.is_active:
        _answer(s, subscription, cuts)


def offer(s: BrokerState, link: Link, subscription: Subscription) -> Cuts:
    """Send a subscription over a link if needed. Return the pivot's answers if another subscription represents it
    there."""
    name = subscription.name
    needs = [each for each in link.advertisements.values() if overlap(each.filter, subscription.filter)]
    if not needs or link.sent.get(name) == (subscription.attempt, subscription.is_active):
        return {}
    cover = link.covers.find(subscription.filter) if name not in link.sent else None
    if cover is None:
        send_subscription(s, link, subscription)
        return {}
    link.represented[name] = cover
    link.represents.setdefault(cover, {})[name] = None
    return {each.publisher: s.seen.get(each.publisher, 0) + 1 for each in needs}


def send_subscription(s: BrokerState, link: Link, subscription: Subscription, *, silently: bool = False) -> None:
    """Send a subscription over a link. If `silently`, only record that the peer has it already."""
    name = subscription.name
    if name in link.covers:
        link.covers.remove(name)
    link.sent[name] = subscription.attempt, subscription.is_active
    if subscription.is_active or "active-only" in s.off:
        link.covers.add(name, subscription.filter)
    if not silently:
        text = subscription.filter.text
        s.send_along(link, AddSubscription(name, text, subscription.attempt, subscription.is_active))


def refresh(s: BrokerState, link: Link) -> None:
    """Send the subscriptions that overlap with advertisements behind the link: active ones first, because they
    represent others."""
    waiting = [each for each in s.subscriptions.values() if each.origin is not link and each.name not in link.sent]
    for subscription in sorted(waiting, key=lambda each: not each.is_active):
        if subscription.name not in link.represented:
            offer(s, link, subscription)


def _answer(s: BrokerState, subscription: Subscription, cuts: Cuts) -> None:
    if subscription.origin is not None:
        s.send_along(subscription.origin, CutAnswer(subscription.name, subscription.attempt, cuts))
        return
    local = s.locals.get(subscription.name)
    if local is not None and local.state is LocalState.PENDING and local.attempt == subscription.attempt:
        for publisher, cut in cuts.items():
            local.cuts.setdefault(publisher, cut)
        s.due |= Due.ATTEMPTS


def receive_subscription(s: BrokerState, link: Link, message: AddSubscription) -> None:
    """Process a subscription of a client behind the link."""
    name, attempt = Name(*message.name), Attempt(*message.attempt)
    old = s.subscriptions.get(name)
    is_active = message.is_active
    if old is not None:
        if old.attempt > attempt:
            return
        is_active |= old.is_active and old.attempt == attempt
    subscription = Subscription(name, parse(message.filter), attempt, link, is_active)
    put_subscription(s, subscription)
    spread(s, subscription)


def receive_answer(s: BrokerState, link: Link, message: CutAnswer) -> None:
    """Process the marker of a subscription: later events on this link have at least these numbers."""
    subscription = s.subscriptions.get(Name(*message.name))
    if subscription is None or subscription.attempt != message.attempt:
        return
    for publisher, cut in message.cuts.items():
        s.seen[publisher] = max(s.seen.get(publisher, 0), cut - 1)
    if not subscription.is_active:
        _answer(s, subscription, message.cuts)


def receive_activation(s: BrokerState, link: Link, message: ActivateSubscription) -> None:
    """Record that a subscription's attempt has succeeded at its client's broker."""
    subscription = s.subscriptions.get(Name(*message.name))
    if subscription is not None and subscription.attempt == message.attempt:
        activate(s, subscription)


def activate(s: BrokerState, subscription: Subscription) -> None:
    """Mark a subscription as active, so that it can represent others, and notify all brokers it was sent to."""
    subscription.is_active = True
    for link in s.links.values():
        known = link.sent.get(subscription.name)
        if known is not None and known != (subscription.attempt, True):
            send_subscription(s, link, subscription, silently=True)
            s.send_along(link, ActivateSubscription(subscription.name, subscription.attempt))


def receive_subscription_end(s: BrokerState, link: Link, message: RemoveSubscription) -> None:
    """Process the end of a subscription behind the link."""
    subscription = s.subscriptions.get(Name(*message.name))
    if subscription is not None and subscription.origin is link:
        remove_subscription(s, subscription.name)


def remove_subscription(s: BrokerState, name: Name) -> None:
    """Remove a subscription from the table. The subscriptions that it represented are sent before its end, so that
    there is no gap."""
    if s.subscriptions.pop(name, None) is None:
        return
    s.index.remove(name)
    for link in s.links.values():
        was_sent = link.sent.pop(name, None) is not None
        _stop_representing(s, link, name)
        if was_sent:
            s.send_along(link, RemoveSubscription(name))


# ---- advertisements ----------------------------------------------------------------------------------------


def receive_advertisement(s: BrokerState, link: Link, message: AddAdvertisement) -> None:
    """Process an advertisement of a publisher behind the link."""
    name, attempt = Name(*message.name), Attempt(*message.attempt)
    if "last-numbers" not in s.off:
        s.seen[name.client] = max(s.seen.get(name.client, 0), message.last)
    old = s.advertisements.get(name)
    if old is not None and old.attempt > attempt:
        return
    advertisement = Advertisement(name, parse(message.filter), attempt, link, message.home, message.base)
    put_advertisement(s, advertisement, message.last)
    flood(s, s.advertisements[name])


def put_advertisement(s: BrokerState, advertisement: Advertisement, last: int) -> None:
    """Add an advertisement to the table, replacing an earlier attempt, and send the subscriptions that overlap with it.
    Earlier events have numbers up to `last`."""
    name, origin = advertisement.name, advertisement.origin
    advertisement.home = Incarnation(*advertisement.home)
    old = s.advertisements.get(name)
    if old is not None and old.origin is not None:
        old.origin.advertisements.pop(name, None)
    known = s.advertised_after.setdefault(name.client, last)
    if old is not None and old.filter.text != advertisement.filter.text:
        s.advertised_after[name.client] = max(known, last)
    s.advertisements[name] = s.advertisements_of.setdefault(name.client, {})[name] = advertisement
    if origin is not None:
        origin.advertisements[name] = advertisement
        if origin.key in s.links:
            refresh(s, origin)


def flood(s: BrokerState, advertisement: Advertisement) -> None:
    """Send an advertisement over all other links, and wait until all of them have acknowledged it."""
    last = s.seen.get(advertisement.publisher, 0)
    onward = [link for link in s.links.values() if link is not advertisement.origin]
    advertisement.waits_for = {link.key for link in onward}
    name, text, attempt = advertisement.name, advertisement.filter.text, advertisement.attempt
    for link in onward:
        s.send_along(link, AddAdvertisement(name, text, attempt, last, advertisement.home, advertisement.base))
    _acknowledge_if_everywhere(s, advertisement)


def _acknowledge_if_everywhere(s: BrokerState, advertisement: Advertisement) -> None:
    if advertisement.waits_for:
        return
    if advertisement.origin is None:
        _call_stable(s, advertisement)
    elif advertisement.origin.key in s.links:
        last = max(advertisement.last_seen, s.seen.get(advertisement.publisher, 0))
        s.send_along(advertisement.origin, AdvertisementAck(advertisement.name, advertisement.attempt, last))


def _call_stable(s: BrokerState, advertisement: Advertisement) -> None:
    """Mark an advertisement as stable and notify its client, because all brokers know it. Its events can be admitted
    now."""
    advertisement.is_stable = True
    s.due |= Due.CALLS
    session = s.sessions.get(advertisement.publisher)
    if session is not None:
        s.send_to(session.client, Stable(session.number, advertisement.name.local))
        if advertisement.last_seen > s.seen.get(advertisement.publisher, 0):
            s.missing[advertisement.publisher] = advertisement.last_seen


def receive_advertisement_ack(s: BrokerState, link: Link, message: AdvertisementAck) -> None:
    """Record that all brokers behind the link have the advertisement."""
    advertisement = s.advertisements.get(Name(*message.name))
    if advertisement is not None and advertisement.attempt == message.attempt and link.key in advertisement.waits_for:
        advertisement.waits_for.discard(link.key)
        advertisement.last_seen = max(advertisement.last_seen, message.last)
        _acknowledge_if_everywhere(s, advertisement)


def receive_advertisement_end(s: BrokerState, link: Link, message: RemoveAdvertisement) -> None:
    """Process the end of an advertisement behind the link."""
    advertisement = s.advertisements.get(Name(*message.name))
    if advertisement is not None and advertisement.origin is link and advertisement.attempt <= message.attempt:
        remove_advertisement(s, advertisement, message.last)


def remove_advertisement(s: BrokerState, advertisement: Advertisement, last: int) -> None:
    """Remove an advertisement from the table, and restart the local attempts that wait for its publisher. Events that
    relied on it have numbers up to `last`."""
    del s.advertisements[advertisement.name]
    if advertisement.origin is not None:
        advertisement.origin.advertisements.pop(advertisement.name, None)
    for link in s.links.values():
        if link is not advertisement.origin:
            s.send_along(link, RemoveAdvertisement(advertisement.name, advertisement.attempt, last))
    publisher = advertisement.publisher
    others = s.advertisements_of[publisher]
    del others[advertisement.name]
    if others:
        s.advertised_after[publisher] = max(last, s.advertised_after[publisher])
    else:
        del s.advertised_after[publisher], s.advertisements_of[publisher]
    for local in s.locals.values():
        is_waiting = local.state is LocalState.PENDING and publisher in local.expected
        if is_waiting and not any(overlap(each.filter, local.filter) for each in others.values()):
            s.restarts[local.name] = None
            s.due |= Due.RESTARTS


# ---- voids -------------------------------------------------------------------------------------------------


def receive_void(s: BrokerState, link: Link, message: Void) -> None:
    """Process the notice that a handover has crossed the path of an attempt."""
    void(s, Name(*message.name), Attempt(*message.attempt), is_subscription=message.is_subscription)


def void(s: BrokerState, name: Name, attempt: Attempt, *, is_subscription: bool) -> None:
    """Restart an attempt, unless it has ended or succeeded."""
    item = s.subscriptions.get(name) if is_subscription else s.advertisements.get(name)
    if item is None or item.attempt != attempt:
        return
    if item.origin is not None:
        if item.origin.key in s.links:
            s.send_along(item.origin, Void(name, attempt, is_subscription))
    elif isinstance(item, Subscription):
        if not item.is_active:
            s.restarts[name] = None
            s.due |= Due.RESTARTS
    elif not item.is_stable:
        item.attempt = Attempt(attempt.session, attempt.restart + 1)
        flood(s, item)

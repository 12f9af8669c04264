"""What clients' messages ask for, for a runtime that judges it before a broker sees it."""

from collections.abc import Mapping, Set
from typing import Any

import msgspec

from gapless.names import LISTING
from gapless.protocol import Demand
from gapless.protocols.gapless.client_messages import (
    Attach,
    ClientAdvertise,
    ClientConfirm,
    ClientHand,
    ClientMove,
    ClientNames,
    ClientOpen,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
)

__all__ = ["demand", "rewrite"]


def demand(message: Any) -> Demand | None:
    """What a message of a client asks for."""
    kind = type(message)
    if kind is ClientPublish:
        return Demand(events=message.events)
    if kind is ClientSubscribe:
        histories = [message.subscription] if message.since >= 0 else []
        return Demand({message.subscription: message.filter}, histories)
    if kind is ClientOpen:
        name = message.subscription
        return Demand({name: message.filter}, [name], {name: message.name}, is_exact=message.share)
    if kind is ClientMove:
        name = message.request
        act = "subscription.ended" if message.position < 0 else "subscription.moved"
        return Demand({name: message.filter}, [name], {name: message.name}, act=act, is_passing=True)
    if kind is ClientConfirm or kind is ClientHand:
        return Demand(named={message.subscription: message.name})
    if kind is ClientNames:
        return Demand(listing=f"{LISTING}{message.request}")
    if kind is ClientAdvertise:
        return Demand(advertisements={message.advertisement: message.filter})
    if kind is Attach:
        return Demand(
            {held.subscription: held.filter for held in message.brought},
            [held.subscription for held in message.brought if not held.is_live],
            advertisements={name: text for name, (text, _) in message.advertisements.items()},
            events=message.publications,
            is_whole=True,
        )
    if kind is ClientUnsubscribe:
        return Demand(ended=message.subscription)
    return Demand(ended=message.advertisement) if kind is ClientUnadvertise else None


def rewrite(message: Any, filters: Mapping[str, str], without: Set[str]) -> Any:
    """The message with other filters, and without what is refused; None if nothing is left."""
    if isinstance(message, ClientSubscribe):
        if message.subscription in without:
            return None
        text = filters.get(message.subscription, message.filter)
        return msgspec.structs.replace(message, filter=text)
    if isinstance(message, ClientOpen):  # what it reads is judged when it reads it
        return None if message.subscription in without else message
    if isinstance(message, ClientMove):
        return None if message.request in without else message
    if isinstance(message, ClientAdvertise):
        return None if message.advertisement in without else message
    assert isinstance(message, Attach)
    brought = [
        msgspec.structs.replace(held, filter=filters.get(held.subscription, held.filter))
        for held in message.brought
        if held.subscription not in without
    ]
    advertisements = {name: offer for name, offer in message.advertisements.items() if name not in without}
    return msgspec.structs.replace(message, brought=brought, advertisements=advertisements)

"""Determines which permissions a client's message needs. The runtime checks them before the broker receives the
message."""

from collections.abc import Mapping, Set
from typing import Any

import msgspec

from gapless.names import LISTING
from gapless.protocol import Demand
from gapless.protocols.gapless.client_messages import (
    Attach,
    ClientAdvertise,
    ClientLost,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
)
from gapless.protocols.gapless.durable.client_messages import (
    ClientAck,
    ClientAttach,
    ClientGroupReport,
    ClientList,
    ClientMove,
)

__all__ = ["demand", "rewrite"]


def demand(message: Any) -> Demand | None:
    """Return the permissions that a client's message needs; None if it needs none."""
    match message:
        case Attach():
            return Demand(is_resuming=True)
        case ClientPublish():
            return Demand(events=message.events)
        case ClientSubscribe():
            name, since = message.subscription, message.since
            histories = [name] if since >= 0 and not message.is_resumed else []
            resumed = {name: (since, message.ticket)} if message.is_resumed else {}
            return Demand({name: message.filter}, histories, resumed=resumed)
        case ClientAdvertise():
            return Demand(advertisements={message.advertisement: message.filter})
        case ClientLost():
            return Demand(lost=message.filter)
        case ClientUnsubscribe():
            return Demand(ended=message.subscription)
        case ClientUnadvertise():
            return Demand(ended=message.advertisement)
        case ClientAttach():
            name = message.subscription
            return Demand({name: message.filter}, [name], {name: message.name}, is_exact=message.is_shared)
        case ClientMove():
            name = message.request
            act = "subscription.ended" if message.position < 0 else "subscription.moved"
            return Demand({name: message.filter}, [name], {name: message.name}, act=act, is_passing=True)
        case ClientAck() | ClientGroupReport():
            return Demand(named={message.subscription: message.name})
        case ClientList():
            return Demand(listing=f"{LISTING}{message.request}")
    return None


def rewrite(message: Any, filters: Mapping[str, str], without: Set[str]) -> Any:
    """Return the message with its filters replaced; None if nothing remains of it."""
    if isinstance(message, Attach):
        return msgspec.structs.replace(message, resumes=0)  # so that the client registers everything again
    if isinstance(message, ClientLost):
        return msgspec.structs.replace(message, filter=filters.get("", message.filter))
    if isinstance(message, ClientSubscribe):
        if message.subscription in without:
            return None
        return msgspec.structs.replace(message, filter=filters.get(message.subscription, message.filter))
    if isinstance(message, ClientAdvertise) and message.advertisement in without:
        return None
    if isinstance(message, ClientAttach) and message.subscription in without:
        return None  # permissions for a read are checked when the read begins
    if isinstance(message, ClientMove) and message.request in without:
        return None
    return message

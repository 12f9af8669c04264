"""Connects a client's protocol node to brokers, and carries out the effects that the node returns.

All state that must survive the loss of a broker is in the protocol's own client node, the same one that the simulator
runs. This module passes inputs to it and dispatches its effects; it contains no logic for brokers, retries or
fail-over.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from gapless.client.blocked_reason import BlockedReason
from gapless.client.changes import ConnectionChanges, WatchedLinks, WatchedNode, Watching, serving
from gapless.client.deliveries import Deliveries
from gapless.client.guarded_codec import GuardedCodec
from gapless.client.identity import Identity
from gapless.client.introduction import Introduction
from gapless.client.own_loop import OwnLoop
from gapless.client.publishing import Publishing
from gapless.client.recording import start_recording
from gapless.client.registrations import Registrations
from gapless.client.spare_links import SpareLinks
from gapless.errors import CallError, ClosedError, EventError, GaplessError
from gapless.protocol import (
    ClientPlace,
    Confirmed,
    PublicationsLost,
    Publish,
    Published,
    PublishedMany,
    Rejected,
    Start,
    Subscribe,
    Superseded,
    convert_options,
)
from gapless.registry import find_protocol
from gapless.runtime.access import Access
from gapless.runtime.logs import client_logger
from gapless.runtime.wire import Welcome

__all__ = ["ConnectionManager"]

LEAVE_S = 5.0
"""The maximum time that a closing client waits for the end of its subscriptions and for its broker."""


class ConnectionManager:
    """The connections of one client, from its admission by a broker until it is closed."""

    def __init__(
        self, welcome: Welcome, name: str, *,
        address: str, trace: str, access: Access, identity: Identity | None, patience_s: float,
    ) -> None:  # fmt: skip
        self.name = name
        self.own_loop = OwnLoop(f"client {name}")
        self.network = welcome.network_name
        self.spec = find_protocol(welcome.protocol)
        self.addresses = {**welcome.addresses, welcome.name: address}
        """The addresses of the brokers by name, as reported when the client first connected."""
        options = convert_options(self.spec, welcome.options)
        place = ClientPlace(name, welcome.name, tuple(welcome.contacts))
        self._node = self.spec.client(place, options)
        self.publishing = Publishing(self, self.spec, welcome.settings, self._node.window)
        self.registrations = Registrations(self, paces=self.spec.paces, window=self._node.delivery_window)
        self.is_leaving = False
        """Whether the client is closing and rejects new calls."""
        self._is_closed = False
        self._error: GaplessError | None = None
        self._breaking: asyncio.Task[None] | None = None
        self._rejection: Rejected | None = None
        self._serial = 0
        if identity is not None:
            self._serial = identity.attempt  # so that no name of an earlier process is used again
            self._node.take_over(identity.home, identity.attempt, identity.seq)
            self.publishing.go_on_after(identity.seq)
        self._handlers: dict[type, Callable[[Any], None]] = {
            Published: self.publishing.on_published,
            PublishedMany: self.publishing.on_published_many,
            Confirmed: self.publishing.on_confirmed,
            PublicationsLost: self.publishing.on_lost,
            Rejected: self._on_rejected,
            Superseded: self._on_superseded,
            **self.registrations.handlers,
        }
        self._recording = start_recording(trace, welcome, self.spec, options, name) if trace else None
        if self._recording is not None:
            self._handlers = self._recording.wrap(self._handlers)
        self._introduction = Introduction(name, welcome, self.addresses, access, self._break, patience_s)
        self._links = WatchedLinks(
            name,
            self._introduction,
            welcome.settings,
            GuardedCodec(self.spec, welcome.settings.client_frame_max, self._break),
            self.addresses,
            handlers=self._handlers,
            failed=self._break,
            logger=client_logger(name),
            tls=access.context,
        )
        self._links.denied = self.registrations.deny
        progress = self.publishing.progress if self.spec.confirms else None
        self._hold_up = BlockedReason(name, self.addresses, progress, access)
        self._spare_links = SpareLinks(self._links, self._node)
        self._watching = Watching(lambda: serving(self._links, self._node))
        self._links.look = self._watching.look
        self._links.has_session = self._node.is_attached is not None
        self._links.not_understood = self._introduction.not_understood
        self._links.host.set_node(WatchedNode(self._node, self._watching.look))
        self._links.give(Start())

    # ---- calls to the node ------------------------------------------------------------------------------

    def new_name(self, kind: str) -> str:
        """Return a network-wide unique identifier for a subscription or an advertisement of this client."""
        self._serial += 1
        return f"{self.name}/{kind}{self._serial}"

    def check_open(self) -> None:
        """Raise a `ClosedError` if the client is closing or closed."""
        self.own_loop.check()
        if self._error is not None:
            raise self._error
        if self.is_leaving:
            raise ClosedError("the client is closing")

    def call(self, call: Any) -> None:
        """Pass a call of the application to the node. Raise an error if the node rejects it."""
        self.own_loop.check()
        if self._error is not None:
            raise self._error
        self._rejection = None
        self._links.give(call)
        if self._error is not None:
            raise self._error
        rejection, self._rejection = self._rejection, None
        if rejection is not None:
            kind = EventError if isinstance(rejection.call, Publish) else CallError
            raise kind(rejection.reason)

    def give_input(self, news: Any) -> None:
        """Pass an input that the node cannot reject."""
        if self._error is None:
            self._links.give(news)

    def note_beginning(self, began_us: int) -> None:
        """Record when the next publications were requested. The trace uses this time, not that of sending."""
        if self._recording is not None:
            self._recording.publishes(began_us)

    def flush(self) -> None:
        """Send the node's queued messages now."""
        self._links.host.flush()

    async def wait_for_links(self) -> None:
        """Wait until the send queue has room."""
        await self._links.queues.wait_for_room()

    async def subscribe(self, subscription: Deliveries, call: Subscribe) -> None:
        """Start the subscription and return when it is active. Record in the trace when it was requested and when it
        became active.
        """
        if self._recording is not None:
            self._recording.subscribes(subscription.id, subscription.filter, self.spec.ready(call))
        await self.registrations.subscribe(subscription, call)
        if self._recording is not None:
            self._recording.returns(subscription.id)

    # ---- closing ----------------------------------------------------------------------------------------

    async def close(self, *, leave: bool) -> None:
        """Disconnect. With `leave`, first end all registrations and wait until the network knows."""
        self.own_loop.check()
        if self._is_closed:
            return
        self.is_leaving = True
        try:
            if leave and self._error is None:
                async with asyncio.timeout(LEAVE_S):
                    await self._leave()
        except (TimeoutError, GaplessError):
            pass  # no broker is connected; the session expires
        finally:
            self._is_closed = True
            self._fail(ClosedError("the client is closed"))
            self._introduction.close()
            self._hold_up.close()
            self._spare_links.close()
            if self._breaking is not None:
                await self._breaking
            await self._links.close()
            if self._recording is not None:
                self._recording.close()

    async def _leave(self) -> None:
        await self.registrations.release()
        while self._links.queues.unsent or self._is_looking_for_a_broker():
            await asyncio.sleep(0.005)

    def _is_looking_for_a_broker(self) -> bool:
        return self._links.host.node is not None and self._node.is_attached is False

    def _on_rejected(self, effect: Rejected) -> None:
        if self._rejection is None:
            self._rejection = effect
        self.registrations.reject(effect)

    def _on_superseded(self, effect: Superseded) -> None:
        self._break(
            ClosedError(f"another process has taken over as client {self.name}; brokers accept only that process")
        )

    def _break(self, error: BaseException) -> None:
        """End a client that cannot continue, so that no call and no broker waits for it."""
        if self._breaking is None and not self._is_closed:
            self._fail(error)
            self._breaking = self._links.loop.create_task(self._links.close(with_goodbye=False))

    def _fail(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error if isinstance(error, GaplessError) else ClosedError(f"the client failed: {error!r}")
        self.registrations.fail(self._error, is_closed=self._is_closed)
        self.publishing.fail(self._error)
        self._watching.end(None if self._is_closed else self._error)

    # ---- state ------------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The state of the connection, for messages."""
        if self._error is not None:
            return "closed" if self._is_closed else "failed"
        return f"connected to {self.broker}" if self.is_connected and self.broker else "connecting"

    @property
    def blocked(self) -> str:
        """Why publications are not being confirmed; empty if they are."""
        return self._hold_up.reason

    @property
    def broker(self) -> str:
        """The name of the broker that serves the client or that it is trying to reach; empty if the protocol does not
        report it.
        """
        return "" if self._links.host.node is None else self._node.broker

    @property
    def identity(self) -> Identity:
        """The state that another process needs to take over this client's identity."""
        return Identity(self.name, *self._node.standing)

    @property
    def is_connected(self) -> bool:
        """Whether a broker is connected."""
        return any(link.connection is not None for link in self._links.links.values())

    def changes(self) -> ConnectionChanges:
        """Return an iterator over the changes of the connection from now on."""
        self.own_loop.check()
        return self._watching.watch()

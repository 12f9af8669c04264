"""A client's greeting to brokers, and its check that they belong to its network.

A client outlives its brokers, but not its network: if the whole network restarts with another file, shape or settings,
the client's state is meaningless there. A broker's fingerprint identifies its network. The client avoids brokers of
other networks; if only such brokers answer, its network is gone, and the client raises an error instead of waiting
forever.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from gapless.errors import ConnectError, DeniedError, GaplessError, WireError
from gapless.runtime.access import Access
from gapless.runtime.audit_log import Actor
from gapless.runtime.connection import Connection
from gapless.runtime.probe import probe
from gapless.runtime.wire import CLIENT, Hello, Refusal, Welcome, greeting
from gapless.security.identity import Identity

__all__ = ["Introduction"]

LOOK_AGAIN_S = 5.0
"""The interval at which a client that reaches only brokers of another network looks for its own."""

LOOK_MAX = 64
"""The maximum number of brokers that the client asks."""


class Introduction:
    """Greets brokers, and decides which of their answers end the client."""

    def __init__(
        self,
        client: str,
        welcome: Welcome,
        addresses: dict[str, str],
        access: Access,
        fail: Callable[[GaplessError], None],
        patience_s: float,
    ) -> None:
        self._client = client
        self._access = access
        self._welcome = welcome
        self._addresses = addresses
        self._fail = fail
        self._was_let_in = False
        self._patient_until = time.monotonic() + patience_s
        self._looking: asyncio.Task[None] | None = None
        self._looked = -LOOK_AGAIN_S

    def greeting(self) -> bytes:
        """Return the encoded greeting for brokers."""
        return greeting(CLIENT, self._client, protocol=self._welcome.protocol, token=self._access.token)

    def identify(self, connection: Connection, hello: Hello) -> Refusal:
        """Reject the connection: no peer dials a client."""
        return Refusal("name", "this is a client, not a broker")

    def answer(self, hello: Hello, identity: Identity, host: str) -> Refusal:
        """Reject the greeting: no peer dials a client."""
        return Refusal("name", "this is a client, not a broker")

    def permits(self, identity: Identity, right: str) -> bool:
        """Return False: a client grants no rights."""
        return False

    def welcomed(self, connection: Connection, welcome: Welcome) -> Refusal | None:
        """Return a refusal if the broker that accepted the client belongs to another network."""
        if welcome.network == self._welcome.network:
            self._was_let_in = True
            return None
        if self._looking is None and time.monotonic() - self._looked >= LOOK_AGAIN_S:
            self._looking = asyncio.get_running_loop().create_task(self._look_around(welcome))
        return Refusal("network", f"broker {welcome.name!r} belongs to another network than this client")

    async def _look_around(self, other: Welcome) -> None:
        addresses = list(self._addresses.values())[:LOOK_MAX]
        try:
            found = await asyncio.gather(*(self._is_ours(address) for address in addresses))
        finally:
            self._looking = None
            self._looked = time.monotonic()
        if not any(found):
            self._fail(ConnectError(self._difference(other)))

    async def _is_ours(self, address: str) -> bool:
        try:
            welcome = await probe(address, timeout_s=self._welcome.settings.hello_ms / 1000, access=self._access)
        except (OSError, TimeoutError, WireError, ConnectError):
            return False
        return welcome.network == self._welcome.network

    def _difference(self, other: Welcome) -> str:
        was, now = self._welcome, other
        what = [f"it had {was.brokers} brokers, now {now.brokers}"] if was.brokers != now.brokers else []
        what += [f"f was {was.f}, now {now.f}"] if was.f != now.f else []
        what += [f"the protocol was {was.protocol!r}, now {now.protocol!r}"] if was.protocol != now.protocol else []
        what += (
            [f"it was called {was.network_name!r}, now {now.network_name!r}"]
            if was.network_name != now.network_name
            else []
        )
        details = "; ".join(what) or "its topology or its settings differ"
        return (
            f"the network was restarted with another file ({details}), "
            "so the state of this client there is gone; connect again"
        )

    def refused(self, peer: str, refusal: Refusal) -> None:
        """Handle a broker's refusal. The client continues, because another broker may accept it, unless all brokers
        refuse.

        A reached limit also ends it if the first broker reported it, no broker has accepted the client yet, and the
        application's timeout for connecting has passed.
        """
        if refusal.code == "denied":
            self._fail(DeniedError(f"broker {peer!r} refused this client: {refusal.reason}"))
        elif refusal.code in ("version", "protocol", "name", "malformed", "ended", "tls") or (
            refusal.code == "limit"
            and peer == self._welcome.name
            and not self._was_let_in
            and time.monotonic() > self._patient_until
        ):
            self._fail(ConnectError(f"broker {peer!r} refused this client: {refusal.reason}"))

    def not_understood(self, peer: str, reason: str) -> None:
        """End the client, because a broker sends messages that it cannot decode. The broker would send them again on
        every new connection.
        """
        self._fail(
            ConnectError(
                f"broker {peer!r} sends messages that this client does not understand ({reason}); "
                "install the version of Gapless that the network runs"
            )
        )

    def report(self, about: str = "") -> dict[str, Any]:
        return {}

    def protocol_violated(self, client: str, reason: str) -> None: ...

    def end_client(self, client: str, actor: Actor) -> dict[str, Any]:
        return {}

    def forget_broker(self, broker: str, actor: Actor) -> dict[str, Any]:
        return {}

    def delete_events(self, publisher: str, actor: Actor) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        """Stop looking for brokers of the network."""
        if self._looking is not None:
            self._looking.cancel()

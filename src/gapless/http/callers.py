"""Authenticates HTTP requests, and provides the credentials with which the gateway acts for their users.

A request authenticates its user as every connection to a broker does: by a client certificate, or by a token in
`Authorization: Bearer TOKEN`. There are no cookies, so a page of another site cannot act for a user with a token. A
browser sends a certificate automatically; `gapless.http.guards` refuses such requests from pages of other sites.

The gateway connects to its own broker as an ordinary client of that user: with the user's token, or, for a user with a
certificate, with a token that is valid in this process alone (`BrokerSecurity.grant`). So the broker checks all
permissions and limits.
"""

from typing import Any, NamedTuple

from starlette.requests import HTTPConnection

from gapless.client import Credentials
from gapless.http.problems import ProblemError
from gapless.runtime.broker import Broker
from gapless.runtime.wire import Refusal
from gapless.security.identity import Identity
from gapless.security.users_file import User

__all__ = ["Caller", "Callers", "bearer_token"]

UNKNOWN = "present a token of this network (Authorization: Bearer TOKEN), or a client certificate"


class Caller(NamedTuple):
    """The authenticated user of one request."""

    identity: Identity | None
    """The identity of the user, or None in a network without security."""
    token: str
    """The token in the request, or an empty string."""
    address: str

    @property
    def key(self) -> tuple[str, str, str]:
        """A key that is equal for requests that can share a client."""
        if self.identity is None:
            return "", "", ""
        return self.identity.kind, self.identity.name, self.token

    @property
    def user(self) -> str:
        """The name of the user, or an empty string in a network without users."""
        return self.identity.name if self.identity is not None and self.identity.kind == "user" else ""


class Callers:
    """Authenticates the requests to one broker, and checks their users' permissions."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def has_users(self) -> bool:
        """Whether the network has users. Otherwise every peer has all rights."""
        broker_security = self._broker.broker_security
        return broker_security is not None and broker_security.users is not None

    def identify(self, connection: HTTPConnection, token: str | None = None) -> Caller:
        """Return the user of a request. Raise a `ProblemError` if it is not authenticated."""
        broker_security = self._broker.broker_security
        host, port = (connection.client or ("?", 0))[:2]
        address = f"{host}:{port}"
        if broker_security is None:
            return Caller(None, "", address)
        shown = bearer_token(connection) if token is None else token
        certificate: dict[str, Any] = connection.scope.get("state", {}).get("certificate", {})
        found = broker_security.prove(certificate, shown)
        if isinstance(found, Refusal):
            self._broker.links.refusals.denial(broker_security.claimed(certificate, shown), address, found.reason)
            challenge = 'Bearer realm="gapless"' + (', error="invalid_token"' if shown else "")
            reason = found.reason if shown or certificate else UNKNOWN
            raise ProblemError("not-authenticated", reason, headers={"WWW-Authenticate": challenge})
        return Caller(found, shown, address)

    def require(self, connection: HTTPConnection, right: str, what: str) -> Caller:
        """Return the user of a request. Raise a `ProblemError` if the user does not have this right."""
        caller = self.identify(connection)
        if self.has_right(caller, right):
            return caller
        assert caller.identity is not None
        reason = f"{caller.identity.text} may not {what}"
        self._broker.links.refusals.denial(caller.identity.text, caller.address, reason)
        raise ProblemError("denied", reason, right=right)

    def has_right(self, caller: Caller, right: str) -> bool:
        """Return whether a user has the right `status` or `operate`."""
        broker_security = self._broker.broker_security
        return caller.identity is None or (broker_security is not None and broker_security.may(caller.identity, right))

    def rights(self, caller: Caller) -> dict[str, Any]:
        """Return all rights of a user, for the console."""
        user = self.user(caller)
        if user is None:
            return {"publish": "TRUE", "subscribe": "TRUE", "history": True, "status": True, "operate": True}
        return {
            "publish": user.may_publish.text,
            "subscribe": user.may_subscribe.text,
            "history": user.history,
            "status": user.status,
            "operate": user.operate,
        }

    def user(self, caller: Caller) -> User | None:
        """Return the user's entry in the users' file, or None if the network has no users."""
        broker_security = self._broker.broker_security
        return None if broker_security is None or not caller.user else broker_security.user(caller.user)

    def publishable(self, caller: Caller) -> str:
        """Return the filter that matches all events that the user may publish."""
        user = self.user(caller)
        if user is None:
            return "TRUE"
        within = user.may_publish
        return f"({within.text}) AND (NOT ({within.denied}))" if within.denied else within.text

    def subscribable(self, caller: Caller) -> str:
        """Return the filter that matches all events that the user may subscribe to."""
        user = self.user(caller)
        if user is None:
            return "TRUE"
        within = user.may_subscribe
        return f"({within.text}) AND (NOT ({within.denied}))" if within.denied else within.text

    def credentials(self, caller: Caller) -> Credentials | None:
        """Return the credentials with which the gateway connects to its broker as this user."""
        broker_security, security = self._broker.broker_security, self._broker.config.security
        if broker_security is None or security is None:
            return None
        authority = security.files(self._broker.name)["authority"]
        if caller.identity is None or broker_security.users is None:
            return Credentials(authority=authority)
        if caller.identity.kind != "user":
            raise ProblemError(
                "denied", "a broker's certificate does not authenticate a user; present that of a user, or a token"
            )
        return Credentials(authority=authority, token=caller.token or broker_security.grant(caller.identity))


def bearer_token(connection: HTTPConnection) -> str:
    """Return the token in the `Authorization` header, or an empty string."""
    scheme, _, shown = connection.headers.get("authorization", "").partition(" ")
    return shown.strip() if scheme.lower() == "bearer" else ""

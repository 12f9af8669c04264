"""Authenticates the peers of a broker with certificates, tokens and users, which it reads from files.

**Brokers** prove with a certificate which broker of the network they are; there is no other proof.
**Clients** prove their user with a certificate, a token or a signed token, and their names begin
with the user's. Without a users' file, clients need no proof: TLS protects the traffic, and nothing
else is protected.

**Files.** The broker checks its files for changes every `LOOK_S`, and at once on SIGHUP. It
validates them as a whole before they take effect. If something is wrong, it keeps the previous
configuration and logs the reason. New certificates apply from the next connection on, users and
permissions from the next message.
"""

import asyncio
import secrets
import ssl
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gapless.errors import ConfigError, DeniedError
from gapless.private_files import exposure
from gapless.runtime.connection import Connection
from gapless.runtime.logs import Logger
from gapless.runtime.network_file import NetworkConfig
from gapless.runtime.remote_keys import RemoteKeys
from gapless.runtime.tls import server_context, uris_of
from gapless.runtime.wire import BROKER, CLIENT, Hello, Refusal
from gapless.security.identity import ANYBODY, Identity, client_prefix, is_user_name, named_in
from gapless.security.key_url import KeysPendingError
from gapless.security.tokens import matches, split_token
from gapless.security.users_file import User, Users, load_users

if TYPE_CHECKING:
    from gapless.security.tickets import Tickets

__all__ = ["BrokerSecurity"]

LOOK_S = 2.0
KEYS_S = 0.5
"""The interval at which the broker checks whether keys have to be fetched (`remote_keys`)."""
SOON_S = 30 * 86_400.0
"""The time in seconds before the expiry of a certificate during which a warning is logged every day."""
WARN_EVERY_S = 86_400.0

WHO = "authenticate with a certificate or token of this network: credentials=… in a program, --credentials in a shell"
GRANT = "grant."
"""The prefix of tokens that `BrokerSecurity.grant` returns. No other token has it: a static token contains a colon, and
a signed token begins with a JSON object in base64."""
NOT_RIGHT = "the token is invalid or revoked"


class _Read(NamedTuple):
    """The contents of the files of a broker's security."""

    server: ssl.SSLContext
    users: Users | None
    expiries: dict[str, float]
    tickets: "Tickets | None"


class BrokerSecurity:
    """Authenticates the peers of one broker, and knows the permissions of its users."""

    def __init__(self, config: NetworkConfig, broker: str, logger: Logger) -> None:
        assert config.security is not None
        self.network = config.network.name
        self._brokers = frozenset(config.addresses)
        self.reloads = 0
        self.failed_reloads = 0
        self.changed: Callable[[Users], None] = lambda before: None
        """Called with the previous users when the users may have changed."""
        self.reloaded: Callable[[str, str], None] = lambda event, why: None
        """Called after a reload with `security.reloaded` or `security.reload_failed`, and the reason."""
        self.looked: Callable[[], None] = lambda: None
        """Called each time the broker has checked the files."""
        self._files = {kind: Path(path) for kind, path in config.security.files(broker).items()}
        self._logger = logger
        self._also: list[Path] = []
        """Further files that the users' file refers to."""
        self._seen = self._stamps()
        self._read = self._load()
        self.keys_removed: Callable[[], None] = lambda: None
        """Called when a key that signs tokens is no longer trusted."""
        self._remote_keys = RemoteKeys(logger, lambda: self.keys_removed())
        self._remote_keys.adopt(self._read.users)
        self._warned: dict[str, float] = {}
        self._grants: dict[bytes, Identity] = {}
        """For each granted token's hash, the user on whose behalf this process acts."""
        self._watching: list[asyncio.Task[None]] = []

    # ---- files --------------------------------------------------------------------------------------------

    def _load(self) -> _Read:
        from gapless.security.certificates import expiry_of  # only a network with TLS needs cryptography
        from gapless.security.tickets import TicketKeys, Tickets

        files = self._files
        shown = (files["authority"], files["certificate"], files["key"])
        users = load_users(files["users"], self._note) if "users" in files else None
        complaint = exposure(files["users"], is_secret=True) if "users" in files else ""
        if complaint:
            self._logger.warning(complaint, extra={"event": "file.exposed"})
        expiries = {kind: expiry_of(files[kind]) for kind in ("authority", "certificate")}
        context = server_context(*shown)
        tickets = None if users is None else Tickets(self.network, self._brokers, TicketKeys(files))
        return _Read(context, users, expiries, tickets)

    def _note(self, path: Path) -> None:
        """Record a file that the users' file refers to, before it is read."""
        self._also.append(path)
        self._seen[path] = _stamp(path)

    def _stamps(self) -> dict[Path, tuple[int, int]]:
        return {path: _stamp(path) for path in (*self._files.values(), *self._also)}

    def watch(self) -> None:
        """Start checking the files for changes."""
        self._warn_of_expiries()
        loop = asyncio.get_running_loop()
        self._watching = [loop.create_task(self._watch()), loop.create_task(self._watch_keys())]

    def close(self) -> None:
        """Stop checking the files."""
        for task in self._watching:
            task.cancel()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if await asyncio.to_thread(self._stamps) != self._seen:
                await self.reload("files changed")
            self._warn_of_expiries()
            self.looked()

    async def _watch_keys(self) -> None:
        """Start the task that checks for remote keys. It is separate, because an issuer can be slow to answer."""
        while True:
            await self._remote_keys.look(self.users)
            await asyncio.sleep(KEYS_S)

    async def reload(self, why: str) -> bool:
        """Read the files again and apply them if they are valid. Return whether they are."""
        self._also = []
        self._seen = self._stamps()
        before = self._read
        try:
            self._read = await asyncio.to_thread(self._load)
        except ConfigError as error:
            self.failed_reloads += 1
            self._logger.error(
                f"reload failed, keeping the previous configuration: {error}",
                extra={"event": "security.reload_failed", "because": why},
            )
            self.reloaded("security.reload_failed", why)
            return False
        self._remote_keys.adopt(self._read.users)
        self.reloads += 1
        self._logger.info("reloaded certificates and users", extra={"event": "security.reloaded", "because": why})
        self.reloaded("security.reloaded", why)
        if before.users is not None:
            self.changed(before.users)
        return True

    def _warn_of_expiries(self) -> None:
        now = time.time()
        for kind, expires in self._read.expiries.items():
            left = expires - now
            if left > SOON_S:
                self._warned.pop(kind, None)
            elif now - self._warned.get(kind, -inf) >= WARN_EVERY_S:
                self._warned[kind] = now
                facts = {"file": str(self._files[kind]), "days": round(left / 86_400, 1)}
                if left > 0:
                    self._logger.warning(
                        f"the {kind} of this broker expires soon", extra={"event": "certificate.expires_soon", **facts}
                    )
                else:
                    self._logger.error(
                        f"the {kind} of this broker has expired: no new peer can connect",
                        extra={"event": "certificate.expired", **facts},
                    )

    @property
    def expiries(self) -> Mapping[str, float]:
        """Return when the certificate and the authority expire, in seconds since 1970."""
        return self._read.expiries

    def server_context(self) -> ssl.SSLContext:
        """Return the TLS context for peers that dial this broker."""
        return self._read.server

    def report(self) -> dict[str, Any]:
        """Return the security state for status reports and metrics, without secrets."""
        return {
            "users": None if self.users is None else len(self.users.by_name),
            "expiries": dict(self.expiries),
            "reloads": self.reloads,
            "failed_reloads": self.failed_reloads,
            "failed_key_fetches": self._remote_keys.failures,
        }

    # ---- tickets ------------------------------------------------------------------------------------------

    def ticket(self, client: str, text: str, position: int) -> bytes:
        """Return a signed ticket which proves that a client had this subscription at a position. It is empty if the
        network has no users.
        """
        tickets = self._read.tickets
        return b"" if tickets is None else tickets.issue(client, text, position)

    def granted(self, ticket: bytes, client: str, position: int) -> str | None:
        """Return the filter that a ticket grants to a client from this position on, or None if it grants none."""
        tickets, users = self._read.tickets, self.users
        return None if tickets is None or users is None else tickets.read(ticket, client, position, users.revoked)

    # ---- identities ---------------------------------------------------------------------------------------

    @property
    def users(self) -> Users | None:
        """Return the current users, or None if the network has none."""
        return self._read.users

    def user(self, name: str) -> User | None:
        """Return the user with this name, or None if it is unknown or disabled."""
        found = None if self.users is None else self.users.by_name.get(name)
        return None if found is None or found.disabled else found

    def identify(self, connection: Connection, hello: Hello) -> Identity | Refusal:
        """Authenticate a peer, and check that it may use the name in its greeting. Return its identity or a refusal."""
        found = self.prove(connection.peer_certificate, hello.token)
        return found if isinstance(found, Refusal) else self._fitting(hello, found)

    def prove(self, certificate: Mapping[str, Any], token: str) -> Identity | Refusal:
        """Return the identity that a certificate or token proves, or a refusal. Both can be missing."""
        try:
            return self._prove(certificate, token)
        except DeniedError as error:
            # A client retries after a refusal with this code, and the key may have arrived by then.
            return Refusal("limit" if isinstance(error, KeysPendingError) else "denied", str(error))

    def _prove(self, certificate: Mapping[str, Any], token: str) -> Identity:
        users = self.users
        if users is not None and users.is_revoked(certificate):
            raise DeniedError("this certificate was revoked")
        named = named_in(uris_of(certificate), self.network)
        expires = ssl.cert_time_to_seconds(str(certificate["notAfter"])) if certificate else inf
        if named is not None and named[0] == "broker":
            if named[1] not in self._brokers:
                raise DeniedError(f"there is no broker {named[1]!r} in the network's file; revoke its certificate")
            return Identity("broker", named[1], "certificate")
        if users is None:
            return ANYBODY
        if named is not None and not token:
            user = self._known(named[1])
            if not user.certificate:
                raise DeniedError(f"user {user.name!r} may not authenticate with a certificate")
            return Identity("user", user.name, "certificate", expires)
        if not token:
            raise DeniedError(WHO)
        if token.startswith(GRANT):
            return self._prove_granted(token)
        if ":" not in token:
            return self._prove_signed(users, token)
        return self._prove_static(token)

    def _prove_static(self, token: str) -> Identity:
        """Return the user of a static token. An unknown user gets the same refusal as a wrong secret."""
        user = self.user(split_token(token)[0])
        for kept in () if user is None else user.tokens:
            text, expires = (kept, inf) if isinstance(kept, str) else (kept.hash, kept.expires_s)
            if matches(token, text):
                if expires <= time.time():
                    raise DeniedError("the token has expired; ask an operator of the network for a new one")
                return Identity("user", split_token(token)[0], "token", expires)
        raise DeniedError(NOT_RIGHT)

    def grant(self, identity: Identity) -> str:
        """Return a token for a client in this process that acts on behalf of a user, valid until `revoke`. Permissions
        are looked up at each use.
        """
        token = GRANT + secrets.token_urlsafe(32)
        self._grants[sha256(token.encode()).digest()] = identity
        return token

    def revoke(self, token: str) -> None:
        self._grants.pop(sha256(token.encode()).digest(), None)

    def _prove_granted(self, token: str) -> Identity:
        identity = self._grants.get(sha256(token.encode("utf-8", "surrogateescape")).digest())
        if identity is None:
            raise DeniedError(NOT_RIGHT)
        return Identity("user", self._known(identity.name).name, identity.proof, identity.expires)

    def claimed(self, certificate: Mapping[str, Any], token: str) -> str:
        """Return the identity that a refused peer claimed, for logs."""
        named = None if token else named_in(uris_of(certificate), self.network)
        kind, name = named or ("user", split_token(token)[0])
        if is_user_name(name):
            return f"{kind} {name} (not proved)"
        return "a peer with a token" if token else "somebody"

    def _prove_signed(self, users: Users, token: str) -> Identity:
        if users.signed is None:
            raise DeniedError("this network does not accept signed tokens")
        name, expires = users.signed.user_of(token)
        user = self._known(name)
        if not user.signed_token:
            raise DeniedError(f"user {user.name!r} may not authenticate with signed tokens")
        return Identity("user", user.name, "signed token", expires)

    def _known(self, name: str) -> User:
        user = self.user(name)
        if user is None:
            raise DeniedError(f"user {name!r} does not exist or was revoked")
        return user

    def _fitting(self, hello: Hello, identity: Identity) -> Identity | Refusal:
        """Return the identity if its owner may use the name in the greeting; otherwise return a refusal."""
        if hello.role == BROKER and (identity.kind, identity.name) != ("broker", hello.name):
            who = "has no broker certificate" if identity.kind != "broker" else f"is broker {identity.name!r}"
            return Refusal("denied", f"the peer with the name of broker {hello.name!r} {who} of this network")
        if hello.role == CLIENT and identity.kind == "broker" and self.users is not None:
            return Refusal("denied", "a broker's certificate does not authenticate a user; " + WHO)
        if hello.role == CLIENT and identity.kind == "user" and not hello.name.startswith(client_prefix(identity.name)):
            begins = client_prefix(identity.name)
            return Refusal(
                "denied",
                f"the name {hello.name!r} is not allowed: names of {identity.name}'s clients begin with {begins!r}",
            )
        return identity

    def is_broker(self, certificate: Mapping[str, Any], name: str) -> bool:
        """Return whether a certificate is that of the given broker."""
        revoked = self.users is not None and self.users.is_revoked(certificate)
        return not revoked and named_in(uris_of(certificate), self.network) == ("broker", name)

    def may(self, identity: Identity, right: str) -> bool:
        """Return whether the identity has a right (`status`, `operate`). Brokers have all rights; in a network without
        users, every peer has.
        """
        if identity.kind == "user":
            user = self.user(identity.name)
            return user is not None and bool(getattr(user, right))
        return identity.kind == "broker" or self.users is None


def _stamp(path: Path) -> tuple[int, int]:
    """Return the modification time and size of a file, which reveal whether the file has changed."""
    try:
        about = path.stat()
    except OSError:
        return 0, 0
    return about.st_mtime_ns, about.st_size

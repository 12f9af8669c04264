"""Reads the file of users and their permissions. It is next to the network's file, and the same on every host.

```toml
[limits]                                  # of every user, at each broker; see limits.py
connections = 100

[broker_limits]                           # of each broker, all its clients together
connections_per_s = 200

[signed_tokens]                           # optional: who signs tokens
keys = "issuer.pem"                       # public keys, in PEM or as a JSON Web Key Set, or the https URL of such a set
keys_authority = ""                       # the authority of that URL's host; empty: those of the system
audience = "shop"
issuer = "https://id.example"

[[roles]]                                 # rights that several users share
name = "shopper"
publish = ["topic = 'orders/${user}'"]    # ${user} is the name of the user
subscribe = ["topic LIKE 'shop/%'"]
deny_subscribe = ["topic LIKE 'shop/internal/%'"]

[[users]]
name = "ann"
roles = ["shopper"]                       # the rights of these roles, and those below
certificate = true                        # authenticates with a certificate,
tokens = ["sha256$…"]                     # with one of these tokens (gapless security token ann); one that expires is
                                          # {hash = "sha256$…", expires = 2027-01-31T00:00:00Z}
signed_token = true                       # or with a signed token that names the user
publish = ["topic LIKE 'shop/%'"]         # within one of these filters
subscribe = ["topic LIKE 'shop/%'", "topic = 'news'"]
deny_publish = ["topic = 'shop/closed'"]  # even if a role or this user allows it
deny_subscribe = []
outside = "refuse"                        # a subscription outside the filters; "narrow" restricts it to them
history = false                           # may read history
named = ["${user}-%"]                     # names of durable subscriptions, as LIKE patterns; true: any
status = false                            # may see the state of brokers: gapless status, /status and /metrics
operate = false                           # may end sessions of other users' clients
disabled = false                          # true: no access from now on

[users.limits]                            # override the limits above
publications_per_s = 100
```

`revoked = ["0A3F…"]` at the top lists revoked certificates, also of brokers, by serial number in hexadecimal digits, as
`openssl x509 -serial` prints it; colons, spaces and a leading `0x` are ignored.

The file takes effect as a whole: if it has a mistake, the previous version stays in effect.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gapless.errors import ConfigError, FilterError
from gapless.filters import parse
from gapless.security.identity import is_user_name
from gapless.security.key_url import check_url, is_url
from gapless.security.limits import BrokerLimits, Limits
from gapless.security.permissions import Names, Outside, Within
from gapless.security.placeholders import filled
from gapless.security.tokens import is_hash
from gapless.toml_file import check_keys, convert, hint, parse_toml, read_text, rows_of

if TYPE_CHECKING:  # it needs cryptography, which only brokers have
    from gapless.security.signed_tokens import SignedTokens

__all__ = ["Role", "Token", "User", "Users", "load_users"]

USERS_MAX = 100_000
TOKENS_MAX = 8
SHOWN = 100
"""The number of characters of an invalid value that a message shows."""
_HEX = re.compile(r"[0-9A-F]{1,64}", re.ASCII)


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A static token with an expiry."""

    hash: str
    expires: datetime

    @property
    def expires_s(self) -> float:
        """Return the expiry in seconds since 1970."""
        return self.expires.timestamp()


class Rights(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields that roles and users have in common."""

    name: str
    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    deny_publish: tuple[str, ...] = ()
    deny_subscribe: tuple[str, ...] = ()
    history: bool = False
    named: bool | tuple[str, ...] = False
    status: bool = False
    operate: bool = False


class Role(Rights, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An entry of `[[roles]]`."""


class User(Rights, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """An entry of `[[users]]`."""

    roles: tuple[str, ...] = ()
    certificate: bool = False
    tokens: tuple[str | Token, ...] = ()
    signed_token: bool = False
    outside: Outside = "refuse"
    disabled: bool = False
    limits: Limits | None = None

    def __repr__(self) -> str:
        return f"<User {self.name}>"

    @cached_property
    def may_publish(self) -> Within:
        """Return the set of events that the user may publish."""
        return _within(self.publish, self.deny_publish, self.name)

    @cached_property
    def may_subscribe(self) -> Within:
        """Return the set of events that the user may subscribe to."""
        return _within(self.subscribe, self.deny_subscribe, self.name)

    @cached_property
    def may_hold(self) -> Names:
        """Return the names that the user may give to durable subscriptions."""
        return Names(self.named, self.name)

    def with_roles(self, roles: Mapping[str, Role]) -> "User":
        """Return a copy of the user with everything that its roles allow and deny."""
        if not self.roles:
            return self
        found: list[Rights] = [self, *(roles[name] for name in self.roles)]
        rights: dict[str, Any] = {key: _united(getattr(each, key) for each in found) for key in _FILTERS}
        for key in ("history", "status", "operate"):
            rights[key] = any(getattr(each, key) for each in found)
        names = [each.named for each in found]
        patterns = _united(each for each in names if not isinstance(each, bool))
        return msgspec.structs.replace(self, **rights, named=True in names or patterns)


_FILTERS = ("publish", "subscribe", "deny_publish", "deny_subscribe")


def _united(texts: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for some in texts for text in some))


def _within(allowed: tuple[str, ...], denied: tuple[str, ...], user: str) -> Within:
    return _filled_within(*(tuple(filled(text, user) for text in texts) for texts in (allowed, denied)))


@lru_cache(maxsize=1_000)
def _filled_within(allowed: tuple[str, ...], denied: tuple[str, ...]) -> Within:
    """Return the permission for these filters, which users with the same role share."""
    return Within(allowed, denied)


class _SignedTokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: str
    audience: str
    issuer: str = ""
    keys_authority: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    users: tuple[User, ...] = ()
    roles: tuple[Role, ...] = ()
    limits: Limits = Limits()
    broker_limits: BrokerLimits = BrokerLimits()
    signed_tokens: _SignedTokens | None = None
    revoked: tuple[str, ...] = ()


class Users:
    """All users of a validated file."""

    def __init__(self, file: _File, signed: "SignedTokens | None", keys_authority: Path | None = None) -> None:
        roles = {role.name: role for role in file.roles}
        self.by_name = {user.name: user.with_roles(roles) for user in file.users}
        """The users by name, each with the permissions of its roles."""
        self.broker_limits = file.broker_limits
        self.signed = signed
        self.keys_authority = keys_authority
        """The authority of the host from which keys are fetched; None for the system's authorities."""
        self.revoked = frozenset(map(_serial, file.revoked))
        self.trust = (self.revoked, file.signed_tokens, None if signed is None else signed.text)
        """Everything else on which the validity of credentials depends."""
        self._limits = file.limits

    def limits_of(self, user: str) -> Limits:
        """Return the limits of the user with this name."""
        found = self.by_name.get(user)
        return self._limits if found is None or found.limits is None else found.limits

    def is_revoked(self, certificate: Mapping[str, Any]) -> bool:
        """Return whether a certificate was revoked."""
        return _serial(str(certificate.get("serialNumber", ""))) in self.revoked if certificate else False


def _serial(text: str) -> str:
    """Return a serial number in canonical form."""
    digits = "".join(text.replace(":", "").split()).upper()
    return digits.removeprefix("0X").lstrip("0")


_TABLES: dict[str, type[msgspec.Struct]] = {
    "limits": Limits, "broker_limits": BrokerLimits, "signed_tokens": _SignedTokens,
}  # fmt: skip


def load_users(path: Path, reads: Callable[[Path], None] = lambda path: None) -> Users:
    """Return the users in a file. Raise a `ConfigError` that names the place of a mistake.

    `reads` is called with each further file before it is read.
    """
    try:
        document = parse_toml(read_text(path, ConfigError), ConfigError)
        _check_keys(document)
        file = convert(document, _File, ConfigError)
        _check(file)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    settings = file.signed_tokens
    if settings is None:
        return Users(file, None)
    if is_url(settings.keys):
        try:
            check_url(settings.keys)
        except ConfigError as error:
            raise ConfigError(f"{path}: signed_tokens.keys: {error}") from None
        return Users(
            file, _fetched(settings), path.parent / settings.keys_authority if settings.keys_authority else None
        )
    keys = path.parent / settings.keys
    reads(keys)
    return Users(file, _signed(keys, settings))


def _fetched(settings: _SignedTokens) -> "SignedTokens":
    from gapless.security.signed_tokens import SignedTokens

    return SignedTokens(settings.audience, settings.issuer, url=settings.keys)


def _signed(keys: Path, settings: _SignedTokens) -> "SignedTokens":
    from gapless.security.signed_tokens import SignedTokens

    return SignedTokens.of_file(keys, settings.audience, settings.issuer)


def _check_keys(document: Mapping[str, Any]) -> None:
    check_keys("", document, _File.__struct_fields__, ConfigError)
    for place, struct in _TABLES.items():
        check_keys(place, document.get(place), struct.__struct_fields__, ConfigError)
    for number, row in enumerate(rows_of(document, "roles", ConfigError)):
        check_keys(f"roles[{number}]", row, Role.__struct_fields__, ConfigError)
    for number, row in enumerate(rows_of(document, "users", ConfigError)):
        check_keys(f"users[{number}]", row, User.__struct_fields__, ConfigError)
        check_keys(f"users[{number}].limits", row.get("limits"), Limits.__struct_fields__, ConfigError)


def _check(file: _File) -> None:
    if len(file.users) > USERS_MAX:
        raise ConfigError(f"users: there are {len(file.users):,}; the maximum is {USERS_MAX:,}")
    if file.broker_limits.names != BrokerLimits().names:
        raise ConfigError("broker_limits.names: names are those of a user, at all brokers; limit them in [limits]")
    for number, serial in enumerate(file.revoked):
        if not _HEX.fullmatch(_serial(serial)):
            raise ConfigError(
                f"revoked[{number}]: {serial[:SHOWN]!r} is not a serial number; write it in hexadecimal digits"
            )
    kinds: tuple[tuple[str, Sequence[Rights]], ...] = (("roles", file.roles), ("users", file.users))
    for kind, rows in kinds:
        seen: dict[str, int] = {}
        for number, row in enumerate(rows):
            place = f"{kind}[{number}]"
            if not is_user_name(row.name):
                raise ConfigError(f"{place}.name: {row.name!r} is not a valid name; use 1 to 64 of A-Z a-z 0-9 . _ @ -")
            if row.name in seen:
                raise ConfigError(f"{place}.name: {row.name!r} is already the name of {kind}[{seen[row.name]}]")
            seen[row.name] = number
            for key in _FILTERS:
                _check_filters(f"{place}.{key}", getattr(row, key), row.name)
            _check_names(f"{place}.named", row.named, row.name)
    roles = {role.name: role for role in file.roles}
    for number, user in enumerate(file.users):
        _check_proofs(f"users[{number}]", user, file)
        _check_roles(f"users[{number}]", user, roles)


def _check_roles(place: str, user: User, roles: Mapping[str, Role]) -> None:
    for number, name in enumerate(user.roles):
        if name not in roles:
            raise ConfigError(f"{place}.roles[{number}]: there is no role {name!r}; {hint(name, roles)}")
    whole = user.with_roles(roles)
    try:
        whole.may_publish  # noqa: B018 - made when asked for
        whole.may_subscribe  # noqa: B018
        whole.may_hold  # noqa: B018
    except FilterError as error:
        raise ConfigError(
            f"{place}: with its roles, the filters are too large for one filter: {error.message}"
        ) from None


def _check_proofs(place: str, user: User, file: _File) -> None:
    if len(user.tokens) > TOKENS_MAX:
        raise ConfigError(f"{place}.tokens: {len(user.tokens)} are too many; the maximum is {TOKENS_MAX}")
    for number, token in enumerate(user.tokens):
        kept = token if isinstance(token, str) else token.hash
        # The text is not repeated: it may be the token itself.
        if not is_hash(kept):
            what = (
                "a scrypt hash, which brokers no longer accept"
                if kept.startswith("scrypt$")
                else "not the hash of a token"
            )
            todo = f"run gapless security token {user.name}, put the hash that it prints here, and hand out the token"
            raise ConfigError(f"{place}.tokens[{number}]: this is {what}; {todo}")
        if isinstance(token, Token) and token.expires.tzinfo is None:
            raise ConfigError(f"{place}.tokens[{number}].expires: add the time zone, as in 2027-01-31T00:00:00Z")
    if user.signed_token and file.signed_tokens is None:
        raise ConfigError(f"{place}.signed_token: configure the issuer in [signed_tokens]")


def _check_names(place: str, named: bool | tuple[str, ...], user: str) -> None:
    try:
        Names(named, user)
    except FilterError as error:
        raise ConfigError(f"{place}: together these filters are too large for one filter: {error.message}") from None


def _check_filters(place: str, filters: tuple[str, ...], user: str) -> None:
    for number, text in enumerate(filters):
        try:
            parse(filled(text, user))
        except FilterError as error:
            raise ConfigError(f"{place}[{number}]: {error}") from None
    try:
        _within(filters, (), user)
    except FilterError as error:
        raise ConfigError(f"{place}: together these filters are too large for one filter: {error.message}") from None

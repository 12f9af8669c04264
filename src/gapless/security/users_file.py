"""The file of users: who they are, and what each of them may. Beside the network's file, and the same on every host.

```toml
[limits]                                  # of every user, at each broker; see limits.py
connections = 100
publications_per_s = 5000

[broker_limits]                           # of each broker, all its clients together
connections_per_s = 200

[signed_tokens]                           # if there are any: who signs them
keys = "issuer.pem"                       # public keys, in PEM or as a JSON Web Key Set
audience = "shop"
issuer = "https://id.example"

[[users]]
name = "ann"
certificate = true                        # known by a certificate
tokens = ["sha256$…"]              # or by one of these tokens: gapless security token ann
signed_token = true                       # or by a signed token that names her
publish = ["topic LIKE 'shop/%'"]         # within one of these filters
subscribe = ["topic LIKE 'shop/%'", "topic = 'news'"]
outside = "refuse"                        # a subscription that goes beyond; or "narrow" it to what is allowed
history = false                           # read what was published before
named = ["ann-%"]                         # hold subscriptions under such names, as after LIKE; or true: under any
status = false                            # see how brokers are: gapless status, /status and /metrics
operate = false                           # end sessions of other users' clients
disabled = false                          # nothing at all, from now on

[users.limits]                            # instead of the ones for everybody
publications_per_s = 100
```

`revoked = ["0A3F…"]` at the top names certificates, by serial number, that count no more, also of brokers. It is in
hexadecimal digits, as `openssl x509 -serial` prints it; colons, spaces and a leading `0x` do not matter.

The file counts as a whole or not at all: one mistake, and what was read before stays.
"""

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gapless.errors import ConfigError, FilterError
from gapless.filters import parse
from gapless.security.identity import is_user_name
from gapless.security.limits import BrokerLimits, Limits
from gapless.security.permissions import Names, Outside, Within
from gapless.security.tokens import is_hash
from gapless.toml_file import check_keys, convert, parse_toml, read_text, rows_of

if TYPE_CHECKING:  # it needs cryptography, which only brokers have
    from gapless.security.signed_tokens import SignedTokens

__all__ = ["User", "Users", "load_users"]

USERS_MAX = 100_000
TOKENS_MAX = 8
SHOWN = 100
"""Characters of what is wrong that a sentence repeats."""
_HEX = re.compile(r"[0-9A-F]{1,64}", re.ASCII)


class User(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """One of `[[users]]`."""

    name: str
    certificate: bool = False
    tokens: tuple[str, ...] = ()
    signed_token: bool = False
    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    outside: Outside = "refuse"
    history: bool = False
    named: bool | tuple[str, ...] = False
    status: bool = False
    operate: bool = False
    disabled: bool = False
    limits: Limits | None = None

    def __repr__(self) -> str:
        return f"<User {self.name}>"

    @cached_property
    def may_publish(self) -> Within:
        """Within what it may publish."""
        return Within(self.publish)

    @cached_property
    def may_subscribe(self) -> Within:
        """Within what it may subscribe."""
        return Within(self.subscribe)

    @cached_property
    def may_hold(self) -> Names:
        """Under which names it may hold subscriptions."""
        return Names(self.named)


class _SignedTokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: str
    audience: str
    issuer: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    users: tuple[User, ...] = ()
    limits: Limits = Limits()
    broker_limits: BrokerLimits = BrokerLimits()
    signed_tokens: _SignedTokens | None = None
    revoked: tuple[str, ...] = ()


class Users:
    """All users, checked."""

    def __init__(self, file: _File, signed: "SignedTokens | None") -> None:
        self.by_name = {user.name: user for user in file.users}
        self.broker_limits = file.broker_limits
        self.signed = signed
        self.revoked = frozenset(map(_serial, file.revoked))
        self.trust = (self.revoked, file.signed_tokens, None if signed is None else signed.text)
        """What else decides whose proofs count."""
        self._limits = file.limits

    def limits_of(self, user: str) -> Limits:
        """How much the user may."""
        found = self.by_name.get(user)
        return self._limits if found is None or found.limits is None else found.limits

    def is_revoked(self, certificate: Mapping[str, Any]) -> bool:
        """Whether a certificate counts no more."""
        return _serial(str(certificate.get("serialNumber", ""))) in self.revoked if certificate else False


def _serial(text: str) -> str:
    """A serial number as it is compared, however it is written."""
    digits = "".join(text.replace(":", "").split()).upper()
    return digits.removeprefix("0X").lstrip("0")


_TABLES: dict[str, type[msgspec.Struct]] = {
    "limits": Limits, "broker_limits": BrokerLimits, "signed_tokens": _SignedTokens,
}  # fmt: skip


def load_users(path: Path, reads: Callable[[Path], None] = lambda path: None) -> Users:
    """The users in this file; a `ConfigError` that names the place if a single thing is wrong.

    `reads` hears of each other file that belongs to it, before that is read.
    """
    try:
        document = parse_toml(read_text(path, ConfigError), ConfigError)
        _check_keys(document)
        file = convert(document, _File, ConfigError)
        _check(file)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    told = file.signed_tokens
    if told is None:
        return Users(file, None)
    keys = path.parent / told.keys
    reads(keys)
    return Users(file, _signed(keys, told))


def _signed(keys: Path, told: _SignedTokens) -> "SignedTokens":
    from gapless.security.signed_tokens import SignedTokens

    return SignedTokens(keys, told.audience, told.issuer)


def _check_keys(document: Mapping[str, Any]) -> None:
    check_keys("", document, _File.__struct_fields__, ConfigError)
    for place, struct in _TABLES.items():
        check_keys(place, document.get(place), struct.__struct_fields__, ConfigError)
    for number, row in enumerate(rows_of(document, "users", ConfigError)):
        check_keys(f"users[{number}]", row, User.__struct_fields__, ConfigError)
        check_keys(f"users[{number}].limits", row.get("limits"), Limits.__struct_fields__, ConfigError)


def _check(file: _File) -> None:
    if len(file.users) > USERS_MAX:
        raise ConfigError(f"users: there are {len(file.users):,}; {USERS_MAX:,} is the most")
    if file.broker_limits.names != BrokerLimits().names:
        raise ConfigError("broker_limits.names: names are those of a user, at all brokers; limit them in [limits]")
    for number, serial in enumerate(file.revoked):
        if not _HEX.fullmatch(_serial(serial)):
            raise ConfigError(
                f"revoked[{number}]: {serial[:SHOWN]!r} is no serial number; write it in hexadecimal digits"
            )
    seen: dict[str, int] = {}
    for number, user in enumerate(file.users):
        place = f"users[{number}]"
        if not is_user_name(user.name):
            raise ConfigError(f"{place}.name: {user.name!r} is no name; use 1 to 64 of A-Z a-z 0-9 . _ @ -")
        if user.name in seen:
            raise ConfigError(f"{place}.name: {user.name!r} is users[{seen[user.name]}] already")
        seen[user.name] = number
        _check_proofs(place, user, file)
        for key in ("publish", "subscribe"):
            _check_filters(f"{place}.{key}", getattr(user, key))
        _check_names(f"{place}.named", user.named)


def _check_proofs(place: str, user: User, file: _File) -> None:
    if len(user.tokens) > TOKENS_MAX:
        raise ConfigError(f"{place}.tokens: {len(user.tokens)} are too many; {TOKENS_MAX} is the most")
    for number, kept in enumerate(user.tokens):
        # The text is not repeated: somebody may have put the token itself there.
        if not is_hash(kept):
            what = (
                "a scrypt hash, which brokers no longer accept" if kept.startswith("scrypt$") else "no hash of a token"
            )
            todo = f"run gapless security token {user.name}, put the hash that it prints here, and hand out the token"
            raise ConfigError(f"{place}.tokens[{number}]: this is {what}; {todo}")
    if user.signed_token and file.signed_tokens is None:
        raise ConfigError(f"{place}.signed_token: say in [signed_tokens] whose signatures count")


def _check_names(place: str, named: bool | tuple[str, ...]) -> None:
    try:
        Names(named)
    except FilterError as error:
        raise ConfigError(f"{place}: together they are too much for one filter: {error.message}") from None


def _check_filters(place: str, filters: tuple[str, ...]) -> None:
    for number, text in enumerate(filters):
        try:
            parse(text)
        except FilterError as error:
            raise ConfigError(f"{place}[{number}]: {error}") from None
    try:
        Within(filters)
    except FilterError as error:
        raise ConfigError(f"{place}: together they are too much for one filter: {error.message}") from None

"""Identities of peers, and the client names that they may use.

A certificate contains it as a URI among its alternative names: `gapless://NETWORK/broker/NAME` or
`gapless://NETWORK/user/NAME`. So a user's certificate is never valid for a broker, whoever signed
both.

A client belongs to a user, and its name begins with it: `USER:anything`. So no broker has to
remember the owner of a name: a client that uses the name must prove to be that user, at every
broker, whatever has failed.
"""

import re
from collections.abc import Iterable
from math import inf
from typing import Literal, TypeAlias
from urllib.parse import quote, unquote

import msgspec

__all__ = ["ANYBODY", "Identity", "Kind", "certificate_uri", "client_prefix", "is_user_name", "named_in", "user_of"]

Kind: TypeAlias = Literal["anybody", "broker", "user"]

KINDS: tuple[Kind, ...] = ("broker", "user")
SEPARATOR = ":"
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)


class Identity(msgspec.Struct, frozen=True):
    """An authenticated peer, or any peer in a network without users."""

    kind: Kind
    name: str = ""
    proof: str = ""
    """The kind of credential that authenticated the peer: a certificate, a token, or a signed token."""
    expires: float = inf
    """When the credential expires, in seconds since 1970."""

    @property
    def text(self) -> str:
        """Return a description of the identity, for logs."""
        return f"{self.kind} {self.name}" if self.name else "anybody"


ANYBODY = Identity("anybody")


def is_user_name(name: str) -> bool:
    """Return whether this is a valid user name, which contains no separator of client names."""
    return _USER.fullmatch(name) is not None


def client_prefix(user: str) -> str:
    """Return the prefix of the names of this user's clients."""
    return user + SEPARATOR


def user_of(client: str) -> str:
    """Return the user of this client; empty if the name has no prefix."""
    user, separator, _ = client.partition(SEPARATOR)
    return user if separator else ""


def certificate_uri(network: str, kind: Kind, name: str) -> str:
    """Return the URI in a certificate of a member of the network."""
    return f"gapless://{quote(network, safe='')}/{kind}/{quote(name, safe='')}"


def named_in(uris: Iterable[str], network: str) -> tuple[Kind, str] | None:
    """Return the broker or the user of the network that one of these URIs names, or None."""
    for uri in uris:
        for kind in KINDS:
            prefix = certificate_uri(network, kind, "")
            name = unquote(uri.removeprefix(prefix))
            if uri.startswith(prefix) and name and certificate_uri(network, kind, name) == uri:
                return kind, name
    return None

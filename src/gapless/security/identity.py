"""Who somebody is, and what that makes of names.

A certificate says it in a URI among its alternative names: `gapless://NETWORK/broker/NAME` or
`gapless://NETWORK/user/NAME`. So the certificate of a user is never that of a broker, whoever signed both.

A client belongs to a user, and its name says so: `USER:anything`. So no broker has to remember to whom a name belongs.
A client that comes with the name must prove to be that user, at every broker, whatever has failed.
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
    """A peer that has proved its identity; or anybody, if the network asks for no proof."""

    kind: Kind
    name: str = ""
    proof: str = ""
    """What it showed: a certificate, a token, a signed token."""
    expires: float = inf
    """When the proof expires, in seconds since 1970."""

    @property
    def text(self) -> str:
        """For logs."""
        return f"{self.kind} {self.name}" if self.name else "anybody"


ANYBODY = Identity("anybody")


def is_user_name(name: str) -> bool:
    """Whether users can be called so: nothing that separates it from what follows in a client's name."""
    return _USER.fullmatch(name) is not None


def client_prefix(user: str) -> str:
    """How the names of this user's clients begin."""
    return user + SEPARATOR


def user_of(client: str) -> str:
    """The user whose client this is; empty if the name does not tell."""
    user, separator, _ = client.partition(SEPARATOR)
    return user if separator else ""


def certificate_uri(network: str, kind: Kind, name: str) -> str:
    """What a certificate says to prove that somebody belongs to the network."""
    return f"gapless://{quote(network, safe='')}/{kind}/{quote(name, safe='')}"


def named_in(uris: Iterable[str], network: str) -> tuple[Kind, str] | None:
    """The broker or user of the network that a certificate with these URIs names; None if it names none."""
    for uri in uris:
        for kind in KINDS:
            prefix = certificate_uri(network, kind, "")
            name = unquote(uri.removeprefix(prefix))
            if uri.startswith(prefix) and name and certificate_uri(network, kind, name) == uri:
                return kind, name
    return None

"""Static tokens: a user's name and a secret of 256 random bits, `ann:…`. The users' file holds only a SHA-256 hash.

A secret of this size cannot be found by trying, however fast each attempt is. So a plain hash is enough, comparing
takes microseconds, and nobody can occupy a broker by sending wrong tokens. This holds only for secrets that
`make_token` draws: a hash of a password that a person chose is not safe.
"""

import hmac
import re
import secrets
from hashlib import sha256

__all__ = ["hash_token", "is_hash", "make_token", "matches", "split_token"]

SECRET_BYTES = 32
PREFIX = "sha256$"
_HASH = re.compile(r"sha256\$[0-9a-f]{64}", re.ASCII)


def make_token(user: str) -> str:
    """A new token of the user."""
    return f"{user}:{secrets.token_urlsafe(SECRET_BYTES)}"


def split_token(token: str) -> tuple[str, str]:
    """The user and the secret; both empty if it is no token."""
    user, separator, secret = token.partition(":")
    return (user, secret) if separator and secret else ("", "")


def hash_token(token: str) -> str:
    """The hash of a whole token, as the users' file holds it."""
    return PREFIX + sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def matches(token: str, kept: str) -> bool:
    """Whether the hash was made from this token. The time this takes does not depend on where they differ."""
    return hmac.compare_digest(hash_token(token), kept)


def is_hash(text: str) -> bool:
    """Whether `hash_token` can have made this text."""
    return _HASH.fullmatch(text) is not None

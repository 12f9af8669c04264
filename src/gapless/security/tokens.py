"""Static tokens: a user's name and a secret of 256 random bits, `ann:…`. The users' file holds only
a SHA-256 hash.

A secret of this size cannot be guessed, however fast each attempt is. So a plain hash is enough, a
comparison takes microseconds, and wrong tokens cannot overload a broker. This holds only for
secrets that `make_token` draws: hash no passwords with it.
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
    """Return a new random token for the user."""
    return f"{user}:{secrets.token_urlsafe(SECRET_BYTES)}"


def split_token(token: str) -> tuple[str, str]:
    """Return the user and the secret; both are empty if the text is not a token."""
    user, separator, secret = token.partition(":")
    return (user, secret) if separator and secret else ("", "")


def hash_token(token: str) -> str:
    """Return the hash of a whole token, for the users' file."""
    return PREFIX + sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def matches(token: str, kept: str) -> bool:
    """Return whether the hash belongs to this token, in constant time."""
    return hmac.compare_digest(hash_token(token), kept)


def is_hash(text: str) -> bool:
    """Return whether the text has the form of a hash from `hash_token`."""
    return _HASH.fullmatch(text) is not None

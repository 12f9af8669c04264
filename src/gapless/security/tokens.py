"""Tokens: a user's name and a secret, `ann:…`. At rest there is only a hash of the secret, by scrypt.

A hash costs 16 MiB and some 50 ms on purpose: a thief of the file cannot try many secrets. For the same reason brokers
compare in a thread, and remember the right ones (`gapless.runtime.doors`).
"""

import hmac
import secrets
from base64 import b64decode, b64encode
from hashlib import scrypt

__all__ = ["compare", "hash_secret", "is_hash", "make_token", "split_token"]

LOG_N, R, P = 14, 8, 1
LOG_N_MAX = 17
SALT_BYTES, HASH_BYTES, SECRET_BYTES = 16, 32, 32
MEMORY_MAX = 512 * 1024 * 1024


def make_token(user: str) -> str:
    """A new token of the user."""
    return f"{user}:{secrets.token_urlsafe(SECRET_BYTES)}"


def split_token(token: str) -> tuple[str, str]:
    """The user and the secret; both empty if it is no token."""
    user, separator, secret = token.partition(":")
    return (user, secret) if separator and secret else ("", "")


def hash_secret(token: str) -> str:
    """What to keep of a token."""
    salt = secrets.token_bytes(SALT_BYTES)
    found = _scrypt(split_token(token)[1], salt, LOG_N, R, P)
    return "$".join(("scrypt", str(LOG_N), str(R), str(P), b64encode(salt).decode(), b64encode(found).decode()))


def compare(secret: str, kept: str) -> bool:
    """Whether the secret is the one that this hash was made of."""
    log_n, r, p, salt, expected = _parts(kept)
    return hmac.compare_digest(_scrypt(secret, salt, log_n, r, p), expected)


def is_hash(text: str) -> bool:
    """Whether it is a hash that `compare` understands, and that does not cost too much."""
    try:
        log_n, r, p, salt, found = _parts(text)
    except ValueError:
        return False
    return LOG_N <= log_n <= LOG_N_MAX and r == R and p == P and len(salt) >= SALT_BYTES and len(found) == HASH_BYTES


def _parts(text: str) -> tuple[int, int, int, bytes, bytes]:
    kind, log_n, r, p, salt, found = text.split("$")
    if kind != "scrypt":
        raise ValueError(kind)
    return int(log_n), int(r), int(p), b64decode(salt, validate=True), b64decode(found, validate=True)


def _scrypt(secret: str, salt: bytes, log_n: int, r: int, p: int) -> bytes:
    return scrypt(secret.encode(), salt=salt, n=1 << log_n, r=r, p=p, maxmem=MEMORY_MAX, dklen=HASH_BYTES)

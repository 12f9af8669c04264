"""Verifies signed tokens (JWT), in which a trusted issuer states who the bearer is, and until when.

Only asymmetric signatures are accepted (EdDSA, ES256, ES384, RS256, PS256), so a broker that
verifies tokens cannot forge them. A token must contain its audience (`aud`), its expiry (`exp`),
and its user (`sub`). The users' file defines the permissions of this user.
"""

import json
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from gapless.errors import ConfigError, DeniedError
from gapless.security.key_url import KeysPendingError

__all__ = ["SignedTokens", "is_signed"]

LEEWAY_S = 5.0
"""The tolerated difference between the clocks of issuer and broker."""
KEYS_MAX = 16
ABSENT_MAX = 1_000
"""Maximum number of key names that are remembered as unknown."""
NO_KEYS = "there are no public keys in PEM format or as a JSON Web Key Set"
_END = "-----END PUBLIC KEY-----"
_KINDS: tuple[tuple[type[Any], list[str]], ...] = (
    (ed25519.Ed25519PublicKey, ["EdDSA"]),
    (ec.EllipticCurvePublicKey, ["ES256", "ES384"]),
    (rsa.RSAPublicKey, ["RS256", "PS256"]),
)


def is_signed(token: str) -> bool:
    """Return whether the text looks like a signed token."""
    return token.count(".") == 2 and ":" not in token


class SignedTokens:
    """Verifies signed tokens with public keys from a file, in PEM or as a JSON Web Key Set, or from a key set at a URL.

    `gapless.runtime.remote_keys` fetches the keys at a URL and passes them to `set_keys`.
    """

    def __init__(self, audience: str, issuer: str = "", *, url: str = "") -> None:
        self.url = url
        """The URL of the keys, or an empty string if they come from a file."""
        self.text = ""
        """The keys in their original form."""
        self.is_refresh_wanted = False
        """Whether a token named an unknown key since the last fetch."""
        self._audience = audience
        self._issuer = issuer or None
        self._keys: list[tuple[Any, list[str]]] = []
        self._names: frozenset[str] = frozenset()
        self._asked: set[str] = set()
        """The unknown key names that tokens contained since the last fetch."""
        self._absent: set[str] = set()
        """Key names that were still unknown after a fetch."""

    @classmethod
    def of_file(cls, keys: Path, audience: str, issuer: str = "") -> "SignedTokens":
        """Return a verifier with the keys of a file."""
        found = cls(audience, issuer)
        try:
            found.set_keys(keys.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{keys}: cannot be read: {error.strerror}") from None
        except (ConfigError, UnicodeDecodeError) as error:
            sentence = str(error) if isinstance(error, ConfigError) else NO_KEYS
            raise ConfigError(f"{keys}: {sentence}") from None
        return found

    def set_keys(self, text: str) -> None:
        """Use these keys from now on. If they are invalid, raise a `ConfigError` and change nothing."""
        names: frozenset[str] = frozenset()
        try:
            if text.lstrip().startswith("{"):
                keys, names = _read_set(text)
            else:
                keys = _read_pem(text)
        except (ValueError, TypeError, AttributeError, RecursionError, jwt.PyJWTError):
            raise ConfigError(NO_KEYS) from None
        if not 1 <= len(keys) <= KEYS_MAX:
            raise ConfigError(f"there are {len(keys)} keys, but must be 1 to {KEYS_MAX}")
        self._keys, self._names, self.text = keys, names, text
        absent = (self._absent | self._asked) - names
        self._absent = absent if len(absent) <= ABSENT_MAX else set()
        self._asked = set()
        self.is_refresh_wanted = False

    def forget_keys(self) -> None:
        """Trust no keys until new ones are set."""
        self._keys, self._names, self.text = [], frozenset(), ""

    def _must_wait(self, token: str) -> bool:
        """Return whether the token names a key that the URL may offer by now."""
        if not self.url:
            return False
        try:
            name = jwt.get_unverified_header(token).get("kid")
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
            return not self._keys
        if not isinstance(name, str) or name in self._names:
            return not self._keys
        self.is_refresh_wanted = True
        if len(self._asked) < ABSENT_MAX:
            self._asked.add(name)
        return not self._keys or name not in self._absent

    def user_of(self, token: str) -> tuple[str, float]:
        """Return the user of the token and its expiry. Raise a `DeniedError` if it is invalid."""
        if self._must_wait(token):
            self.is_refresh_wanted = True
            raise KeysPendingError(
                "the signed token names an unknown key; the keys are being fetched again, so try again"
            )
        reason = "it is not signed by a key that is trusted here"
        for key, algorithms in self._keys:
            try:
                claims = jwt.decode(
                    token, key, algorithms=algorithms, audience=self._audience, issuer=self._issuer, leeway=LEEWAY_S,
                    options={"require": ["exp", "sub", "aud"]},
                )  # fmt: skip
                return str(claims["sub"]), float(claims["exp"]) + LEEWAY_S
            except (jwt.InvalidSignatureError, jwt.InvalidAlgorithmError, jwt.InvalidKeyError):
                continue
            except jwt.ExpiredSignatureError:
                reason = "it has expired; ask for a new one"
            except jwt.InvalidAudienceError:
                reason = f"it is not for the audience {self._audience!r}"
            except jwt.InvalidIssuerError:
                reason = "it was issued by another issuer"
            except jwt.MissingRequiredClaimError as error:
                reason = f"it does not contain {error.claim!r}"
            except jwt.ImmatureSignatureError:
                reason = "it is not valid yet; are the clocks right?"
            except (jwt.PyJWTError, ValueError, TypeError):
                reason = "it cannot be read"
            break
        raise DeniedError(f"the signed token is invalid: {reason}")


def _read_pem(text: str) -> list[tuple[Any, list[str]]]:
    blocks = [block + _END for block in text.split(_END)[:-1]]
    keys = [load_pem_public_key(block.encode()) for block in blocks]
    return [(key, algorithms) for key in keys for kind, algorithms in _KINDS if isinstance(key, kind)]


def _read_set(text: str) -> tuple[list[tuple[Any, list[str]]], frozenset[str]]:
    found = [key for key in jwt.PyJWKSet.from_dict(json.loads(text)).keys if key.public_key_use in (None, "sig")]
    known = [(key, algorithms) for key in found for kind, algorithms in _KINDS if isinstance(key.key, kind)]
    names = frozenset(key.key_id for key, _ in known if isinstance(key.key_id, str))
    return [(key.key, algorithms) for key, algorithms in known], names

"""Signed tokens (JWT): an issuer that we trust says who the bearer is, and until when.

Only signatures with a pair of keys count (EdDSA, ES256, ES384, RS256, PS256), so a broker that checks tokens cannot
forge them. A token must name its audience (`aud`), its end (`exp`), and its user (`sub`). The users' file says what
this user may do.
"""

import json
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from gapless.errors import ConfigError, DeniedError

__all__ = ["SignedTokens", "is_signed"]

LEEWAY_S = 5.0
"""How far the clocks of who signs and who checks may differ."""
KEYS_MAX = 16
_END = "-----END PUBLIC KEY-----"
_KINDS: tuple[tuple[type[Any], list[str]], ...] = (
    (ed25519.Ed25519PublicKey, ["EdDSA"]),
    (ec.EllipticCurvePublicKey, ["ES256", "ES384"]),
    (rsa.RSAPublicKey, ["RS256", "PS256"]),
)


def is_signed(token: str) -> bool:
    """Whether it looks like a signed token."""
    return token.count(".") == 2 and ":" not in token


class SignedTokens:
    """Checks signed tokens by the public keys in a file: PEM, or a JSON Web Key Set."""

    def __init__(self, keys: Path, audience: str, issuer: str = "") -> None:
        self._audience = audience
        self._issuer = issuer or None
        try:
            self.text = text = keys.read_text(encoding="utf-8")
            self._keys = _read_set(text) if text.lstrip().startswith("{") else _read_pem(text)
        except OSError as error:
            raise ConfigError(f"{keys}: cannot be read: {error.strerror}") from None
        except (ValueError, jwt.PyJWTError):
            raise ConfigError(f"{keys}: there are no public keys in it, in PEM or as a JSON Web Key Set") from None
        if not 1 <= len(self._keys) <= KEYS_MAX:
            raise ConfigError(f"{keys}: there are {len(self._keys)} keys in it; give 1 to {KEYS_MAX}")

    def user_of(self, token: str) -> tuple[str, float]:
        """Whom the token names, and when it ends; a `DeniedError` if it does not count."""
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
                reason = f"it is not for {self._audience!r}"
            except jwt.InvalidIssuerError:
                reason = "it was issued by somebody else"
            except jwt.MissingRequiredClaimError as error:
                reason = f"it does not say {error.claim!r}"
            except jwt.ImmatureSignatureError:
                reason = "it is not valid yet; are the clocks right?"
            except (jwt.PyJWTError, ValueError, TypeError):
                reason = "it cannot be read"
            break
        raise DeniedError(f"the signed token does not count: {reason}")


def _read_pem(text: str) -> list[tuple[Any, list[str]]]:
    blocks = [block + _END for block in text.split(_END)[:-1]]
    keys = [load_pem_public_key(block.encode()) for block in blocks]
    return [(key, algorithms) for key in keys for kind, algorithms in _KINDS if isinstance(key, kind)]


def _read_set(text: str) -> list[tuple[Any, list[str]]]:
    keys = [key.key for key in jwt.PyJWKSet.from_dict(json.loads(text)).keys]
    return [(key, algorithms) for key in keys for kind, algorithms in _KINDS if isinstance(key, kind)]

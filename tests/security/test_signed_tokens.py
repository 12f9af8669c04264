"""Signed tokens: only a trusted key can sign one, and it contains audience, issuer and expiry."""

import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm

from gapless.errors import ConfigError, DeniedError
from gapless.security.signed_tokens import LEEWAY_S, SignedTokens, is_signed

KEY = ed25519.Ed25519PrivateKey.generate()


def pem(key: Any) -> str:
    found: bytes = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return found.decode()


def signed(key: Any = KEY, algorithm: str = "EdDSA", **claims: Any) -> str:
    usual = {"sub": "ann", "aud": "shop", "exp": time.time() + 60, **claims}
    return jwt.encode({name: value for name, value in usual.items() if value is not None}, key, algorithm=algorithm)


@pytest.fixture
def checker(tmp_path: Path) -> SignedTokens:
    (tmp_path / "keys.pem").write_text(pem(KEY), encoding="utf-8")
    return SignedTokens.of_file(tmp_path / "keys.pem", "shop", "issuer")


def test_a_token_names_its_user_and_its_end(checker: SignedTokens) -> None:
    exp = time.time() + 60
    token = signed(iss="issuer", exp=exp)
    assert is_signed(token)
    user, end = checker.user_of(token)
    assert user == "ann"
    assert end == pytest.approx(exp + LEEWAY_S, abs=1)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": 1}, "it has expired; ask for a new one"),
        ({"aud": "bank"}, "it is not for the audience 'shop'"),
        ({"iss": "somebody"}, "it was issued by another issuer"),
        ({"exp": None}, "it does not contain 'exp'"),
        ({"sub": None}, "it does not contain 'sub'"),
        ({"nbf": 1 << 40}, "it is not valid yet"),
    ],
)
def test_errors_in_a_token_are_reported(checker: SignedTokens, claims: dict[str, Any], reason: str) -> None:
    with pytest.raises(DeniedError, match=reason):
        checker.user_of(signed(**{"iss": "issuer", **claims}))


def test_no_other_key_can_sign(checker: SignedTokens) -> None:
    other = signed(ed25519.Ed25519PrivateKey.generate(), iss="issuer")
    head, _, tail = signed(iss="issuer").split(".")
    body = jwt.utils.base64url_encode(
        json.dumps({"sub": "eve", "aud": "shop", "iss": "issuer", "exp": 1 << 40}).encode()
    ).decode()
    none = signed("", "none", iss="issuer")
    shared = jwt.utils.base64url_encode(b'{"alg":"HS256","typ":"JWT"}').decode() + "." + body
    mac = hmac.new(pem(KEY).encode(), shared.encode(), hashlib.sha256).digest()
    forged = shared + "." + jwt.utils.base64url_encode(mac).decode()
    for token in (other, f"{head}.{body}.{tail}", none, forged, "a.b.c", "..", "\x00.\x00.\x00"):
        with pytest.raises(DeniedError, match="the signed token is invalid"):
            checker.user_of(token)


def test_keys_come_in_pem_and_as_a_key_set(tmp_path: Path) -> None:
    curve, modulus = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)
    (tmp_path / "keys.pem").write_text(pem(KEY) + pem(curve) + pem(modulus), encoding="utf-8")
    checker = SignedTokens.of_file(tmp_path / "keys.pem", "shop")
    for key, algorithm in ((KEY, "EdDSA"), (curve, "ES256"), (modulus, "RS256"), (modulus, "PS256")):
        assert checker.user_of(signed(key, algorithm))[0] == "ann"
    document = {"keys": [ECAlgorithm.to_jwk(curve.public_key(), as_dict=True)]}
    (tmp_path / "keys.json").write_text(json.dumps(document), encoding="utf-8")
    assert SignedTokens.of_file(tmp_path / "keys.json", "shop").user_of(signed(curve, "ES256"))[0] == "ann"


BROKEN = "-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----"


@pytest.mark.parametrize("text", ["", "rubbish", "{}", '{"keys": []}', BROKEN])
def test_a_file_without_keys_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "keys.pem").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"keys\.pem: there are"):
        SignedTokens.of_file(tmp_path / "keys.pem", "shop")

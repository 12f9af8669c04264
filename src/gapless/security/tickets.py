"""Issues and verifies tickets: a broker's signed statement that a client had a subscription, for the broker to which
the client moves.

A client that moves to another broker reports the positions of its subscriptions, and reads later events from history. A
user without the right `history` must not read anything else that way. So the broker that activates a subscription signs
the client, the filter, and the position from which on everything is delivered. It does so for users with that right,
too, because the right can be withdrawn. Subscriptions that begin in the past rely on the right, and get no ticket. The
client presents this **ticket** when it resumes the subscription anywhere. A subscription without a valid ticket, or
from before its position, is refused; one with a wider filter gets only the events that the ticket's filter matches.

A ticket is signed with the key of the broker's certificate, and contains that certificate, because the signing broker
may be unreachable later. It is valid if the network's authority issued the certificate to a broker of the network, and
it is not revoked. Its expiry is ignored: subscriptions can last longer than certificates.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from gapless.errors import ConfigError
from gapless.security.identity import named_in

__all__ = ["TicketKeys", "Tickets"]

PURPOSE = "gapless ticket 1"
CHAIN_MAX = 5
CERTIFICATES_MAX = 1_000
"""The maximum number of verified certificates that are cached."""


class _Grant(msgspec.Struct, array_like=True, frozen=True):
    purpose: str
    network: str
    client: str
    filter: str
    position: int


class _Ticket(msgspec.Struct, array_like=True, frozen=True):
    grant: bytes
    signature: bytes
    chain: list[bytes]
    """The certificate of the signing broker, and the certificates between it and the authority."""


class TicketKeys:
    """The key that a broker signs with, and the authorities that it trusts."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        """Read the broker's `files`: its certificate and key, and the authority."""
        try:
            self.authorities = x509.load_pem_x509_certificates(files["authority"].read_bytes())
            chain = x509.load_pem_x509_certificates(files["certificate"].read_bytes())[:CHAIN_MAX]
            self.key = serialization.load_pem_private_key(files["key"].read_bytes(), None)
        except OSError as error:
            raise ConfigError(f"{error.filename}: cannot be read: {error.strerror}") from None
        except (ValueError, TypeError):
            raise ConfigError(
                f"{files['certificate']} and {files['key']} are not a certificate and its key in PEM format"
            ) from None
        self.chain = [each.public_bytes(serialization.Encoding.DER) for each in chain]


class Tickets:
    """Issues and verifies the tickets of one network at one broker."""

    def __init__(self, network: str, brokers: frozenset[str], keys: TicketKeys) -> None:
        self._network = network
        self._brokers = brokers
        self._keys = keys
        self._checked: dict[tuple[bytes, ...], x509.Certificate | None] = {}

    def issue(self, client: str, text: str, position: int) -> bytes:
        """Return a ticket for a client's subscription from a position on."""
        grant = msgspec.msgpack.encode(_Grant(PURPOSE, self._network, client, text, position))
        return msgspec.msgpack.encode(_Ticket(grant, _sign(self._keys.key, grant), self._keys.chain))

    def read(self, ticket: bytes, client: str, position: int, revoked: frozenset[str]) -> str | None:
        """Return the filter that the ticket grants to a client from this position on, or None if it grants none."""
        try:
            shown = msgspec.msgpack.decode(ticket, type=_Ticket)
            grant = msgspec.msgpack.decode(shown.grant, type=_Grant)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None
        if (grant.purpose, grant.network, grant.client) != (PURPOSE, self._network, client):
            return None
        if position < grant.position or not 1 <= len(shown.chain) <= CHAIN_MAX:
            return None
        certificate = self._broker_certificate(shown.chain)
        if certificate is None or f"{certificate.serial_number:X}" in revoked:
            return None
        return grant.filter if _is_signed(certificate, shown.grant, shown.signature) else None

    def _broker_certificate(self, chain: Sequence[bytes]) -> x509.Certificate | None:
        """Return the first certificate of the chain, or None if the authority did not issue it to a broker."""
        key = tuple(chain)
        if key not in self._checked:
            if len(self._checked) >= CERTIFICATES_MAX:
                self._checked.clear()
            self._checked[key] = self._check(chain)
        return self._checked[key]

    def _check(self, chain: Sequence[bytes]) -> x509.Certificate | None:
        try:
            certificates = [x509.load_der_x509_certificate(each) for each in chain]
            names = certificates[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (ValueError, x509.ExtensionNotFound):
            return None
        named = named_in(names.get_values_for_type(x509.UniformResourceIdentifier), self._network)
        if named is None or named[0] != "broker" or named[1] not in self._brokers:
            return None
        for place, each in enumerate(certificates):
            if any(_has_issued(authority, each) for authority in self._keys.authorities):
                return certificates[0]
            if place + 1 == len(certificates) or not _has_issued(certificates[place + 1], each):
                return None
        return None


def _has_issued(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    """Return whether an authority has signed the certificate. Users' certificates are not authorities."""
    try:
        if not issuer.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return False
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    return True


def _sign(key: object, data: bytes) -> bytes:
    match key:
        case ec.EllipticCurvePrivateKey():
            return key.sign(data, ec.ECDSA(hashes.SHA256()))
        case rsa.RSAPrivateKey():
            return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        case ed25519.Ed25519PrivateKey():
            return key.sign(data)
    raise ConfigError("the key of a broker must be on an elliptic curve, Ed25519 or RSA")


def _is_signed(certificate: x509.Certificate, data: bytes, signature: bytes) -> bool:
    key = certificate.public_key()
    try:
        match key:
            case ec.EllipticCurvePublicKey():
                key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
            case rsa.RSAPublicKey():
                key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
            case ed25519.Ed25519PublicKey():
                key.verify(signature, data)
            case _:
                return False
    except InvalidSignature:
        return False
    return True

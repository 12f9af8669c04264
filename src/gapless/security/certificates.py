"""Creates and reads certificates: an authority for development, and the certificates that it issues.

Keys are on the curve P-256, so that a handshake costs a broker well below a millisecond. Use your
own authority in production; its certificates must name brokers and users as `identity` describes.
"""

import ipaddress
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gapless.errors import ConfigError
from gapless.private_files import exposure_of_key

__all__ = ["Authority", "expiry_of", "write_secret"]

AUTHORITY_DAYS = 3650
DAYS = 397
"""The validity of a certificate in days, which is the maximum that browsers accept. So operators renew certificates
every year."""
SKEW = timedelta(minutes=5)
"""The time before its creation from which a certificate is valid, because the clocks of other hosts differ."""


class Authority:
    """An authority, which issues certificates. Its key is in memory, and in the file that `write` creates."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self._key = key

    @classmethod
    def make(cls, name: str, *, days: int = AUTHORITY_DAYS) -> "Authority":
        """Return a new authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(name)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = _builder(subject, subject, key, days).add_extension(x509.BasicConstraints(True, 0), critical=True)
        builder = builder.add_extension(usage, critical=True).add_extension(identifier, critical=False)
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, certificate: Path, key: Path) -> "Authority":
        """Return the authority in these files."""
        complaint = exposure_of_key(key)
        if complaint:
            raise ConfigError(complaint)
        try:
            found = serialization.load_pem_private_key(key.read_bytes(), None)
            loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
        except OSError as error:
            raise ConfigError(f"{error.filename}: cannot be read: {error.strerror}") from None
        except (ValueError, TypeError):
            raise ConfigError(f"{certificate} and {key} are not a certificate and its key in PEM format") from None
        if not isinstance(found, ec.EllipticCurvePrivateKey):
            raise ConfigError(f"{key}: this is not a key on an elliptic curve; gapless security init creates one")
        return cls(loaded, found)

    def write(self, certificate: Path, key: Path) -> None:
        """Write the certificate and the key to files. Only the owner can read the key."""
        certificate.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        write_secret(key, _pem(self._key))

    def issue(
        self,
        certificate: Path,
        key: Path,
        *,
        uri: str,
        name: str,
        hosts: Sequence[str] = (),
        days: float = DAYS,
        is_server: bool = True,
    ) -> None:
        """Create a key, and issue a certificate for a URI. A server's certificate includes its host names."""
        own = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri), *map(_host, hosts)]
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if is_server else [])]
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
        builder = _builder(_subject(name), self.certificate.subject, own, days)
        builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
        builder = builder.add_extension(usage, critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(issuer, critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        write_secret(key, _pem(own))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: float
) -> x509.CertificateBuilder:
    until = datetime.now(UTC) + timedelta(days=days)
    start = min(datetime.now(UTC), until) - SKEW
    return x509.CertificateBuilder(
        issuer, subject, key.public_key(), x509.random_serial_number(), start, until
    )  # fmt: skip


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write_secret(path: Path, content: bytes) -> None:
    """Create a file that only its owner can read from the beginning."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def expiry_of(certificate: Path) -> float:
    """Return the earliest expiry of the certificates in a file, in seconds since 1970."""
    try:
        found = x509.load_pem_x509_certificates(certificate.read_bytes())
    except OSError as error:
        raise ConfigError(f"{certificate}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise ConfigError(f"{certificate}: the file contains no certificate in PEM format") from None
    return min(each.not_valid_after_utc.timestamp() for each in found)

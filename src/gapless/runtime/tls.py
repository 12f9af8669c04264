"""TLS contexts for both ends, the names in certificates, and explanations of failed handshakes.

At least version 1.2, with forward secrecy and authenticated encryption. Compression, renegotiation
and session resumption are off, so that every connection authenticates its peer. The side that
dials always checks the name of its peer.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gapless.errors import ConfigError
from gapless.private_files import exposure_of_key

__all__ = ["alert_of", "client_context", "server_context", "uris_of", "why_dialling_failed", "why_listening_failed"]

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""The cipher suites for TLS 1.2; all suites of TLS 1.3 are acceptable."""


class _AlertKeepingObject(ssl.SSLObject):
    """One end of a handshake that keeps the alert of a failure. An event loop closes the connection and discards the
    alert, so the peer would not learn the reason.
    """

    outgoing: ssl.MemoryBIO

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            vars(error)["alert"] = self.outgoing.read()
            raise


class _AlertKeepingContext(ssl.SSLContext):
    sslobject_class = _AlertKeepingObject

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *more: Any, **named: Any) -> ssl.SSLObject:
        found = super().wrap_bio(incoming, outgoing, *more, **named)
        assert isinstance(found, _AlertKeepingObject)
        found.outgoing = outgoing
        return found


def alert_of(error: BaseException) -> bytes:
    """Return the TLS alert for the peer."""
    found: bytes = vars(error).get("alert", b"")
    return found


def server_context(authority: Path, certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the context for the side that listens. It verifies the peer's certificate, if the peer presents one."""
    context = _AlertKeepingContext(ssl.PROTOCOL_TLS_SERVER)
    _harden(context)
    _load(context, authority, certificate, key)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.num_tickets = 0
    return context


def client_context(authority: Path | None, certificate: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """Return the context for the side that dials. Without an authority, the system's authorities are trusted."""
    context = _AlertKeepingContext(ssl.PROTOCOL_TLS_CLIENT)
    _harden(context)
    if authority is None:
        context.load_default_certs()
    _load(context, authority, certificate, key)
    return context


def _harden(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET


def _load(context: ssl.SSLContext, authority: Path | None, certificate: Path | None, key: Path | None) -> None:
    if authority is not None:
        try:
            context.load_verify_locations(cafile=authority)
        except ssl.SSLError:
            raise ConfigError(f"{authority}: the file contains no CA certificate in PEM format") from None
        except OSError as error:
            raise ConfigError(f"{authority}: cannot be read: {error.strerror}") from None
    if certificate is None:
        return
    complaint = exposure_of_key(key or certificate)
    if complaint:
        raise ConfigError(complaint)
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(f"{key}: the key does not belong to the certificate {certificate}") from None
        raise ConfigError(
            f"{certificate}, {key or certificate}: the files contain no certificate and key in PEM format"
        ) from None
    except OSError as error:
        unread = next((path for path in (certificate, key) if path is not None and not _is_readable(path)), certificate)
        raise ConfigError(f"{unread}: cannot be read: {error.strerror}") from None


def _is_readable(path: Path) -> bool:
    try:
        path.open("rb").close()
    except OSError:
        return False
    return True


def uris_of(certificate: Mapping[str, Any] | None) -> list[str]:
    """Return the URIs in a verified certificate; an empty list if there is no certificate."""
    return [name for kind, name in (certificate or {}).get("subjectAltName", ()) if kind == "URI"]


# ---- explanations ---------------------------------------------------------------------------------------------

_EXPIRED, _NOT_YET = 10, 9
_UNKNOWN = (2, 18, 19, 20, 21)
_OTHER_NAME = (62, 64)
_WRONG_PURPOSE = 26

_NO_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"}
_OLD = {"UNSUPPORTED_PROTOCOL", "NO_SHARED_CIPHER", "VERSION_TOO_LOW", "NO_PROTOCOLS_AVAILABLE"}
_ALERTS = {
    "CERTIFICATE_EXPIRED": "it has expired",
    "UNKNOWN_CA": "the authority that signed it is not trusted there",
    "BAD_CERTIFICATE": "it is for another name",
    "CERTIFICATE_REVOKED": "it was revoked",
    "UNSUPPORTED_CERTIFICATE": "it is not valid for this purpose",
    "CERTIFICATE_UNKNOWN": "it was not accepted",
    "DECRYPT_ERROR": "its key does not match",
    "CERTIFICATE_REQUIRED": "it is missing",
}


def why_dialling_failed(host: str, error: ssl.SSLError) -> str:
    """Return an explanation for the side that dialled the host."""
    reason = error.reason or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == _EXPIRED:
            return f"the certificate of {host} has expired; the broker there needs a new one"
        if error.verify_code == _NOT_YET:
            return f"the certificate of {host} is not valid yet; are the clocks right?"
        if error.verify_code in _OTHER_NAME:
            return f"the certificate of {host} is for another name; is the address right?"
        if error.verify_code in _UNKNOWN:
            return (
                f"the certificate of {host} was signed by an authority that is not trusted here; set the "
                "right authority"
            )
        return f"the certificate of {host} is not accepted: {error.verify_message}"
    if "ALERT" in reason:
        why = _alert(reason)
        if why:
            return f"{host} does not accept this certificate: {why}"
        return f"{host} requires another version of TLS" if "VERSION" in reason else f"{host} ended the handshake"
    if reason in _OLD:
        return f"{host} supports only versions of TLS before 1.2"
    if reason in _NO_TLS:
        return f"the listener at {host} does not use TLS; write gapless:// if that is intended, or give it certificates"
    return f"the handshake with {host} failed: {reason.replace('_', ' ').lower() or 'it ended early'}"


def why_listening_failed(error: OSError) -> str:
    """Return an explanation about the peer, for the side that listened."""
    if not isinstance(error, ssl.SSLError):
        return "it aborted the handshake"
    reason = error.reason or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == _EXPIRED:
            return "its certificate has expired"
        if error.verify_code == _NOT_YET:
            return "its certificate is not valid yet"
        if error.verify_code in _UNKNOWN:
            return "its certificate was signed by an authority that is not trusted here"
        if error.verify_code == _WRONG_PURPOSE:
            return "its certificate is not a client certificate"
        return f"its certificate is not accepted: {error.verify_message}"
    if "ALERT" in reason:
        why = _alert(reason)
        return f"it does not accept this certificate: {why}" if why else "it ended the handshake"
    if reason in _OLD or ("VERSION" in reason and reason not in _NO_TLS):
        return "it supports only versions of TLS before 1.2"
    if reason in _NO_TLS:
        return "it does not use TLS"
    return f"the handshake failed: {reason.replace('_', ' ').lower() or 'it ended early'}"


def _alert(reason: str) -> str:
    return next((why for name, why in _ALERTS.items() if reason.endswith(name)), "")

"""Parses addresses: `host:port`, and lists of them behind `gapless://` or `gapless+tls://`.

Users paste URLs of other systems that contain a user name and a password. Such a URL is refused,
and every message shows it through `redacted`, so no password reaches a terminal or a log.
"""

import re
import socket
import ssl

from gapless.errors import ConfigError
from gapless.runtime.tls import why_dialling_failed

__all__ = ["DEFAULT_PORT", "is_tls", "parse_url", "redacted", "split_address", "why_unreachable"]

DEFAULT_PORT = 7400
SCHEME = "gapless://"
TLS_SCHEME = "gapless+tls://"

_USER = re.compile(r"(?<=://).*@|^(?!.*://).*@", re.DOTALL)
_NOT_IN_HOSTS = re.compile(r"[\s/?;#\[\]]")
_PARAMETERS = re.compile(r"([?;#]).*", re.DOTALL)


def redacted(url: object) -> str:
    """Return the URL without user names, passwords and parameters, which can be tokens."""
    return _PARAMETERS.sub(r"\1…", _USER.sub("…@", str(url)))


def split_address(address: str) -> tuple[str, int]:
    """Return the host and the port of an address, which is `DEFAULT_PORT` if it names none. IPv6 addresses are in
    brackets.
    """
    _refuse_users(address)
    host, colon, port = address.rpartition(":")
    if not colon or "]" in port:
        host, port = address, str(DEFAULT_PORT)
    is_bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if is_bracketed else host
    if not _may_be_host(host) or not port.isdecimal() or len(port) > 5 or int(port) > 65535:
        raise ConfigError(f"{redacted(address)!r} is not an address; write host:port")
    return host, int(port)


def _refuse_users(address: str) -> None:
    if "@" in address:
        raise ConfigError(
            f"{redacted(address)!r} contains a user name, but addresses contain no users and no "
            "passwords; write host:port, and pass a token or a certificate as credentials"
        )


def _may_be_host(host: str) -> bool:
    """Return whether the text can be a host name or an IP address."""
    try:
        return bool(host.encode("idna")) and host.isprintable() and not _NOT_IN_HOSTS.search(host)
    except UnicodeError:
        return False


def parse_url(url: str) -> list[str]:
    """Return the addresses in `gapless://host:port,host:port` or `gapless+tls://…`, each with its port."""
    rest = url.removeprefix(SCHEME).removeprefix(TLS_SCHEME)
    _refuse_users(rest)
    if "://" in rest:
        raise ConfigError(f"unsupported URL {redacted(url)!r}; write gapless://host:port,host:port")
    addresses = [part.strip() for part in rest.rstrip("/").split(",") if part.strip()]
    if not addresses:
        raise ConfigError(f"{redacted(url)!r} names no broker; write gapless://host:port,host:port")
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in map(split_address, addresses)]


def is_tls(url: str) -> bool:
    """Return whether the URL's scheme is that of TLS."""
    return url.startswith(TLS_SCHEME)


def why_unreachable(address: str, error: OSError | TimeoutError) -> str:
    """Return a sentence that explains why the address could not be reached."""
    host, port = split_address(address)
    if isinstance(error, ssl.SSLError):
        return why_dialling_failed(f"{host}:{port}", error)
    if isinstance(error, socket.gaierror):
        return f"unknown host {host!r}; check its name in the network's file"
    if isinstance(error, ConnectionRefusedError):
        return f"nothing listens on {host}:{port}; is the broker running?"
    if isinstance(error, TimeoutError):
        return f"no answer from {host}:{port}"
    return f"{host}:{port}: {(error.strerror or str(error)).lower()}"

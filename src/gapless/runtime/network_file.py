"""The file that describes a network. Every host has the same one.

```toml
[network]
name = "shop"
f = 1
edges = [["b0", "b1"], ["b0", "b2"]]

[[brokers]]
name = "b0"
address = "10.0.0.1:7400"

[[brokers]]
name = "b1"
address = "10.0.0.2:7400"
http = "127.0.0.1:8400"

[[brokers]]
name = "b2"
address = "broker2.example:7400"
listen = "0.0.0.0:7400"

[protocol]
name = "gapless"

[protocol.options]
wave_ms = 100

[runtime]
suspect_ms = 2000
```

`[network]`
: `edges` is the tree (omitted with a single broker); `f` (default 1) is how many neighbouring brokers can fail, and the
  network needs at least 2f + 1 brokers.

`[[brokers]]`
: `address` is where others reach it; `listen` is the address to bind, if it differs; `http`, if given, serves
  `/healthz` and `/metrics`. `data` is the directory of its durable data, relative to this file. Either every broker has
  one or none; without it, everything is in memory.

`[security]`
: enables TLS for all connections; brokers then authenticate with certificates. `authority`, `certificate` and `key` are
  PEM files, and `users` defines users and their permissions (`gapless.security.users_file`); all relative to this file.
  In each, `{name}` stands for the broker's name. The paths can differ between hosts.

`[storage]`
: how brokers with `data` sync it: `sync` is `always` (the default: no confirmed event is lost), `interval` (every
  `interval_ms`, default 100: a power cut of f + 1 machines loses the events confirmed in the last interval) or `never`
  (a power cut loses more; a crashed process loses nothing).

`[audit_log]`
: `file` is where each broker logs logins, refusals, and operators' actions (`gapless.runtime.audit_log`), relative to
  this file; `{name}` stands for the broker's name. The path can differ between hosts.

`[http]`
: what the port of `http` offers besides health and metrics, if the extra `http` is installed: `gateway` and `console`
  (both on by default), and `origins`, the web origins whose pages may use the gateway, such as `https://app.example`.

`[limits]`, `[broker_limits]`
: how much of a broker the clients of one address may use, and all clients together (`gapless.security.limits`). A
  network with users has these tables in the users' file.

`[protocol]`, `[runtime]`
: optional. `gapless protocols NAME` lists a protocol's options, `gapless.runtime.settings` the runtime's.

Brokers compare a *fingerprint* of all settings that must be the same everywhere, and refuse a broker with another file.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from math import inf, isfinite
from pathlib import Path
from typing import Any

import msgspec

from gapless.errors import ConfigError, OverlayError, ProtocolError
from gapless.overlay import Overlay, make_overlay
from gapless.protocol import ProtocolSpec, check_overlay, convert_options
from gapless.registry import find_protocol
from gapless.runtime.access import Access
from gapless.runtime.address import split_address
from gapless.runtime.settings import RuntimeSettings
from gapless.security.credentials import Credentials
from gapless.security.limits import BrokerLimits, Limits
from gapless.storage.interface import Sync
from gapless.toml_file import check_keys, convert, hint, parse_toml, read_text, rows_of

__all__ = [
    "AuditLogEntry",
    "BrokerEntry",
    "HttpEntry",
    "NetworkConfig",
    "ProtocolEntry",
    "SecurityEntry",
    "StorageEntry",
    "TreeEntry",
    "load_network",
    "parse_network",
    "with_data_near",
]


class TreeEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[network]`: the name, the shape and f."""

    name: str = "gapless"
    f: int = 1
    edges: tuple[tuple[str, str], ...] = ()


class BrokerEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `[[brokers]]`: the name, addresses and data directory of a broker."""

    name: str
    address: str
    listen: str = ""
    http: str = ""
    data: str = ""


class StorageEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[storage]`: how disks are synced."""

    sync: Sync = "always"
    interval_ms: float = 100.0


class ProtocolEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[protocol]`: the protocol and its options."""

    name: str = "gapless"
    options: dict[str, Any] = {}


class SecurityEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[security]`: the files of certificates and users."""

    authority: str
    certificate: str
    key: str
    users: str = ""

    def files(self, broker: str) -> dict[str, str]:
        """Return the paths of one broker's security files, by kind."""
        named = {kind: getattr(self, kind).replace("{name}", broker) for kind in self.__struct_fields__}
        return {kind: path for kind, path in named.items() if path}

    def access(self, broker: str) -> Access:
        """Return the settings with which the broker dials others."""
        files = self.files(broker)
        shown = Credentials(authority=files["authority"], certificate=files["certificate"], key=files["key"])
        return Access(is_tls=True, credentials=shown)

    def near(self, directory: Path) -> "SecurityEntry":
        """Return a copy of the table with paths relative to this directory."""
        return SecurityEntry(*(str(directory / path) if path else "" for path in msgspec.structs.astuple(self)))


class AuditLogEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[audit_log]`: where audit logs are written."""

    file: str = ""

    def file_of(self, broker: str) -> str:
        """Return the path of one broker's audit log, or an empty string if there is none."""
        return self.file.replace("{name}", broker)


class HttpEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[http]`: what brokers offer over HTTP."""

    gateway: bool = True
    console: bool = True
    origins: tuple[str, ...] = ()


class NetworkConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The contents of a network file, validated."""

    brokers: tuple[BrokerEntry, ...]
    network: TreeEntry = TreeEntry()
    protocol: ProtocolEntry = ProtocolEntry()
    runtime: RuntimeSettings = RuntimeSettings()
    security: SecurityEntry | None = None
    storage: StorageEntry = StorageEntry()
    audit_log: AuditLogEntry = AuditLogEntry()
    http: HttpEntry = HttpEntry()
    limits: Limits = Limits()
    broker_limits: BrokerLimits = BrokerLimits()

    @cached_property
    def overlay(self) -> Overlay:
        """Return the tree of brokers, or a graph if there are more links."""
        return make_overlay([broker.name for broker in self.brokers], self.network.edges)

    @cached_property
    def spec(self) -> ProtocolSpec:
        """Return the specification of the protocol."""
        return find_protocol(self.protocol.name)

    @cached_property
    def options(self) -> msgspec.Struct:
        """Return the options of the protocol."""
        return convert_options(self.spec, self.protocol.options)

    @cached_property
    def addresses(self) -> dict[str, str]:
        """Return the address of each broker."""
        return {broker.name: broker.address for broker in self.brokers}

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of all settings that must be equal on all hosts."""
        runtime = msgspec.structs.asdict(self.runtime)
        same = [self.network, self.protocol.name, self.options, self.addresses, runtime]
        text = msgspec.json.encode(same, order="deterministic")
        return blake2b(text, digest_size=8).hexdigest()

    @cached_property
    def identity(self) -> str:
        """Return the network's name and shape as text. Data directories contain it, so that foreign data is
        detected.
        """
        text = msgspec.json.encode([sorted(self.addresses), sorted(map(sorted, self.network.edges))])
        return f"{self.network.name}-{blake2b(text, digest_size=4).hexdigest()}"

    def broker(self, name: str) -> BrokerEntry:
        """Return the entry of a broker."""
        for entry in self.brokers:
            if entry.name == name:
                return entry
        raise ConfigError(f"there is no broker {name!r}; {hint(name, [entry.name for entry in self.brokers])}")

    @property
    def url(self) -> str:
        """Return the URL that clients use."""
        return self.scheme + ",".join(self.addresses.values())

    @property
    def scheme(self) -> str:
        """Return the URL scheme."""
        return "gapless://" if self.security is None else "gapless+tls://"

    def to_toml(self) -> str:
        """Return the configuration as the text of a network file."""
        lines = ["[network]", f"name = {_toml(self.network.name)}", f"f = {self.network.f}"]
        if self.network.edges:
            lines.append(f"edges = {_toml(self.network.edges)}")
        for entry in self.brokers:
            fields = {key: value for key, value in msgspec.structs.asdict(entry).items() if value}
            lines += ["", "[[brokers]]", *(f"{key} = {_toml(value)}" for key, value in fields.items())]
        lines += ["", "[protocol]", f"name = {_toml(self.protocol.name)}"]
        if self.protocol.options:
            lines += ["", "[protocol.options]", *(f"{k} = {_toml(v)}" for k, v in self.protocol.options.items())]
        usual = msgspec.structs.asdict(RuntimeSettings())
        unusual = {k: v for k, v in msgspec.structs.asdict(self.runtime).items() if v != usual[k]}
        if unusual:
            lines += ["", "[runtime]", *(f"{key} = {_toml(value)}" for key, value in unusual.items())]
        if self.storage != StorageEntry():
            lines += ["", "[storage]", f"sync = {_toml(self.storage.sync)}"]
            lines.append(f"interval_ms = {_toml(self.storage.interval_ms)}")
        for place, limits in (("limits", self.limits), ("broker_limits", self.broker_limits)):
            changed = {
                key: value
                for key, value in msgspec.structs.asdict(limits).items()
                if value != getattr(type(limits)(), key)
            }
            if changed:
                lines += ["", f"[{place}]", *(f"{key} = {_toml(value)}" for key, value in changed.items())]
        if self.security is not None:
            files = {key: path for key, path in msgspec.structs.asdict(self.security).items() if path}
            lines += ["", "[security]", *(f"{key} = {_toml(path)}" for key, path in files.items())]
        if self.http != HttpEntry():
            fields = msgspec.structs.asdict(self.http)
            lines += ["", "[http]", *(f"{key} = {_toml(value)}" for key, value in fields.items())]
        if self.audit_log.file:
            lines += ["", "[audit_log]", f"file = {_toml(self.audit_log.file)}"]
        return "\n".join(lines) + "\n"


EVERYWHERE = ("0.0.0.0", "::")
"""Addresses that mean every interface; several hosts can use the same one."""

_TABLES: dict[str, type[msgspec.Struct]] = {
    "": NetworkConfig,
    "audit_log": AuditLogEntry,
    "http": HttpEntry,
    "network": TreeEntry,
    "protocol": ProtocolEntry,
    "runtime": RuntimeSettings,
    "security": SecurityEntry,
    "storage": StorageEntry,
    "limits": Limits,
    "broker_limits": BrokerLimits,
}


def load_network(path: str | Path) -> NetworkConfig:
    """Read a network file, and return its validated contents."""
    try:
        config = parse_network(read_text(path, ConfigError))
        if config.security is not None:
            near = config.security.near(Path(path).absolute().parent)
            config = msgspec.structs.replace(config, security=near)
        if config.audit_log.file:
            file = str(Path(path).absolute().parent / config.audit_log.file)
            config = msgspec.structs.replace(config, audit_log=AuditLogEntry(file))
        return with_data_near(config, Path(path).absolute().parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def with_data_near(config: NetworkConfig, directory: Path) -> NetworkConfig:
    """Return a copy of the configuration with data directories relative to this directory."""
    if not any(entry.data for entry in config.brokers):
        return config
    entries = [msgspec.structs.replace(entry, data=str(directory / entry.data)) for entry in config.brokers]
    return msgspec.structs.replace(config, brokers=tuple(entries))


def parse_network(text: str) -> NetworkConfig:
    """Parse the text of a network file, and return its validated contents."""
    document = parse_toml(text, ConfigError)
    for place, table, struct in _tables_of(document):
        check_keys(place, table, struct.__struct_fields__, ConfigError)
    config = convert(document, NetworkConfig, ConfigError)
    check_network(config)
    return config


def _tables_of(document: Mapping[str, Any]) -> Iterator[tuple[str, object, type[msgspec.Struct]]]:
    for place, struct in _TABLES.items():
        yield place, document.get(place) if place else document, struct
    for number, row in enumerate(rows_of(document, "brokers", ConfigError)):
        yield f"brokers[{number}]", row, BrokerEntry


def check_network(config: NetworkConfig) -> None:
    """Raise a `ConfigError` that names the first invalid setting, if there is one."""
    if config.network.f < 0:
        raise ConfigError(f"network.f: {config.network.f} is negative; 0 means that no broker may fail")
    most = max(1, len(config.brokers) - 1)  # the default f is 1, even with only one broker
    if config.network.f > most:
        raise ConfigError(
            f"network.f: {config.network.f} of {len(config.brokers)} brokers cannot fail, because one has to remain; "
            f"the maximum is {len(config.brokers) - 1}"
        )
    _check_data(config)
    _check_origins(config.http.origins)
    taken: dict[str, str] = {}
    for number, entry in enumerate(config.brokers):
        for key in ("address", "listen", "http"):
            address = getattr(entry, key)
            if address or key == "address":
                _check_address(f"brokers[{number}].{key}", address)
        for address in {entry.address, entry.http} - {""}:
            host, port = split_address(address)
            if address in taken and port != 0 and host not in EVERYWHERE:
                raise ConfigError(f"brokers[{number}]: {address} is already used by {taken[address]!r}")
            taken[address] = entry.name
    try:
        config.overlay.root  # noqa: B018 - made when asked for
    except OverlayError as error:
        raise ConfigError(f"network: {error}") from None
    for key, value in config.protocol.options.items():
        if isinstance(value, float) and not isfinite(value):
            raise ConfigError(f"protocol.options.{key}: {value} is out of range")
    try:
        check_overlay(config.spec, config.overlay, config.network.f, config.options)
    except ProtocolError as error:
        raise ConfigError(f"protocol: {error}") from None
    has_users = config.security is not None and bool(config.security.users)
    if has_users and (config.limits, config.broker_limits) != (Limits(), BrokerLimits()):
        raise ConfigError("limits: this network has users; set [limits] and [broker_limits] in the users' file")
    for place, limits in (("limits", config.limits), ("broker_limits", config.broker_limits)):
        if limits.names != Limits().names:
            raise ConfigError(f"{place}.names: this limit applies to users, and this network has none; leave it out")
    if has_users and config.spec.judging is None:
        raise ConfigError(
            f"security.users: protocol {config.spec.name!r} does not describe the requests of its clients, so they "
            "cannot be checked; leave it out, or choose protocol 'gapless'"
        )


def _check_origins(origins: tuple[str, ...]) -> None:
    for number, origin in enumerate(origins):
        if not re.fullmatch(r"https?://[^/\s*]+", origin):
            raise ConfigError(
                f"http.origins[{number}]: {origin!r} is not a web origin; write https://host or https://host:port"
            )


def _check_data(config: NetworkConfig) -> None:
    """Check that every broker has a data directory of its own, or that none has one."""
    used: dict[str, str] = {}
    for number, entry in enumerate(config.brokers):
        if bool(entry.data) != bool(config.brokers[0].data):
            raise ConfigError(f"brokers[{number}].data: give a directory to every broker, or to none")
        if "\0" in entry.data:
            raise ConfigError(f"brokers[{number}].data: {entry.data!r} is not a directory")
        if entry.data in used:
            raise ConfigError(f"brokers[{number}].data: {entry.data} is already used by {used[entry.data]!r}")
        if entry.data:
            used[entry.data] = entry.name
    if used and not config.spec.keeps_disks:
        raise ConfigError(f"brokers[0].data: protocol {config.protocol.name!r} does not use disks; leave it out")
    if not 0 < config.storage.interval_ms < inf:
        raise ConfigError(f"storage.interval_ms: {config.storage.interval_ms:g} is invalid; it must be positive")


def _check_address(place: str, address: str) -> None:
    try:
        split_address(address)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None


def _toml(value: Any) -> str:
    """Return a value as TOML, in which strings, numbers, booleans and lists of them look as in JSON."""
    return msgspec.json.encode(value).decode()

"""The audit log: logins, refusals and actions of operators as JSON lines that cannot be forged."""

import asyncio
import io
import json
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gapless.client import connect
from gapless.errors import ConfigError, DeniedError
from gapless.overlay import chain
from gapless.runtime.access import Access
from gapless.runtime.audit_log import UNAUTHENTICATED_PER_S, Actor, AuditLog
from gapless.runtime.event_loop import run
from gapless.runtime.logs import _Json, _Lines, logger_of
from gapless.runtime.network_file import AuditLogEntry, load_network
from gapless.runtime.probe import ask_for_report, ask_to_end, ask_to_forget
from gapless.runtime.wire import Hello
from gapless.security.identity import Identity

from .logged import logged
from .secure import Secure, secure

LOGGER = logger_of("b0")
ANN = Actor(Identity("user", "ann", "token"), "10.0.0.7:4711")


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]


def _about(lines: list[dict[str, Any]], event: str, *keys: str) -> list[tuple[Any, ...]]:
    return [tuple(line[key] for key in keys) for line in lines if line["event"] == event]


def test_logins_refusals_and_operator_actions_are_logged_with_user_and_address(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"ann": {"subscribe": ["topic = 'orders'"], "named": True, "history": True, "status": True}}
        audit = AuditLogEntry(str(tmp_path / "audit" / "{name}.jsonl"))
        async with secure(1, tmp_path, f=0, users=users, audit_log=audit) as network:
            admin = Access.to(network.at("b0"), network.admin)
            with logged() as log:
                await _use(network, admin)
            acts = [vars(record) for record in log.records if vars(record).get("event") == "client.ended"]
        lines = _lines(tmp_path / "audit" / "b0.jsonl")
        assert all(line["broker"] == "b0" and line["time"].endswith("Z") for line in lines)
        logins = _about(lines, "login", "role", "who", "proof")
        assert {("client", "user ann", "token"), ("probe", "user admin", "certificate")} <= set(logins)
        [(peer, reason)] = _about(lines, "login.refused", "peer", "reason")
        assert (peer, reason) == ("probe", "the token is invalid or revoked")
        [(who, client, address)] = _about(lines, "client.ended", "who", "peer", "address")
        assert who == "user admin"
        assert client.startswith("ann:desk-")
        assert address.startswith("127.0.0.1:")
        assert [(act["who"], act["peer"], act["address"]) for act in acts] == [(who, client, address)]
        assert _about(lines, "subscription.ended", "who", "subscription") == [("user ann", "orders")]
        assert _about(lines, "call.denied", "code") == [("denied",)]
        assert network.tokens["ann"] not in (tmp_path / "audit" / "b0.jsonl").read_text(encoding="ascii")

    run(main())


async def _use(network: Secure, admin: Access) -> None:
    address = network.config.addresses["b0"]
    with pytest.raises(DeniedError):
        await connect(network.at("b0"), credentials=network.with_token("ann:wrong"))
    async with connect(network.at("b0"), name="desk", credentials=network.by_token("ann")) as client:
        await client.durable("orders", "topic = 'orders'")
        await client.admin.delete("orders")
        with pytest.raises(DeniedError):
            await client.subscribe("TRUE")
        assert (await ask_to_end(address, client.name, access=admin))["ended"]


def test_declaring_a_broker_lost_is_in_the_log_and_in_the_audit_log(tmp_path: Path) -> None:
    async def main() -> None:
        audit = AuditLogEntry(str(tmp_path / "{name}.jsonl"))
        async with secure(chain(2), tmp_path, users={}, audit_log=audit) as network:
            await network.crash("b1")
            with logged() as log:
                admin = Access.to(network.at("b0"), network.admin)
                assert (await ask_to_forget(network.config.addresses["b0"], "b1", access=admin))["forgotten"]
            assert (
                'event=broker.forgotten  peer=b1  who="user admin"  proof=certificate  address=127.0.0.1:' in log.text
            )
            lines = _lines(tmp_path / "b0.jsonl")
            assert _about(lines, "broker.forgotten", "who", "peer") == [("user admin", "b1")]
            await network.reload_one("b0")
            assert _about(_lines(tmp_path / "b0.jsonl"), "security.reloaded", "because") == [("the test says so",)]

    run(main())


def test_clock_checks_of_brokers_are_no_logins(tmp_path: Path) -> None:
    async def main() -> None:
        audit = AuditLogEntry(str(tmp_path / "{name}.jsonl"))
        async with secure(chain(2), tmp_path, users={}, audit_log=audit) as network:
            for _ in range(3):
                await network.brokers["b1"].clocks.compare()
            assert network.brokers["b1"].clocks.differences.keys() == {"b0"}
            await ask_for_report(network.config.addresses["b0"], access=Access.to(network.at("b0"), network.admin))
            lines = _lines(tmp_path / "b0.jsonl")
            probes = [line["who"] for line in lines if line["event"] == "login" and line["role"] == "probe"]
            assert probes == ["user admin"]

    run(main())


def test_a_file_that_was_moved_away_is_followed_by_a_new_one_for_the_broker_alone(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    file.touch(mode=0o644)
    file.chmod(0o644)
    audit = AuditLog(str(file), "b0", LOGGER)
    audit.login(Hello(role="client", name="ann:1"), ANN)
    file.rename(tmp_path / "audit.jsonl.1")
    audit.login(Hello(role="client", name="ann:2"), ANN)
    audit.close()
    assert _about(_lines(tmp_path / "audit.jsonl.1"), "login", "peer") == [("ann:1",)]
    assert _about(_lines(file), "login", "peer") == [("ann:2",)]
    assert [each.stat().st_mode & 0o777 for each in (file, tmp_path / "audit.jsonl.1")] == [0o600, 0o600]


def test_refused_connections_write_a_bounded_number_of_lines_and_the_rest_is_counted(tmp_path: Path) -> None:
    now = 0.0
    audit = AuditLog(str(tmp_path / "audit.jsonl"), "b0", LOGGER, clock=lambda: now)
    for number in range(1_000):
        audit.refused("login.refused", "the token is invalid", {"peer": f"guess{number}"})
    audit.login(Hello(role="client", name="ann:1"), ANN)  # is written regardless of unauthenticated peers
    now = 1.0
    audit.refused("login.refused", "the token is invalid", {"peer": "last"})
    lines = _lines(tmp_path / "audit.jsonl")
    assert len(_about(lines, "login", "peer")) == 1
    assert len(_about(lines, "login.refused", "peer")) == UNAUTHENTICATED_PER_S + 1
    assert _about(lines, "refusals.left_out", "count") == [(1_000 - UNAUTHENTICATED_PER_S,)]
    audit.close()


def test_a_full_disk_does_not_stop_the_broker_and_is_counted() -> None:
    audit = AuditLog("/dev/full", "b0", LOGGER)
    with logged() as log:
        for _ in range(3):
            audit.login(Hello(role="client", name="ann:1"), ANN)
    assert audit.failures == 3
    assert log.text.count("cannot write the audit log /dev/full: No space left on device") == 1
    audit.close()


def test_a_file_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"audit_log.file: .*: cannot be written: Is a directory"):
        AuditLog(str(tmp_path), "b0", LOGGER)


def test_the_file_counts_from_the_networks_file_and_is_no_part_of_what_brokers_compare(tmp_path: Path) -> None:
    text = "[network]\nf = 0\n[[brokers]]\nname = 'b0'\naddress = '127.0.0.1:7400'\n"
    (tmp_path / "network.toml").write_text(text, encoding="utf-8")
    without = load_network(tmp_path / "network.toml")
    (tmp_path / "network.toml").write_text(f"{text}[audit_log]\nfile = 'audit/{{name}}.jsonl'\n", encoding="utf-8")
    config = load_network(tmp_path / "network.toml")
    assert config.audit_log.file_of("b0") == str(tmp_path / "audit" / "b0.jsonl")
    assert config.fingerprint == without.fingerprint
    assert msgspec.structs.replace(config, audit_log=without.audit_log) == without


FORGED = "eve\x1b]0;x\x07\x9b31m\u202e\n2026-01-01 info b0: login  who=user admin"


def test_foreign_text_forges_no_line_and_no_fact(tmp_path: Path) -> None:
    stream = io.StringIO()
    logger = logging.getLogger("gapless.test_foreign_text")
    logger.propagate = False
    handlers = [logging.StreamHandler(stream), logging.StreamHandler(stream)]
    for handler, style in zip(handlers, (_Lines(), _Json()), strict=True):
        handler.setFormatter(style)
        logger.addHandler(handler)
    logger.warning(FORGED, extra={"peer": FORGED})
    logger.warning("refused", extra={"peer": 'a  who=user admin  x="'})
    audit = AuditLog(str(tmp_path / "audit.jsonl"), "b0", LOGGER)
    audit.refused("login.refused", FORGED, {"peer": FORGED})
    audit.close()
    written = stream.getvalue() + (tmp_path / "audit.jsonl").read_text(encoding="ascii")
    lines = written.splitlines()
    assert len(lines) == 5
    assert all(line.isprintable() for line in lines)
    assert lines[2].endswith('refused  peer="a  who=user admin  x=\\""')
    assert json.loads(lines[4])["peer"] == FORGED


def test_without_a_file_nothing_is_written(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={}) as network:
            before = sorted(tmp_path.rglob("*"))
            async with connect(network.at("b0"), credentials=network.admin):
                pass
            await asyncio.sleep(0)
            assert sorted(tmp_path.rglob("*")) == before

    run(main())

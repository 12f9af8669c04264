"""Tickets: only a broker of the network can issue one, and it is valid for one client, filter and position."""

from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from gapless.security.certificates import Authority
from gapless.security.identity import certificate_uri
from gapless.security.tickets import TicketKeys, Tickets

BROKERS = frozenset({"b0", "b1"})
NOBODY: frozenset[str] = frozenset()


def keys(place: Path, authority: Authority, kind: str, name: str) -> TicketKeys:
    files = {each: place / f"{kind}-{name}-{each}.pem" for each in ("authority", "certificate", "key")}
    authority.write(files["authority"], place / "unused.key")
    uri = certificate_uri("shop", kind, name)  # type: ignore[arg-type]
    authority.issue(files["certificate"], files["key"], uri=uri, name=name, is_server=kind == "broker")
    return TicketKeys(files)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tickets")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.make("shop")


@pytest.fixture(scope="module")
def brokers(place: Path, authority: Authority) -> list[Tickets]:
    return [Tickets("shop", BROKERS, keys(place, authority, "broker", name)) for name in ("b0", "b1")]


def test_another_broker_reads_what_one_has_issued(brokers: list[Tickets]) -> None:
    ticket = brokers[0].issue("ann:c", "price < 10", 100)
    for broker in brokers:
        assert broker.read(ticket, "ann:c", 100, NOBODY) == "price < 10"
        assert broker.read(ticket, "ann:c", 5_000, NOBODY) == "price < 10"


def test_a_ticket_is_for_one_client_and_from_its_position_on(brokers: list[Tickets]) -> None:
    ticket = brokers[0].issue("ann:c", "price < 10", 100)
    assert brokers[1].read(ticket, "ann:d", 100, NOBODY) is None
    assert brokers[1].read(ticket, "ann:c", 99, NOBODY) is None


@pytest.mark.parametrize("change", ["filter", "position", "signature", "chain"])
def test_a_changed_ticket_grants_nothing(brokers: list[Tickets], change: str) -> None:
    grant, signature, chain = msgspec.msgpack.decode(brokers[0].issue("ann:c", "price < 10", 100))
    inner = msgspec.msgpack.decode(grant)
    if change == "filter":
        inner[3] = "TRUE"
    elif change == "position":
        inner[4] = 0
    elif change == "signature":
        signature = signature[:-1] + bytes([signature[-1] ^ 1])
    else:
        chain = []
    changed = msgspec.msgpack.encode([msgspec.msgpack.encode(inner), signature, chain])
    assert brokers[1].read(changed, "ann:c", 100, NOBODY) is None


@pytest.mark.parametrize("ticket", [b"", b"\xc0", b"\x93\xc4\x00\xc4\x00\x90", b"\xff" * 100])
def test_rubbish_grants_nothing(brokers: list[Tickets], ticket: bytes) -> None:
    assert brokers[0].read(ticket, "ann:c", 100, NOBODY) is None


def test_a_user_cannot_issue_one_with_its_own_certificate(
    place: Path, authority: Authority, brokers: list[Tickets]
) -> None:
    own = keys(place, authority, "user", "ann")
    assert brokers[0].read(Tickets("shop", BROKERS, own).issue("ann:c", "TRUE", 0), "ann:c", 0, NOBODY) is None


def test_a_user_cannot_act_as_an_authority(place: Path, authority: Authority, brokers: list[Tickets]) -> None:
    """A user's certificate signs a broker's certificate and is part of its chain; brokers refuse this chain."""
    own = keys(place, authority, "user", "eve")
    assert isinstance(own.key, ec.EllipticCurvePrivateKey)

    forged = keys(place, Authority(x509.load_der_x509_certificate(own.chain[0]), own.key), "broker", "b0")
    forged.chain += own.chain
    assert brokers[0].read(Tickets("shop", BROKERS, forged).issue("ann:c", "TRUE", 0), "ann:c", 0, NOBODY) is None


def test_brokers_of_others_cannot_issue_one(place: Path, authority: Authority, brokers: list[Tickets]) -> None:
    other = place / "other"
    other.mkdir(exist_ok=True)
    foreign = keys(other, Authority.make("another"), "broker", "b0")
    unknown = keys(place, authority, "broker", "b9")
    for keys_ in (foreign, unknown):
        ticket = Tickets("shop", BROKERS, keys_).issue("ann:c", "TRUE", 0)
        assert brokers[1].read(ticket, "ann:c", 0, NOBODY) is None


def test_tokens_issued_by_a_revoked_broker_are_invalid(brokers: list[Tickets]) -> None:
    ticket = brokers[0].issue("ann:c", "TRUE", 0)
    serial = f"{_serial(ticket):X}"
    assert brokers[1].read(ticket, "ann:c", 0, frozenset({serial})) is None


def _serial(ticket: bytes) -> int:

    return x509.load_der_x509_certificate(msgspec.msgpack.decode(ticket)[2][0]).serial_number

"""The registry finds protocols by name, and loads only the requested one."""

from importlib.metadata import EntryPoint

import pytest

from gapless import registry
from gapless.errors import ProtocolError
from gapless.registry import find_protocol, protocol_names, protocols


def test_ours_and_those_of_the_papers_are_found() -> None:
    assert protocol_names() == ["delta", "epidemic", "gapless", "gryphon", "locaps", "srpt", "vcube"]
    assert {name: spec.name for name, spec in protocols().items()} == {name: name for name in protocol_names()}
    assert find_protocol("srpt").broker.__module__ == "gapless_papers.protocols.srpt.broker"


def test_an_unknown_name_is_an_error_that_lists_the_others() -> None:
    with pytest.raises(ProtocolError, match="there is no protocol 'gapples'; choose one of: delta, epidemic, gapless,"):
        find_protocol("gapples")


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("nowhere_at_all:PROTOCOL", "protocol 'theirs' cannot be loaded from nowhere_at_all:PROTOCOL: No module named"),
        ("gapless.overlay:PROTOCOL", "has no attribute 'PROTOCOL'; reinstall the package that has it"),
        ("gapless.overlay:Overlay", "gapless.overlay:Overlay is not a ProtocolSpec with the name 'theirs'"),
        ("gapless_papers.protocols.srpt:PROTOCOL", "is not a ProtocolSpec with the name 'theirs'"),
    ],
)
def test_a_package_that_offers_something_else_is_named(
    value: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = {"theirs": EntryPoint("theirs", value, registry.GROUP)}
    monkeypatch.setattr(registry, "_offered", lambda: offered)
    with pytest.raises(ProtocolError, match=complaint):
        find_protocol("theirs")


def test_no_package_takes_one_of_our_names(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = {"gapless": EntryPoint("gapless", "nowhere_at_all:PROTOCOL", registry.GROUP)}
    monkeypatch.setattr(registry, "_offered", lambda: offered)
    assert find_protocol("gapless").name == "gapless"

"""Protocols that support only topics: other filters are invalid input, or are reported with the verdict."""

from pathlib import Path

import pytest

from tests.conftest import Cli

SCENARIO = """
[network]
shape = "chain"
brokers = {brokers}

[protocol]
name = "{protocol}"
options = {{ initial_members = {{ news = ["{member}"] }} }}

[[clients]]
name = "ann"
broker = "b0"

[[actions]]
at_ms = 0
client = "ann"
do = "subscribe"
subscription = "everything"
filter = "TRUE"

[[actions]]
at_ms = 0
client = "ann"
do = "subscribe"
subscription = "news"
filter = "topic = 'news'"

[[actions]]
at_ms = 500
client = "ann"
do = "publish"
attributes = {{ topic = "news" }}
"""


@pytest.fixture(params=["vcube", "srpt"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def write(folder: Path, protocol: str, *, brokers: int = 4, member: str = "b0") -> Path:
    file = folder / "scenario.toml"
    file.write_text(SCENARIO.format(protocol=protocol, brokers=brokers, member=member), encoding="utf-8")
    return file


def test_six_brokers_are_bad_input(cli: Cli, tmp_path: Path, protocol: str) -> None:
    ran = cli("sim", "run", write(tmp_path, protocol, brokers=6))
    assert ran.code == 64
    assert f"network: protocol '{protocol}' cannot run on this network: the number of brokers of a hypercube" in ran.err
    assert "Traceback" not in ran.err


def test_a_member_that_is_no_broker_is_bad_input(cli: Cli, tmp_path: Path, protocol: str) -> None:
    ran = cli("sim", "run", write(tmp_path, protocol, member="b9"))
    assert ran.code == 64
    assert "initial_members: there is no broker 'b9'; they are b0 … b3" in ran.err


def test_a_filter_that_is_no_topic_is_rejected_in_a_sentence(cli: Cli, tmp_path: Path, protocol: str) -> None:
    ran = cli("sim", "run", write(tmp_path, protocol), "--json")
    assert "the filter 'TRUE' is not a topic, but this protocol supports only topics; write topic = 'name'" in ran.out
    assert ran.code == 0

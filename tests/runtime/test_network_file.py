"""The network file: all features, and an error for each mistake."""

from pathlib import Path

import pytest

from gapless.errors import ConfigError
from gapless.runtime import network_file
from gapless.runtime.address import parse_url, redacted, split_address
from gapless.runtime.fleet import local_network
from gapless.runtime.network_file import load_network, parse_network

GOOD = """
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
"""


def test_a_file_has_all_settings() -> None:
    config = parse_network(GOOD)
    assert config.overlay.brokers == ("b0", "b1", "b2")
    assert config.addresses["b2"] == "broker2.example:7400"
    assert config.broker("b2").listen == "0.0.0.0:7400"
    assert (config.network.f, config.spec.name, config.runtime.suspect_ms) == (1, "gapless", 2000)
    assert config.url == "gapless://10.0.0.1:7400,10.0.0.2:7400,broker2.example:7400"


def test_the_example_in_the_documentation_is_one() -> None:
    text = (network_file.__doc__ or "").split("```toml")[1].split("```")[0]
    assert parse_network(text).network.name == "shop"


def test_written_data_is_read_unchanged() -> None:
    for config in (parse_network(GOOD), local_network(1), local_network(7)):
        again = parse_network(config.to_toml())
        assert again == config
        assert again.fingerprint == config.fingerprint


def test_the_fingerprint_is_of_what_all_must_agree_on() -> None:
    here = parse_network(GOOD)
    assert parse_network(GOOD.replace('listen = "0.0.0.0:7400"', "")).fingerprint == here.fingerprint
    for old, new in (
        ("f = 1", "f = 0"),
        ("wave_ms = 100", "wave_ms = 101"),
        ("10.0.0.2", "10.0.0.3"),
        ("2000", "3000"),
    ):
        assert parse_network(GOOD.replace(old, new)).fingerprint != here.fingerprint


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('name = "b1"', 'name = "b0"', "network: two brokers have the name 'b0'"),
        ('["b0", "b2"]', '["b0", "b1"]', "network: the edges form a cycle|network: broker 'b2' is not connected"),
        ('["b0", "b2"]]', '["b0", "b2"], ["b1", "b2"]]', "3 brokers need 2 edges to form a tree, but 3 are given"),
        ('["b0", "b2"]', '["b0", "b9"]', "names 'b9', which is not among the brokers"),
        ("f = 1", "f = -1", "network.f: -1 is negative"),
        ("f = 1", "f = 7", "network.f: 7 of 3 brokers cannot fail, because one has to remain; the maximum is 2"),
        ("f = 1", 'f = "one"', "network.f: Expected `int`, got `str`|network.f: Expected 'int', got 'str'"),
        ("suspect_ms", "suspekt_ms", "runtime.suspekt_ms: there is no such key; did you mean 'suspect_ms'"),
        ("suspect_ms = 2000", "suspect_ms = 10", "at least twice heartbeat_ms"),
        ("wave_ms", "wafe_ms", "protocol: protocol 'gapless' has no option 'wafe_ms'; did you mean 'wave_ms'"),
        ('name = "gapless"', 'name = "gaples"', "protocol: there is no protocol 'gaples'"),
        ('address = "10.0.0.2:7400"', 'address = "10.0.0.1:7400"', "brokers.1.: 10.0.0.1:7400 is already used by 'b0'"),
        ('address = "10.0.0.2:7400"', 'address = "10.0.0.2:x"', "brokers.1..address: '10.0.0.2:x' is not an address"),
        ('address = "10.0.0.2:7400"', "", "brokers.1.: needs a value for 'address'"),
        ('address = "10.0.0.2:7400"', 'address = "a\\u0000:1"', "brokers.1..address: 'a.x00:1' is not an address"),
        ('address = "10.0.0.2:7400"', f'address = "{"x" * 64}:1"', "brokers.1..address: 'x+:1' is not an address"),
        ('address = "10.0.0.2:7400"', 'address = ""', "brokers.1..address: '' is not an address; write host:port"),
        ('address = "10.0.0.2:7400"', 'address = "[::1"', r"brokers.1..address: '\[::1' is not an address"),
        ("[protocol.options]", "[protocol.options]\nretry_ms = nan", "protocol.options.retry_ms: nan is out of range"),
        ("[runtime]", "[runtime]\nhello_ms = inf", "runtime: hello_ms must be positive, but is inf"),
        ("[runtime]", "[runtime]\nhello_ms = nan", "runtime: hello_ms must be positive, but is nan"),
        ('http = ', 'htpp = ', "brokers.1..htpp: there is no such key; did you mean 'http'"),
        ("[[brokers]]", "[brokers]", "this is not TOML|write each one as a table"),
        ("[network]", "[network", "this is not TOML"),
        ("[network]", "[netwerk]", "netwerk: there is no such key; did you mean 'network'"),
    ],
)  # fmt: skip
def test_every_mistake_has_its_own_message(old: str, new: str, complaint: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError, match=complaint):
        parse_network(GOOD.replace(old, new, 1))


def test_a_protocol_that_cannot_run_on_the_tree_is_refused() -> None:
    text = GOOD.replace('name = "gapless"', 'name = "vcube"').replace("[protocol.options]\nwave_ms = 100", "")
    with pytest.raises(ConfigError, match="protocol: "):
        parse_network(text)


TWO = """
[network]
edges = [["b0", "b1"]]

[[brokers]]
name = "b0"
address = "10.0.0.1:7400"

[[brokers]]
name = "b1"
address = "10.0.0.2:7400"
"""


def test_a_file_that_lets_one_of_two_brokers_fail_is_refused_with_alternatives() -> None:
    with pytest.raises(ConfigError, match="f = 1 needs 3 brokers, but there are 2: choose a smaller f, or add brokers"):
        parse_network(TWO)
    assert parse_network(TWO.replace("[network]", "[network]\nf = 0")).network.f == 0


def test_the_file_of_a_single_broker_states_that_it_must_not_fail() -> None:
    lone = '[[brokers]]\nname = "b0"\naddress = "10.0.0.1:7400"\n'
    with pytest.raises(ConfigError, match="f = 1 needs 3 brokers, but there are 1: choose a smaller f, or add brokers"):
        parse_network(lone)
    assert parse_network(f"[network]\nf = 0\n{lone}").network.f == 0


def test_a_local_network_has_an_f_that_fits() -> None:
    assert [local_network(brokers).network.f for brokers in (1, 2, 3, 7)] == [0, 0, 1, 1]
    with pytest.raises(ConfigError, match="f = 1 needs 3 brokers, but there are 2: choose a smaller f"):
        local_network(2, f=1)


def test_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none.toml: cannot be read: No such file"):
        load_network(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("f = ", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"bad.toml: this is not TOML"):
        load_network(tmp_path / "bad.toml")
    with pytest.raises(ConfigError, match=r"there is no broker 'b7'; (the choices are: b0, b1, b2|did you mean)"):
        parse_network(GOOD).broker("b7")


@pytest.mark.parametrize(
    ("address", "parts"),
    [("host:1", ("host", 1)), ("host", ("host", 7400)), ("[::1]:8", ("::1", 8)), ("[::1]", ("::1", 7400))],
)
def test_addresses(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


def test_urls() -> None:
    assert parse_url("gapless://a:1,b:2") == ["a:1", "b:2"]
    assert parse_url("a:1, b:2") == ["a:1", "b:2"]
    for wrong in ("http://a:1", "gapless://", "gapless://a:port", "gapless://a:70000"):
        with pytest.raises(ConfigError):
            parse_url(wrong)


def test_an_address_without_a_port_gets_the_usual_one() -> None:
    assert parse_url("gapless://a,[::1],b:2") == ["a:7400", "[::1]:7400", "b:2"]


SECRET = "s3cret"


@pytest.mark.parametrize(
    "url",
    [
        f"gapless://ann:{SECRET}@127.0.0.1:7400", f"gapless+tls://ann:{SECRET}@h", f"ann:{SECRET}@h:1",
        f"gapless://ann:{SECRET},x@h:1", f"gapless://ann:{SECRET}/x@h:1", f"http://ann:{SECRET}@h:1",
        f"gapless://h:1?token={SECRET}", f"https://h:1/;token={SECRET}", f"gapless://a:1,ann:{SECRET}@h:1",
        f"gapless://ann:x?{SECRET}@h",
    ],
)  # fmt: skip
def test_no_message_shows_the_password_in_a_url(url: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_url(url)
    assert SECRET not in str(raised.value)
    assert SECRET not in redacted(url)


def test_an_address_with_a_user_is_refused_with_a_way_out() -> None:
    with pytest.raises(
        ConfigError, match=r"'…@h:1' contains a user name, but .* pass a token or a certificate as credentials"
    ):
        parse_url("gapless://ann:x@h:1")
    with pytest.raises(ConfigError, match="'…@h:1' contains a user name"):
        split_address("ann:x@h:1")

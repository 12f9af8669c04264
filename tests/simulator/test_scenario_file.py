"""Scenario files: all features, and an error for each mistake."""

from pathlib import Path

import pytest

from gapless.errors import ScenarioError
from gapless.simulator import Scenario, load_scenario, parse_scenario, run_scenario
from gapless.simulator.networks import overlay_of, settings_of

from .flooding import FLOODING

HEAD = """
[network]
shape = "binary"
depth = 3
[protocol]
name = "flooding"
"""
CLIENTS = """
[[clients]]
name = "alice"
broker = "b7"
[[clients]]
name = "bob"
broker = "b14"
join_ms = 5
"""


def action(text: str) -> str:
    return f"[[actions]]\n{text}\n"


def fault(text: str) -> str:
    return f"[[faults]]\n{text}\n"


def read(text: str) -> Scenario:
    return parse_scenario(text, protocol=FLOODING)


SUBSCRIBE = action('at_ms = 10\nclient = "bob"\ndo = "subscribe"\nsubscription = "s"\nfilter = "TRUE"')
ADVERTISE = action('at_ms = 10\nclient = "bob"\ndo = "advertise"\nadvertisement = "a"\nfilter = "TRUE"')
CRASH = fault('at_ms = 20\nkind = "crash"\nbroker = "b1"')
CUT = fault('at_ms = 20\nkind = "cut"\nbetween = ["b0", "b1"]')

MISTAKES = {
    "no TOML": ("x = = 1", "this is not TOML: Invalid value"),
    "missing table": ('[protocol]\nname = "flooding"', "needs a value for 'network'"),
    "unknown table": (HEAD + "[[client]]", "client: there is no such key; did you mean 'clients'?"),
    "unknown key": (HEAD + "[run]\nseeds = 3", "run.seeds: there is no such key; did you mean 'seed'?"),
    "unknown key, no guess": (
        HEAD + "[run]\nxyz = 3",
        "run.xyz: there is no such key; the choices are: seed, settle_ms",
    ),
    "unknown key in a row": (
        HEAD + CLIENTS + action('at_ms = 1\nclient = "alice"\ndo = "publish"\nattribute = {}'),
        "actions[0].attribute: there is no such key; did you mean 'attributes'?",
    ),
    "wrong type": (HEAD + '[run]\nseed = "one"', "run.seed: Expected 'int', got 'str'"),
    "missing key": (
        HEAD + CLIENTS + action('at_ms = 1\nclient = "alice"\ndo = "publish"'),
        "actions[0]: needs a value for 'attributes'",
    ),
    "unknown act": (
        HEAD + action('do = "subscibe"'),
        "actions[0].do: there is no 'subscibe'; did you mean 'subscribe'?",
    ),
    "no act": (HEAD + action("at_ms = 1"), "actions[0]: needs a 'do': one of subscribe, unsubscribe"),
    "no kind of fault": (HEAD + fault("at_ms = 1"), "faults[0]: needs a 'kind': one of crash, restart"),
    "rows that are none": ("faults = 3\n" + HEAD, "faults: write each one as a table that starts with [[faults]]"),
    "shape without its number": (
        '[network]\nshape = "chain"\n[protocol]\nname = "flooding"',
        "network: shape 'chain' needs 'brokers'",
    ),
    "shape with another's number": (
        '[network]\nshape = "chain"\nbrokers = 3\ndepth = 2\n[protocol]\nname = "flooding"',
        "network: shape 'chain' has no 'depth'; it takes brokers",
    ),
    "no tree": (
        '[network]\nshape = "edges"\nedges = [["a", "b"], ["c", "d"]]\n[protocol]\nname = "flooding"',
        "network: 4 brokers need 3 edges to form a tree, but 2 are given",
    ),
    "unknown shape": (
        '[network]\nshape = "torus"\n[protocol]\nname = "flooding"',
        "network.shape: Invalid enum value 'torus'",
    ),
    "a ring for a protocol that needs a tree": (
        '[network]\nshape = "ring"\nbrokers = 4\n[protocol]\nname = "flooding"',
        "network: protocol 'flooding' cannot run on this network: it supports only trees: 4 brokers need 3 edges",
    ),
    "bypasses for a protocol that needs a tree": (
        '[network]\nshape = "chain"\nbrokers = 4\nbypass = 1\n[protocol]\nname = "flooding"',
        "network: protocol 'flooding' cannot run on this network: it supports only trees: 4 brokers need 3 edges",
    ),
    "bypasses in a ring": (
        '[network]\nshape = "ring"\nbrokers = 4\nbypass = 1\n[protocol]\nname = "flooding"',
        "network: 'bypass' needs a tree, and this graph has cycles; leave it out",
    ),
    "odd graph": (
        '[network]\nshape = "regular"\nbrokers = 5\ndegree = 3\n[protocol]\nname = "flooding"',
        "network: 5 brokers cannot have 3 neighbours each; make one of the numbers even",
    ),
    "negative f": (HEAD.replace("depth = 3", "depth = 3\nf = -1"), "network.f: -1 is negative"),
    "no probability": (HEAD.replace("depth = 3", "depth = 3\nloss = 2"), "network.loss: 2 is not a probability"),
    "does not cope": (
        HEAD.replace("depth = 3", "depth = 3\nloss = 0.1"),
        "network.loss: protocol 'flooding' does not claim to tolerate loss",
    ),
    "latency without bounds": (
        HEAD + '[network.latency]\nmodel = "jitter"\nmin_ms = 1',
        "network.latency: model 'jitter' needs 'max_ms'",
    ),
    "latency with another's number": (
        HEAD + '[network.latency]\nmodel = "jitter"\nmin_ms = 1\nmax_ms = 2\nms = 3',
        "network.latency.ms: model 'jitter' has no 'ms'; it takes min_ms and max_ms",
    ),
    "bounds in the wrong order": (
        HEAD + "[network.detection]\nmin_ms = 9\nmax_ms = 3",
        "network.detection.max_ms: 3 is less than min_ms, 9",
    ),
    "no such link": (
        HEAD + '[network.latency]\nlinks = { "b0-b9" = 3 }',
        "network.latency.links: 'b0-b9' is not a link of the tree",
    ),
    "unknown option": (
        HEAD + "[protocol.options]\ntik_ms = 3",
        "protocol.options: protocol 'flooding' has no option 'tik_ms'; did you mean 'tick_ms'?",
    ),
    "wrong option": (
        HEAD + '[protocol.options]\ntick_ms = "x"',
        "protocol.options: options of protocol 'flooding': Expected `int`",
    ),
    "two clients of a name": (HEAD + CLIENTS + CLIENTS, "clients[2].name: there are two clients 'alice'; rename one"),
    "client called as a broker": (
        HEAD + '[[clients]]\nname = "b3"\nbroker = "b1"',
        "clients[0].name: 'b3' is a broker",
    ),
    "unknown broker of a client": (
        HEAD + '[[clients]]\nname = "x"\nbroker = "b15"',
        "clients[0].broker: there is no broker 'b15' (b0 … b14)",
    ),
    "unknown client": (
        HEAD + CLIENTS + action('at_ms = 1\nclient = "carol"\ndo = "leave"'),
        "actions[0].client: there is no client 'carol' (alice, bob)",
    ),
    "before joining": (
        HEAD + CLIENTS + action('at_ms = 1\nclient = "bob"\ndo = "leave"'),
        "actions[0].at_ms: 'bob' acts at 1 ms, but joins at 5 ms",
    ),
    "after leaving": (
        HEAD + CLIENTS + SUBSCRIBE + action('at_ms = 7\nclient = "bob"\ndo = "leave"'),
        "actions[0].at_ms: 'bob' acts at 10 ms, but left at 7 ms",
    ),
    "negative time": (
        HEAD + CLIENTS + action('at_ms = -1\nclient = "bob"\ndo = "leave"'),
        "actions[0].at_ms: -1 is negative",
    ),
    "bad filter": (HEAD + CLIENTS + SUBSCRIBE.replace("TRUE", "price <"), "actions[0].filter: "),
    "bad filter of an advertisement": (HEAD + CLIENTS + ADVERTISE.replace("TRUE", "AND"), "actions[0].filter: "),
    "two subscriptions of a name": (
        HEAD + CLIENTS + SUBSCRIBE + SUBSCRIBE,
        "actions[1].subscription: two have the name 's'",
    ),
    "two advertisements of a name": (
        HEAD + CLIENTS + ADVERTISE + ADVERTISE,
        "actions[1].advertisement: two have the name 'a'",
    ),
    "unsubscribe of nothing": (
        HEAD + CLIENTS + action('at_ms = 9\nclient = "bob"\ndo = "unsubscribe"\nsubscription = "s"'),
        "actions[0].subscription: 'bob' has no subscription 's'",
    ),
    "unsubscribe of another's": (
        HEAD + CLIENTS + SUBSCRIBE + action('at_ms = 19\nclient = "alice"\ndo = "unsubscribe"\nsubscription = "s"'),
        "actions[1].subscription: 'alice' has no subscription 's'",
    ),
    "unsubscribe before subscribe": (
        HEAD + CLIENTS + SUBSCRIBE + action('at_ms = 9\nclient = "bob"\ndo = "unsubscribe"\nsubscription = "s"'),
        "actions[1].at_ms: 's' ends at 9 ms, but starts at 10 ms",
    ),
    "unadvertise twice": (
        HEAD + CLIENTS + ADVERTISE + action('at_ms = 19\nclient = "bob"\ndo = "unadvertise"\nadvertisement = "a"') * 2,
        "actions[2].advertisement: 'a' has already ended at 19 ms",
    ),
    "reply to nothing": (
        HEAD + CLIENTS + '[[replies]]\nclient = "bob"\nsubscription = "s"\nattributes = {}',
        "replies[0].subscription: 'bob' never subscribes as 's'",
    ),
    "reply by nobody": (
        HEAD + CLIENTS + '[[replies]]\nclient = "x"\nattributes = {}',
        "replies[0].client: there is no client 'x'",
    ),
    "reply more than always": (
        HEAD + CLIENTS + '[[replies]]\nclient = "bob"\nprobability = 1.5\nattributes = {}',
        "replies[0].probability: 1.5 is not a probability; choose a number from 0 to 1",
    ),
    "unknown broker of a fault": (
        HEAD + CRASH + CRASH + fault('at_ms = 1\nkind = "crash"\nbroker = "b17"'),
        "faults[2].broker: there is no broker 'b17' (b0 … b14)",
    ),
    "cut of nobody": (HEAD + CLIENTS + CUT.replace("b1", "x"), "faults[0].between: there is no broker or client 'x'"),
    "cut of two clients": (
        HEAD + CLIENTS + CUT.replace("b0", "alice").replace("b1", "bob"),
        "faults[0].between: 'alice' and 'bob' have no connection",
    ),
    "suspicion of itself": (
        HEAD + fault('at_ms = 1\nkind = "suspect"\nobserver = "b0"\ntarget = "b0"'),
        "faults[0].observer: 'b0' and 'b0' have no connection",
    ),
    "restart before the crash": (
        HEAD + CRASH + fault('at_ms = 10\nkind = "restart"\nbroker = "b1"'),
        "faults[1].at_ms: b1 restarts at 10 ms, but only crashes at 20 ms",
    ),
    "restart without a crash": (
        HEAD + fault('at_ms = 9\nkind = "restart"\nbroker = "b1"'),
        "faults[0].at_ms: b1 restarts at 9 ms, but never crashes before",
    ),
    "crash of the dead": (
        HEAD + CRASH + CRASH.replace("20", "30"),
        "faults[1].at_ms: b1 crashes at 30 ms, but did so at 20 ms",
    ),
    "heal before the cut": (
        HEAD + CUT + fault('at_ms = 10\nkind = "heal"\nbetween = ["b1", "b0"]'),
        "faults[1].at_ms: b0–b1 heals at 10 ms, but only is cut at 20 ms",
    ),
    "trust without a suspicion": (
        HEAD + fault('at_ms = 1\nkind = "trust"\nobserver = "b0"\ntarget = "b1"'),
        "faults[0].at_ms: b0–b1 is trusted at 1 ms, but never is suspected before",
    ),
    "ends too early": (
        HEAD + CRASH + "[run]\nuntil_ms = 10",
        "run.until_ms: the run ends at 10 ms, before the last action or fault at 20 ms",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_has_its_own_answer(mistake: str) -> None:
    text, expected = MISTAKES[mistake]
    with pytest.raises(ScenarioError) as caught:
        read(text)
    assert str(caught.value).startswith(expected)


def test_an_unknown_protocol_is_answered_with_those_there_are() -> None:
    with pytest.raises(ScenarioError, match=r"protocol.name: there is no protocol 'flooding'; choose one of:"):
        parse_scenario(HEAD)


def test_a_mistake_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(HEAD + "[run]\nseeds = 3")
    with pytest.raises(ScenarioError, match=r"mine.toml: run.seeds: there is no such key"):
        load_scenario(path, protocol=FLOODING)
    with pytest.raises(ScenarioError, match=r"none.toml: cannot be read: No such file"):
        load_scenario(tmp_path / "none.toml")


FULL = HEAD + CLIENTS + SUBSCRIBE + ADVERTISE + CRASH + """
[network.latency]
model = "per-link"
min_ms = 1
max_ms = 80.5
links = { "b1-b0" = 2.25 }
client_ms = 0.5
[network.node_model]
processing_ms = 1
transmission_ms = 0.5
[[replies]]
client = "bob"
subscription = "s"
attributes = { topic = "r\\u00e9ply \\"quoted\\"", x = 1, y = 1.5, ok = true, copy = "$x" }
delay_ms = 3
[[faults]]
at_ms = 40
kind = "restart"
broker = "b1"
memory = true
[run]
seed = 9
settle_ms = 300
"""  # fmt: skip


def test_a_scenario_survives_being_written() -> None:
    scenario = read(FULL)
    assert read(scenario.to_toml()) == scenario
    assert "links = { b1-b0 = 2.25 }" in scenario.to_toml()


def test_milliseconds_become_microseconds() -> None:
    scenario = read(FULL)
    settings = settings_of(scenario.network, scenario.run)
    assert settings.latency.least_us == 1000
    assert settings.latency.most_us == 80_500
    assert settings.latency.table == {("b1", "b0"): 2250}
    assert settings.latency.client_us == 500
    assert settings.node_model is not None
    assert settings.node_model.transmission_us == 500
    assert len(overlay_of(scenario.network).brokers) == 15


def test_a_scenario_runs() -> None:
    publish = action('at_ms = 100\nclient = "alice"\ndo = "publish"\nattributes = { x = 1 }\ncount = 3\nevery_ms = 2')
    result = run_scenario(read(HEAD + CLIENTS + SUBSCRIBE + publish), protocol=FLOODING)
    assert result.trace is not None
    assert [event.published_ms for event in result.trace.events] == [100, 102, 104]
    assert sum(row.kind == "deliver" for row in result.trace.history) == 3
    assert result.trace.runs[0].run == "scenario/flooding/0"
    assert result.quiesced


def test_a_seed_given_for_the_run_wins() -> None:
    result = run_scenario(read(FULL), seed=77, protocol=FLOODING)
    assert result.trace is not None
    assert result.trace.runs[0].seed == 77

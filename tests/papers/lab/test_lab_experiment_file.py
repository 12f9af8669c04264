"""Experiment files: those that ship with Gapless, and the error message for every mistake."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from gapless.errors import ExperimentError
from gapless.simulator import check_scenario
from gapless_papers.lab.experiment import Experiment
from gapless_papers.lab.experiment_file import load_experiment, parse_experiment, workload_of
from gapless_papers.lab.grid import Case, cases_of
from gapless_papers.lab.workloads import ScenarioWorkload

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "experiments").glob("*.toml"))

Tiny = Callable[..., Experiment]
Sweep = Callable[[str], Experiment]


def test_every_paper_has_experiments() -> None:
    places = {(found.paper, found.place) for found in map(load_experiment, FILES)}
    assert places == {
        *(("001", f"Figure 5({letter})") for letter in "abcdef"),
        ("002", "Figures 3 and 4"), ("002", "Figure 5(a) and Table I"), ("002", "Figure 5(b)"), ("002", "Figure 6"),
        ("002", "Figure 7"), ("002", "Table II"),
        *(("003", f"Figure {number}") for number in (8, 9, 10, 11)),
        ("003", "section VIII"), ("003", "sections II and VII"), ("003", "sections VII and IX"),
        ("004", "Section 5"),
        ("001", "section I"),
        ("001", "section VI"), ("001", "beyond section VII"), ("002", "Figure 5(a), at 256 nodes"),
    }  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_experiment_of_a_paper_asks_a_question_and_can_be_run(file: Path) -> None:
    experiment = load_experiment(file)
    assert experiment.question.endswith("?")
    assert experiment.setup
    assert experiment.figures
    assert experiment.claims
    assert [claim.says for claim in experiment.claims if not claim.interpretation] == []
    cases = cases_of(experiment, quick=True)
    assert len(cases) <= 60
    for case in (cases[0], cases[-1]):
        workload = workload_of(case)
        if isinstance(workload, ScenarioWorkload):
            check_scenario(workload.scenario(case.protocol, case.options, case.seed))


def test_the_document_shows_a_valid_file_and_valid_commands() -> None:
    text = (ROOT / "docs" / "EXPERIMENTS.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert len(cases_of(parse_experiment(example, ROOT / "example.toml"))) == 60
    commands = [shlex.split(line, comments=True) for line in text.splitlines() if line.startswith("gapless lab ")]
    assert len(commands) >= 4
    for words in commands:
        if words[2] == "run":
            names = [case.name for case in cases_of(load_experiment(ROOT / words[3]))]
            assert "--only" not in words or words[words.index("--only") + 1] in names
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / "docs" / link).exists(), link


# ---- the grid


def test_a_grid_gives_every_combination(tiny: Tiny) -> None:
    names = [case.name for case in cases_of(tiny())]
    assert names == [
        f"protocol={protocol},depth={depth},seed={seed}"
        for protocol in ("locaps", "gapless")
        for depth in (2, 3)
        for seed in (0, 1)
    ]


def test_quick_runs_use_other_values(tiny: Tiny) -> None:
    names = [case.name for case in cases_of(tiny(), quick=True)]
    assert names == ["protocol=locaps,depth=2,seed=0", "protocol=gapless,depth=2,seed=0"]


def test_grids_add_up_and_have_seeds_of_their_own(tiny: Tiny) -> None:
    more = 'depth = [2, 3]\n\n[[grid]]\nprotocol = ["delta"]\ndepth = [3]\nseeds = [7, 9]\n'
    cases = cases_of(tiny(("depth = [2, 3]\n", more)))
    assert len(cases) == 10
    assert [case.seed for case in cases[8:]] == [7, 9]


def test_options_come_from_the_protocols_table_and_from_the_grid(tiny: Tiny) -> None:
    change = 'protocol = ["locaps"]\n"options.coverage" = [true, false]'
    options = "[options.locaps]\nswitched_off = []\n\n[[grid]]"
    experiment = tiny(('protocol = ["locaps", "gapless"]', change), ("[[grid]]", options))
    found = cases_of(experiment)
    assert found[0].options == {"switched_off": [], "coverage": True}
    assert found[-1].options == {"switched_off": [], "coverage": False}
    assert found[-1].name.startswith("protocol=locaps,options.coverage=false")


def test_a_key_changes_only_with_the_case(tiny: Tiny) -> None:
    cases = cases_of(tiny())
    assert len({case.key() for case in cases}) == len(cases)
    other = msgspec.structs.replace(cases[0], measure=("messages",))
    assert other.key() != cases[0].key()
    again = msgspec.json.decode(msgspec.json.encode(cases[0]), type=Case)
    assert again.key() == cases[0].key()
    turned = msgspec.structs.replace(cases[0], parameters=dict(reversed(cases[0].parameters.items())))
    assert turned.key() == cases[0].key()


def test_a_claim_uses_the_runs_of_its_interpretation(tiny: Tiny) -> None:
    sense = '[interpretations.deep]\nsays = "the tree is deep"\nwhere = { depth = 3 }\n\n[parameters]'
    claim = 'paper = 300\ninterpretation = "deep"'
    found = tiny(("[parameters]", sense), ("paper = 300", claim))
    assert found.interpretations["deep"].says == "the tree is deep"
    assert found.claims[1].where == {"depth": 3}


# ---- scenarios as files


def test_a_scenario_file_is_swept_by_the_places_in_it(sweep_of_first: Sweep) -> None:
    experiment = sweep_of_first('"network.latency.ms" = [5.0, 20.0]\nprotocol = ["gapless", "locaps"]')
    cases = cases_of(experiment)
    assert len(cases) == 4
    workload = workload_of(cases[-1])
    assert isinstance(workload, ScenarioWorkload)
    scenario = workload.scenario(cases[-1].protocol, cases[-1].options, 3)
    assert scenario.network.latency.ms == 20.0
    assert scenario.protocol.name == "locaps"


@pytest.mark.parametrize(
    ("grid", "complaint"),
    [
        ('"network.nonsense" = [1]', "nonsense"),
        ('"network.f" = ["many"]', "network.f"),
        ('"name.f" = [1]', "not a table"),
        ('protocol = ["vcube"]', "power of two"),
    ],
)
def test_a_change_that_the_scenario_does_not_allow_is_rejected(
    sweep_of_first: Sweep, grid: str, complaint: str
) -> None:
    with pytest.raises(ExperimentError, match=complaint):
        sweep_of_first(grid)


# ---- mistakes


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("title = ", "tile = "), "tile: there is no such key; did you mean 'title'?"),
        (('question = "Does it work?"', ""), "needs a value for 'question'"),
        (('workload = "tree-subscriptions"', 'workload = "tree"'), "workload: there is no 'tree'"),
        (('workload = "tree-subscriptions"', ""), "a workload or a scenario"),
        (('workload = "tree-subscriptions"', 'scenario = "nowhere.toml"'), "nowhere.toml: cannot be read"),
        (('"gapless"]', '"gapples"]'), "there is no protocol 'gapples'"),
        (('protocol = ["locaps", "gapless"]', ""), "needs a 'protocol'"),
        (('protocol = ["locaps", "gapless"]\ndepth = [2, 3]\n', ""), "grid[0]: the grid is empty"),
        (("depth = [2, 3]", "depth = []"), "grid[0].depth: the axis is empty, so there is nothing to run"),
        (("depth = [2, 3]", "depth = 2"), "grid[0].depth: an axis of the grid is a list"),
        (("depth = [2, 3]", "dept = [2, 3]"), "there is no parameter 'dept'"),
        (("depth = [2, 3]", 'depth = ["two"]'), "depth: Expected `int`, got `str`".replace("`", "'")),
        (("depth = [2, 3]", "depth = [2, 99]"), "depth is 99"),
        (("[[grid]]", "[grid]"), "grid: write each one as a table that starts with [[grid]]"),
        (("seeds = 2", "seeds = 0"), "0 gives no runs"),
        (("seeds = 1", "seeds = []"), "quick.seeds: [] gives no runs"),
        (("grid = { depth", "grid = { deep"), "quick.grid.deep: there is no such axis"),
        (('"messages"]', '"massages"]'), "there is no 'massages'; did you mean 'messages'?"),
        (('measure = ["subscription-latency", "messages"]', "measure = []"), "nothing is measured"),
        (('x = "depth"', 'x = "width"'), "figures[0]: there is no axis 'width'"),
        (('x = "depth"', ""), "figures[0]: needs an 'x'"),
        (('series = ["protocol"]', 'kind = "distribution"'), "figures[0]: needs 'bins'"),
        (('series = ["protocol"]', 'series = ["protocol"]\nlegend = "{d}"'), "figures[0].legend: '{d}' cannot be"),
        (('series = ["protocol"]', 'colour = "red"'), "figures[0].colour: there is no such key"),
        (("paper = 300", 'paper = 300\nshape = "flat"'), "claims[1]: a claim has a number"),
        (("paper = 300", 'paper = 300\nas = "ratio"'), "claims[1]: 'against' goes with"),
        (('along = "depth"', ""), "claims[0]: needs 'along'"),
        (("where = { depth = 3 }", "where = { width = 3 }"), "claims[1]: there is no axis 'width'"),
        (('"subscription-latency" }\nwhere', '"queue" }\nwhere'), "claims[1].y.metric: 'queue' is not measured"),
        (("[parameters]", "[options.locaps]\nspeed = 3\n\n[parameters]"), "speed"),
        (("[parameters]", "[options.nobody]\nspeed = 3\n\n[parameters]"), "there is no protocol 'nobody'"),
        (("[parameters]", "[parameters"), "this is not TOML"),
        (("paper = 300", 'paper = 300\ninterpretation = "dep"'), "claims[1].interpretation: there is no 'dep'"),
        (("[parameters]", '[interpretations.deep]\nsay = "d"\n\n[parameters]'), "interpretations.deep.say: there"),
        (('shape = "grows"', 'shape = "grows"\nof = "deviation"'), "claims[0]: a deviation is compared with"),
    ],
)  # fmt: skip
def test_every_mistake_has_its_own_message(tiny: Tiny, change: tuple[str, str], complaint: str) -> None:
    with pytest.raises(ExperimentError) as raised:
        tiny(change)
    assert complaint in str(raised.value)
    assert "tiny.toml: " in str(raised.value)
    assert "\n" not in str(raised.value)


def test_without_any_grid_there_is_nothing_to_run(tiny: Tiny) -> None:
    with pytest.raises(ExperimentError, match="grid"):
        tiny(('[[grid]]\nprotocol = ["locaps", "gapless"]\ndepth = [2, 3]\n', ""))


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="cannot be read"):
        load_experiment(tmp_path / "nothing.toml")

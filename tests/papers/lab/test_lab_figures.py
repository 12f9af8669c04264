"""From runs to numbers, pictures, verdicts and the report."""

from html.parser import HTMLParser
from math import sqrt
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from gapless_papers.lab.experiment import Claim, Experiment, FigureSpec, Interpretation, Range, Reading
from gapless_papers.lab.figures.claims import judge_claim, paper_half_width
from gapless_papers.lab.figures.data import Run, Runs
from gapless_papers.lab.figures.estimate import Estimate, estimate, student_quantile
from gapless_papers.lab.figures.pictures import picture_of, save_picture
from gapless_papers.lab.figures.report import Chapter, Origin, Shown, estimate_text, report_html, too_few
from gapless_papers.lab.figures.tables import csv_text, table_of

LATENCY = Reading("latency")


def runs(values: dict[tuple[str, int], list[float]]) -> Runs:
    """Return one run for each number, by protocol and depth."""
    return Runs(
        Run({"protocol": protocol, "depth": depth, "seed": seed}, {"latency": [("all", number)]})
        for (protocol, depth), numbers in values.items()
        for seed, number in enumerate(numbers)
    )


FOUND = runs({("a", 2): [90, 110], ("a", 4): [190, 210], ("b", 2): [50, 50], ("b", 4): [50, 50]})
ENOUGH = runs({("a", 2): [90, 110] * 20, ("a", 4): [190, 210] * 20, ("b", 2): [50] * 40, ("b", 4): [50] * 40})
"""Runs with every number repeated, so that there are enough of them for a verdict."""


# ---- estimates


@pytest.mark.parametrize(("freedom", "expected"), [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (39, 2.023)])
def test_students_quantile_is_that_of_the_tables(freedom: int, expected: float) -> None:
    assert student_quantile(freedom) == pytest.approx(expected, rel=0.006)


def test_an_estimate_has_a_mean_and_an_interval() -> None:
    found = estimate([1.0, 2.0, 3.0, 4.0])
    assert found is not None
    assert (found.mean, found.runs) == (2.5, 4)
    assert found.deviation == pytest.approx(sqrt(5 / 3))
    assert found.half_width == pytest.approx(3.182 * sqrt(5 / 3) / 2, rel=0.006)
    single = estimate([7.0])
    assert single is not None
    assert (single.mean, single.half_width) == (7.0, None)
    assert estimate([]) is None


# ---- readings


ROWS = Run({}, {"size": [("1", 20.0), ("4", 30.0), ("9", 50.0)]})


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        (Reading("size"), 100 / 3),
        (Reading("size", reduce="sum"), 100.0),
        (Reading("size", reduce="max"), 50.0),
        (Reading("size", subject="4"), 30.0),
        (Reading("size", subjects=Range(below=4)), 20.0),
        (Reading("size", subjects=Range(most=4)), 50.0),
        (Reading("size", subjects=Range(least=9)), 50.0),
        (Reading("size", values=Range(above=20, most=50)), 2.0),
        (Reading("size", reduce="largest-subject"), 9.0),
        (Reading("nothing", reduce="largest-subject"), None),
        (Reading("size", subject="5"), None),
        (Reading("nothing"), None),
    ],
)
def test_readings_turn_a_run_into_numbers(reading: Reading, expected: float | None) -> None:
    assert ROWS.read(reading) == (None if expected is None else pytest.approx(expected))


# ---- tables


def test_lines_have_a_point_for_each_value_of_the_axis() -> None:
    table = table_of(FigureSpec(LATENCY, x="depth", series=("protocol",), x_scale=2), FOUND)
    assert [series.label for series in table.series] == ["a", "b"]
    assert [(point.x, point.estimate.mean) for point in table.series[0].points] == [(4.0, 100.0), (8.0, 200.0)]
    assert (table.runs_least, table.runs_most) == (2, 2)
    lines = csv_text(table).splitlines()
    assert lines[0] == "protocol,depth,mean,standard_deviation,half_width_95,runs"
    assert lines[1].startswith("a,4,100,14.1421,")
    assert lines[4] == "b,8,50,0,0,2"


def test_a_distribution_has_a_bar_for_each_bin() -> None:
    table = table_of(FigureSpec(Reading("size"), kind="distribution", bins=(1, 4, 16)), Runs([ROWS]))
    assert [(point.label, point.estimate.mean) for point in table.series[0].points] == [
        ("1", 20.0), ("(1, 4]", 30.0), ("(4, 16]", 50.0),
    ]  # fmt: skip
    by_values = FigureSpec(Reading("size"), kind="distribution", by="values", bins=(20, 40, 60))
    assert [point.estimate.mean for point in table_of(by_values, Runs([ROWS])).series[0].points] == [1.0, 1.0, 1.0]


# ---- claims


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (Claim("", LATENCY, paper=100.0, where={"protocol": "a", "depth": 2}), "agrees"),
        (Claim("", LATENCY, paper=52.0, where={"protocol": "b"}), "agrees"),
        (Claim("", LATENCY, paper=60.0, where={"protocol": "b"}), "differs"),
        (Claim("", LATENCY, paper=60.0, where={"protocol": "b"}, noise=0.2), "agrees"),
        (Claim("", LATENCY, paper=60.0, where={"protocol": "c"}), "unmeasured"),
        (Claim("", LATENCY, shape="grows", along="depth", where={"protocol": "a"}), "agrees"),
        (Claim("", LATENCY, shape="grows", along="depth", by=("protocol",)), "differs"),
        (Claim("", LATENCY, shape="flat", along="depth", where={"protocol": "b"}), "agrees"),
        (Claim("", LATENCY, shape="flat", along="depth", where={"protocol": "a"}), "differs"),
        (Claim("", LATENCY, shape="falls", along="depth", where={"protocol": "a"}), "differs"),
        (Claim("", LATENCY, shape="falls", along="depth", where={"protocol": "a", "depth": 2}), "unmeasured"),
    ],
)
def test_a_claim_is_judged(claim: Claim, verdict: str) -> None:
    assert judge_claim(claim, ENOUGH).verdict == verdict


@pytest.mark.parametrize("paper", [100.0, 150.0])
def test_fewer_than_twenty_runs_decide_nothing(paper: float) -> None:
    claim = Claim("", LATENCY, paper=paper, where={"protocol": "a", "depth": 2})
    nineteen = runs({("a", 2): [90.0, *[100.0] * 17, 110.0]})
    assert judge_claim(claim, nineteen).verdict == "uncertain"
    twenty = runs({("a", 2): [90.0, *[100.0] * 18, 110.0]})
    assert judge_claim(claim, twenty).verdict == ("agrees" if paper == 100 else "differs")
    assert too_few(judge_claim(claim, nineteen)) == "Too few runs: at least 20 are needed for a verdict. "
    assert too_few(judge_claim(claim, twenty)) == ""


@pytest.mark.parametrize(("protocol", "exact", "verdict"), [
    ("b", False, "uncertain"), ("b", True, "agrees"), ("a", True, "uncertain"),
])  # fmt: skip
def test_few_runs_decide_only_where_nothing_is_random(protocol: str, exact: bool, verdict: str) -> None:
    """The runs of b give equal numbers; those of a do not, so that calling them exact does not help."""
    number = Claim("", LATENCY, paper=200.0 if protocol == "a" else 50.0, where={"protocol": protocol, "depth": 4})
    shape = Claim(
        "", LATENCY, shape="grows" if protocol == "a" else "flat", along="depth", where={"protocol": protocol}
    )
    for claim in (number, shape):
        assert judge_claim(claim, FOUND, exact=exact).verdict == verdict
        assert judge_claim(claim, ENOUGH, exact=exact).verdict in ("agrees", "uncertain")


def test_an_interval_wider_than_the_tolerance_decides_nothing() -> None:
    claim = Claim("", LATENCY, paper=100.0, where={"protocol": "a", "depth": 2}, noise=0.01)
    assert judge_claim(claim, ENOUGH).verdict == "uncertain"


def test_the_missing_part_of_a_trace_is_checked_alone() -> None:
    """Delivered shares of 97.5 and 97.9 % differ by less than the tolerance; missing shares of 2.5 and 2.1 % do not."""
    found = runs({("a", 2): [97.8, 98.0] * 20})
    whole = Claim("", LATENCY, paper=97.5, where={"protocol": "a"}, noise=0.01)
    assert judge_claim(whole, found).verdict == "agrees"
    missing = msgspec.structs.replace(whole, paper=2.5, out_of=100.0, noise=0.1)
    judged = judge_claim(missing, found)
    assert judged.verdict == "differs"
    assert judged.ours is not None
    assert judged.ours.mean == pytest.approx(2.1)
    assert judged.deviation == pytest.approx(-0.16)


def test_the_papers_own_interval_counts_too() -> None:
    claim = Claim("", LATENCY, paper=104.0, where={"protocol": "a", "depth": 2}, noise=0.035)
    assert judge_claim(claim, ENOUGH).verdict == "differs"
    spread = msgspec.structs.replace(claim, paper_deviation=10.0, paper_runs=40)
    assert paper_half_width(spread) == pytest.approx(3.2, rel=0.01)
    assert judge_claim(spread, ENOUGH).verdict == "uncertain"


def test_quick_runs_compare_shapes_and_not_numbers() -> None:
    assert judge_claim(Claim("", LATENCY, paper=50.0, where={"protocol": "b"}), FOUND, quick=True).ours is None
    shape = Claim("", LATENCY, shape="flat", along="depth", where={"protocol": "b"})
    assert judge_claim(shape, FOUND, quick=True).verdict == "agrees"


@pytest.mark.parametrize(("kind", "expected"), [("ratio", 0.25), ("increase", -75.0), ("reduction", 75.0)])
def test_a_claim_can_compare_two_groups_of_runs(kind: str, expected: float) -> None:
    claim = Claim(
        "", LATENCY, paper=expected, where={"protocol": "b", "depth": 4}, against={"protocol": "a", "depth": 4},
        as_=kind,  # type: ignore[arg-type]
    )  # fmt: skip
    judged = judge_claim(claim, ENOUGH)
    assert judged.ours is not None
    assert judged.ours.mean == pytest.approx(expected)
    assert judged.verdict == "agrees"


def test_a_claim_can_be_about_the_deviation() -> None:
    claim = Claim("", LATENCY, paper=10.0, where={"protocol": "a", "depth": 2}, of="deviation", noise=0.3)
    judged = judge_claim(claim, ENOUGH)
    assert judged.verdict == "agrees"
    assert judged.ours is not None
    assert judged.ours.mean == pytest.approx(sqrt(4000 / 39))
    assert judged.ours.half_width == pytest.approx(1.96 * sqrt(4000 / 39) / sqrt(78), rel=0.01)


def test_a_number_along_an_axis_is_the_mean_over_it() -> None:
    claim = Claim(
        "", LATENCY, paper=-62.5, where={"protocol": "b"}, against={"protocol": "a"}, as_="increase", along="depth"
    )
    judged = judge_claim(claim, FOUND)
    assert judged.ours is not None
    assert judged.ours.mean == pytest.approx((-50 - 75) / 2)
    missing = Claim("", LATENCY, paper=1.0, where={"protocol": "a", "depth": 2}, along="depth")
    assert judge_claim(missing, FOUND).verdict == "unmeasured"


# ---- pictures and the report


def test_pictures_are_the_same_every_time(tmp_path: Path) -> None:
    table = table_of(FigureSpec(LATENCY, x="depth", series=("protocol",)), FOUND)
    claims = [Claim("", LATENCY, paper=60.0, where={"protocol": "b", "depth": 4})]
    first, second = (save_picture(picture_of(table, "Depth", claims), tmp_path / name) for name in ("one", "two"))
    assert first == second
    assert first.startswith("<?xml")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_the_papers_numbers_are_next_to_ours() -> None:
    lines = FigureSpec(LATENCY, x="depth", series=("protocol",), x_scale=2)
    bins = FigureSpec(Reading("size"), kind="distribution", bins=(1, 4, 16))
    for spec, found, claim, place in (
        (lines, FOUND, Claim("", LATENCY, paper=60.0, where={"protocol": "b", "depth": 4}), (8.0, 60.0)),
        (bins, Runs([ROWS]), Claim("", Reading("size", subjects=Range(above=1, most=4)), paper=33.0), (1.0, 33.0)),
    ):
        other = Claim("", Reading("other"), paper=7.0, where=claim.where)
        (axes,) = picture_of(table_of(spec, found), "Title", [other, claim]).axes
        (drawn,) = [line for line in axes.lines if line.get_label() == "the paper"]
        assert np.asarray(drawn.get_data()).ravel().tolist() == list(place)


def test_a_claim_about_a_deviation_is_not_drawn() -> None:
    spec = FigureSpec(LATENCY, x="depth", series=("protocol",))
    claim = Claim("", LATENCY, paper=60.0, where={"protocol": "b", "depth": 4}, of="deviation")
    (axes,) = picture_of(table_of(spec, FOUND), "Title", [claim]).axes
    assert "the paper" not in [line.get_label() for line in axes.lines]


def test_bars_of_one_colour_have_hatches_of_their_own() -> None:
    found = Runs(
        Run({"protocol": "a", "depth": depth, "f": f, "seed": 0}, {"latency": [("all", 5.0)]})
        for depth in (2, 4)
        for f in range(6)
    )
    (axes,) = picture_of(
        table_of(FigureSpec(LATENCY, kind="bars", x="depth", series=("protocol", "f")), found), "T"
    ).axes
    bars: Any = axes.containers
    hatches = [group.patches[0].get_hatch() for group in bars if hasattr(group, "patches")]
    assert len(hatches) == len(set(hatches)) == 6


def test_coinciding_lines_are_dashed_and_share_a_letter() -> None:
    found = runs({("a", 2): [10], ("a", 4): [20], ("b", 2): [10], ("b", 4): [20.1], ("c", 2): [10], ("c", 4): [30]})
    (axes,) = picture_of(table_of(FigureSpec(LATENCY, x="depth", series=("protocol",)), found), "Title").axes
    labels = axes.get_legend_handles_labels()[1]
    assert labels == ["a [a]", "b [a]", "c"]
    bars: Any = axes.containers
    first, second, third = (bar.lines[0] for bar in bars)
    assert first.is_dashed()
    assert second.is_dashed()
    assert not third.is_dashed()


def test_intervals_of_nonnegative_quantities_end_at_zero() -> None:
    found = runs({("a", 2): [0, 10], ("a", 4): [100, 102]})
    (axes,) = picture_of(table_of(FigureSpec(LATENCY, x="depth", series=("protocol",)), found), "Title").axes
    drawn: Any = axes.containers[0]
    (bars,) = drawn.lines[2]
    lowest = min(float(segment[:, 1].min()) for segment in bars.get_segments())
    assert lowest == 0
    assert estimate_text(Estimate(5.0, 7.07, 2, 63.5)) == "5 (0 to 68.5)"
    assert estimate_text(Estimate(5.0, 7.07, 2, 63.5), may_be_less=True) == "5 ± 64"
    assert estimate_text(Estimate(50.0, 7.07, 2, 6.5)) == "50 ± 6.5"


def test_intervals_end_at_the_upper_bound_of_the_quantity() -> None:
    found = runs({("a", 2): [90, 100], ("a", 4): [99, 100]})
    spec = FigureSpec(LATENCY, x="depth", series=("protocol",), y_most=100)
    (axes,) = picture_of(table_of(spec, found), "Title").axes
    drawn: Any = axes.containers[0]
    (bars,) = drawn.lines[2]
    assert max(float(segment[:, 1].max()) for segment in bars.get_segments()) == 100
    assert axes.get_ylim()[1] < 110


class _Page(HTMLParser):
    """Collects the targets of a page's links, and checks that its elements are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        self.sources += [value or "" for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_is_self_contained_and_complete() -> None:
    claims = (
        Claim(
            "b takes <long>", LATENCY, paper=60.0, where={"protocol": "b"}, why="because & so on", unit=" ms",
            interpretation="slow", place="Table 9",
        ),
        Claim("a grows", LATENCY, shape="grows", along="depth", where={"protocol": "a"}),
        Claim("c is there", LATENCY, paper=1.0, where={"protocol": "c"}),
        Claim("a varies", LATENCY, paper=100.0, where={"protocol": "a", "depth": 2}),
    )  # fmt: skip
    experiment = Experiment(
        title="A title", question="Is it so?", measure=("latency",), grid=(), name="one", paper="002",
        place="Figure 1", setup="First.\n\nSecond.", claims=claims,
        interpretations={"slow": Interpretation("everything is slow", free=3)},
    )  # fmt: skip
    chapter = Chapter(
        experiment, 8, (Shown("one", "A picture", "<svg/>"),), tuple(judge_claim(claim, ENOUGH) for claim in claims),
        "gapless lab run one.toml --out out", failed=2,
    )  # fmt: skip
    origin = Origin("2026-01-02 03:04 UTC", "9.8", "abc123")
    text = report_html(
        [chapter], scale="A glance.", repeat="gapless lab figures --out x", origin=origin, missing=["two"]
    )
    page = _Page()
    page.feed(text)
    assert page.open == []
    within = ("data:image/svg+xml;base64,", "#")
    assert {source for source in page.sources if not source.startswith(within)} == {
        "one.csv", "claims.csv", "https://arxiv.org/abs/1706.08302",
    }  # fmt: skip
    for words in (
        "Is it so?", "Figure 1", "b takes &lt;long&gt;", "because &amp; so on", "60 ms", "50 ms", "-16.7%", "differs",
        "holds", "100 → 200", "not measured", "2 runs failed", "gapless lab run one.toml --out out", "Second.",
        "everything is slow (3 choices were fitted to the paper&#x27;s numbers)", "Reading (a)",
        "Table 9", 'data-label="runs">80<', 'data-label="runs">40<', "2026-01-02 03:04 UTC",
        "Gapless 9.8, commit abc123", "Experiments without results: two",
        "σ 10",
    ):  # fmt: skip
        assert words in text, words

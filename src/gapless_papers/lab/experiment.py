"""An experiment: its runs, measurements, figures, and the paper's claims. This is the reference of the file format.

An experiment is a TOML file; its name is the name of the file. A small one:

```toml
title = "Subscription latency against the depth"
question = "Does it take longer to subscribe in a deeper tree?"
workload = "tree-subscriptions"
measure = ["subscription-latency"]
seeds = 10

[parameters]
distance = 2

[[grid]]
protocol = ["gapless", "locaps"]
depth = [3, 4, 5]

[[figures]]
x = "depth"
y = { metric = "subscription-latency" }
series = ["protocol"]
```

`title`, `question`
: the name of the experiment, and the question it answers, in one sentence each.

`paper`, `place`
: the paper that it repeats (`"001"`), and the place in that paper (`"Figure 5(a)"`).

`setup`
: the set-up, and whatever the paper leaves open, for the report.

`workload` or `scenario`
: the content of a run. A workload is one of `gapless_papers.lab.workloads`, with parameters. A scenario is a file; its
  parameters are paths into that file, such as `"network.f"`.

`measure`
: the metrics of each run: names of `gapless_papers.lab.measures`, or metrics that the workload defines.

`seeds`
: the number of runs of each kind, with the seeds 0, 1, 2… (default 1), or a list of seeds.

`trace`
: whether to keep the traces as well (default false).

`[parameters]`
: parameters of the workload, the same for all runs.

`[options.NAME]`
: options of the protocol NAME, the same for all its runs.

`[interpretations.NAME]`
: one reading of something that a paper leaves open: `says` states the assumption, and `where` (values of axes) selects
  the runs that make it. A claim names the interpretation by which it is judged. `free` is the number of choices that
  were made to fit the numbers; the report states it. `exact = true` marks a reading in which nothing is random, so that
  its claims are judged from any number of runs, as long as these give equal numbers.

`[[grid]]`
: lists of values: `protocol`, parameters, and options of protocols as `"options.KEY"`. Each grid gives every
  combination of its values; several grids add up. `seeds` in a grid overrides the `seeds` above.

`[quick]`
: a reduced version: other `seeds`, `[quick.parameters]`, and `[quick.grid]` with other values for axes of the grids.

`[[figures]]`
: `kind = "lines"` (default): `x` is an axis, `y` a reading, `series` the axes that distinguish the lines. `kind =
  "bars"`: the same numbers as bars, for an `x` with few or unordered values. `kind = "course"`: lines along the
  subjects of `y.metric`, which are numbers, such as points in time. `kind = "distribution"`: `y.metric` counts, `by`
  its subjects or by their values, into the `bins` given by their upper bounds. `legend` names a line after its values
  on the axes: `"{protocol}, {covered:.0%} covered"`. `y_most` is the upper bound of `y`, such as 100 %: intervals end
  there. Further: `title`, `name`, `x_label`, `y_label`, `x_scale`, `log_x`, `log_y`, `where`.

`[[claims]]`
: a statement of the paper to compare with: `says` in words, `paper` the number, `y` the reading and `where` the runs;
  with `against` (other runs) the figure is a `ratio`, an `increase` or a `reduction` (in percent), as `as` says.
  `noise` is the accepted deviation, as a share of the paper's number; a larger one needs a reason (`why`). With
  `out_of` (the whole), the claim is about the missing part: the reading is subtracted from `out_of`, and `paper` is the
  missing part in the paper. Use it if nearly everything is delivered. `paper_deviation` (of single runs) and
  `paper_runs` give the paper's interval. A number is the `mean` over the runs, or with `of = "deviation"` their
  standard deviation; with `along` it is the mean over all values of that axis. A claim without a number has a `shape`:
  `flat`, `grows` or `falls`, `along` one. `interpretation` names one of the experiment's interpretations; `place` is
  the place in the paper, if it differs from that of the experiment.

A reading turns a run into a number: the mean (or what `reduce` says) over the rows of `metric`, or over those with
`subject`. With `subjects` (a range: `above`, `least`, `below`, `most`) it is the percentage of everything a metric
counts whose subjects are in that range. With `values` it is the number of subjects whose values are in the range.
`reduce = "largest-subject"` is the largest subject with a count above zero.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

__all__ = ["Axis", "Claim", "Experiment", "FigureSpec", "Interpretation", "Quick", "Range", "Reading", "Scalar"]

Scalar: TypeAlias = str | int | float | bool
Axis: TypeAlias = list[Scalar]
Where: TypeAlias = dict[str, Scalar | list[Scalar]]


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A range of numbers; bounds that are not given are open."""

    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None

    def __contains__(self, number: float) -> bool:
        return (
            (self.above is None or number > self.above)
            and (self.least is None or number >= self.least)
            and (self.below is None or number < self.below)
            and (self.most is None or number <= self.most)
        )


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to turn one run into one number."""

    metric: str
    subject: str | None = None
    reduce: Literal["mean", "sum", "max", "min", "largest-subject"] = "mean"
    subjects: Range | None = None
    values: Range | None = None


class FigureSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One picture and its table."""

    y: Reading
    kind: Literal["lines", "bars", "course", "distribution"] = "lines"
    name: str = ""
    title: str = ""
    x: str = ""
    series: tuple[str, ...] = ()
    legend: str = ""
    bins: tuple[float, ...] = ()
    by: Literal["subjects", "values"] = "subjects"
    x_label: str = ""
    y_label: str = ""
    y_most: float | None = None
    x_scale: float = 1.0
    """The factor for values on the axis: a tree of depth 3 has a diameter of 6."""
    log_x: bool = False
    log_y: bool = False
    where: Where = {}

    def label(self, values: Sequence[Scalar | None]) -> str:
        """Return the legend of the line with these values on the axes of `series`."""
        known = {axis.rpartition(".")[2]: value for axis, value in zip(self.series, values, strict=True)}
        if self.legend:
            return self.legend.format_map(known)
        return ", ".join(str(value) for value in values if value is not None)


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement of the paper, and how to read the same number from our runs."""

    says: str
    y: Reading
    paper: float | None = None
    where: Where = {}
    against: Where | None = None
    as_: Literal["value", "ratio", "increase", "reduction"] = msgspec.field(name="as", default="value")
    unit: str = ""
    noise: float = 0.05
    out_of: float | None = None
    """The whole from which the reading is subtracted, if the claim is about a missing part."""
    paper_deviation: float | None = None
    """The standard deviation of single runs that the paper reports. `paper_runs` is the number of those runs."""
    paper_runs: int = 0
    shape: Literal["flat", "grows", "falls"] | None = None
    along: str = ""
    by: tuple[str, ...] = ()
    """The axes that distinguish lines; each line must have the shape."""
    why: str = ""
    of: Literal["mean", "deviation"] = "mean"
    """Whether the paper's number is the mean over the runs or their standard deviation."""
    interpretation: str = ""
    place: str = ""


class Interpretation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reading of something that a paper leaves open."""

    says: str
    where: Where = {}
    free: int = 0
    """The number of choices that were fitted to the paper's numbers, which therefore cannot confirm them."""
    exact: bool = False
    """Whether nothing in the reading is random, so that fewer runs than `RUNS_LEAST` suffice."""


class Quick(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The changes that make an experiment quick."""

    seeds: int | list[int] | None = None
    parameters: dict[str, Any] = {}
    grid: dict[str, Axis] = {}


class Experiment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a sweep and its figures need."""

    title: str
    question: str
    measure: tuple[str, ...]
    grid: tuple[dict[str, Any], ...]
    name: str = ""
    """The name of the file, without its suffix."""
    file: str = ""
    """The path of the file."""
    document: dict[str, Any] = {}
    """The parsed scenario file, if the experiment runs one."""
    paper: str = ""
    place: str = ""
    setup: str = ""
    workload: str = ""
    scenario: str = ""
    seeds: int | list[int] = 1
    trace: bool = False
    parameters: dict[str, Any] = {}
    options: dict[str, dict[str, Any]] = {}
    interpretations: dict[str, Interpretation] = {}
    quick: Quick = Quick()
    figures: tuple[FigureSpec, ...] = ()
    claims: tuple[Claim, ...] = ()

"""An experiment: which runs, what is measured, what is drawn, and what the paper says. The reference of its file.

An experiment is a TOML file; its name is that of the file. A small one:

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
: what it is called, and what it is to answer, in a sentence each.

`paper`, `place`
: the paper that it repeats (`"001"`), and where in it (`"Figure 5(a)"`).

`setup`
: how it is set up and what the paper leaves open, for the report.

`workload` or `scenario`
: what happens in a run. A workload is one of `gapless_papers.lab.workloads`, with parameters; a scenario is a file,
  and its parameters are places in it, such as `"network.f"`.

`measure`
: what is written down of each run: names of `gapless_papers.lab.measures`, or of the workload's own.

`seeds`
: how many runs of each kind, with the seeds 0, 1, 2… (default 1), or a list of seeds.

`trace`
: whether the traces are kept, too (default false).

`[parameters]`
: of the workload, the same for all runs.

`[options.NAME]`
: of the protocol NAME, the same for all its runs.

`[interpretations.NAME]`
: one way to read what a paper leaves open: `says` in words what is assumed, and `where` (values of axes) which runs
  assume it. A claim names the one by which it is judged. `free` is the number of choices that were made so that the
  numbers fit; the report says so.

`[[grid]]`
: lists of values: `protocol`, parameters, and options of protocols as `"options.KEY"`. Each grid gives every
  combination of its values; several grids add up. `seeds` in a grid goes before the one above.

`[quick]`
: for a glance: other `seeds`, `[quick.parameters]`, and `[quick.grid]` with other values for axes of the grids.

`[[figures]]`
: `kind = "lines"` (default): `x` is an axis, `y` a reading, `series` the axes that tell the lines apart.
  `kind = "bars"`: the same numbers as bars, where values of `x` are few or have no order.
  `kind = "course"`: lines along the subjects of `y.metric`, which are numbers, such as moments of time.
  `kind = "distribution"`: `y.metric` counts, `by` its subjects or by their values, into the `bins` given by
  their upper ends.
  `legend` names a line after its values on the axes: `"{protocol}, {covered:.0%} covered"`.
  `y_most` is what no number can exceed, such as 100 %: intervals end there.
  Further: `title`, `name`, `x_label`, `y_label`, `x_scale`, `log_x`, `log_y`, `where`.

`[[claims]]`
: what the paper says, to be compared: `says` in words, `paper` the number, `y` the reading and `where` the runs;
  with `against` (other runs) the figure is a `ratio`, an `increase` or a `reduction` (in percent), as `as` says.
  `noise` is how far ours may be off before that needs a reason, as a share of the paper's number; `why` is the reason.
  If nearly everything is delivered, the effect is what is missing: with `out_of` (the whole) the reading is subtracted
  from it, and `paper` is what the paper's runs lack. `paper_deviation` (of single runs) and `paper_runs` give the
  paper's interval.
  A number is the `mean` over the runs, or with `of = "deviation"` their standard deviation; with `along` it is the
  mean over all values of that axis. A claim without a number has a `shape`: `flat`, `grows` or `falls`, `along` one.
  `interpretation` names one of the experiment's; `place` is where the paper says it, if not at that of the experiment.

A reading says how a run becomes a number: the mean (or what `reduce` says) over the rows of `metric`, or of those with
`subject`; or, with `subjects` (a range: `above`, `least`, `below`, `most`), the percentage of all that a metric counts
whose subjects lie there; or, with `values`, the number of subjects whose values do. `reduce = "largest-subject"` is the
largest subject of which any was counted.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

__all__ = ["Axis", "Claim", "Experiment", "FigureSpec", "Interpretation", "Quick", "Range", "Reading", "Scalar"]

Scalar: TypeAlias = str | int | float | bool
Axis: TypeAlias = list[Scalar]
Where: TypeAlias = dict[str, Scalar | list[Scalar]]


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A range of numbers; ends that are not given are open."""

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
    """How one run becomes one number."""

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
    """What the axis is multiplied by: a tree of depth 3 has a diameter of 6."""
    log_x: bool = False
    log_y: bool = False
    where: Where = {}

    def label(self, values: Sequence[Scalar | None]) -> str:
        """What a line is called that has these values on the axes of `series`."""
        known = {axis.rpartition(".")[2]: value for axis, value in zip(self.series, values, strict=True)}
        if self.legend:
            return self.legend.format_map(known)
        return ", ".join(str(value) for value in values if value is not None)


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the paper says, and how to read the same off our runs."""

    says: str
    y: Reading
    paper: float | None = None
    where: Where = {}
    against: Where | None = None
    as_: Literal["value", "ratio", "increase", "reduction"] = msgspec.field(name="as", default="value")
    unit: str = ""
    noise: float = 0.05
    out_of: float | None = None
    """If the number is what is missing of a whole: the whole, from which the reading is subtracted."""
    paper_deviation: float | None = None
    """The standard deviation of single runs that the paper gives, and its number of runs."""
    paper_runs: int = 0
    shape: Literal["flat", "grows", "falls"] | None = None
    along: str = ""
    by: tuple[str, ...] = ()
    """The axes that tell lines apart, each of which has to have the shape."""
    why: str = ""
    of: Literal["mean", "deviation"] = "mean"
    """Which of the two over the runs the paper's number is."""
    interpretation: str = ""
    place: str = ""


class Interpretation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to read what a paper leaves open."""

    says: str
    where: Where = {}
    free: int = 0
    """How many choices were made so that the numbers fit; the paper's numbers cannot confirm these."""


class Quick(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a glance changes."""

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
    """That of the file."""
    file: str = ""
    """Where it was read from."""
    document: dict[str, Any] = {}
    """The scenario, if it is a file."""
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

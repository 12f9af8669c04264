"""The report, laid out like a paper: abstract, method, results by paper, threats to validity, environment.

It is one self-contained HTML file with its pictures and style, and links to the CSV files next to it. Each claim states
its place in the paper, the interpretation of open points, and the number of runs behind our number.
"""

import base64
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import count
from math import floor, log10
from string import ascii_lowercase

import msgspec

from gapless_papers.lab.experiment import Claim, Experiment
from gapless_papers.lab.figures.claims import RUNS_LEAST, Judgement, paper_half_width
from gapless_papers.lab.figures.estimate import Estimate
from gapless_papers.lab.figures.front_matter import (
    Environment,
    abstract,
    environment_table,
    method,
    threats,
)
from gapless_papers.lab.figures.papers import PAPERS

__all__ = ["Chapter", "Origin", "Shown", "report_html", "too_few"]

_TITLE = "Four papers on publish/subscribe: their measurements repeated"
_WORDS = {"agrees": "agrees", "differs": "differs", "uncertain": "cannot tell", "unmeasured": "not measured"}
"""How the report words each verdict."""


class Shown(msgspec.Struct, frozen=True):
    """One picture of an experiment."""

    name: str
    title: str
    svg: str


class Chapter(msgspec.Struct, frozen=True):
    """One experiment, ready for the report."""

    experiment: Experiment
    runs: int
    pictures: tuple[Shown, ...]
    judgements: tuple[Judgement, ...]
    repeat: str
    failed: int = 0


class Origin(msgspec.Struct, frozen=True):
    """The date of a report, and the versions that produced it."""

    date: str
    version: str
    commit: str = ""
    """The commit; unknown if the code is not in a checkout."""
    code: str = ""
    """The hash of all code that takes part in a run."""
    environment: Environment | None = None


def report_html(
    chapters: Sequence[Chapter], *, scale: str, repeat: str, origin: Origin, missing: Sequence[str] = ()
) -> str:
    """Return the HTML page; `missing` lists experiments without results."""
    style = files("gapless_papers.lab.figures").joinpath("report.css").read_text(encoding="utf-8")
    papers = list(dict.fromkeys(chapter.experiment.paper for chapter in chapters))
    section, figure, table = count(1), count(1), count(1)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_TITLE}</title><style>{style}</style></head><body><main>",
        f"<h1>{_TITLE}</h1>",
        f'<p class="origin">{escape(_origin_text(origin))}</p>',
        '<h2 class="unnumbered" id="abstract">Abstract</h2>',
        abstract(
            [judgement for chapter in chapters for judgement in chapter.judgements],
            sum(chapter.runs for chapter in chapters),
            len(papers),
        ),
        _missing(missing),
        _heading(section, "method", "Method"),
        f"<p>{escape(scale)}</p>",
        method(),
        "<p>Tables give means over the runs with their intervals, and the standard deviation σ of single runs. "
        'Diamonds in figures are numbers from the papers. All claims are in <a href="claims.csv">claims.csv</a>. '
        "This command repeats the report, or continues it:</p>",
        f"<pre><code>{escape(repeat)}</code></pre>",
        _heading(section, "results", "Results"),
        _summary(chapters, papers, table),
    ]
    for paper in papers:
        parts.append(_heading(section, f"paper-{paper}", _paper_title(paper)))
        parts.append(_source(paper))
        parts += [_chapter(chapter, figure, table) for chapter in chapters if chapter.experiment.paper == paper]
    parts += [_heading(section, "threats", "Threats to validity"), threats()]
    if origin.environment is not None:
        experiments = [chapter.experiment for chapter in chapters]
        parts += [_heading(section, "environment", "Environment"), environment_table(origin.environment, experiments)]
    parts.append("<footer>Every run is repeatable: the same code, parameters and seed give the same numbers.</footer>")
    parts.append("</main></body></html>\n")
    return "\n".join(parts)


def _heading(section: Iterator[int], anchor: str, title: str) -> str:
    return f'<h2 id="{escape(anchor)}">{next(section)}&ensp;{escape(title)}</h2>'


def _paper_title(paper: str) -> str:
    return f"{PAPERS[paper].name} (paper {paper})" if paper in PAPERS else paper or "Experiments"


def _origin_text(origin: Origin) -> str:
    commit = f", commit {origin.commit}" if origin.commit else ""
    code = f", code of the runs {origin.code[:12]}" if origin.code else ""
    return f"Made on {origin.date} by Gapless {origin.version}{commit}{code}."


def _missing(names: Sequence[str]) -> str:
    if not names:
        return ""
    listed = ", ".join(escape(name) for name in names)
    return f'<p class="missing">The report is incomplete. Experiments without results: {listed}.</p>'


def _source(paper: str) -> str:
    """Return the description of the paper, with an anchor for its claims."""
    if paper not in PAPERS:
        return ""
    found = PAPERS[paper]
    link = f' <a href="{escape(found.link)}">{escape(found.link)}</a>.' if found.link else ""
    text = f"{escape(found.source)}.{link} It measures in {found.section}."
    return f'<p class="source" id="source-{escape(paper)}">{text}</p>'


def _place(experiment: Experiment, place: str) -> str:
    """Return the place of the claim, as a link to the paper."""
    if not place or experiment.paper not in PAPERS:
        return escape(place)
    target = PAPERS[experiment.paper].link or f"#source-{experiment.paper}"
    return f'<a href="{escape(target)}">{escape(place)}</a>'


def _summary(chapters: Sequence[Chapter], papers: Iterable[str], table: Iterator[int]) -> str:
    rows = []
    for paper in papers:
        mine = [chapter for chapter in chapters if chapter.experiment.paper == paper]
        counts = Counter(judgement.verdict for chapter in mine for judgement in chapter.judgements)
        rows.append(
            f'<tr><td><a href="#paper-{escape(paper)}">{escape(_paper_title(paper))}</a></td>'
            f'<td class="number">{len(mine)}</td><td class="number">{sum(chapter.runs for chapter in mine):,}</td>'
            f'<td class="number">{counts["agrees"]}</td><td class="number">{counts["differs"]}</td>'
            f'<td class="number">{counts["uncertain"]}</td></tr>'
        )
    words = ("experiments", "runs", "agree", "differ", "cannot tell")
    headings = "".join(f'<th class="number">{word}</th>' for word in words)
    return (
        f'<div class="wide"><table>{_table_caption(table, "The papers, and the verdicts on their statements.")}'
        f"<thead><tr><th>Paper</th>{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _table_caption(table: Iterator[int], text: str) -> str:
    return f"<caption><strong>Table {next(table)}.</strong> {escape(text)}</caption>"


def _chapter(chapter: Chapter, figure: Iterator[int], table: Iterator[int]) -> str:
    experiment = chapter.experiment
    place = f' <span class="place">({_place(experiment, experiment.place)})</span>' if experiment.place else ""
    parts = [
        f'<article id="{escape(experiment.name)}">',
        f"<h3>{escape(experiment.title)}{place}</h3>",
        f'<p class="question">{escape(experiment.question)}</p>',
        *(f'<p class="setup">{escape(part.strip())}</p>' for part in experiment.setup.split("\n\n") if part.strip()),
        _readings(experiment),
        *(_figure(picture, figure) for picture in chapter.pictures),
    ]
    if chapter.judgements:
        notes: dict[str, int] = {}
        rows = "".join(_claim_row(experiment, judgement, notes) for judgement in chapter.judgements)
        headings = "".join(f'<th class="number">{word}</th>' for word in ("paper", "ours", "off by", "runs"))
        caption = _table_caption(table, f"{experiment.title}: statements of the paper, and our results.")
        parts.append(
            f'<table class="claims">{caption}<thead><tr><th>Statement</th>{headings}<th>verdict</th></tr></thead>'
            f"<tbody>{rows}</tbody></table>"
        )
        parts.append(_notes(notes))
    if chapter.failed:
        parts.append(f'<p><span class="mark differs">{chapter.failed} runs failed</span></p>')
    parts.append(f"<pre><code>{escape(chapter.repeat)}</code></pre></article>")
    return "\n".join(part for part in parts if part)


def _figure(picture: Shown, figure: Iterator[int]) -> str:
    data = base64.b64encode(picture.svg.encode()).decode()
    name = escape(picture.name)
    owner = "The paper's " if picture.title.startswith(("Figure", "Table")) else ""
    return (
        f'<figure><div class="wide"><img alt="{escape(picture.title)}" src="data:image/svg+xml;base64,{data}"></div>'
        f"<figcaption><strong>Figure {next(figure)}.</strong> {owner}{escape(picture.title)}. Numbers: "
        f'<a href="{name}.csv">{name}.csv</a></figcaption></figure>'
    )


def _readings(experiment: Experiment) -> str:
    """Return the list of the experiment's interpretations, which its claims name by a letter."""
    if not experiment.interpretations:
        return ""
    items = "".join(
        f"<li>{escape(found.says)}{_free_choices(found.free)}</li>" for found in experiment.interpretations.values()
    )
    return (
        f'<p class="readings">Readings of the points that the paper leaves open:</p><ol class="readings">{items}</ol>'
    )


def _notes(notes: Iterable[str]) -> str:
    """Return the notes below a table, numbered in this order."""
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ol class="notes">{items}</ol>' if items else ""


def _claim_row(experiment: Experiment, judgement: Judgement, notes: dict[str, int]) -> str:
    """Return a row of the table. Reasons go into `notes`, so that a reason that many rows share is printed once."""
    claim = judgement.claim
    why = ""
    reason = (too_few(judgement) + claim.why).strip()
    if reason and judgement.verdict in ("differs", "uncertain"):
        why = f"<sup>{notes.setdefault(reason, len(notes) + 1)}</sup>"
    paper = claim.shape or "" if claim.paper is None else _paper_number(claim)
    deviation = "" if judgement.deviation is None else f"{judgement.deviation:+.1%}"
    word = _WORDS[judgement.verdict]
    if claim.shape is not None and judgement.verdict == "agrees":
        word = "holds"
    place = f' <span class="where">({_place(experiment, claim.place)})</span>' if claim.place else ""
    cells = (("paper", paper), ("ours", _ours(judgement)), ("off by", deviation), ("runs", str(judgement.runs or "")))
    numbers = "".join(f'<td class="number" data-label="{name}">{text}</td>' for name, text in cells)
    return (
        f"<tr><td>{escape(claim.says)}{place}{_reading_letter(experiment, judgement)}{why}</td>{numbers}"
        f'<td><span class="mark {judgement.verdict}">{word}</span></td></tr>'
    )


def _reading_letter(experiment: Experiment, judgement: Judgement) -> str:
    """Return the letter of the interpretation that this claim uses, as in the list of readings."""
    names = list(experiment.interpretations)
    if judgement.claim.interpretation not in names:
        return ""
    letter = ascii_lowercase[names.index(judgement.claim.interpretation)]
    return f' <span class="sense">Reading ({letter})</span>'


def _free_choices(free: int) -> str:
    if not free:
        return ""
    choices = "one choice was" if free == 1 else f"{free} choices were"
    return escape(f" ({choices} fitted to the paper's numbers)")


def _paper_number(claim: Claim) -> str:
    assert claim.paper is not None
    half = paper_half_width(claim)
    spread = f" ± {_number(half, 2)}" if half else ""
    return f"{_number(claim.paper)}{spread}{escape(claim.unit)}"


def too_few(judgement: Judgement) -> str:
    """Return why a statement with too few runs has no verdict."""
    if judgement.verdict != "uncertain" or not 0 < judgement.runs < RUNS_LEAST:
        return ""
    return f"Too few runs: at least {RUNS_LEAST} are needed for a verdict. "


def _ours(judgement: Judgement) -> str:
    if judgement.ours is not None:
        may_be_less = judgement.claim.as_ in ("increase", "reduction")
        spread = f'<br><span class="spread">σ {_number(judgement.ours.deviation, 2)}</span>'
        text = estimate_text(judgement.ours, may_be_less=may_be_less) + escape(judgement.claim.unit)
        return text + (spread if judgement.ours.deviation else "")
    spans = [f"{_number(means[0])} → {_number(means[-1])}" for _, means in judgement.lines]
    return "<br>".join(dict.fromkeys(spans))


def estimate_text(value: Estimate, *, may_be_less: bool = False) -> str:
    """Return the mean and its interval; the interval ends at zero if negative values are impossible."""
    if not value.half_width:
        return _number(value.mean)
    if value.half_width > value.mean >= 0 and not may_be_less:
        return f"{_number(value.mean)} (0 to {_number(value.mean + value.half_width, 3)})"
    return f"{_number(value.mean)} ± {_number(value.half_width, 2)}"


def _number(value: float, digits: int = 4) -> str:
    """Return a readable number with enough significant digits; digits before the decimal point are never dropped."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    whole = floor(log10(abs(value))) + 1
    text = f"{value:,.{max(0, digits - whole)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

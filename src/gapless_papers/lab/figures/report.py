"""The report, laid out like a paper: abstract, method, results by paper, threats to validity, environment.

It is one self-contained HTML file with its pictures and style, and links to the CSV files next to it. Each claim states
its place in the paper, the interpretation of open points, and the number of runs behind our number.
"""

import base64
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

import msgspec

from gapless_papers.lab.experiment import Claim, Experiment
from gapless_papers.lab.figures.claims import RUNS_LEAST, Judgement, paper_half_width
from gapless_papers.lab.figures.estimate import CONFIDENCE, Estimate
from gapless_papers.lab.figures.front_matter import (
    Environment,
    abstract,
    environment_table,
    method,
    threats,
)
from gapless_papers.lab.figures.papers import PAPERS

__all__ = ["Chapter", "Origin", "Shown", "report_html", "too_few"]

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
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Gapless: the figures of the papers</title><style>{style}</style></head><body><main>",
        "<h1>The figures of the papers, measured again</h1>",
        f'<p class="lead">{escape(scale)} Numbers of ours are means over the runs; the interval is that of '
        f"{CONFIDENCE:.0%} confidence, and σ the standard deviation of single runs. Diamonds in a picture are numbers "
        "that the paper gives.</p>",
        f'<p class="origin">{escape(_origin_text(origin))}</p>',
        _missing(missing),
        '<h2 id="abstract">Abstract</h2>',
        abstract(
            [judgement for chapter in chapters for judgement in chapter.judgements],
            sum(chapter.runs for chapter in chapters),
            len(papers),
        ),
        _summary(chapters, papers),
        '<h2 id="method">Method</h2>',
        method(),
        '<p>All claims as a table: <a href="claims.csv">claims.csv</a>. To repeat this, or to go on with it:</p>',
        f"<pre><code>{escape(repeat)}</code></pre>",
    ]
    for paper in papers:
        parts.append(f'<h2 id="paper-{escape(paper)}">{escape(_paper_title(paper))}</h2>')
        parts.append(_source(paper))
        parts += [_chapter(chapter) for chapter in chapters if chapter.experiment.paper == paper]
    parts += ['<h2 id="threats">Threats to validity</h2>', threats()]
    if origin.environment is not None:
        experiments = [chapter.experiment for chapter in chapters]
        parts += ['<h2 id="environment">Environment</h2>', environment_table(origin.environment, experiments)]
    parts.append("<footer>Every run is repeatable: the same code, parameters and seed give the same numbers.</footer>")
    parts.append("</main></body></html>\n")
    return "\n".join(parts)


def _paper_title(paper: str) -> str:
    return f"{paper} · {PAPERS[paper].name}" if paper in PAPERS else paper or "Experiments"


def _origin_text(origin: Origin) -> str:
    commit = f", commit {origin.commit}" if origin.commit else ""
    code = f", code of the runs {origin.code[:12]}" if origin.code else ""
    return f"Made on {origin.date} by Gapless {origin.version}{commit}{code}."


def _missing(names: Sequence[str]) -> str:
    if not names:
        return ""
    listed = ", ".join(escape(name) for name in names)
    return f'<p><span class="mark differs">Not finished</span> Still to come: {listed}. The line below goes on.</p>'


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


def _summary(chapters: Sequence[Chapter], papers: Iterable[str]) -> str:
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
        f'<div class="wide"><table><thead><tr><th>Paper</th>{headings}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _chapter(chapter: Chapter) -> str:
    experiment = chapter.experiment
    parts = [
        f'<article id="{escape(experiment.name)}">',
        f'<p class="place">{_place(experiment, experiment.place)}</p>' if experiment.place else "",
        f"<h3>{escape(experiment.title)}</h3>",
        f'<p class="question">{escape(experiment.question)}</p>',
    ]
    for picture in chapter.pictures:
        data = base64.b64encode(picture.svg.encode()).decode()
        parts.append(
            '<figure><div class="wide">'
            f'<img alt="{escape(picture.title)}" src="data:image/svg+xml;base64,{data}"></div>'
            f'<figcaption>The numbers: <a href="{escape(picture.name)}.csv">{escape(picture.name)}.csv</a></figcaption>'
            "</figure>"
        )
    if chapter.judgements:
        rows = "".join(_claim_row(experiment, judgement) for judgement in chapter.judgements)
        headings = "".join(f'<th class="number">{word}</th>' for word in ("paper", "ours", "off by", "runs"))
        parts.append(
            f'<table class="claims"><thead><tr><th>What the paper says</th>{headings}<th></th></tr></thead>'
            f"<tbody>{rows}</tbody></table>"
        )
    if chapter.failed:
        parts.append(f'<p><span class="mark differs">{chapter.failed} runs failed</span></p>')
    if experiment.setup:
        paragraphs = "".join(f"<p>{escape(part.strip())}</p>" for part in experiment.setup.split("\n\n"))
        parts.append(
            f"<details><summary>How it is set up, and what the paper leaves open</summary>{paragraphs}</details>"
        )
    parts.append(f"<pre><code>{escape(chapter.repeat)}</code></pre></article>")
    return "\n".join(part for part in parts if part)


def _claim_row(experiment: Experiment, judgement: Judgement) -> str:
    claim = judgement.claim
    why = ""
    reason = too_few(judgement) + claim.why
    if reason and judgement.verdict in ("differs", "uncertain"):
        why = f'<span class="why">{escape(reason)}</span>'
    paper = claim.shape or "" if claim.paper is None else _paper_number(claim)
    deviation = "" if judgement.deviation is None else f"{judgement.deviation:+.1%}"
    word = _WORDS[judgement.verdict]
    if claim.shape is not None and judgement.verdict == "agrees":
        word = "holds"
    place = f' <span class="where">({_place(experiment, claim.place)})</span>' if claim.place else ""
    cells = (("paper", paper), ("ours", _ours(judgement)), ("off by", deviation), ("runs", str(judgement.runs or "")))
    numbers = "".join(f'<td class="number" data-label="{name}">{text}</td>' for name, text in cells)
    return (
        f"<tr><td>{escape(claim.says)}{place}{_sense(experiment, judgement)}{why}</td>{numbers}"
        f'<td><span class="mark {judgement.verdict}">{word}</span></td></tr>'
    )


def _sense(experiment: Experiment, judgement: Judgement) -> str:
    """Return the interpretation of the paper that this claim uses."""
    found = experiment.interpretations.get(judgement.claim.interpretation)
    if found is None:
        return '<span class="sense">Read as: the setup below</span>'
    return f'<span class="sense">Read as: {escape(found.says)}{_free_choices(found.free)}</span>'


def _free_choices(free: int) -> str:
    if not free:
        return ""
    choices = "one choice was" if free == 1 else f"{free} choices were"
    return f" ({choices} made so that the numbers fit)"


def _paper_number(claim: Claim) -> str:
    assert claim.paper is not None
    half = paper_half_width(claim)
    spread = f" ± {_number(half, 2)}" if half else ""
    return f"{_number(claim.paper)}{spread}{escape(claim.unit)}"


def too_few(judgement: Judgement) -> str:
    """Return why a number with too few runs has no verdict."""
    if judgement.claim.paper is None or not 0 < judgement.runs < RUNS_LEAST:
        return ""
    return f"Too few runs: a number is judged by at least {RUNS_LEAST}. "


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
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    text = f"{value:,.{max(0, digits - whole)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

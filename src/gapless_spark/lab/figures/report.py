"""The report: every experiment with its question, its pictures, ours beside the paper's, and how to repeat it.

One HTML file that needs nothing else: pictures and style are inside.
"""

import base64
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

import msgspec

from gapless_spark.lab.experiment import Experiment
from gapless_spark.lab.figures.claims import Judgement
from gapless_spark.lab.figures.estimate import CONFIDENCE, Estimate

__all__ = ["PAPERS", "Chapter", "Shown", "report_html"]

PAPERS = {
    "001": "LoCaPS: localized causal publish-subscribe",
    "002": "VCube-PS: causal broadcast per topic over a virtual hypercube",
    "003": "Delta: publish/subscribe that bypasses δ failed neighbours",
    "004": "Reliability by epidemic algorithms",
}

_WORDS = {"agrees": "agrees", "differs": "differs", "uncertain": "cannot tell", "unmeasured": "not measured"}
"""For each verdict."""


class Shown(msgspec.Struct, frozen=True):
    """One picture of an experiment."""

    name: str
    title: str
    svg: str


class Chapter(msgspec.Struct, frozen=True):
    """One experiment, ready to be shown."""

    experiment: Experiment
    runs: int
    pictures: tuple[Shown, ...]
    judgements: tuple[Judgement, ...]
    repeat: str
    failed: int = 0


def report_html(chapters: Sequence[Chapter], *, scale: str, repeat: str) -> str:
    """The page."""
    style = files("gapless_spark.lab.figures").joinpath("report.css").read_text(encoding="utf-8")
    papers = list(dict.fromkeys(chapter.experiment.paper for chapter in chapters))
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Gapless: the figures of the papers</title><style>{style}</style></head><body><main>",
        "<h1>The figures of the papers, measured again</h1>",
        f'<p class="lead">{escape(scale)} Numbers of ours are means over the runs; the interval is that of '
        f"{CONFIDENCE:.0%} confidence. Diamonds in a picture are numbers that the paper gives.</p>",
        _summary(chapters, papers),
        f"<pre><code>{escape(repeat)}</code></pre>",
    ]
    for paper in papers:
        parts.append(f'<h2 id="paper-{escape(paper)}">{escape(_paper_title(paper))}</h2>')
        parts += [_chapter(chapter) for chapter in chapters if chapter.experiment.paper == paper]
    parts.append("<footer>Every run is repeatable: the same code, parameters and seed give the same numbers.</footer>")
    parts.append("</main></body></html>\n")
    return "\n".join(parts)


def _paper_title(paper: str) -> str:
    return f"{paper} · {PAPERS[paper]}" if paper in PAPERS else paper or "Experiments"


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
    return f"<table><thead><tr><th>Paper</th>{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _chapter(chapter: Chapter) -> str:
    experiment = chapter.experiment
    parts = [
        f'<article id="{escape(experiment.name)}">',
        f'<p class="place">{escape(experiment.place)}</p>' if experiment.place else "",
        f"<h3>{escape(experiment.title)}</h3>",
        f'<p class="question">{escape(experiment.question)}</p>',
    ]
    for picture in chapter.pictures:
        data = base64.b64encode(picture.svg.encode()).decode()
        parts.append(
            f'<figure><img alt="{escape(picture.title)}" src="data:image/svg+xml;base64,{data}">'
            f"<figcaption>The numbers: <code>{escape(picture.name)}.csv</code></figcaption></figure>"
        )
    if chapter.judgements:
        rows = "".join(_claim_row(judgement) for judgement in chapter.judgements)
        parts.append(
            '<table><thead><tr><th>What the paper says</th><th class="number">paper</th><th class="number">ours</th>'
            f'<th class="number">deviation</th><th></th></tr></thead><tbody>{rows}</tbody></table>'
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


def _claim_row(judgement: Judgement) -> str:
    claim = judgement.claim
    why = ""
    if claim.why and judgement.verdict in ("differs", "uncertain"):
        why = f'<span class="why">{escape(claim.why)}</span>'
    paper = claim.shape or "" if claim.paper is None else f"{_number(claim.paper)}{escape(claim.unit)}"
    deviation = "" if judgement.deviation is None else f"{judgement.deviation:+.1%}"
    word = _WORDS[judgement.verdict]
    if claim.shape is not None and judgement.verdict == "agrees":
        word = "holds"
    return (
        f'<tr><td>{escape(claim.says)}{why}</td><td class="number">{paper}</td>'
        f'<td class="number">{_ours(judgement)}</td><td class="number">{deviation}</td>'
        f'<td><span class="mark {judgement.verdict}">{word}</span></td></tr>'
    )


def _ours(judgement: Judgement) -> str:
    if judgement.ours is not None:
        return estimate_text(judgement.ours) + escape(judgement.claim.unit)
    spans = [f"{_number(means[0])} → {_number(means[-1])}" for _, means in judgement.lines]
    return "<br>".join(dict.fromkeys(spans))


def estimate_text(value: Estimate) -> str:
    """The mean and its interval."""
    if not value.half_width:
        return _number(value.mean)
    return f"{_number(value.mean)} ± {_number(value.half_width, 2)}"


def _number(value: float, digits: int = 4) -> str:
    """Readable: so many digits that count, none lost before the point."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    text = f"{value:,.{max(0, digits - whole)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

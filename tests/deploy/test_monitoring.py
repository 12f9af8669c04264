"""The Grafana dashboard and the alert rules use only metrics, labels and kinds that brokers export."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.metrics import Metrics
from gapless.runtime.waiting import KINDS
from tests.runtime.local import local

PLACE = Path(__file__).parents[2] / "deploy" / "monitoring"
ELSEWHERE = {"up"}
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "info": ("_info",)}
FUNCTIONS = {
    "abs", "and", "by", "count", "histogram_quantile", "increase", "max", "max_over_time", "min", "or", "rate", "sum",
    "time", "topk",
}  # fmt: skip


@cache
def names_of_a_broker(protocol: str) -> frozenset[str]:
    async def main() -> str:
        async with local(chain(2), f=0, protocol=protocol) as network:
            return Metrics(network.brokers["b0"]).text().decode()

    families = text_string_to_metric_families(run(main()))
    return frozenset(
        f"{family.name}{suffix}" for family in families for suffix in SUFFIXES.get(family.type, ("",))
    )  # fmt: skip


def dashboard() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((PLACE / "grafana.json").read_text(encoding="utf-8"))
    return document


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((PLACE / "alerts.yml").read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def metrics_in(expression: str) -> set[str]:
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\"[^\"]*\"|\bby\s*\([^)]*\)", " ", expression)
    return set(re.findall(r"\b[a-z_][a-z_0-9]*\b", bare)) - FUNCTIONS


@pytest.mark.parametrize("protocol", ["gapless"])
def test_every_metric_that_is_asked_for_exists(protocol: str) -> None:
    asked = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]
    asked += [rule["expr"] for rule in rules()]
    named = {name for expression in asked for name in metrics_in(expression)}
    assert len(named) > 25
    assert named - ELSEWHERE - names_of_a_broker(protocol) == set()


def test_waits_have_the_names_that_brokers_give_them() -> None:
    kinds = {kind for rule in rules() for kind in re.findall(r'kind="([^"]+)"', rule["expr"])}
    assert kinds
    assert kinds <= set(KINDS)


def test_each_rule_explains_itself_and_names_the_action() -> None:
    found = rules()
    assert len({rule["alert"] for rule in found}) == len(found) > 10
    for rule in found:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert set(rule["annotations"]) == {"summary", "description"}
        assert len(rule["annotations"]["description"].split()) > 8, rule["alert"]


def test_the_panels_do_not_overlap_and_say_what_they_show() -> None:
    taken: set[tuple[int, int]] = set()
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
        if panel["type"] != "row":
            assert panel["description"]
            assert panel["targets"]

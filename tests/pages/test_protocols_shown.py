"""The table of protocols agrees with their specifications, and each protocol has a page that opens with a picture."""

import re

from gapless.registry import protocols
from tests.pages.page import ROOT, read

PAGE = "docs/protocols/index.md"

PROMISES = {
    "gcd": "gapless causal delivery",
    "gfd": "gapless FIFO delivery",
    "topic-causal": "causal order in each topic",
    "best-effort": "best effort",
}
FAULTS = {
    "clock": "wrong clocks",
    "blackout": "full outages",
    "crash": "crashes",
    "cut": "cuts",
    "disk": "bad disks",
    "duplication": "duplication",
    "loss": "loss",
    "partition": "partitions",
    "relink": "changing trees",
    "restart": "restarts",
    "suspicion": "wrong suspicions",
}


def test_the_table_lists_what_each_protocol_claims() -> None:
    rows = re.findall(r"^\| \[`(\w+)`\]\(\w+\.md\) \| ([^|]+) \| ([^|]+) \|$", read(PAGE), re.MULTILINE)
    documented = {name: (promise, set(faults.split(", "))) for name, promise, faults in rows}
    claimed = {
        name: (PROMISES[spec.guarantee], {FAULTS[fault] for fault in spec.copes_with} or {"no faults"})
        for name, spec in protocols().items()
    }
    assert documented == claimed


def test_each_protocol_has_a_page_that_opens_with_a_run() -> None:
    for name in protocols():
        text = (ROOT / "docs" / "protocols" / f"{name}.md").read_text(encoding="utf-8")
        assert re.match(rf"# `{name}`\n\n!\[[^]]+\]\(\.\./images/{name}\.svg\)\n\n\*A run\.\*", text), name

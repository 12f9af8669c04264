"""Permission checks without a network: names that a client may hold, and the order of checks."""

from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest

from gapless.errors import CallError, DeniedError
from gapless.filters import Filter
from gapless.protocol import BrokerNode, Demand, Effect, Input, Judging
from gapless.runtime import request_checks
from gapless.runtime.audit_log import AuditLog
from gapless.runtime.connection import Link
from gapless.runtime.event_loop import run
from gapless.runtime.host import UNJUDGED
from gapless.runtime.logs import logger_of
from gapless.runtime.request_checks import Gate
from gapless.security import filter_limits
from gapless.security.identity import Identity
from gapless.security.permissions import Within

from .secure import Secure, secure

SHOP = {"subscribe": ["topic LIKE 'shop/%'"], "publish": []}
OPEN = Demand({"ann:c/s1": "topic = 'shop/x'"}, named={"ann:c/s1": "orders-1"})


class Node(BrokerNode):
    def step(self, item: Input, now: int) -> list[Effect]:
        return []

    def state_size(self) -> dict[str, int]:
        return {}


def attach(*texts: str) -> Demand:
    return Demand({f"ann:c/s{number}": text for number, text in enumerate(texts)}, is_resuming=True)


class _Asked:
    def __init__(self, network: Secure) -> None:
        broker_security = network.brokers["b0"].broker_security
        assert broker_security is not None
        self.refusals: dict[str, str] = {}
        judging = Judging(lambda message: message, self._rewrite, text_max=2_000, effort_max=200)
        self.node = Node()
        audit = AuditLog("", "b0", logger_of("b0"))
        self.worked_ns = 0
        self._gate = Gate(
            broker_security, judging, audit, deny=self._deny, node=lambda: self.node,
            processor_ns=lambda: self.worked_ns,
        )  # fmt: skip
        self._link = Link("ann:c", is_client=True)
        self._gate.add_connection(self._link, Identity("user", "ann", "certificate"), "127.0.0.1")

    def _deny(self, link: Link, name: str, reason: str) -> None:
        self.refusals[name] = reason

    @staticmethod
    def _rewrite(message: Any, filters: Any, without: Set[str]) -> Any:
        return None if without else message

    def judge(self, asked: Demand) -> Any:
        return self._gate.judge(self._link, asked)

    def decide(self, asked: Demand) -> Any:
        while (found := self.judge(asked)) is UNJUDGED:
            pass
        return found

    def wait_s(self) -> float:
        return self._gate.wait_s(self._link, 0)


@pytest.mark.parametrize(
    ("named", "name", "may"),
    [
        (True, "anything", True),
        (False, "orders-1", False),
        ([], "orders-1", False),
        (["orders-%", "it's"], "orders-1", True),
        (["orders-%", "it's"], "it's", True),
        (["orders-%"], "bills-1", False),
        (["${user}-%"], "ann-1", True),
        (["${user}-%"], "bob-1", False),
    ],
)
def test_durable_subscriptions_need_the_right_to_their_name(named: Any, name: str, may: bool, tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": {**SHOP, "named": named}}) as network:
            at_gate = _Asked(network)
            asked = Demand(OPEN.subscriptions, named={"ann:c/s1": name})
            assert at_gate.decide(asked) is (asked if may else None)
            if not may:
                why = at_gate.refusals["ann:c/s1"]
                assert f"user 'ann' may not hold a subscription under the name {name!r}; " in why
                allowed = f"only {named[0]!r} is".replace("${user}", "ann") if named else "no name is"
                assert why.endswith(f"; {allowed} allowed")
                with pytest.raises(DeniedError, match="may not hold a subscription under the name"):
                    at_gate.decide(Demand(named={"ann:c/s1": name}))  # for example, to acknowledge an event of it

    run(main())


def test_a_name_does_not_help_where_the_filter_may_not_be_had(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": {**SHOP, "named": True}}) as network:
            at_gate = _Asked(network)
            assert at_gate.decide(Demand({"ann:c/s1": "TRUE"}, named={"ann:c/s1": "orders"})) is None
            assert "may not subscribe to 'TRUE'" in at_gate.refusals["ann:c/s1"]

    run(main())


def test_a_name_is_lost_with_the_right_to_it_and_the_list_of_all_takes_a_right(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": {**SHOP, "named": True}}) as network:
            at_gate = _Asked(network)
            assert at_gate.decide(OPEN) is OPEN
            assert at_gate.decide(Demand(listing="ann:c/q1")) is None
            assert "may not list all durable subscriptions; this requires status = true" in at_gate.refusals["ann:c/q1"]
            network.set_users({"ann": {**SHOP, "named": ["bills-%"], "status": True}})
            await network.reload()
            assert at_gate.decide(OPEN) is None
            listing = Demand(listing="ann:c/q2")
            assert at_gate.decide(listing) is listing

    run(main())


# ---- state that a client supplies when it attaches ------------------------------------------------------------

NEWS = "topic = 'shop/news' AND n = {}"


def test_many_filters_are_judged_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_checks, "PIECE_US", -1)  # one piece in each turn

    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": SHOP}) as network:
            at_gate = _Asked(network)
            asked = attach(*(NEWS.format(number) for number in range(5)), "topic = 'bank'")
            answers = [at_gate.judge(asked) for _ in range(12)]
            assert answers == [UNJUDGED] * 12, "each filter is understood, and then judged"
            assert at_gate.judge(asked) is None
            assert [*at_gate.refusals] == ["ann:c/s5"]

    run(main())


def test_a_user_that_is_revoked_while_its_filters_are_judged_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_checks, "PIECE_US", -1)

    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": SHOP}) as network:
            at_gate = _Asked(network)
            asked = attach(NEWS.format(1), NEWS.format(2))
            assert [at_gate.judge(asked) for _ in range(3)] == [UNJUDGED] * 3
            network.set_users({})
            await network.reload()
            with pytest.raises(DeniedError, match="was revoked"):
                at_gate.judge(asked)

    run(main())


def test_too_much_text_is_refused_before_any_of_it_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(text: str) -> Filter:
        raise AssertionError(text)

    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": SHOP}) as network:
            at_gate = _Asked(network)
            monkeypatch.setattr(filter_limits, "parse", never)
            with pytest.raises(CallError, match=r"have 2,0\d\d characters, but 2,000 is the limit"):
                at_gate.decide(attach("topic = 'shop/x' OR " + "x" * 2_000))
            monkeypatch.undo()

    run(main())


def test_filters_that_are_too_complex_are_refused_before_they_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(self: Within, text: str) -> bool:
        raise AssertionError(text)

    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": SHOP}) as network:
            at_gate = _Asked(network)
            monkeypatch.setattr(Within, "covers", never)
            costly = " AND ".join(f"(x <> {n} OR y <> {n})" for n in range(5))
            with pytest.raises(CallError, match="take more than 200 steps to be parsed"):
                at_gate.decide(attach(costly))

    run(main())


def test_a_user_that_has_taken_its_share_of_the_processor_has_to_wait(tmp_path: Path) -> None:
    async def main() -> None:
        users = {"ann": {**SHOP, "limits": {"attach_share": 0.001}}}
        async with secure(1, tmp_path, f=0, users=users) as network:
            at_gate = _Asked(network)
            asked = attach(NEWS.format(1))
            assert at_gate.decide(asked) is asked
            assert at_gate.wait_s() == 0
            assert at_gate.decide(asked) is asked
            at_gate.worked_ns += 3_000_000_000
            assert at_gate.wait_s() > 1_000, "two seconds too much, of which 0.001 are paid a second"
            assert at_gate.judge(asked) is UNJUDGED
            ended = Demand(ended="ann:c/s9")
            assert at_gate.decide(ended) is ended

    run(main())


def test_a_connection_that_attaches_again_and_again_has_to_wait(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": SHOP}) as network:
            at_gate = _Asked(network)
            waits = []
            for _ in range(15):
                at_gate.decide(attach())
                waits.append(at_gate.wait_s())
            assert waits[0] == 0
            assert waits[-1] > 0

    run(main())

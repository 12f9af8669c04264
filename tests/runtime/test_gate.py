"""The gate alone, asked in the words of any protocol: who may hold which names in the network."""

from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest

from gapless.errors import DeniedError
from gapless.protocol import Demand, Judging
from gapless.runtime.audit_log import AuditLog
from gapless.runtime.connection import Link
from gapless.runtime.event_loop import run
from gapless.runtime.gate import Gate
from gapless.runtime.logs import logger_of
from gapless.security.identity import Identity

from .secure import Secure, secure

SHOP = {"subscribe": ["topic LIKE 'shop/%'"], "publish": []}
OPEN = Demand({"ann:c/s1": "topic = 'shop/x'"}, named={"ann:c/s1": "orders-1"})


class _Asked:
    """A gate at which Ann stands, and what it told her."""

    def __init__(self, network: Secure) -> None:
        doors = network.brokers["b0"].doors
        assert doors is not None
        self.told: dict[str, str] = {}
        judging = Judging(lambda message: message, self._rewrite)
        self._gate = Gate(doors, judging, AuditLog("", "b0", logger_of("b0")), deny=self._deny, node=lambda: None)
        self._link = Link("ann:c", is_client=True)
        self._gate.came(self._link, Identity("user", "ann", "certificate"))

    def _deny(self, link: Link, name: str, reason: str) -> None:
        self.told[name] = reason

    @staticmethod
    def _rewrite(message: Any, filters: Any, without: Set[str]) -> Any:
        return None if without else message

    def judge(self, asked: Demand) -> Any:
        return self._gate.judge(self._link, asked)


@pytest.mark.parametrize(
    ("named", "name", "may"),
    [
        (True, "anything", True),
        (False, "orders-1", False),
        ([], "orders-1", False),
        (["orders-%", "it's"], "orders-1", True),
        (["orders-%", "it's"], "it's", True),
        (["orders-%"], "bills-1", False),
    ],
)
def test_names_are_for_who_may_hold_them(named: Any, name: str, may: bool, tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": {**SHOP, "named": named}}) as network:
            at_gate = _Asked(network)
            asked = Demand(OPEN.subscriptions, named={"ann:c/s1": name})
            assert at_gate.judge(asked) is (asked if may else None)
            if not may:
                why = at_gate.told["ann:c/s1"]
                assert f"user 'ann' may not hold a subscription under the name {name!r}; " in why
                assert why.endswith("'orders-%' is allowed" if named else "no name is allowed")
                with pytest.raises(DeniedError, match="may not hold a subscription under the name"):
                    at_gate.judge(Demand(named={"ann:c/s1": name}))  # to confirm something of it, say

    run(main())


def test_a_name_does_not_help_where_the_filter_may_not_be_had(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": {**SHOP, "named": True}}) as network:
            at_gate = _Asked(network)
            assert at_gate.judge(Demand({"ann:c/s1": "TRUE"}, named={"ann:c/s1": "orders"})) is None
            assert "may not subscribe to 'TRUE'" in at_gate.told["ann:c/s1"]

    run(main())


def test_a_name_is_lost_with_the_right_to_it_and_the_list_of_all_takes_a_right(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": {**SHOP, "named": True}}) as network:
            at_gate = _Asked(network)
            assert at_gate.judge(OPEN) is OPEN
            assert at_gate.judge(Demand(listing="ann:c/q1")) is None
            assert "may not see all names; that takes status = true" in at_gate.told["ann:c/q1"]
            network.set_users({"ann": {**SHOP, "named": ["bills-%"], "status": True}})
            await network.reload()
            assert at_gate.judge(OPEN) is None
            listing = Demand(listing="ann:c/q2")
            assert at_gate.judge(listing) is listing

    run(main())

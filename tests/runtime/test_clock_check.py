"""Wrong clocks of hosts are reported, keep a broker out if they are far off, and never affect a running broker."""

import asyncio
from typing import Any

import pytest

import gapless
from gapless.overlay import chain
from gapless.runtime import clock_check
from gapless.runtime.access import CLEAR
from gapless.runtime.clock_check import ClockCheck, Difference
from gapless.runtime.diagnosis import diagnose
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import local_network
from gapless.runtime.logs import logger_of
from gapless.runtime.probe import probe
from gapless.runtime.report_query import ask_all
from gapless.runtime.wire import Welcome

from .local import Local, local
from .logged import logged

DAY_S = 86_400.0


def check_of(**ahead_s: float) -> ClockCheck:
    check = ClockCheck(local_network(5), "b0", CLEAR, logger_of("b0"))
    check.differences = {peer: Difference(seconds, 0.01) for peer, seconds in ahead_s.items()}
    return check


def test_a_clock_is_wrong_if_it_differs_from_those_of_most() -> None:
    assert not check_of().is_wrong()
    assert not check_of(b1=0.2, b2=-0.4, b3=DAY_S).is_wrong(), "one of three is wrong, and that is not we"
    assert not check_of(b1=0.2, b2=DAY_S).is_wrong(), "nobody knows which"
    assert check_of(b1=0.6, b2=0.7, b3=0.0).is_wrong()
    assert not check_of(b1=0.6, b2=0.7, b3=0.0).is_wrong(times=10)
    assert check_of(b1=-6.0, b2=-7.0, b3=0.0).is_wrong(times=10)


def test_a_slow_answer_has_little_weight() -> None:
    check = check_of()
    check.differences = {"b1": Difference(0.9, 0.5)}
    assert not check.is_wrong()


async def until_waiting(network: Local, name: str) -> str:
    while name not in network.brokers or not network.brokers[name].clocks.complaint:
        await asyncio.sleep(0.01)
    return network.brokers[name].clocks.complaint


def test_a_broker_whose_clock_is_far_off_joins_after_the_clock_is_corrected() -> None:
    async def main() -> None:
        async with local(chain(5), f=1) as network:
            for ahead_s in (DAY_S, -3_600.0):
                await network.crash("b2")
                with logged() as log:
                    starting = asyncio.create_task(network.start("b2", ahead_s=ahead_s))
                    side = "86,400.0 s ahead of" if ahead_s > 0 else "3,600.0 s behind"
                    complaint = await until_waiting(network, "b2")
                    assert complaint.startswith(f"for the clock of its host to be set: it is {side} those of most")
                    assert not network.brokers["b2"].is_ready
                    assert any("for the clock of its host" in line for line in log.of("b2"))
                network.ahead_s["b2"] = 0.0
                await starting
                assert network.brokers["b2"].is_ready
                assert not network.brokers["b2"].clocks.complaint

    run(main())


def test_a_broker_with_a_difference_below_the_second_bound_joins_and_reports_it() -> None:
    async def main() -> None:
        async with local(chain(3), f=1) as network:
            await network.crash("b2")
            with logged() as log:
                broker = await network.start("b2", ahead_s=2.0)
                while not log.of("b2", "the clock of this host is 2.0 s ahead of those of most"):
                    await asyncio.sleep(0.01)
            found = broker.report()["clock"]
            assert found["is_wrong"]
            assert abs(found["ahead_s"] - 2.0) < 0.4
            assert set(found["compared_with"]) <= {"b0", "b1"}

    run(main())


def test_positions_do_not_follow_a_clock_that_is_set_while_a_broker_runs() -> None:
    async def main() -> None:
        async with local(chain(3), f=1) as network, gapless.connect(network.at("b1"), name="ann") as ann:
            await ann.advertise("TRUE")
            subscription = await ann.subscribe("TRUE")
            moments = []
            for ahead_s in (0.0, DAY_S, -DAY_S, 3_650 * DAY_S):
                network.ahead_s = dict.fromkeys(network.ahead_s, ahead_s)
                await ann.publish({"ahead": ahead_s})
                moments += [event.position.timestamp for event in await subscription.take()]
            assert moments == sorted(moments)
            assert moments[-1] - moments[0] < 60_000_000
            answers = await ask_all(network.config.addresses, CLEAR)
            assert answers["b1"].report is not None
            assert answers["b1"].report["clock"]["jump_s"] > 3_649 * DAY_S
            [first, *_] = diagnose(answers, network.config.addresses)
            assert "was set forward by" in first.what

    run(main())


def test_a_broker_whose_clock_is_far_off_does_not_join() -> None:
    """The others accept its connections, but answer later than it waits."""

    async def main() -> None:
        async with local(chain(3), f=1) as network:
            await network.crash("b2")
            asked = 0

            async def busy(address: str, **more: Any) -> Welcome:
                nonlocal asked
                asked += 1
                if asked <= len(network.config.addresses):
                    raise TimeoutError
                return await probe(address, **more)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(clock_check, "probe", busy)
                patch.setattr(clock_check, "ASK_AGAIN_S", 0.1)
                starting = asyncio.create_task(network.start("b2", ahead_s=DAY_S))
                complaint = await until_waiting(network, "b2")
                assert "86,400.0 s ahead of those of most" in complaint
                network.ahead_s["b2"] = 0.0
                await starting

    run(main())

"""A subscription whose events are not taken blocks the others of its client, and the log names it."""

import asyncio
import logging

import pytest

from gapless.client import connect, pacing
from gapless.runtime.event_loop import run
from tests.runtime.local import local
from tests.runtime.secure import until

WINDOW = 20


@pytest.mark.parametrize("is_reading", [True, False])
def test_the_peers_that_a_call_waits_for_are_named(
    is_reading: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pacing, "PATIENCE_S", 0.3)

    async def main() -> None:
        async with local(1, f=0, delivery_window=WINDOW) as network, connect(network.url, name="c") as client:
            await client.advertise("TRUE")
            if is_reading:
                await client.publish_many({"n": n} for n in range(3 * WINDOW))
                forgotten = await client.read("n >= 0")
            else:
                forgotten = await client.subscribe("n >= 0")
                await client.publish_many({"n": n} for n in range(3 * WINDOW))
            await until(lambda: forgotten.backlog == WINDOW)
            await asyncio.sleep(2 * pacing.PATIENCE_S)
            assert not caplog.text, "there is nobody else"
            reading = asyncio.ensure_future(client.read("n < 1"))
            await until(lambda: "blocks all other" in caplog.text)
            assert f"{forgotten.id} (to 'n >= 0') blocks all other subscriptions and reads" in caplog.text
            assert f"{WINDOW} of its events are pending" in caplog.text
            async with asyncio.timeout(30):
                for _ in range(3 * WINDOW):
                    await anext(forgotten)
                other = await reading
                assert [event.attributes["n"] async for event in other] == [0]

    with caplog.at_level(logging.WARNING, "gapless.client"):
        run(main())


class _Waiting:
    filter = "TRUE"
    _holds_back = True

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)

    def _oldest(self) -> int | None:
        return self.numbers[0] if self.numbers else None


def test_one_that_takes_its_time_is_not_complained_of(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        reported: list[int] = []
        slow, other = _Waiting(1, 2), _Waiting()
        watched = pacing.Pacing(
            "c",
            {"s1": slow, "s2": other},
            lambda consumed: reported.append(consumed.count),
            sends_reports=True,
            window=2,
        )
        assert [watched.delivered() for _ in range(2)] == [1, 2]
        slow.numbers.pop(0)
        watched.took()
        await asyncio.sleep(0)
        assert reported == [1]
        slow.numbers.append(watched.delivered())
        watched._look(2, 0)  # as the timer would call it
        assert not caplog.text
        watched._look(3, 1)
        assert "s1 (to 'TRUE') blocks all other" in caplog.text

    with caplog.at_level(logging.WARNING, "gapless.client"):
        run(main())

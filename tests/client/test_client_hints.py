"""A client logs a hint, once, for a name with a hyphen, which a filter can parse as a subtraction."""

import logging

import pytest

from gapless.client import connect
from gapless.client.hints import hint_at_filter, hint_at_name
from gapless.runtime.event_loop import run
from tests.runtime.local import local


@pytest.fixture(autouse=True)
def _reset_hints() -> None:
    hint_at_filter.cache_clear()
    hint_at_name.cache_clear()


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_a_published_name_with_a_hyphen_gets_a_hint_about_filters(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            for number in range(3):
                await client.publish({"order-id": number, "x:y": 1, "price": 2})

    run(main())
    [hint] = logged(caplog)
    assert hint == (
        'filters have to write the attribute order-id in double quotes, "order-id": without them it is a subtraction'
    )


@pytest.mark.parametrize("call", ["subscribe", "advertise"])
def test_a_hint_about_a_subtraction_is_given_once(call: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            for _ in range(2):
                await getattr(client, call)("order-id = 1")

    run(main())
    [hint] = logged(caplog)
    assert "order-id is a subtraction here" in hint
    assert 'write "order-id"' in hint


def test_a_quoted_name_matches_and_gets_no_hint(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise('"in" IS NOT NULL')
            subscription = await client.subscribe('"in" = 1 AND a - b > 0')
            event = await client.publish({"in": 1, "a": 3, "b": 1})
            assert (await anext(aiter(subscription))).id == event.id

    run(main())
    assert logged(caplog) == []


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("topic = price", "price is the name of an attribute here: if you mean a string, write 'price'"),
        ("name LIKE 'a*'", "if you mean any text, write LIKE 'a%'"),
    ],
)
def test_missing_quotes_and_stars_get_a_hint(text: str, hint: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.subscribe(text)

    run(main())
    [said] = logged(caplog)
    assert hint in said

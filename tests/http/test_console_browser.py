"""The console in a real browser, on a network of broker processes."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gapless.causes import caused_by
from gapless.client import Client, connect
from gapless.overlay import Overlay, chain
from tests.runtime.local import QUICK
from tests.runtime.secure import secure

from .browser import Site, needs_axe, needs_browser, new_page, problems_of, take_picture, visited
from .serving import Serving, serving, serving_secure

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

TREE = Overlay(("b0", "b1", "b2", "b3", "b4"), (("b0", "b1"), ("b0", "b2"), ("b1", "b3"), ("b1", "b4")))
SLOW_SUSPICION = msgspec.structs.replace(QUICK, suspect_ms=1_500)
VIEWS = ("network", "clients", "events", "causes", "metrics", "log")
FOLLOWS = {"order": ("payment", "reservation"), "payment": ("invoice",), "reservation": ("shipping",)}
PAUSE_S = 0.1
FAR_MS = 600.0
PAST_S = 10.0
PLOTTED_BEFORE_S = """() => {
    const begins = document.querySelectorAll('.chart svg text')[3].textContent;
    const [hours, minutes, seconds] = begins.split(':').map(Number);
    const begin = new Date(performance.timeOrigin).setHours(hours, minutes, seconds);
    return (performance.timeOrigin - begin) / 1000;
}"""


class Shop:
    def __init__(self, front: Client, back: Client) -> None:
        self._front, self._back = front, back
        self._reacts = asyncio.Event()

    async def order(self, number: int) -> None:
        attributes = {"topic": "order", "order": number, "amount": 5 + number * 7 % 90, "country": "DE"}
        await self._front.publish({**attributes, "datacontenttype": "application/json"}, b'{"customer": 12}')

    async def trade(self) -> None:
        await self._reacts.wait()
        number = 0
        while True:
            await self.order(number := number + 1)
            await asyncio.sleep(PAUSE_S)

    async def react(self) -> None:
        async with self._back.subscribe("topic IN ('order', 'payment', 'reservation')") as events:
            self._reacts.set()
            async for event in events:
                for topic in FOLLOWS[str(event.attributes["topic"])]:
                    await self._back.publish(
                        {"topic": topic, "order": event.attributes["order"], **caused_by(event)}, b"by the shop"
                    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with visited(TREE, tmp_path_factory.mktemp("site"), SLOW_SUSPICION) as made:
        yield made


@asynccontextmanager
async def trading(site: Site, front: str, back: str) -> AsyncIterator[Shop]:
    async with (
        connect(site.at(front), name="storefront") as one,
        connect(site.at(back), name="warehouse") as other,
    ):
        await one.advertise("topic = 'order'")
        await other.advertise("topic <> 'order'")
        shop = Shop(one, other)
        tasks = [asyncio.ensure_future(work) for work in (shop.react(), shop.trade())]
        try:
            yield shop
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


@needs_browser
def test_a_broker_that_is_killed_is_drawn_and_events_are_followed(site: Site, tmp_path: Path) -> None:
    async def main() -> None:
        from playwright.async_api import expect

        async with trading(site, "b1", "b2"):
            page, wrong = await new_page(site.browser)
            await page.goto(site.url("b0"))
            await expect(page.locator("#health")).to_have_text("● All 5 brokers up")
            await expect(page.locator(".tree .node")).to_have_count(5)
            site.fleet.kill("b4")
            await expect(page.get_by_label("Broker b4, down")).to_be_visible()
            await expect(page.locator(".happened")).to_contain_text("b4 is down")
            await expect(page.locator(".happened")).to_contain_text("excluded b4")
            await expect(page.locator(".findings")).to_contain_text("b4 is not running")
            await expect(page.locator("#health")).to_have_text("✕ 1 of 5 brokers down")
            await page.get_by_label("Broker b4, down").focus()
            await page.keyboard.press("Enter")
            await expect(page.get_by_label("The chosen broker")).to_contain_text("Nothing listens")
            await page.get_by_label("Broker b1, up").click()
            await expect(page.get_by_label("The chosen broker")).to_contain_text("Takes over forb4")
            await expect(page.locator(".tree .replaces title")).to_have_text("b1 takes over for b4")
            await expect(page.locator(".tree .rate")).to_have_text([re.compile(r"^[\d.]+ k?B/s$")] * 3)
            await take_picture(page, "network", tmp_path)
            await _read_logs(page, tmp_path)
            await _follow(page, tmp_path)
            site.fleet.start("b4")
            await page.goto(f"{site.url('b0')}/#network")
            await expect(page.locator(".happened")).to_contain_text("b4 is up again")
            await expect(page.locator("#health")).to_have_text("● All 5 brokers up")
            assert wrong == []
            await page.context.close()

    site.run(main())


@asynccontextmanager
async def flooding(address: str) -> AsyncIterator[Client]:
    async def flood() -> None:
        while True:
            await client.publish_many(({"topic": "flood"}, bytes(1_000)) for _ in range(1_000))

    async with connect(address, name="flood") as client:
        await client.advertise("topic = 'flood'")
        task = asyncio.ensure_future(flood())
        try:
            yield client
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@needs_browser
def test_blocked_publishers_handovers_and_deficits_are_shown_as_they_happen(site: Site, tmp_path: Path) -> None:
    """Delays between brokers make a handover last long enough for consoles to show it."""

    async def main() -> None:
        from playwright.async_api import expect

        far = msgspec.structs.replace(SLOW_SUSPICION, delay_ms=FAR_MS)
        async with serving(TREE, runtime=far) as http, flooding(http.network.at("b2")) as client:
            page, wrong = await new_page(site.browser)
            await page.goto(http.url("b0"))
            missing = page.locator(".tile").filter(has_text="Under-replicated")
            blocked = page.locator(".tile").filter(has_text="Blocked")
            happened = page.locator(".happened")
            await expect(page.locator("#health")).to_have_text("● All 5 brokers up")
            await expect(missing).to_contain_text("events at b2")
            await expect(missing).not_to_have_class(re.compile("bad"))

            await page.get_by_role("link", name="Clients", exact=True).click()
            await expect(page.locator(".finding").first).to_have_text("Nothing blocks publishers.")
            await http.network.crash("b1")
            await expect(page.locator(".finding").first).to_contain_text(f"until then {client.name} cannot publish")
            row = page.get_by_role("table", name="Clients").get_by_role("row").filter(has_text=client.name)
            await expect(row).to_contain_text("cannot publish")
            await take_picture(page, "blocked", tmp_path)
            await page.get_by_role("link", name="Network", exact=True).click()
            await expect(blocked).to_contain_text("1 publisher")
            await expect(happened).to_contain_text("excluded b1")
            await expect(blocked).to_contain_text("0 publishers")

            await http.network.start("b1")
            await expect(page.locator(".tree .region")).not_to_have_count(0)
            await take_picture(page, "handover", tmp_path)
            await expect(happened).to_contain_text("Handover around b1 began")
            await expect(missing).to_contain_text("journal")
            await expect(missing).to_have_class(re.compile("bad"))
            await take_picture(page, "deficit", tmp_path)
            await expect(missing).not_to_contain_text("journal")
            await expect(happened).to_contain_text("Handover around b1 finished")
            await expect(happened).to_contain_text("b1 is no longer excluded")
            await expect(page.locator("#health")).to_have_text("● All 5 brokers up")
            assert wrong == []
            await page.context.close()

    site.run(main())


async def _read_logs(page: "Page", pictures: Path) -> None:
    from playwright.async_api import expect

    await page.get_by_role("link", name="Doctor and log").click()
    await expect(page.locator(".finding").first).to_contain_text("b4 is not running")
    await expect(page.get_by_role("combobox", name="Broker")).to_have_value("b0")
    await expect(page.locator(".log tbody tr").first).to_be_visible()
    await page.get_by_role("combobox", name="Broker").select_option("b1")
    await expect(page.locator(".log tbody tr").last).to_contain_text("listening")
    await take_picture(page, "log", pictures)
    await page.get_by_role("combobox", name="Broker").select_option("b4")
    await expect(page.get_by_text("broker 'b4' does not answer")).to_be_visible()
    await expect(page.locator(".log tbody tr")).to_have_count(0)


async def _follow(page: "Page", pictures: Path) -> None:
    from playwright.async_api import expect

    await page.get_by_role("link", name="Events", exact=True).click()
    await page.get_by_text("How filters are written").click()
    await page.get_by_role("button", name="amount > 5 AND NOT paid").click()
    await expect(page.get_by_label("Filter")).to_have_value("amount > 5 AND NOT paid")
    await page.get_by_text("How filters are written").click()
    await page.get_by_label("Filter").fill("topic = 'order' AND amount >")
    await page.get_by_role("button", name="Start").click()
    await expect(page.locator(".error mark")).to_have_text("⌷")
    await expect(page.get_by_label("Filter")).to_have_attribute("aria-invalid", "true")
    await page.get_by_label("Filter").fill(
        "topic IN ('test', 'order', 'payment', 'reservation', 'invoice', 'shipping')"
    )
    await page.get_by_role("button", name="Start").click()
    await expect(page.get_by_text("Live: every matching event")).to_be_visible()
    await page.get_by_role("button", name="Publish", exact=True).click()
    await expect(page.get_by_text("Confirmed in")).to_be_visible()
    await expect(page.locator(".events")).to_contain_text("hello")
    await expect(page.locator(".events .attribute", has_text="topic invoice").first).to_be_visible()
    await page.get_by_role("button", name="Stop").click()
    await page.get_by_label("From").select_option("earliest")
    await page.get_by_label("Until").select_option("now")
    await page.get_by_label("Filter").fill("topic = 'payment' AND \"order\" < 4")
    await page.get_by_role("button", name="Clear").click()
    await page.get_by_role("button", name="Start").click()
    await expect(page.get_by_text("The end.")).to_be_visible()
    await expect(page.locator(".events button.link")).to_have_count(3)
    await page.locator(".events button.link").last.click()
    await page.get_by_label("Filter").fill("topic <> 'price'")
    await page.get_by_label("Until").select_option("")
    await page.get_by_role("button", name="Start").click()
    await expect(page.locator(".events .attribute", has_text="topic shipping").first).to_be_visible()
    await take_picture(page, "events", pictures)
    await page.get_by_role("link", name="Causes and effects").click()
    await expect(page.locator(".graph .cause")).to_have_count(1)
    await expect(page.locator(".graph .effect")).to_have_count(1)
    await expect(page.locator(".graph .arc")).to_have_count(2)
    await page.locator(".graph .cause").click()
    await page.get_by_role("link", name="Centre").click()
    await expect(page.locator(".graph .effect")).to_have_count(4)
    await take_picture(page, "causes", pictures)
    await page.get_by_role("link", name="Replay after it").click()
    await expect(page.get_by_role("textbox", name="Position or time")).to_have_value(re.compile("^p[0-9]+-"))
    await expect(page.locator(".events .attribute", has_text="topic payment").first).to_be_visible()


@needs_browser
def test_an_operator_ends_sessions_and_moves_durable_subscriptions(site: Site) -> None:
    async def main() -> None:
        from playwright.async_api import expect

        async with connect(site.at("b1"), name="dashboard") as client:
            await client.subscribe("topic = 'order'")
            await client.subscribe("topic = 'order' AND amount > 5")
            durable = await client.durable("billing", "topic = 'order'", ack="manual")
            await durable.close()
            page, wrong = await new_page(site.browser)
            await page.goto(f"{site.url('b0')}/#clients")
            row = page.get_by_role("row").filter(has_text="topic = 'order' AND amount > 5").last
            await expect(row).to_contain_text("topic = 'order' AND amount > 5")
            narrow = page.get_by_label("Filters").get_by_role("row").filter(has_text="AND amount > 5")
            await expect(narrow.get_by_role("cell").last).to_have_text("topic = 'order'")  # the filter that covers it
            await page.get_by_role("button", name="Move").click()
            await page.get_by_label("A position, a time").fill("now")
            await page.get_by_role("dialog").get_by_role("button", name="Move").click()
            await expect(page.get_by_text("billing continues after now.")).to_be_visible()
            await page.get_by_role("button", name="Delete").click()
            await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
            await page.get_by_role("button", name="Delete").click()
            await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
            await expect(page.get_by_text("There is no durable subscription.")).to_be_visible()
            line = page.get_by_role("row").filter(has_text=client.name)
            await line.get_by_role("button", name="End session").click()
            await page.get_by_role("dialog").get_by_role("button", name="End session").click()
            await expect(page.get_by_text(f"The session of {client.name} has ended.")).to_be_visible()
            await expect(page.get_by_text("No subscription.")).to_be_visible()
            assert wrong == []
            await page.context.close()

    site.run(main())


HIDE = """(isHidden) => {
    Object.defineProperty(document, 'hidden', { value: isHidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
}"""


@needs_browser
def test_a_hidden_page_watches_nothing(site: Site) -> None:
    async def main() -> None:
        from playwright.async_api import expect

        page, wrong = await new_page(site.browser)
        await page.goto(site.url("b0"))
        await expect(page.locator("#health")).to_have_text("● All 5 brokers up")
        async with page.expect_event("requestfailed", lambda request: "/api/watch" in request.url):
            await page.evaluate(HIDE, arg=True)
        async with page.expect_request("**/api/samples"), page.expect_request("**/api/watch?*"):
            await page.evaluate(HIDE, arg=False)
        await expect(page.locator("#health")).to_have_text("● All 5 brokers up")
        assert wrong == []
        await page.context.close()

    site.run(main())


USERS: dict[str, dict[str, Any]] = {
    "ann": {"publish": ["topic = 'order'"], "subscribe": ["topic = 'order'"]},
    "ops": {"status": True},
}


@needs_browser
def test_users_sign_in_by_token_or_certificate_and_see_what_they_may(site: Site, tmp_path: Path) -> None:
    async def main() -> None:
        from playwright.async_api import expect

        async with (
            secure(chain(2), tmp_path, users=USERS) as network,
            serving_secure(network) as http,
        ):
            page, wrong = await new_page(site.browser, ignore_https_errors=True)
            await page.goto(http.url("b0"))
            await page.get_by_label("Token").fill("ann:wrong")
            await page.get_by_role("button", name="Sign in").click()
            await expect(page.get_by_role("alert")).not_to_be_empty()
            await page.get_by_label("Token").fill(network.token("ann"))
            await page.get_by_role("button", name="Sign in").click()
            await expect(page.get_by_label("Filter")).to_have_value("(topic = 'order')")
            await expect(page.get_by_label("From")).to_be_disabled()
            await page.get_by_role("link", name="Network", exact=True).click()
            await expect(page.locator("main")).to_contain_text("User ann may not see this")
            assert await page.context.cookies() == []
            await page.get_by_role("button", name="Sign out").click()
            await page.get_by_label("Token").fill(network.token("ops"))
            await page.get_by_role("button", name="Sign in").click()
            await expect(page.locator("#health")).to_have_text("● All 2 brokers up")
            await page.goto(f"{http.url('b0')}/#clients")
            await expect(page.get_by_role("heading", name="Filters")).to_be_visible()
            await expect(page.get_by_role("button", name="End session")).to_have_count(0)
            assert wrong == []
            await _by_certificate(site.browser, http, network.certified("ops"))
            await page.context.close()

    site.run(main())


async def _by_certificate(chromium: "Browser", http: Serving, shown: object) -> None:
    from playwright.async_api import expect

    certificate = {
        "origin": http.url("b0"),
        "certPath": str(shown.certificate),  # type: ignore[attr-defined]
        "keyPath": str(shown.key),  # type: ignore[attr-defined]
    }
    page, _ = await new_page(chromium, ignore_https_errors=True, client_certificates=[certificate])
    await page.goto(http.url("b0"))
    await expect(page.locator("#user")).to_have_text("ops")
    await expect(page.locator("#health")).to_have_text("● All 2 brokers up")


@needs_browser
@needs_axe
def test_all_users_can_use_it(site: Site, tmp_path: Path) -> None:
    async def main() -> None:
        from playwright.async_api import expect

        async with trading(site, "b1", "b2"):
            for scheme in ("light", "dark"):
                page, wrong = await new_page(site.browser, color_scheme=scheme)
                for view in VIEWS:
                    more = "?since=earliest" if view == "events" else ""
                    await page.goto(f"{site.url('b0')}/#{view}{more}")
                    await expect(page.locator("#health")).to_contain_text("All 5 brokers up")
                    await page.wait_for_timeout(300)
                    assert await problems_of(page) == [], (view, scheme)
                    if scheme == "dark" and view == "metrics":
                        assert await page.evaluate(PLOTTED_BEFORE_S) > PAST_S
                        await page.wait_for_timeout(2000)
                        await take_picture(page, "metrics", tmp_path)
                assert wrong == []
                await page.context.close()
            phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
            page, _ = await new_page(site.browser)
            await page.goto(f"{site.url('b0')}/#network")
            await page.keyboard.press("Tab")
            await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
            await page.keyboard.press("Enter")
            await expect(page.locator("main")).to_be_focused()
            await page.context.close()
            page, _ = await new_page(site.browser, **phone)
            for view in VIEWS:
                await page.goto(f"{site.url('b0')}/#{view}")
                await expect(page.locator("#health")).to_contain_text("All 5 brokers up")
                await page.wait_for_timeout(200)
                wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert wide <= 0, (view, wide)
            await page.goto(f"{site.url('b0')}/#network")
            await take_picture(page, "phone", tmp_path)
            await page.context.close()

    site.run(main())

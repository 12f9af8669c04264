"""`gapless sub --durable` and `gapless subscriptions`, against a real network."""

import asyncio
import json
import subprocess
import sys

from gapless.cli.status import remarks
from gapless.cli.subscriptions import lag_text
from gapless.client import connect
from gapless.overlay import chain
from gapless.runtime.event_loop import run

from ..runtime.local import Local, local


async def gapless(network: Local, *words: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gapless", *words, "--url", network.url,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, errors = await process.communicate()
    return process.returncode or 0, out.decode(), errors.decode()


def test_printed_events_are_not_redelivered_and_the_subscription_can_be_listed_moved_and_ended() -> None:
    async def main() -> None:
        async with local(chain(3)) as network, connect(network.at("b0"), name="ann") as ann:
            await ann.advertise("n > 0")
            code, out, _ = await gapless(network, "subscriptions")
            assert (code, out) == (0, "there are no durable subscriptions; gapless sub --durable NAME creates one\n")
            begun = await gapless(network, "sub", "n > 0", "--durable", "billing", "--seconds", "1")
            assert begun[0] == 0, begun
            assert "billing continues after the last acknowledged event" in begun[2]
            await ann.publish_many([({"n": number}, b"") for number in range(1, 11)])
            first = await gapless(network, "sub", "n > 0", "--durable", "billing", "--count", "4", "--quiet")
            assert [json.loads(line)["attributes"]["n"] for line in first[1].splitlines()] == [1, 2, 3, 4]
            rest = await gapless(network, "sub", "n > 0", "--durable", "billing", "--count", "6", "--quiet")
            assert [json.loads(line)["attributes"]["n"] for line in rest[1].splitlines()] == [5, 6, 7, 8, 9, 10]
            listed = json.loads((await gapless(network, "subscriptions", "--json"))[1])["subscriptions"]
            assert [(each["name"], each["filter"], each["client"]) for each in listed] == [("billing", "n > 0", "")]
            code, out, _ = await gapless(network, "subscriptions", "list")
            assert code == 0
            assert "nobody" in out
            moved = await gapless(network, "subscriptions", "move", "billing", "earliest")
            assert moved[:2] == (0, "billing continues from earliest\n")
            position = json.loads(rest[1].splitlines()[2])["position"]
            moved = await gapless(network, "subscriptions", "move", "billing", position)
            assert moved[:2] == (0, f"billing continues from {position}\n")
            listed = json.loads((await gapless(network, "subscriptions", "--json"))[1])["subscriptions"]
            assert listed[0]["position"] == position
            later = await gapless(network, "sub", "n > 0", "--durable", "billing", "--count", "1", "--quiet")
            assert json.loads(later[1])["attributes"]["n"] == 8
            await gapless(network, "subscriptions", "move", "billing", "earliest")
            again = await gapless(network, "sub", "n > 0", "--durable", "billing", "--count", "1", "--quiet")
            assert json.loads(again[1])["attributes"]["n"] == 1
            assert (await gapless(network, "subscriptions", "delete", "billing"))[:2] == (0, "deleted billing\n")
            gone = await gapless(network, "subscriptions", "delete", "billing")
            assert gone[0] == 64
            assert "there is no durable subscription 'billing'" in gone[2]
            both = await gapless(network, "sub", "--durable", "billing", "--since", "10m")
            assert both[0] == 64
            assert "--durable continues where the subscription stopped, so leave out --since" in both[2]

    run(main())


def test_two_that_share_a_name_print_each_event_once() -> None:
    async def main() -> None:
        async with local(chain(3)) as network, connect(network.at("b0"), name="ann") as ann:
            await ann.advertise("n > 0")
            words = ("sub", "n > 0", "--durable", "billing", "--group", "--redeliver", "60", "--seconds", "20")
            printing = [asyncio.create_task(gapless(network, *words)) for _ in range(2)]
            while not (found := await ann.admin.list()) or not found[0].client:
                await asyncio.sleep(0.1)
            for number in range(1, 21):
                await ann.publish({"n": number})
                await asyncio.sleep(0.2)
            code, out, _ = await gapless(network, "subscriptions")
            assert code == 0
            assert "a group, coordinated by" in " ".join(out.split())
            ends = await asyncio.gather(*printing)
            assert [code for code, _, _ in ends] == [0, 0], ends
            assert all("shared by a group" in errors for _, _, errors in ends)
            lines = [json.loads(line)["attributes"]["n"] for _, out, _ in ends for line in out.splitlines()]
            assert sorted(lines) == list(range(1, 21))
            alone = await gapless(network, "sub", "--group")
            message = "--group needs a durable subscription: add --durable NAME"
            assert (alone[0], message in alone[2]) == (64, True)

    run(main())


def test_status_reports_what_has_too_few_replicas() -> None:
    report = {
        "f": 1, "links": {}, "waits": [], "paused": False,
        "overview": {"history": {"under_replicated": ["b0", "b1"], "final": 0}},
    }  # fmt: skip
    [remark] = remarks({"b1": report, "b2": None})
    assert remark == (
        "the history of b0, b1 is held by fewer than f + 1 = 2 brokers: b1 is reading it again, or "
        "too few brokers are running"
    )


def test_a_lag_reads_as_people_say_it() -> None:
    assert [lag_text(seconds) for seconds in (0.4, 90, 600, 10_000, 200_000)] == ["0 s", "90 s", "10 min", "3 h", "2 d"]

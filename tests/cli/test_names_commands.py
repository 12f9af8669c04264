"""`gapless sub --name` and `gapless subscriptions`, against a real network."""

import asyncio
import json
import subprocess
import sys

from gapless.cli.names import lag_text
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


def test_what_was_printed_does_not_come_again_and_the_name_can_be_listed_moved_and_ended() -> None:
    async def main() -> None:
        async with local(chain(3)) as network, connect(network.at("b0"), name="ann") as ann:
            await ann.advertise("n > 0")
            code, out, _ = await gapless(network, "subscriptions")
            assert (code, out) == (0, "there are no named subscriptions; gapless sub --name begins one\n")
            begun = await gapless(network, "sub", "n > 0", "--name", "billing", "--seconds", "1")
            assert begun[0] == 0, begun
            assert "billing goes on after position" in begun[2]
            await ann.publish_many([({"n": number}, b"") for number in range(1, 11)])
            first = await gapless(network, "sub", "n > 0", "--name", "billing", "--count", "4", "--quiet")
            assert [json.loads(line)["attributes"]["n"] for line in first[1].splitlines()] == [1, 2, 3, 4]
            rest = await gapless(network, "sub", "n > 0", "--name", "billing", "--count", "6", "--quiet")
            assert [json.loads(line)["attributes"]["n"] for line in rest[1].splitlines()] == [5, 6, 7, 8, 9, 10]
            listed = json.loads((await gapless(network, "subscriptions", "--json"))[1])["subscriptions"]
            assert [(each["name"], each["filter"], each["client"]) for each in listed] == [("billing", "n > 0", "")]
            code, out, _ = await gapless(network, "subscriptions", "list")
            assert code == 0
            assert "nobody" in out
            moved = await gapless(network, "subscriptions", "move", "billing", "earliest")
            assert moved[:2] == (0, "billing goes on from earliest\n")
            again = await gapless(network, "sub", "n > 0", "--name", "billing", "--count", "1", "--quiet")
            assert json.loads(again[1])["attributes"]["n"] == 1
            assert (await gapless(network, "subscriptions", "end", "billing"))[:2] == (0, "billing is over\n")
            gone = await gapless(network, "subscriptions", "end", "billing")
            assert gone[0] == 64
            assert "there is no named subscription 'billing'" in gone[2]
            both = await gapless(network, "sub", "--name", "billing", "--since", "10m")
            assert both[0] == 64
            assert "--name goes on where it stopped, so leave out --since" in both[2]

    run(main())


def test_a_lag_reads_as_people_say_it() -> None:
    assert [lag_text(seconds) for seconds in (0.4, 90, 600, 10_000, 200_000)] == ["0 s", "90 s", "10 min", "3 h", "2 d"]

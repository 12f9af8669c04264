"""Clients record their histories in all circumstances, including the two moments on which the guarantee depends."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gapless.checkers import check
from gapless.client import connect
from gapless.overlay import chain
from gapless.runtime.broker import Broker
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import local_network
from gapless.runtime.network_file import NetworkConfig
from gapless.trace import merge_parts
from tests.conftest import Cli
from tests.runtime.local import QUICK, local

EVENTS = 50

PUBLISHER = """
import asyncio, os, signal, sys
from gapless.client import connect

async def main(url, trace, end, count):
    client = await connect(url, name=end, trace=trace, timeout_s=30)
    await client.advertise("TRUE")
    for number in range(count):
        await client.publish({"number": number})
    print("published", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    if end == "closes":
        await client.close()
    elif end == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(0)

asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
"""


def test_of_three_clients_one_closes_one_exits_one_is_killed_and_none_is_left_out(cli: Cli, tmp_path: Path) -> None:
    ends = ("closes", "exits", "dies")

    async def main() -> None:
        async with local(chain(2)) as network:
            eve = await connect(network.at("b1"), name="eve", trace=tmp_path / "live")
            subscription = await eve.subscribe("TRUE")
            processes = [
                await asyncio.create_subprocess_exec(
                    sys.executable, "-c", PUBLISHER, network.at("b0"), str(tmp_path / "live"), end, str(EVENTS),
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                )
                for end in ends
            ]  # fmt: skip
            try:
                async with asyncio.timeout(120):
                    got = 0
                    while got < len(ends) * EVENTS:
                        got += len(await subscription.take())
                    for process in processes:
                        assert process.stdin is not None
                        process.stdin.write(b"go on\n")
                    codes = [await process.wait() for process in processes]
                assert codes == [0, 0, -signal.SIGKILL]
            finally:
                for process in processes:
                    with contextlib.suppress(ProcessLookupError):
                        process.kill()
            await eve.close()
            # A client that announced itself, and wrote nothing.
            (tmp_path / "live" / "parts" / "late-1234.part").touch()

    run(main())
    merged = cli("trace", "merge", tmp_path / "live", tmp_path / "trace", "--quiesced")
    assert merged.code == 0
    assert "50 actions are known of dies-" in merged.out
    assert "50 actions are known of exits-" in merged.out
    assert "no actions are known of late-1234" in merged.out
    assert "closes-" not in merged.out
    judged = cli("check", tmp_path / "trace")
    assert judged.code == 0
    assert "150 events" in judged.out
    assert "150 deliveries are as promised; cut short: dies-" in " ".join(judged.out.split())
    trace = merge_parts(tmp_path / "live", quiesced=True)
    assert {row.client.partition("-")[0]: (row.acts, row.sent_seq) for row in trace.cut_short} == {
        "dies": (EVENTS, EVENTS), "exits": (EVENTS, EVENTS), "late": (0, 0),
    }  # fmt: skip


def test_a_subscriber_that_is_killed_is_held_to_what_it_wrote(tmp_path: Path) -> None:
    script = """
import asyncio, sys
from gapless.client import connect

async def main(url, trace):
    client = await connect(url, name="dies", trace=trace, timeout_s=30)
    subscription = await client.subscribe("TRUE")
    print("subscribed", flush=True)
    async for event in subscription:
        if event.attributes["number"] == 29:
            await asyncio.sleep(0.5)  # longer than the file may be behind
            print("enough", flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""

    async def main() -> None:
        async with local(chain(2)) as network:
            ann = await connect(network.at("b1"), name="ann", trace=tmp_path)
            await ann.advertise("TRUE")
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", script, network.at("b0"), str(tmp_path), stdout=subprocess.PIPE
            )
            assert process.stdout is not None
            try:
                async with asyncio.timeout(60):
                    assert await process.stdout.readline() == b"subscribed\n"
                    await ann.publish_many({"number": number} for number in range(30))
                    assert await process.stdout.readline() == b"enough\n"
            finally:
                process.kill()
                await process.wait()
            await ann.publish({"number": 30})
            await ann.close()

    run(main())
    trace = merge_parts(tmp_path, quiesced=True)
    verdict = check(trace)
    assert [(row.client.partition("-")[0], row.acts) for row in trace.cut_short] == [("dies", 30)]
    assert verdict.status == "valid", verdict.reason
    assert (verdict.events, verdict.deliveries) == (31, 30)


def test_the_timeout_of_a_publication_waiting_for_room_starts_with_the_call(tmp_path: Path) -> None:
    async def main() -> None:
        async with local(1, f=0, client_window=1) as network, connect(network.url, name="ann", trace=tmp_path) as ann:
            await ann.advertise("TRUE")
            async with connect(network.url, name="eve", trace=tmp_path) as eve:
                subscription = await eve.subscribe("TRUE")
                calls = [asyncio.ensure_future(ann.publish({"number": number})) for number in range(20)]
                await asyncio.gather(*calls)
                await subscription.close()

    run(main())
    trace = merge_parts(tmp_path, quiesced=True)
    began = [row.published_ms for row in sorted(trace.events, key=lambda row: row.seq)]
    left = [row.time_ms for row in trace.history if row.kind == "publish"]
    assert len(began) == 20
    assert max(began) <= min(left[1:]), "all were called before the first was out of the way"
    assert left == sorted(left)
    assert check(trace).status == "valid"


def test_a_subscription_is_active_when_the_call_returns(tmp_path: Path) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url, name="ann", trace=tmp_path) as ann:
            await ann.advertise("TRUE")
            async with connect(network.url, name="eve", trace=tmp_path) as eve:
                asking = asyncio.ensure_future(eve.subscribe("TRUE"))
                while not asking.done():
                    await ann.publish({"number": 1})
                await ann.publish({"number": 2})
                await (await asking).close()

    run(main())
    trace = merge_parts(tmp_path, quiesced=True)
    [row] = trace.subscriptions
    assert row.active_ms is not None
    last = max(event.published_ms for event in trace.events)
    assert row.requested_ms < row.active_ms < last


def test_a_missing_directory_named_by_the_network_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "nowhere"

    async def main() -> None:
        broker = Broker(local_network(1, f=0, runtime=QUICK), "b0", trace=str(place))
        await broker.start()
        for _ in range(2):
            await (await connect(f"gapless://{broker.config.addresses['b0']}")).close()
        assert caplog.text.count(f"the network asks clients to write traces in {place}, which does not exist here") == 1
        place.mkdir()
        await (await connect(f"gapless://{broker.config.addresses['b0']}")).close()
        assert len(list((place / "parts").iterdir())) == 1
        await broker.stop()

    run(main())


def test_a_broker_makes_the_place_for_traces_and_names_it_in_full(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []

    def serve(config: NetworkConfig, name: str, *, trace: str, parent: int, endpoint: object) -> int:
        reported.append(trace)
        return 0

    monkeypatch.setattr("gapless.cli.broker.run_broker", serve)
    monkeypatch.chdir(tmp_path)
    Path("network.toml").write_text(local_network(1, f=0).to_toml(), encoding="utf-8")
    assert cli("broker", "--config", "network.toml", "--name", "b0", "--trace", "out/parts").code == 0
    assert cli("broker", "--config", "network.toml", "--name", "b0").code == 0
    assert reported == [str(tmp_path / "out" / "parts"), ""]
    assert (tmp_path / "out" / "parts").is_dir()

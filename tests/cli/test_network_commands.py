"""Commands on a real network, and their messages when something is wrong."""

import asyncio
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gapless import sync
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, free_ports, local_network
from gapless.runtime.settings import RuntimeSettings
from tests.conftest import Cli

PROGRAM = [sys.executable, "-m", "gapless"]
QUICK = RuntimeSettings(heartbeat_ms=100, suspect_ms=20_000, join_ms=1_000, drain_ms=500)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    directory = tmp_path_factory.mktemp("fleet")
    config = local_network(chain(3), runtime=QUICK, http_ports=free_ports(3))
    with Fleet(config, directory, trace=str(directory / "trace"), as_json=True) as fleet:
        fleet.start_all()
        asyncio.run(fleet.until_whole(60))
        yield fleet


def gapless(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *words], capture_output=True, text=True, timeout=60, check=False)


def test_events_go_in_and_come_out_as_json_lines_and_the_trace_is_valid(
    fleet: Fleet, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = fleet.config.url
    command = [*PROGRAM, "sub", "topic = 'price' AND amount > 1", "--url", url, "--count", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as subscriber:
        assert subscriber.stderr is not None
        assert "subscribed; no client publishes such events yet" in subscriber.stderr.readline()
        lines = [
            '{"topic": "price", "amount": 1}',
            "",
            '{"topic": "price", "amount": 2}',
            '{"attributes": {"topic": "price", "amount": 3.5}, "payload": "text"}',
            '{"publisher": "x", "seq": 9, "attributes": {"topic": "price", "amount": 4}, "payload_base64": "/w=="}',
        ]
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO("\n".join(lines).encode()))))
        published = cli("pub", "--url", url, "--advertise", "topic = 'price'")
        assert (published.code, published.out) == (0, "")
        assert re.match(r"4 events published and confirmed in \d", published.err)
        out, _ = subscriber.communicate(timeout=20)
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["attributes"]["amount"] for event in events] == [2, 3.5, 4]
    assert [event.get("payload") for event in events] == [None, "text", None]
    assert events[2]["payload_base64"] == "/w=="
    assert [event["seq"] for event in events] == [2, 3, 4]

    assert cli("trace", "merge", fleet.directory / "trace", tmp_path / "trace", "--quiesced").code == 0
    assert cli("check", tmp_path / "trace").code == 0
    parts = cli("check", fleet.directory / "trace")
    assert parts.code == 64
    assert "is in parts; merge them: gapless trace merge" in parts.err


def test_one_event_many_times_at_a_rate(fleet: Fleet, cli: Cli) -> None:
    started = time.monotonic()
    ran = cli("pub", "--url", fleet.config.url, "--event", '{"n": 1}', "--count", "20", "--rate", "40")
    assert ran.code == 0
    assert "20 events published" in ran.err
    assert time.monotonic() - started >= 0.45
    assert cli("pub", "--url", fleet.config.url, "--event", '{"n": 1}', "--quiet") == (0, "", "")


def test_every_event_that_is_named_is_published_in_turn(fleet: Fleet, cli: Cli) -> None:
    url = fleet.config.url
    given = ("pub", "--url", url, "--event", '{"given": "a"}', "--event", '{"given": "b"}')
    assert "2 events published" in cli(*given).err
    assert "3 events published" in cli(*given, "--count", "3").err
    read = cli("sub", "given IS NOT NULL", "--url", url, "--since", "earliest", "--until", "now", "--quiet")
    found = [json.loads(line) for line in read.out.splitlines()]
    assert [event["attributes"]["given"] for event in found] == ["a", "b", "a", "b", "a"]


def test_the_next_command_continues_at_a_printed_position(fleet: Fleet, cli: Cli) -> None:
    url, text = fleet.config.url, "pasted IS NOT NULL"
    with sync.connect(url) as client:
        client.advertise(text)
        client.publish_many([{"pasted": number} for number in range(10)])

    def read(*words: str) -> list[dict[str, Any]]:
        ran = cli("sub", text, "--url", url, "--until", "now", "--quiet", *words)
        assert ran.code == 0, ran.err
        return [json.loads(line) for line in ran.out.splitlines()]

    found = read("--since", "earliest")
    assert [event["attributes"]["pasted"] for event in found] == list(range(10))
    position = found[4]["position"]
    assert re.fullmatch(r"p[0-9]{16}-5-client-[0-9a-f]{8}", position)
    assert [event["attributes"]["pasted"] for event in read("--since", position)] == [5, 6, 7, 8, 9]
    ended = cli("sub", text, "--url", url, "--since", position, "--until", found[6]["position"], "--quiet")
    assert [json.loads(line)["attributes"]["pasted"] for line in ended.out.splitlines()] == [5, 6]
    wrong = cli("sub", text, "--url", url, "--since", position.partition("-client")[0])
    assert wrong.code == 64
    assert "is not a position: copy the whole text of one, such as 'p1793280000000000'" in wrong.err


def test_status_shows_the_process_of_each_broker(fleet: Fleet, cli: Cli) -> None:
    lines = cli("status", "--url", fleet.config.url).out.splitlines()
    shown = {words[0]: words[2] for words in map(str.split, lines) if len(words) > 2 and words[0] in fleet.names}
    assert shown == {name: str(fleet.pid(name)) for name in fleet.names}


def test_sub_ends_after_its_duration_on_an_interrupt_and_without_a_reader(fleet: Fleet, cli: Cli) -> None:
    url = fleet.config.url
    assert cli("sub", "--url", url, "--seconds", "0.2", "--quiet") == (0, "", "")
    with subprocess.Popen([*PROGRAM, "sub", "--url", url], stderr=subprocess.PIPE, text=True) as interrupted:
        assert interrupted.stderr is not None
        interrupted.stderr.readline()
        interrupted.send_signal(signal.SIGINT)
        assert interrupted.wait(20) == 130
        assert interrupted.stderr.read() == ""
    with subprocess.Popen(
        [*PROGRAM, "sub", "--url", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as unread:
        assert unread.stdout is not None
        assert unread.stderr is not None
        unread.stderr.readline()
        unread.stdout.close()
        cli("pub", "--url", url, "--event", '{"n": 1}')
        assert unread.wait(20) == 141
        assert unread.stderr.read() == ""


def test_a_rate_is_printed_each_second_even_without_events_and_a_total_at_the_end(fleet: Fleet, cli: Cli) -> None:
    url = fleet.config.url
    with subprocess.Popen([*PROGRAM, "sub", "--url", url, "--rate"], stdout=subprocess.PIPE, text=True) as subscriber:
        assert subscriber.stdout is not None
        assert subscriber.stdout.readline() == "0 events/s, 0 in all\n"
        assert cli("pub", "--url", url, "--event", '{"n": 1}', "--count", "20").code == 0
        line = next(line for line in subscriber.stdout if "20 in all" in line)
        assert re.fullmatch(r"\d+ events/s, 20 in all\n", line)
        subscriber.send_signal(signal.SIGINT)
        *_, total = subscriber.stdout
        assert re.fullmatch(r"20 events in \d+\.\d s \(\d+/s\)\n", total)
        assert subscriber.wait(20) == 130
    ran = cli("sub", "--url", url, "--rate", "--seconds", "1.5", "--json", "--quiet")
    assert ran.code == 0
    *lines, last = map(json.loads, ran.out.splitlines())
    assert lines
    assert not any(line["total"] for line in lines)
    assert (last["total"], last["events"]) == (True, 0)
    assert last["seconds"] >= 1.5


def test_a_rate_without_a_reader_ends(fleet: Fleet) -> None:
    command = [*PROGRAM, "sub", "--url", fleet.config.url, "--rate", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as unread:
        assert unread.stdout is not None
        assert unread.stderr is not None
        unread.stdout.readline()
        unread.stdout.close()
        assert unread.wait(20) == 141
        assert unread.stderr.read() == ""


def test_published_events_are_reported_to_programs(fleet: Fleet, cli: Cli) -> None:
    ran = cli("pub", "--url", fleet.config.url, "--event", '{"n": 1}', "--count", "3", "--json")
    assert (ran.code, ran.err, json.loads(ran.out)["published"]) == (0, "", 3)


def test_status_shows_all_brokers_and_json_agrees(fleet: Fleet, cli: Cli, tmp_path: Path) -> None:
    shown = cli("status", "--url", fleet.config.url)
    assert shown.code == 0
    assert "3 of 3 up" in shown.out
    assert len(re.findall(r"^b\d +up", shown.out, re.MULTILINE)) == 3
    document = json.loads(cli("status", "--config", fleet.file, "--json").out)
    assert set(document["brokers"]) == {"b0", "b1", "b2"}
    report = document["brokers"]["b1"]
    assert (report["ready"], report["protocol"], report["f"]) == (True, "gapless", 1)
    assert {peer: link["up"] for peer, link in report["links"].items()} == {"b0": True, "b2": True}
    larger = local_network(chain(4), runtime=QUICK)
    half = msgspec.structs.replace(larger, brokers=(*fleet.config.brokers, larger.brokers[3]))
    (tmp_path / "half.toml").write_text(half.to_toml(), encoding="utf-8")
    missing = cli("status", "--config", tmp_path / "half.toml")
    assert missing.code == 1
    assert "b3" in missing.out
    assert "down" in missing.out
    examined = cli("doctor", "--config", tmp_path / "half.toml")
    assert examined.code == 1
    assert f"b3 is not running: nothing listens on {half.brokers[3].address}, and no broker hears it" in examined.out


def test_the_doctor_has_no_findings_for_a_running_network(fleet: Fleet, cli: Cli) -> None:
    examined = cli("doctor", "--url", fleet.config.url)
    assert (examined.code, examined.err) == (0, "")
    assert "all 3 brokers are up, hear each other, and are not waiting for anything" in examined.out
    assert json.loads(cli("doctor", "--config", fleet.file, "--json").out) == {"findings": []}


def test_the_doctor_distinguishes_a_frozen_broker_from_a_crashed_one(cli: Cli, tmp_path: Path) -> None:
    with Fleet(local_network(chain(3), runtime=QUICK), tmp_path) as fleet:
        fleet.start_all()
        run(fleet.until_whole(30.0))
        fleet.kill("b2")
        os.kill(fleet.pid("b0"), signal.SIGSTOP)
        try:
            examined = cli("doctor", "--config", fleet.file, "--json")
        finally:
            os.kill(fleet.pid("b0"), signal.SIGCONT)
        found = [item["what"] for item in json.loads(examined.out)["findings"]]
        assert "b0 accepts connections and does not answer: its process is paused, or overloaded" in found
        assert f"b2 is not running: nothing listens on {fleet.config.addresses['b2']}, and no broker hears it" in found


def test_health_and_metrics(fleet: Fleet) -> None:
    base = f"http://{fleet.config.broker('b1').http}"
    with urllib.request.urlopen(f"{base}/healthz", timeout=5) as answer:
        assert (answer.status, answer.read()) == (200, b"ok\n")
    with urllib.request.urlopen(f"{base}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    assert 'gapless_link_up{peer="b0"} 1.0' in text
    assert re.search(r"^gapless_messages_in_total \d", text, re.MULTILINE)
    assert 'gapless_kept{kind="subscriptions"}' in text
    with urllib.request.urlopen(f"{base}/status", timeout=5) as answer:
        assert json.load(answer)["broker"] == "b1"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{base}/nothing", timeout=5)
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(f"{base}/healthz", data=b"x", timeout=5)


def test_logs_are_json_lines_when_asked_for(fleet: Fleet) -> None:
    lines = [json.loads(line) for line in fleet.log("b0").read_text(encoding="utf-8").splitlines()]
    assert {"time", "level", "message", "broker"} <= set(lines[0])
    messages = [line["message"] for line in lines if not line["message"].startswith("waiting for")]
    assert messages[:2] == ["listening", "joined the network"]


# ---- mistakes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("pub", "--event", '{"n": null}'), "--event: attribute 'n' is null; attributes are strings, integers"),
        (("pub", "--event", '{"n": [1]}'), "attribute 'n' is a list"),
        (("pub", "--event", "[1]"), "--event: an event is a JSON object"),
        (("pub", "--event", "{"), "--event: this is not JSON"),
        (("pub", "--event", '{"attributes": 1}'), "attributes must be a JSON object"),
        (("pub", "--event", '{"attributes": {}, "payload": 1}'), "the payload must be a string"),
        (("pub", "--event", '{"attributes": {}, "payload_base64": "?"}'), "payload_base64 is not base64"),
        (("pub", "--event", '{"n": 1}', "--advertise", "n ="), "n ="),
        (("pub", "--event", '{"n": 1}', "--advertise", "n = 2"), "the event matches none of your advertisements"),
        (("sub", "price <"), "price <"),
        (("sub", "--url", "http://x"), "write gapless://host:port"),
    ],
)
def test_bad_input_is_one_sentence(fleet: Fleet, cli: Cli, words: tuple[str, ...], complaint: str) -> None:
    ran = cli(words[0], "--url", fleet.config.url, *words[1:])
    assert ran.code == 64
    assert ran.err.startswith("gapless: ")
    assert complaint in ran.err
    assert "Traceback" not in ran.err


def test_a_bad_line_is_named_by_its_number(fleet: Fleet, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = io.BytesIO(b'{"n": 1}\n\n{"n": {}}\n')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(lines)))
    ran = cli("pub", "--url", fleet.config.url)
    assert ran.code == 64
    assert "line 3: attribute 'n' is an object" in ran.err


@pytest.mark.parametrize("command", ["pub", "sub", "status"])
def test_no_broker_answers(cli: Cli, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"gapless://127.0.0.1:{free_ports(1)[0]}"
    words = ("--event", "{}") if command == "pub" else ()
    ran = cli(command, "--url", url, *words)
    assert ran.code == 64
    assert "no broker could be reached" in ran.err


def test_a_broker_reports_a_wrong_file_name_or_port(fleet: Fleet, cli: Cli, tmp_path: Path) -> None:
    assert "cannot be read" in cli("broker", "--config", tmp_path / "none.toml", "--name", "b0").err
    wrong = cli("broker", "--config", fleet.file, "--name", "b7")
    assert (wrong.code, "there is no broker 'b7'" in wrong.err) == (64, True)
    taken = gapless("broker", "--config", str(fleet.file), "--name", "b0")
    assert taken.returncode == 64
    assert "is in use; stop the other process, or choose another" in taken.stderr
    assert "Traceback" not in taken.stderr
    loud = cli("broker", "--config", fleet.file, "--name", "b0", "--level", "loud")
    assert loud.code == 64
    assert "--level loud: unknown level; choose one of: debug, info, warning, error" in loud.err


# ---- a whole session --------------------------------------------------------------------------------------


def test_sigterm_drains_sighup_is_ignored_and_a_lost_parent_ends_it(tmp_path: Path) -> None:
    config = local_network(1, f=0, runtime=QUICK)
    (tmp_path / "network.toml").write_text(config.to_toml(), encoding="utf-8")
    command = [*PROGRAM, "broker", "--config", str(tmp_path / "network.toml"), "--name", "b0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as broker:
        assert broker.stderr is not None
        assert "listening" in broker.stderr.readline()
        broker.send_signal(signal.SIGHUP)
        while "SIGHUP: the network's file is read only at the start" not in broker.stderr.readline():
            assert broker.poll() is None
        broker.terminate()
        assert broker.wait(20) == 0
        assert "stopped" in broker.stderr.read()
    orphan = gapless(*command[3:], "--parent", str(os.getpid() + 1_000_000))
    assert orphan.returncode == 0
    assert "stopped" in orphan.stderr


@contextmanager
def started(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """Start a program that prints to a pipe. It is killed if the test fails, because leaving the block waits for it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def test_up_starts_a_network_restarts_crashed_brokers_and_stops_it(cli: Cli, tmp_path: Path) -> None:
    port = free_ports(1)[0]
    command = [*PROGRAM, "up", "--brokers", "2", "--port", str(port), "--logs", str(tmp_path)]
    with started(command) as up:
        assert up.stdout is not None
        assert up.stdout.readline().startswith(f"up: gapless://127.0.0.1:{port}")
        assert up.stdout.readline().startswith("f = 0: if a broker fails, the others wait for it; --brokers 3 is")
        url = f"gapless://127.0.0.1:{port},127.0.0.1:{port + 1}"
        assert cli("status", "--url", url).code == 0
        [pid] = [
            int(entry.name) for entry in Path("/proc").iterdir()
            if entry.name.isdecimal() and f"{tmp_path}/network.toml\0--name\0b1\0" in _command_line(entry)
        ]  # fmt: skip
        os.kill(pid, signal.SIGKILL)
        assert up.stdout.readline() == "b1 exited with code -9\n"
        assert up.stdout.readline() == "restarting b1\n"
        for _ in range(100):
            if cli("status", "--url", url).code == 0:
                break
            time.sleep(0.2)
        assert cli("status", "--url", url).code == 0, "also of two brokers one may be killed and comes back"
        up.send_signal(signal.SIGINT)
        assert up.wait(30) == 0
        assert up.stdout.read() == "stopping the network\n"
    assert not [entry for entry in Path("/proc").iterdir() if f"{tmp_path}/network.toml" in _command_line(entry)]


def test_up_reports_once_why_a_broker_does_not_start_and_backs_off(cli: Cli, tmp_path: Path) -> None:
    port, logs, data = free_ports(1)[0], tmp_path / "logs", tmp_path / "data"
    command = [*PROGRAM, "up", "--brokers", "3", "--port", str(port), "--logs", str(logs), "--data", str(data)]
    with started(command) as up:
        assert up.stdout is not None
        assert up.stdout.readline().startswith(f"up: gapless://127.0.0.1:{port}")
        [pid] = [
            int(entry.name) for entry in Path("/proc").iterdir()
            if entry.name.isdecimal() and f"{logs}/network.toml\0--name\0b1\0" in _command_line(entry)
        ]  # fmt: skip
        os.kill(pid, signal.SIGSTOP)  # it must not notice and exit before it is killed
        for file in (data / "b1").glob("data.sqlite*"):
            file.write_bytes(b"no database" * 1_000)
        os.kill(pid, signal.SIGKILL)
        assert up.stdout.readline() == "b1 exited with code -9\n"
        assert up.stdout.readline() == "restarting b1\n"
        reason = up.stdout.readline()
        while not reason.endswith(" 60 s\n"):
            line = up.stdout.readline()
            assert line, reason
            reason += line
        assert "broker 'b1' ended with code 64: " in reason
        assert "damaged" in reason
        time.sleep(6)  # the pauses are 2, 4 and 8 s
        up.send_signal(signal.SIGINT)
        assert up.wait(30) == 0
        assert up.stdout.read() == "stopping the network\n"


def _command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_text(encoding="utf-8")
    except OSError:
        return ""


def test_up_names_the_broker_that_could_not_start(cli: Cli, fleet: Fleet) -> None:
    ran = cli("up", "--config", fleet.file, "--seconds", "1")
    assert ran.code == 64
    assert re.search(r"broker 'b\d' ended with code 64: .*port is in use", ran.err, re.DOTALL)
    assert "0 is not in the range 1<=x<=1000" in cli("up", "--brokers", "0").err
    assert "no protocol 'nope'" in cli("up", "--brokers", "1", "--protocol", "nope").err


def test_up_names_the_option_where_a_port_is_in_use(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", free_ports(1)[0])) as other:
        port = other.getsockname()[1]
        for first in (port, port - 1_000):
            ran = cli("up", "--brokers", "1", "--port", str(first), "--seconds", "0")
            assert ran.code == 64
            assert f"port {port} of 127.0.0.1 is in use; choose others with --port N" in ran.err
    ran = cli("up", "--brokers", "3", "--port", "65000")
    assert (ran.code, "--port 65000 is too high" in ran.err, "64533 is the maximum" in ran.err) == (64, True, True)


@pytest.mark.parametrize("command", ["up", "broker", "status", "pub", "sub", "trace merge"])
def test_help_has_an_example_and_the_exit_codes(cli: Cli, command: str) -> None:
    ran = cli(*command.split(), "--help")
    assert ran.code == 0
    assert f"Example:  gapless {command.split()[0]}" in ran.out or f"| gapless {command}" in ran.out
    assert "Exit codes: 0" in ran.out
    assert cli("trace").code == 0

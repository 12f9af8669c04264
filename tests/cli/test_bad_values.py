"""Invalid values: each ends the command with a clear error and exit code 64 before it does any work."""

from pathlib import Path

import pytest

from gapless.runtime.fleet import free_ports, local_network
from tests.conftest import Cli

FIRST = str(Path(__file__).parents[2] / "examples/first.toml")
HUGE = "99999999999999999999"
DEEP = "[" * 50_000

READING = (
    "check", "sim run", "sim compare", "lab run --out=out", "audit", "status --config", "up --config",
    "broker --name=b0 --config", "trace merge --quiesced {dir}/new",
)  # fmt: skip
WRITING_FOLDERS = (
    f"sim run {FIRST} --trace", "demo --trace", "demo --simulated --trace", "up --logs", "up --trace",
    "audit {trace} --out", "lab figures --out", "trace merge {dir}",
)  # fmt: skip
WRITING_FILES = ("demo --svg", "demo --simulated --svg", "sim search --save")
URLS = ("", "gapless://", "gapless://:1", "gapless://h:x", "gapless://h:99999", "http://h:1", "gapless://\udcff")

BAD = [
    # numbers
    *(f"sim run {FIRST} --seed={value}" for value in ("x", "1.5", "", HUGE, f"-{HUGE}")),
    *(f"sim compare {FIRST} --seed={value}" for value in ("x", HUGE)),
    *(f"sim search --first-seed={value}" for value in ("x", "1.5", HUGE)),
    *(f"sim search --runs={value}" for value in ("0", "-1", "x", "1.5", HUGE)),
    *(f"sim search --f={value}" for value in ("-1", "11", "x")),
    *(f"up --brokers={value}" for value in ("0", "-1", "x", "1001")),
    *(f"up --f={value}" for value in ("-1", "x", "1.5", "7")), "up --brokers=3 --f=3", "up --brokers=1 --f=1",
    *(f"up --port={value}" for value in ("0", "-1", "65536", "x")),
    *(f"up --seconds={value}" for value in ("-1", "nan", "inf", "x")),
    *(f"sub --seconds={value}" for value in ("-1", "nan", "inf", "x")),
    *(f"sub --count={value}" for value in ("0", "-1", "x")),
    *(f"pub --count={value}" for value in ("-1", "x", "1.5")),
    *(f"pub --rate={value}" for value in ("0", "-1", "nan", "inf", "x")),
    # names
    *(f"sim search --faults={value}" for value in ("", ",", "crash,", "none,crash", "CRASH", "fire")),
    *(f"sim search --option={value}" for value in ("", "=", "=1", "x=1", "window=", "window=x", "window=1.5")),
    *(f"sim search --option={value}" for value in ("window=0", "window=-1", "wave_ms=-5", "wave_ms=nan", "wave_ms=0")),
    *(f"sim search --option={value}" for value in (f"window={HUGE}", "wave_ms=1e400", "switched_off=x", "history_s=x")),
    *(f"{command} --protocol={value}" for command in ("sim search", "up") for value in ("", "x", "GAPLESS")),
    *(f"sim compare {FIRST} --protocols={value}" for value in ("", ",", "gapless,x")),
    "protocols x", "lab run experiments/001-fig5a.toml", "lab figures --out=out --paper=999",
    # addresses
    *(f"{command} --url={value}" for command in ("status", "sub", "pub") for value in URLS),
    "audit {trace} --master=x", "audit {trace} --remote=x", "audit {trace} --master=local --remote=sc://h:1",
    # files
    *(f"{command} {{{place}}}" for command in READING for place in ("dir", "file", "nowhere", "bytes")),
    *(f"{command} {{file}}" for command in WRITING_FOLDERS),
    *(f"{command} {place}" for command in WRITING_FILES for place in ("{dir}", "{file}/below")),
    # texts
    *(f"{command}=a" for command in ("filter check TRUE --event", "pub --event")),
    *(f"broker --config={{network}} --name={name}" for name in ("", "b7")),
    "broker --config={network} --name=b0 --trace={file}",
    *(f"broker --config={{network}} --name=b0 --level={level}" for level in ("", "loud")),
]  # fmt: skip


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    names = ("dir", "file", "nowhere", "bytes", "network", "trace")
    found = {name: tmp_path / name for name in names}
    found["dir"].mkdir()
    (found["dir"] / "something").write_text("of somebody", encoding="utf-8")
    found["file"].write_text("neither TOML nor JSON", encoding="utf-8")
    found["bytes"].write_bytes(bytes(range(256)))
    found["network"].write_text(local_network(1, f=0).to_toml(), encoding="utf-8")
    found["trace"].mkdir()
    return found


@pytest.mark.parametrize("line", BAD)
def test_each_gets_a_sentence(cli: Cli, places: dict[str, Path], line: str) -> None:
    ran = cli(*(word.format(**places) if "{" in word else word for word in line.split(" ")))
    assert ran.code == 64, ran
    assert ran.out == ""
    assert ran.err.startswith("gapless: ")
    assert "Traceback" not in ran.err
    assert len(ran.err.splitlines()) <= 4


@pytest.mark.parametrize("text", ["", " ", "a ==", "'", "(((", "\udcff = 1", "a" * 100_000])
@pytest.mark.parametrize(
    "command", ["filter check", "filter check TRUE --against", "sub", "pub --event={} --advertise"]
)
def test_filters_are_read_before_anybody_is_asked(cli: Cli, command: str, text: str) -> None:
    url = ["--url", f"gapless://127.0.0.1:{free_ports(1)[0]}"] if "filter" not in command else []
    ran = cli(*command.split(), text, *url)
    assert ran.code == 64
    assert "no broker" not in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("name", ["", "a\x1b[31m", "a\n", "a" * 5_000], ids=ascii)
@pytest.mark.parametrize("command", ["client end", "client delete-events", "network forget"])
def test_names_are_checked_before_anybody_is_asked(cli: Cli, command: str, name: str) -> None:
    ran = cli(*command.split(), name, "--url", f"gapless://127.0.0.1:{free_ports(1)[0]}")
    assert ran.code == 64
    assert ran.err.startswith("gapless: the name of a ")


@pytest.mark.parametrize(
    "event", ["", "x", "[]", "1", "null", DEEP, '{"a": {}}', '{"a": null}', '{"a": NaN}', '{"a": 1e999}',
              f'{{"a": {HUGE}}}', '{"a": "\\ud800"}', '{"a": "\udcff"}', '{"attributes": 1}'],
    ids=lambda event: ascii(event[:20]),
)  # fmt: skip
@pytest.mark.parametrize("command", ["filter check TRUE", "pub"])
def test_of_an_event_publishing_and_checking_say_the_same(cli: Cli, command: str, event: str) -> None:
    ran = cli(*command.split(), "--event", event)
    assert ran.code == 64
    assert ran.err.startswith("gapless: --event: ")
    assert "Traceback" not in ran.err

"""The published packages work on their own: wheel and sdist are built, installed, and used."""

import asyncio
import re
import socket
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import httpx
import pytest

from gapless.cli.exit_codes import BAD_INPUT
from gapless.cli.extras import EXTRAS
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import free_ports
from tests.package.environment import Environment, make_environment
from tests.runtime.secure import secure

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

MODULES = {"prometheus-client": "prometheus_client", "pyjwt": "jwt"}
BROUGHT_ALONG = {"py4j"}


def _build(source: Path, out: Path, kind: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out), "-t", kind]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=100)
    [made] = [file for file in out.iterdir() if file.suffix == {"wheel": ".whl", "sdist": ".gz"}[kind]]
    return made


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("package")


@pytest.fixture(scope="module")
def wheel(place: Path) -> Path:
    with tarfile.open(_build(ROOT, place / "dist", "sdist")) as archive:
        archive.extractall(place / "source", filter="data")
    [source] = (place / "source").iterdir()
    return _build(source, place / "dist", "wheel")


@pytest.fixture(scope="module")
def client_only(place: Path, wheel: Path) -> Environment:
    return make_environment(place / "client", wheel)


@pytest.fixture(scope="module")
def with_broker(place: Path, wheel: Path) -> Environment:
    return make_environment(place / "broker", wheel, frozenset({"broker"}))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


def _listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _broker(environment: Environment, folder: Path) -> Iterator[tuple[str, str]]:
    """Start a broker, and yield its address and that of its HTTP port."""
    port, http = free_ports(2)
    file = f'[network]\nname = "first"\nf = 0\n\n[[brokers]]\nname = "b0"\naddress = "127.0.0.1:{port}"\n'
    (folder / "network.toml").write_text(f'{file}http = "127.0.0.1:{http}"\n', encoding="utf-8")
    command = [environment.program("gapless"), "broker", "--config", "network.toml", "--name", "b0"]
    broker = subprocess.Popen(command, cwd=folder, env={"PATH": "/usr/bin:/bin"}, stderr=subprocess.PIPE)
    try:
        while broker.poll() is None and not (_listens(port) and _listens(http)):
            time.sleep(0.1)
        yield f"gapless://127.0.0.1:{port}", f"http://127.0.0.1:{http}"
    finally:
        broker.terminate()
        broker.communicate(timeout=60)


def first_program() -> str:
    program = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    return str(program)


def test_the_wheel_is_that_of_the_checkout(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    sources = [file for file in (ROOT / "src").rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    assert {file.relative_to(ROOT / "src").as_posix() for file in sources} <= packed
    assert not [name for name in packed if not re.match(r"gapless(_papers|_spark)?/|gapless-[^/]*\.dist-info/", name)]


def test_the_first_program_works_with_the_client_alone(
    client_only: Environment, with_broker: Environment, tmp_path: Path
) -> None:
    with _broker(with_broker, tmp_path) as (address, _):
        program = first_program().replace("gapless://127.0.0.1:7400", address)
        (tmp_path / "first.py").write_text(program, encoding="utf-8")
        ran = client_only.run("python", "-W", "error", "first.py", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert re.fullmatch(r"client-\w+:1 \{'topic': 'price', 'amount': 7\} b'any bytes'\n", ran.stdout)


def test_a_broker_without_the_extra_http_serves_health_and_metrics(place: Path, wheel: Path, tmp_path: Path) -> None:
    bare = make_environment(place / "bare", wheel, frozenset({"broker"}))
    [site] = bare.folder.glob("lib/python*/site-packages")
    for module in EXTRAS["http"]:
        (site / module).unlink()
    with _broker(bare, tmp_path) as (_, http):
        assert httpx.get(f"{http}/healthz").text == "ok\n"
        assert "gapless_ready 1.0" in httpx.get(f"{http}/metrics").text
        assert httpx.get(f"{http}/events").status_code == 404


SECRETLY = """
import asyncio, sys
import gapless

async def main():
    url, credentials, trace = sys.argv[1:]
    async with gapless.connect(url, credentials=credentials, trace=trace) as client:
        await client.advertise("TRUE")
        subscription = await client.subscribe("TRUE")
        await client.publish({"n": 7})
        print((await subscription.take())[0].attributes)

asyncio.run(main())
"""


def test_only_the_client_can_prove_its_identity_and_write_its_trace(client_only: Environment, tmp_path: Path) -> None:
    async def main() -> tuple[bytes, bytes]:
        async with secure(1, tmp_path, f=0, users={}) as network, asyncio.timeout(100):
            given = network.url, str(network.admin), str(tmp_path / "trace")
            ran = await asyncio.create_subprocess_exec(
                client_only.program("python"), "-c", SECRETLY, *given, cwd=tmp_path, env={}, stdout=PIPE, stderr=PIPE
            )
            return await ran.communicate()

    assert run(main()) == (b"{'n': 7}\n", b"")
    assert len(list((tmp_path / "trace" / "parts").iterdir())) == 1


def test_the_client_loads_only_what_it_needs(client_only: Environment) -> None:
    program = (
        "import gapless, gapless.sync, gapless.simulator, gapless.checkers; gapless.connect; print(gapless.__file__)"
    )
    ran = client_only.run("python", "-W", "error", "-c", program)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith(str(client_only.folder))
    site = next(client_only.folder.glob("lib/python*/site-packages"))
    there = {path.name for path in site.iterdir()}
    assert there & {"msgspec", "click", "pyarrow", "cryptography"} == {"msgspec"}


def test_the_command_without_its_extra_reports_it_in_a_sentence(client_only: Environment) -> None:
    sentence = "gapless: the command line is not installed; install it with: pip install 'gapless[cli]'\n"
    for words in (["gapless", "sim", "run"], ["python", "-m", "gapless"]):
        ran = client_only.run(*words)
        assert (ran.returncode, ran.stdout, ran.stderr) == (BAD_INPUT, "", sentence)


def test_a_command_that_needs_more_than_a_broker_names_it(with_broker: Environment) -> None:
    ran = with_broker.run("gapless", "check", "out/live")
    assert (
        ran.stderr
        == "gapless: this needs pyarrow, which is not installed; install it with: pip install 'gapless[cli]'\n"
    )
    assert (ran.returncode, ran.stdout) == (BAD_INPUT, "")
    assert with_broker.run("gapless", "protocols").returncode == 0


def test_a_type_checker_knows_a_misspelt_name_from_a_right_one(client_only: Environment, tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(first_program(), encoding="utf-8")
    (tmp_path / "wrong.py").write_text(first_program().replace("gapless.connect", "gapless.conect"), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", client_only.program("python")]
    completed = subprocess.run(
        [*command, "--no-error-summary", "--cache-dir", "cache", "right.py", "wrong.py"], cwd=tmp_path, env={},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    [line] = completed.stdout.splitlines()
    assert re.match(r'wrong\.py:\d+: error: Module has no attribute "conect"', line)


def test_every_extra_is_one_that_the_command_can_name() -> None:
    for extra, modules in EXTRAS.items():
        needs = [re.split(r"[\[<>=;]", need)[0] for need in PROJECT["optional-dependencies"][extra]]
        assert {MODULES.get(need, need) for need in needs} - {"gapless"} == set(modules) - BROUGHT_ALONG


def test_the_page_of_the_package_has_no_link_that_leads_nowhere(metadata: Message) -> None:
    text = str(metadata.get_payload())
    assert text.startswith("# Gapless")
    assert not re.findall(r"\]\((?!https?://)[^)]*\)", text)
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert len(metadata.get_all("Project-URL") or []) == len(PROJECT.get("urls", {}))


def test_the_classifiers_are_known(metadata: Message) -> None:
    from trove_classifiers import classifiers

    given = metadata.get_all("Classifier") or []
    assert set(given) <= classifiers
    assert "Typing :: Typed" in given

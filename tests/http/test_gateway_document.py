"""The examples of docs/GATEWAY.md run against a real network."""

import asyncio
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.network_file import parse_network
from tests.runtime.secure import secure

from .serving import Serving, serving, serving_secure

PAGE = (Path(__file__).parents[2] / "docs" / "GATEWAY.md").read_text(encoding="utf-8")
TIMED_OUT = 28


def blocks() -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def shape(value: Any) -> Any:
    return {name: shape(each) for name, each in value.items()} if isinstance(value, dict) else type(value).__name__


async def script(text: str, http: Serving, cwd: Path, curlrc: str = "") -> str:
    (cwd / ".curlrc").write_text(curlrc, encoding="utf-8")
    text = re.sub(r"https?://127\.0\.0\.1:8400", http.url("b0"), text)
    ran = await asyncio.to_thread(
        subprocess.run,
        ["bash", "-c", text],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        env=os.environ | {"CURL_HOME": str(cwd)},
    )
    assert ran.returncode in (0, TIMED_OUT), (text, ran.stdout, ran.stderr)
    assert '"problem"' not in ran.stdout
    return ran.stdout


async def check_commands(http: Serving, cwd: Path, curlrc: str = "") -> None:
    shown = blocks()
    outputs: list[str] = []
    for place, (language, text) in enumerate(shown):
        if language != "sh":
            continue
        outputs.append(await script(text, http, cwd, curlrc))
        if shown[place + 1][1].startswith('{"id"'):
            assert shape(json.loads(outputs[-1])) == shape(json.loads(shown[place + 1][1])), outputs[-1]
    live, history, durable = outputs[2:5]
    assert live.count('\ndata: {"id"') == 1, "the CloudEvent has no topic"
    assert '"data":{"customer": 12}' in live
    assert history.count('{"event":') == 2
    assert '{"acknowledged":' in durable


def test_the_commands_answer_as_shown(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(chain(3)) as http:
            await check_commands(http, tmp_path)

    run(main())


@pytest.mark.parametrize("proof", ["certificate", "token"])
def test_the_commands_answer_as_shown_with_certificates_and_users(proof: str, tmp_path: Path) -> None:
    """curl reads the certificates or the token from its configuration file."""
    directory = tmp_path / "gapless-security"
    directory.mkdir()
    token = re.compile(r'# token = "([^"]*)"')

    async def main() -> None:
        async with secure(chain(3), directory) as network, serving_secure(network) as http:
            [shown] = token.findall((directory / "users" / "admin.toml").read_text(encoding="utf-8"))
            by = {
                "certificate": f'cert = "{directory}/users/admin.pem"\nkey = "{directory}/users/admin.key"\n',
                "token": f'header = "Authorization: Bearer {shown}"\n',
            }
            await check_commands(http, tmp_path, f'cacert = "{directory}/authority.pem"\n{by[proof]}')
            [with_options] = [text for language, text in blocks() if "--cacert" in text]
            printed = await script(with_options, http, tmp_path)
            assert printed.startswith('{"id":"admin:http-')
            assert printed.endswith("\n\n")
            assert '"topic":"order"' in printed
            for curlrc, status in ((f'cacert = "{directory}/authority.pem"\n', "401"), ("", "000")):
                refused = f"curl -sS -o /dev/null -w '%{{http_code}}' {http.url('b0')}/events || true"
                assert await script(refused, http, tmp_path, curlrc) == status

    run(main())


def test_the_messages_and_the_table_are_valid() -> None:
    from gapless.http.web_socket import _command

    socket = next(text for language, text in blocks() if language == "json" and '"op"' in text)
    assert [_command(line).op for line in socket.splitlines()] == [
        "subscribe",
        "publish",
        "ack",
        "credit",
        "unsubscribe",
    ]
    table = next(text for language, text in blocks() if language == "toml")
    config = parse_network(f'[network]\nf = 0\n[[brokers]]\nname = "b0"\naddress = "127.0.0.1:7400"\n\n{table}')
    assert config.http.origins == ("https://app.example",)

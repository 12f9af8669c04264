"""The examples of docs/GATEWAY.md run against a real network."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.network_file import parse_network

from .serving import serving

PAGE = (Path(__file__).parents[2] / "docs" / "GATEWAY.md").read_text(encoding="utf-8")
TIMED_OUT = 28
"""The exit code of curl after `--max-time`."""


def blocks() -> list[tuple[str, str]]:
    """Language and text of all blocks, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def shape(value: Any) -> Any:
    """The names in a document, and the types of what they stand for."""
    return {name: shape(each) for name, each in value.items()} if isinstance(value, dict) else type(value).__name__


def test_the_commands_answer_as_shown() -> None:
    import asyncio

    async def main() -> None:
        async with serving(chain(3)) as http:
            url = http.url("b0")
            shown = blocks()
            outputs: list[str] = []
            for place, (language, text) in enumerate(shown):
                if language != "sh":
                    continue
                script = text.replace("http://127.0.0.1:8400", url)
                ran = await asyncio.to_thread(
                    subprocess.run, ["bash", "-c", script], capture_output=True, text=True, timeout=60
                )
                assert ran.returncode in (0, TIMED_OUT), (script, ran.stdout, ran.stderr)
                assert '"problem"' not in ran.stdout
                outputs.append(ran.stdout)
                if shown[place + 1][1].startswith('{"id"'):
                    assert shape(json.loads(ran.stdout)) == shape(json.loads(shown[place + 1][1])), ran.stdout
            live, history, durable = outputs[2:5]
            assert live.count('\ndata: {"id"') == 1, "the CloudEvent has no topic"
            assert '"data":{"customer": 12}' in live
            assert history.count('{"event":') == 2
            assert '{"acknowledged":' in durable

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

"""The JavaScript client: its own tests with Node against real brokers, its types, and its package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CLIENT = Path(__file__).parents[2] / "clients" / "js"
NODE = shutil.which("node")
TYPESCRIPT = CLIENT / "node_modules" / "typescript" / "bin" / "tsc"

needs_node = pytest.mark.skipif(NODE is None, reason="the JavaScript client is tested with Node 20 or newer: no node")


def _run(*command: str, **more: str) -> str:
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "GAPLESS_PYTHON": sys.executable, **more}
    done = subprocess.run(
        command, cwd=CLIENT, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_node
def test_the_client_against_real_brokers() -> None:
    completed = _run("node", "--test", "--test-reporter=tap", "test/client.test.js")
    assert "# fail 0" in completed
    assert "# skipped 0" in completed


@needs_node
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm pack needs npm")
def test_the_package_holds_the_client_and_its_types(tmp_path: Path) -> None:
    [packed] = json.loads(
        _run("npm", "pack", "--json", "--pack-destination", str(tmp_path), npm_config_cache=str(tmp_path))
    )
    names = {file["path"] for file in packed["files"]}
    assert names == {"README.md", "gapless.d.ts", "gapless.js", "package.json"}
    shutil.unpack_archive(tmp_path / packed["filename"], tmp_path, "gztar")
    program = "import { Client } from 'gapless-client'; console.log(new Client('http://x/').url)"
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "package").rename(tmp_path / "node_modules" / "gapless-client")
    used = subprocess.run(
        ["node", "--input-type=module", "-e", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert used.stdout == "http://x\n"


@needs_node
@pytest.mark.skipif(not TYPESCRIPT.is_file(), reason="the types are made by TypeScript: npm ci --prefix clients/js")
def test_the_types_are_those_of_the_source(tmp_path: Path) -> None:
    _run("node", str(TYPESCRIPT), "--outDir", str(tmp_path))
    assert (tmp_path / "gapless.d.ts").read_text() == (CLIENT / "gapless.d.ts").read_text()

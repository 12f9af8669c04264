"""Runs the command line in this process, as the shell would."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import pytest

from gapless.cli.main import run


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Cli: TypeAlias = Callable[..., Ran]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`cli("sim", "run", file)`: run it, at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: object) -> Ran:
        with pytest.raises(SystemExit) as ended:
            run([str(argument) for argument in arguments])
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, *capsys.readouterr())

    return call

"""`gapless broker`: one broker of a network, in this process."""

from pathlib import Path

from gapless.errors import ConfigError
from gapless.runtime.logs import LEVELS, log_to
from gapless.runtime.network_file import load_network
from gapless.runtime.process import run_broker

__all__ = ["serve"]


def serve(file: Path, name: str, *, as_json: bool, level: str, trace: str, parent: int) -> int:
    """Serve until told to stop. Clients run elsewhere, so they are told the whole path of where traces go."""
    if level.lower() not in LEVELS:
        raise ConfigError(f"--level {level}: there is no such level; choose one of: {', '.join(LEVELS)}")
    config = load_network(file)
    config.broker(name)
    if trace:
        Path(trace).mkdir(parents=True, exist_ok=True)
    log_to(as_json=as_json, level=level)
    return run_broker(config, name, trace=str(Path(trace).absolute()) if trace else "", parent=parent)

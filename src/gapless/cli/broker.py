"""`gapless broker`: runs one broker of a network in this process."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from gapless.errors import ConfigError
from gapless.runtime.broker import Broker
from gapless.runtime.http_endpoint import HttpEndpoint
from gapless.runtime.logs import LEVELS, log_to
from gapless.runtime.network_file import load_network
from gapless.runtime.process import Endpoint, run_broker

__all__ = ["serve"]


def serve(file: Path, name: str, *, as_json: bool, level: str, trace: str, parent: int) -> int:
    """Run the broker until a signal arrives; return the exit code. The trace path is made absolute, because clients run
    in other directories."""
    if level.lower() not in LEVELS:
        raise ConfigError(f"--level {level}: unknown level; choose one of: {', '.join(LEVELS)}")
    config = load_network(file)
    config.broker(name)
    if trace:
        Path(trace).mkdir(parents=True, exist_ok=True)
    log_to(as_json=as_json, level=level)
    place = str(Path(trace).absolute()) if trace else ""
    return run_broker(config, name, trace=place, parent=parent, endpoint=_endpoint())


def _endpoint() -> Callable[[Broker], Endpoint]:
    """Return the constructor of the HTTP endpoint. Without the `http` extra, the endpoint serves only health, metrics
    and status."""
    if any(find_spec(name) is None for name in ("starlette", "uvicorn", "httptools", "wsproto")):
        return HttpEndpoint
    from gapless.http.server import HttpServer

    return HttpServer

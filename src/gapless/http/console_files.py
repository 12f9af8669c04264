"""Serves the files of the console: one page, its style sheet, and ES modules that browsers load unchanged.

There is no build step. `gapless.js` is the JavaScript client of `clients/js`, the same that users get. Files are read
once, and browsers revalidate their copies (`ETag`).
"""

from functools import cache
from hashlib import blake2b
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from gapless.http.problems import ProblemError

__all__ = ["console_files", "get_file", "get_page"]

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_CLIENT = "gapless.js"
PAGE = "index.html"


@cache
def console_files() -> dict[str, tuple[bytes, str]]:
    """Return the contents and the ETag of every file by name."""
    package = resources.files("gapless.http") / "console"
    files = {each.name: each for each in package.iterdir() if each.name.rpartition(".")[2] in _TYPES}
    files.setdefault(_CLIENT, _client_of_the_checkout())
    return {name: _read(file) for name, file in sorted(files.items())}


def _client_of_the_checkout() -> Traversable:
    """Return the JavaScript client in a source tree. In a wheel it is next to the other files."""
    return Path(__file__).parents[3] / "clients" / "js" / _CLIENT


def _read(file: Traversable) -> tuple[bytes, str]:
    content = file.read_bytes()
    return content, f'"{blake2b(content, digest_size=8).hexdigest()}"'


async def get_page(request: Request) -> Response:
    """Handle `GET /`: return the console's page."""
    return _response(request, PAGE)


async def get_file(request: Request) -> Response:
    """Handle `GET /console/FILE`: return a file of the console."""
    name = request.path_params["file"]
    if name == PAGE or name not in console_files():
        raise ProblemError("not-found", f"the console has no file {name[:80]!r}")
    return _response(request, name)


def _response(request: Request, name: str) -> Response:
    content, tag = console_files()[name]
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    media_type = f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8"
    return Response(content, media_type=media_type, headers=headers)

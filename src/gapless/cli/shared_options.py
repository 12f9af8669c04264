"""Options that several commands share, and the help of command groups."""

from pathlib import Path
from typing import Annotated

import typer

from gapless.runtime.address import redacted

__all__ = [
    "LOCAL",
    "CredentialsFile",
    "Json",
    "Seconds",
    "Seed",
    "Url",
    "help_without_command",
    "local",
    "seed_in_range",
]

LOCAL = "gapless://127.0.0.1:7400"

SEED_BITS = 63
"""A trace stores a seed in 64 bits, one of which is the sign."""
SECONDS_MAX = 100_000_000.0
"""Three years; clocks that count nanoseconds do not go much further."""


def seed_in_range(seed: int | None) -> int | None:
    """Return the seed if a trace can store it."""
    if seed is not None and abs(seed) >= 2**SEED_BITS:
        raise typer.BadParameter(f"{seed} is too large; a seed has at most {SEED_BITS} bits")
    return seed


def _sendable(url: str) -> str:
    if not url.isascii() and any("\ud800" <= letter <= "\udfff" for letter in url):
        raise typer.BadParameter(f"{redacted(url)!r} is no text; write gapless://host:port")
    return url


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Seed = Annotated[int | None, typer.Option(metavar="N", callback=seed_in_range, help="Instead of the seed in the file.")]
Url = Annotated[
    str,
    typer.Option(
        "--url",
        metavar="URL",
        envvar="GAPLESS_URL",
        callback=_sendable,
        help="One or more brokers: gapless://host:port,host:port.",
    ),
]
CredentialsFile = Annotated[
    Path | None,
    typer.Option(
        "--credentials",
        metavar="FILE",
        envvar="GAPLESS_CREDENTIALS",
        help="Credentials file (TOML) for gapless+tls://.",
    ),
]
Seconds = Annotated[
    float | None, typer.Option(metavar="SECONDS", min=0, max=SECONDS_MAX, help="Stop after this many seconds.")
]  # fmt: skip


def local(url: str, credentials: Path | None) -> str:
    """Return the URL; the default is a network on this machine, with TLS if there are credentials."""
    return LOCAL.replace("gapless:", "gapless+tls:") if url == LOCAL and credentials is not None else url


def help_without_command(context: typer.Context) -> None:
    """Print the help unless a command was named."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit

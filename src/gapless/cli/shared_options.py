"""Options that several commands share."""

import math
from pathlib import Path
from typing import Any

import click

__all__ = [
    "LOCAL",
    "PATH",
    "NumberRange",
    "credentials_option",
    "json_option",
    "local",
    "network_file_option",
    "seconds_option",
    "seed_in_range",
    "seed_option",
    "url_option",
]

LOCAL = "gapless://127.0.0.1:7400"

PATH = click.Path(path_type=Path)


class NumberRange(click.FloatRange):
    """A number within bounds. NaN is rejected; its comparisons with the bounds are all false, so Click would
    accept it."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or raise a usage error."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


SEED_BITS = 63
"""The number of bits of a seed. A trace stores it in 64 bits, one of which is the sign."""
SECONDS_MAX = 100_000_000.0
"""The maximum duration: about three years. Clocks that count nanoseconds do not go much further."""


def seed_in_range(_context: click.Context, _parameter: click.Parameter, seed: int | None) -> int | None:
    """Return the seed if a trace can store it."""
    if seed is not None and abs(seed) >= 2**SEED_BITS:
        raise click.BadParameter(f"{seed} is too large; a seed has at most {SEED_BITS} bits")
    return seed


def _sendable(_context: click.Context, _parameter: click.Parameter, url: str) -> str:
    if not url.isascii() and any("\ud800" <= letter <= "\udfff" for letter in url):
        from gapless.runtime.address import redacted

        raise click.BadParameter(f"{redacted(url)!r} is not text; write gapless://host:port")
    return url


json_option = click.option("--json", is_flag=True, help="Print one JSON document and nothing else.")
seed_option = click.option(
    "--seed", metavar="N", type=int, callback=seed_in_range, help="Replaces the seed in the file."
)
url_option = click.option(
    "--url", metavar="URL", default=LOCAL, envvar="GAPLESS_URL", show_envvar=True, callback=_sendable,
    help="One or more brokers: gapless://host:port,host:port.",
)  # fmt: skip
credentials_option = click.option(
    "--credentials", metavar="FILE", type=PATH, envvar="GAPLESS_CREDENTIALS", show_envvar=True,
    help="Credentials file (TOML) for gapless+tls://.",
)  # fmt: skip
network_file_option = click.option("--config", metavar="FILE", type=PATH, help="The network's file, in TOML.")
seconds_option = click.option(
    "--seconds", metavar="SECONDS", type=NumberRange(0, SECONDS_MAX), help="Stop after this many seconds."
)


def local(url: str, credentials: Path | None) -> str:
    """Return the URL. The default is a network on this machine, with TLS if credentials are given."""
    return LOCAL.replace("gapless:", "gapless+tls:") if url == LOCAL and credentials is not None else url

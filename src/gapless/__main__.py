"""The `gapless` command, also available as `python -m gapless`.

The command line is an extra. Without it, the command prints one sentence that says so, instead of a traceback.
"""

import sys
from typing import NoReturn

from gapless.cli.exit_codes import BAD_INPUT
from gapless.cli.extras import missing_extra

__all__ = ["run"]


def run() -> NoReturn:
    """Run the command line, or exit with a message if it is not installed."""
    try:
        from gapless.cli.main import run as command_line
    except ModuleNotFoundError as error:
        if missing_extra(error) == "":
            raise
        print(
            "gapless: the command line is not installed; install it with: pip install 'gapless[cli]'", file=sys.stderr
        )
        raise SystemExit(BAD_INPUT) from None
    command_line()


if __name__ == "__main__":
    run()

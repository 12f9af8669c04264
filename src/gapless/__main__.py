"""`python -m gapless`: the command line, where `gapless` is not on the path."""

from gapless.cli.main import run

if __name__ == "__main__":
    run()

"""Tells users which extra installs a missing package.

`pip install gapless` installs only the client. Commands import optional packages when they are called, so each command
needs only the extras that it uses.
"""

__all__ = ["missing_extra"]

EXTRAS = {
    "http": ("httptools", "starlette", "uvicorn", "wsproto"),
    "broker": ("click", "cryptography", "jwt", "numpy", "prometheus_client", "rich"),
    "cli": ("pyarrow",),
    "papers": ("matplotlib", "weasyprint"),
    "spark": ("pandas", "py4j", "pyspark"),
}
"""The packages that each extra adds to those of the extras it builds on, as in `pyproject.toml`."""


def missing_extra(error: ModuleNotFoundError) -> str:
    """Return a sentence that names the extra to install. Return an empty string if no extra provides the module, which
    is a bug."""
    name = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in EXTRAS.items() if name in modules), None)
    if extra is None:
        return ""
    return f"this needs {name}, which is not installed; install it with: pip install 'gapless[{extra}]'"

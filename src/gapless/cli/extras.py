"""Names the extra that installs a missing package.

`pip install gapless` installs only the client. Commands import what they need when they are called,
so each of them works with only the extras that it needs.
"""

__all__ = ["missing_extra"]

EXTRAS = {
    "http": ("httptools", "prometheus_client", "starlette", "uvicorn", "wsproto"),
    "broker": ("click", "cryptography", "jwt", "numpy", "rich"),
    "cli": ("pyarrow",),
    "papers": ("matplotlib", "weasyprint"),
    "spark": ("pandas", "py4j", "pyspark"),
}
"""The packages that each extra adds to those it builds on; `pyproject.toml` lists the same."""


def missing_extra(error: ModuleNotFoundError) -> str:
    """Return a sentence with the way out, or an empty text if no extra installs it, which is a bug."""
    name = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in EXTRAS.items() if name in modules), None)
    if extra is None:
        return ""
    return f"this needs {name}, which is not installed; pip install 'gapless[{extra}]' brings it"

"""What is not installed, and which extra of the package brings it.

`pip install gapless` brings the client alone. Commands import what they need when they are called, so each of them
works with the extras that it needs and no others.
"""

__all__ = ["missing_extra"]

EXTRAS = {
    "http": ("httptools", "prometheus_client", "starlette", "uvicorn", "wsproto"),
    "broker": ("cryptography", "jwt", "numpy", "rich", "typer"),
    "cli": ("pyarrow",),
    "papers": ("matplotlib", "weasyprint"),
    "spark": ("pandas", "py4j", "pyspark"),
}
"""What each extra adds to those that it builds on; `pyproject.toml` names the same packages."""


def missing_extra(error: ModuleNotFoundError) -> str:
    """A sentence with the way out, or nothing if no extra brings it: then it is a bug of ours."""
    name = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in EXTRAS.items() if name in modules), None)
    if extra is None:
        return ""
    return f"this needs {name}, which is not installed; pip install 'gapless[{extra}]' brings it"

"""Renders the report's HTML page as a PDF with WeasyPrint."""

from pathlib import Path
from typing import Any

from gapless.errors import ExperimentError

__all__ = ["write_pdf"]


def write_pdf(page: Path, document: Path) -> Path:
    """Write the page as a PDF in which links to neighbouring files stay relative, and return the PDF's path."""
    draft = document.with_name(f".{document.name}.partial")
    _weasyprint().HTML(filename=page, media_type="print").write_pdf(draft)
    draft.replace(document)
    return document


def _weasyprint() -> Any:
    try:
        import weasyprint
    except (ImportError, OSError) as error:  # OSError: its libraries are missing
        raise ExperimentError(
            "a PDF needs WeasyPrint and Pango; install gapless[papers] and, on Debian, apt-get install libpango-1.0-0 "
            f"libpangoft2-1.0-0 ({error})"
        ) from None
    return weasyprint

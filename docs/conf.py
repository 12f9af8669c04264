"""Settings for building the site: `make docs`. Every warning is an error.

`DOCS_EDIT_URL` adds an edit link to each page: a URL in which `{filename}` stands for the file under `docs`, such as
`https://forge.example/gapless/edit/main/docs/{filename}`. `DOCS_VERSIONS` lists other versions of the site in the side
bar: `0.1=https://docs.example/0.1/ dev=https://docs.example/dev/`.
"""

import os
import re
import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

import gapless  # noqa: E402

project = "Gapless"
copyright = "the authors of Gapless"  # noqa: A001
version = release = gapless.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["pictures"]
suppress_warnings = ["myst.xref_ambiguous"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
nitpick_ignore_regex = [("py:.*", ".*")]  # types of the standard library and internal types have no page here

default_role = "code"  # docstrings are Markdown: one pair of backticks is code
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"exclude-members": "__init__, __new__, __weakref__"}
autodoc_class_signature = "separated"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"Gapless {version}"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["copy.css"]
html_js_files = ["copy.js"]
html_theme_options = {"source_edit_link": os.environ.get("DOCS_EDIT_URL", "")}
templates_path = ["_templates"]
html_context = {"versions": [each.split("=", 1) for each in os.environ.get("DOCS_VERSIONS", "").split()]}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/versions.html",
        "sidebar/scroll-end.html",
    ]
}

AT_THE_TOP = re.compile(r"\]\((?:\.\./)+(CHANGELOG|CONTRIBUTING|SECURITY)\.md")
"""Links to documents at the top of the checkout, whose pages on the site are under `site`."""
FILE_NAME = re.compile(r"\[(?:docs/)?[A-Z_]+\.md\]\(")
"""Links whose text is a file name; the site shows the page's title instead."""


def _lead_to_pages(_app: Sphinx, name: str, source: list[str]) -> None:
    up = "../" * name.count("/")
    source[0] = FILE_NAME.sub("[](", AT_THE_TOP.sub(rf"]({up}site/\1.md", source[0]))


def setup(app: Sphinx) -> None:
    """Register the conversions from a checkout's documents to those of the site."""
    app.add_lexer("hex", TextLexer)
    app.connect("source-read", _lead_to_pages)

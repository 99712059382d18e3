"""Sphinx: the pages as they are (MyST), and the reference generated from docstrings. Warnings are errors.

python -m sphinx -W -b html docs build/docs
"""

from __future__ import annotations

import importlib.metadata
import re
from typing import Any

project = "symcheck"
author = "the symcheck developers"
version = release = importlib.metadata.version("symcheck")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["findings/README.md"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # console blocks show output that no lexer knows

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = True
napoleon_use_ivar = True
default_role = "literal"  # `name` in a docstring is code

html_theme = "furo"
html_title = f"symcheck {release}"


def escape_mathematics(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings write |G| and f(*x) as mathematics does; reStructuredText means something else by them."""
    for number, line in enumerate(lines):
        parts = re.split(r"(`[^`]*`)", line)
        parts[::2] = [re.sub(r"([|*]|(?<=\w)_(?!\w))", r"\\\1", part) for part in parts[::2]]
        lines[number] = line if line.lstrip().startswith((">>>", "...")) else "".join(parts)


def setup(app: Any) -> None:
    """Connect it ahead of napoleon, which reads the sections."""
    app.connect("autodoc-process-docstring", escape_mathematics, priority=400)

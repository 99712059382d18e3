"""Sphinx: the pages as they are (MyST), and the reference generated from docstrings. Warnings are errors.

python -m sphinx -W -b html docs build/docs
"""

from __future__ import annotations

import html
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

project = "symcheck"
author = "the symcheck developers"
project_copyright = author
version = release = importlib.metadata.version("symcheck")

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

extensions = [
    "accessible_pages",
    "example_pages",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_generated"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # console blocks show output that no lexer knows

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = True
napoleon_use_ivar = True
default_role = "literal"  # `name` in a docstring is code

smartquotes = False  # "--html" is an option, not a dash

html_theme = "furo"
html_title = f"symcheck {release}"
html_theme_options = {"top_of_page_buttons": []}
html_extra_path = ["_generated/extra"]  # the example pages, which `example_pages` writes


def escape_mathematics(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings write |G| and f(*x) as mathematics does; reStructuredText means something else by them."""
    for number, line in enumerate(lines):
        parts = re.split(r"(`[^`]*`)", line)
        parts[::2] = [re.sub(r"([|*]|(?<=\w)_(?!\w))", r"\\\1", part) for part in parts[::2]]
        lines[number] = line if line.lstrip().startswith((">>>", "...")) else "".join(parts)


PROGRAMS = {"symcheck": "symcheck.cli.main", "reference-agents": "reference_agents.cli.app"}


def write_commands(app: Any, config: Any) -> None:
    """The pages of the commands, from the programs' own help."""
    folder = Path(app.srcdir) / "_generated"
    folder.mkdir(exist_ok=True)
    for name, module in PROGRAMS.items():
        words = [sys.executable, "-m", "typer", module, "utils", "docs", "--name", name, "--title", name]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        (folder / f"{name}.md").write_text(html.unescape(text))


def setup(app: Any) -> None:
    """Connect it ahead of napoleon, which reads the sections."""
    app.connect("config-inited", write_commands)
    app.connect("autodoc-process-docstring", escape_mathematics, priority=400)

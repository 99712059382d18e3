"""The arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from symcheck.cli import completion

_SYMMETRY = "An atlas name, pkg.mod:attr, path/file.py:attr or a .toml file"

Environment = Annotated[
    str,
    typer.Argument(
        help="A Gymnasium id, module:Id-v0, pkg.mod:factory or path/file.py:factory.",
        autocompletion=completion.environments,
    ),
]
Symmetry = Annotated[str, typer.Option(help=f"{_SYMMETRY}.", show_default=False, autocompletion=completion.symmetries)]
SymmetryOrAtlas = Annotated[
    str | None,
    typer.Option(help=f"{_SYMMETRY}. Default: the claims of the atlas.", autocompletion=completion.symmetries),
]
SymmetryArgument = Annotated[str, typer.Argument(help=f"{_SYMMETRY}.", autocompletion=completion.symmetries)]

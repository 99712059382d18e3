"""`symcheck basis`: ranks and certificates of the layers that a symmetry allows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from symcheck.cli import arguments
from symcheck.cli.derive import with_options
from symcheck.cli.exit_codes import reports_mistakes
from symcheck.cli.outputs import Outputs

if TYPE_CHECKING:
    from symcheck.intertwiners.summary import LayerRow
    from symcheck.symmetry.symmetry import Symmetry

# The quantity with which the rank was compared, by the certificate's `predicted_by`.
_PREDICTED = {
    "characters": "as characters predict",
    "orbits": "as orbits predict",
    "trace": "as the trace predicts",
    "null space": "of the null space",
}


@with_options(Outputs, leave_out=("fail_on", "json", "junit", "markdown", "quiet"))
@reports_mistakes
def command(
    spec: arguments.SymmetryArgument,
    **given: Any,
) -> None:
    """Print the layers that a symmetry allows: free weights, weights of a dense layer, and how each rank was verified.

    Example: symcheck basis cartpole/mirror --html basis.html
    """
    from symcheck.api.bases import layers_of
    from symcheck.api.specs import resolve_symmetry
    from symcheck.files import check_writable, write_text

    html: Path | None = given["html"]
    if html is not None:
        check_writable(html, "--html")
    symmetry = resolve_symmetry(spec, where="SPEC").symmetry
    rows = layers_of(symmetry)
    _print_layers(symmetry, rows)
    if html is not None:
        write_text(html, _page(symmetry, rows, shlex.join(["symcheck", "basis", spec])))
        typer.echo(f"written: {html}")


def _print_layers(symmetry: Symmetry, rows: list[LayerRow]) -> None:
    from symcheck_reports.formatting import count

    typer.echo(f"{symmetry.name} ({symmetry.group.name}, order {count(symmetry.group.order)})\n")
    typer.echo(f"{'layer':<24}{'weights':>16}{'biases':>12}   certificate")
    for row in rows:
        weights, biases = f"{row.rank} of {row.dense}", f"{row.bias_rank} of {row.dense_bias}"
        # The check of the basis, and the quantity with which its rank was compared.
        checked = f"{row.certificate.kind}, rank {_PREDICTED[row.certificate.predicted_by]}"
        typer.echo(f"{row.name:<24}{weights:>16}{biases:>12}   {checked}")
    typer.echo(
        "\nFree weights and the weights of a dense layer, for each pair of channels (biases: for each channel). 0 "
        "is a valid result."
    )


def _page(symmetry: Symmetry, rows: list[LayerRow], line: str) -> str:
    from symcheck.intertwiners.summary import pictures
    from symcheck_reports.basis_model import BasisLayer, BasisModel
    from symcheck_reports.basis_page import render_basis

    layers = [
        BasisLayer(
            name=row.name,
            source=row.source,
            target=row.target,
            shape=row.shape,
            rank=row.rank,
            dense=row.dense,
            bias_rank=row.bias_rank,
            dense_bias=row.dense_bias,
            certificate=str(row.certificate),
            pictures=[picture.tolist() for picture in pictures(row.basis)],
        )
        for row in rows
    ]
    return render_basis(BasisModel(symmetry.name, symmetry.group.name, symmetry.group.order, layers, command=line))

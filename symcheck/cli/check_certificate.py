"""`symcheck check-certificate`: check a certificate of equivariance on its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from symcheck.cli.exit_codes import ExitCode, reports_mistakes


@reports_mistakes
def command(
    file: Annotated[Path, typer.Argument(help="A certificate, as verify-net --certificate writes it.")],
    weights: Annotated[
        Path | None,
        typer.Option(
            help="Weights that the certificate must contain, by parameter name: an .npz file.", show_default=False
        ),
    ] = None,
) -> None:
    """Check a certificate again, with NumPy alone. Exit codes: 0 accepted, 1 rejected, 2 unreadable.

    Example: symcheck check-certificate certificate.json
    """
    import numpy as np

    from symcheck.certificate_checker import UNREADABLE, RejectedError, check, read
    from symcheck.errors import TargetError

    try:
        document = read(file)
        given = None if weights is None else dict(np.load(weights))
        check(document, given)
    except UNREADABLE as error:
        raise TargetError(
            f"the file cannot be read: {error}.",
            where=f"{file}" if weights is None else f"{file}, --weights {weights}",
            remedy="Write a certificate with symcheck verify-net --certificate FILE, and weights with numpy.savez.",
        ) from error
    except RejectedError as error:
        typer.echo(f"rejected: {error}")
        raise typer.Exit(ExitCode.FAILED) from error
    claim = document["claim"]
    typer.echo(f"accepted: {claim.get('statement')}\n  {_claim_line(claim)}")


def _claim_line(claim: dict[str, object]) -> str:
    names = claim.get("generators")
    count = len(names) if isinstance(names, list) else 0
    generators = "1 generator" if count == 1 else f"{count} generators"
    return f"{claim.get('symmetry')}: {claim.get('group')}, {generators}; {claim.get('tolerance')}"

"""`symcheck verify-net`: prove or test that a network respects a symmetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from symcheck.api.options import VerifyNetOptions
from symcheck.cli import arguments
from symcheck.cli.derive import values_of, with_options
from symcheck.cli.exit_codes import code_of, reports_mistakes
from symcheck.cli.outputs import Outputs

if TYPE_CHECKING:
    from symcheck.api.report import Report


@with_options(VerifyNetOptions, Outputs)
@reports_mistakes
def command(
    target: Annotated[
        str, typer.Argument(help="pkg.mod:factory or path/file.py:factory (or a module instance), or a saved network.")
    ],
    symmetry: arguments.Symmetry,
    **given: Any,
) -> None:
    """Prove from the weights that a network is equivariant, or test the network and name the layer that fails.

    Example: symcheck verify-net examples/cartpole_networks.py:equivariant --symmetry cartpole/mirror
    """
    reports = Outputs(**values_of(Outputs, given))
    accepted = reports.check()
    options = values_of(VerifyNetOptions, given)
    from symcheck.api.verify_net import verify_net
    from symcheck.cli.watching import watched

    with watched(reports, max_time=options.get("max_time"), baseline=options.get("baseline")) as emit:
        report = verify_net(target, symmetry, emit=emit, **options)
    reports.publish(report)
    for note in certificate_notes(report):
        typer.echo(note, err=reports.quiet)
    raise typer.Exit(code_of(report.verdict, interrupted=report.interrupted, fail_on=accepted))


def certificate_notes(report: Report) -> list[str]:
    """A message with the file of the certificate, or the reason why there is none; empty if none was requested."""
    notes = [note for result in report.results for item in result.properties for note in item.notes]
    return [note.text for note in notes if note.code.startswith("certificate_")]

"""`symcheck verify-net`: prove or test that a network respects a symmetry."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from symcheck.api.options import VerifyNetOptions
from symcheck.cli import completion
from symcheck.cli.derive import values_of, with_options
from symcheck.cli.exit_codes import reports_mistakes
from symcheck.cli.outputs import Outputs


@with_options(VerifyNetOptions, Outputs)
@reports_mistakes
def command(
    target: Annotated[
        str, typer.Argument(help="pkg.mod:factory or path/file.py:factory (or a module instance), or a saved network.")
    ],
    symmetry: Annotated[
        str,
        typer.Option(
            help="An atlas name, pkg.mod:attr, path/file.py:attr or a .toml file.",
            show_default=False,
            autocompletion=completion.symmetries,
        ),
    ],
    **given: Any,
) -> None:
    """Prove from its weights that a network is equivariant, or test it and name the layer that is not.

    Example: symcheck verify-net examples/cartpole_networks.py:equivariant --symmetry cartpole/mirror
    """
    reports = Outputs(**values_of(Outputs, given))
    accepted = reports.check()
    options = values_of(VerifyNetOptions, given)
    from symcheck.api.verify_net import verify_net
    from symcheck.cli.watching import watched

    with watched(reports, max_time=options.get("max_time"), baseline=options.get("baseline")) as emit:
        report = verify_net(target, symmetry, emit=emit, **options)
    reports.finish(report, accepted)

"""`symcheck verify-mirror`: check a robot's mirror function against its model, or only the model."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated, Any

import typer

from symcheck.api.options import VerifyMirrorOptions
from symcheck.cli.derive import values_of, with_options
from symcheck.cli.exit_codes import reports_mistakes
from symcheck.cli.outputs import Outputs


@with_options(VerifyMirrorOptions, Outputs)
@reports_mistakes
def command(
    model: Annotated[
        str, typer.Option(help="An MJCF or URDF file, a compiled model (.mjb), or a Gymnasium id.", show_default=False)
    ],
    target: Annotated[
        str | None,
        typer.Argument(help="A batched mirror function, module:attr or file.py:attr. Default: check the model alone."),
    ] = None,
    emit: Annotated[
        str | None,
        typer.Option(help="Print a correct function (rsl_rl, isaaclab, spec); the report goes to standard error."),
    ] = None,
    **given: Any,
) -> None:
    """Compare a mirror function, column by column, with the mirror that is derived from the robot's model.

    Example: symcheck verify-mirror mirror.py:augment --model robot.xml --layout layout.toml
    """
    outputs = Outputs(**values_of(Outputs, given))
    accepted = outputs.check()
    options = values_of(VerifyMirrorOptions, given)
    from symcheck.api.verify_mirror import mirror_text, verify_mirror
    from symcheck.cli.watching import watched

    if emit is not None:
        typer.echo(mirror_text(model, options.get("layout"), emit), nl=False)
    with watched(outputs, max_time=options.get("max_time")) as listener:
        report = verify_mirror(target, model=model, emit=listener, **options)
    # The source can be redirected into a file.
    with contextlib.redirect_stdout(sys.stderr) if emit is not None else contextlib.nullcontext():
        outputs.finish(report, accepted)

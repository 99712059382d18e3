"""`symcheck verify-env`: check a symmetry on a real environment."""

from __future__ import annotations

from typing import Any

from symcheck.api.options import VerifyEnvOptions
from symcheck.cli import arguments
from symcheck.cli.derive import values_of, with_options
from symcheck.cli.exit_codes import reports_mistakes
from symcheck.cli.outputs import Outputs


@with_options(VerifyEnvOptions, Outputs)
@reports_mistakes
def command(
    target: arguments.Environment,
    symmetry: arguments.SymmetryOrAtlas = None,
    **given: Any,
) -> None:
    """Check that an environment has a symmetry: rewards, transitions, terminations, starts and observations.

    Example: symcheck verify-env CartPole-v1 --html report.html
    """
    outputs = Outputs(**values_of(Outputs, given))
    accepted = outputs.check()
    options = values_of(VerifyEnvOptions, given)
    from symcheck.api.verify_env import verify_env
    from symcheck.cli.watching import watched

    with watched(outputs, max_time=options.get("max_time"), baseline=options.get("baseline")) as emit:
        report = verify_env(target, symmetry, emit=emit, **options)
    outputs.finish(report, accepted)

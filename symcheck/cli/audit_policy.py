"""`symcheck audit-policy`: the asymmetry of a policy on the states that it visits, and its source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from symcheck.api.options import AuditPolicyOptions
from symcheck.cli import arguments
from symcheck.cli.derive import values_of, with_options
from symcheck.cli.exit_codes import reports_mistakes
from symcheck.cli.outputs import Outputs


@with_options(AuditPolicyOptions, Outputs)
@reports_mistakes
def command(
    target: Annotated[str, typer.Argument(help="pkg.mod:factory, path/file.py:factory, or a saved network.")],
    symmetry: arguments.Symmetry,
    data: Annotated[
        Path,
        typer.Option(help="Observations that the policy visits: an .npz file with one array, or one array per key."),
    ],
    **given: Any,
) -> None:
    """Audit a trained policy: measure the residual of each action, and of normaliser, network and post-processing.

    Example: symcheck audit-policy policy.py:load --symmetry robot.toml --data rollout.npz --units rad --tolerance 0.02
    """
    outputs = Outputs(**values_of(Outputs, given))
    accepted = outputs.check()
    options = values_of(AuditPolicyOptions, given)
    from symcheck.api.audit_policy import audit_policy
    from symcheck.cli.watching import watched

    with watched(outputs, max_time=options.get("max_time")) as emit:
        report = audit_policy(target, symmetry, str(data), emit=emit, **options)
    outputs.finish(report, accepted)

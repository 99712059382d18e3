"""Check the mirror functions and policies of a report again as a whole, because there is no search to skip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from symcheck.api.audit_policy import audit_policy
from symcheck.api.commands import RunCommand
from symcheck.api.options import AuditPolicyOptions, VerifyMirrorOptions
from symcheck.api.replay_trust import check_group
from symcheck.api.verify_mirror import verify_mirror
from symcheck.engine.option_fields import from_texts
from symcheck.engine.results import RunResult
from symcheck.errors import SymcheckError
from symcheck.statements.statement import state

KINDS = ("mirror", "policy")


def run_again(report: Mapping[str, Any], command: RunCommand, where: str) -> RunResult:
    """Run the command of a report again.

    Args:
        report: a report of kind "mirror" or "policy".
        command: the command of the report.
        where: the report's path.

    Returns:
        The properties that had failed, with their current results.

    Raises:
        SymcheckError: an input of the report can no longer be used, or its symmetry has changed.
    """
    again = _mirror(command) if report["kind"] == "mirror" else _policy(command, where)
    check_group(report, again.symmetry, str(again.group["name"]), where)
    failed = failed_names(report)
    properties = tuple(item for item in again.properties if item.name in failed)
    return replace(
        again,
        properties=properties,
        command=report["command"],
        method_reason=state("replayed_from", report=where),
    )


def failed_names(report: Mapping[str, Any]) -> set[str]:
    """Names of the properties of a report that failed."""
    return {item["name"] for item in report["properties"] if item["verdict"] == "failed"}


def _mirror(command: RunCommand) -> RunResult:
    options = asdict(from_texts(VerifyMirrorOptions, command.options))
    return verify_mirror(command.target or None, model=command.options.get("model", ""), **options).results[0]


def _policy(command: RunCommand, where: str) -> RunResult:
    for name in ("symmetry", "data"):
        if name not in command.options:
            raise SymcheckError(f"the command of the report has no --{name}.", where=where)
    options = asdict(from_texts(AuditPolicyOptions, command.options))
    given = command.options
    return audit_policy(command.target, given["symmetry"], given["data"], **options).results[0]

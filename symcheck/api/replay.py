"""Reproduce the counterexamples of a JSON report in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.api.commands import RunCommand, from_command
from symcheck.api.options import VerifyEnvOptions
from symcheck.api.replay_again import KINDS, failed_names, run_again
from symcheck.api.replay_trust import check_header, check_symmetry, check_trust
from symcheck.api.report import Report
from symcheck.api.specs import resolve_symmetry, symmetry_of_layout
from symcheck.documents import UnreadableError, read_json
from symcheck.engine.option_fields import from_texts
from symcheck.engine.published import READABLE, upgrade
from symcheck.engine.results import PropertyResult, RunResult
from symcheck.errors import SymcheckError, described
from symcheck.statements.statement import state

_FIELDS: dict[str, Any] = {
    "kind": str, "target": str, "symmetry": str, "group": dict, "properties": list, "alpha": float | int, "seed": int,
    "command": str | None,
}  # fmt: skip


def replay(path: str | Path, *, trust: bool = False, announce: Callable[[str], None] | None = None) -> Report:
    """Evaluate every counterexample of a report again, and check every certificate of a network without a new search.

    Args:
        path: a JSON report, schema symcheck/2 or symcheck/1.
        trust: whether to import code outside the current folder and the report's folder, and to load files that may run
            code.
        announce: called with each command before any of its code is imported.

    Returns:
        A report of the properties that had a counterexample or a certificate, with their current verdict: `failed` if
        the counterexample still violates its property, or the certificate no longer holds. For a mirror function, a
        robot's model or a policy, each property that had failed is checked again completely.

    Raises:
        SymcheckError: no such file, not a report, no counterexample or certificate in it, header and command disagree,
            its code is in another folder, or its objects cannot be found again.
    """
    where = str(path)
    reports = [report for report in _read_reports(Path(path)) if _can_replay(report)]
    commands = [from_command(report.get("command") or "", where=where) for report in reports]
    # Check all of them before the first one runs.
    for report, command in zip(reports, commands, strict=True):
        if announce is not None:
            announce(report["command"])
        check_header(report, command, where)
        if not trust:
            check_trust(command, where)
    results = [_replay_report(report, command, where) for report, command in zip(reports, commands, strict=True)]
    if not results:
        raise SymcheckError(
            "the report contains neither a counterexample nor the certificate of a network, so there is "
            "nothing to replay.",
            where=where,
        )
    return Report(results)


def _read_reports(path: Path) -> list[dict[str, Any]]:
    try:
        data = read_json(path)
    except OSError as error:
        raise SymcheckError(f"the file cannot be read: {error.strerror or error}.", where=str(path)) from error
    except UnreadableError as error:
        raise SymcheckError(f"expected a JSON report, got: {error}.", where=str(path)) from error
    if not isinstance(data, dict) or data.get("schema") not in READABLE:
        given = repr(data["schema"]) if isinstance(data, dict) and "schema" in data else "none"
        schemas = " or ".join(map(repr, READABLE))
        raise SymcheckError(
            f"expected a report of schema {schemas}, got {given}.",
            where=str(path),
        )
    data = upgrade(data)
    reports = data.get("reports", [data])
    if not isinstance(reports, list) or not all(isinstance(r, dict) and "properties" in r for r in reports):
        raise SymcheckError("the file does not contain reports with properties.", where=str(path))
    for report in reports:
        wrong = [name for name, kind in _FIELDS.items() if not isinstance(report.get(name), kind)]
        if wrong or not all(map(_is_property, report["properties"])):
            raise SymcheckError(
                f"the report is damaged: {' and '.join(wrong) or 'a property'} cannot be read.",
                where=str(path),
                remedy="Write the report again: symcheck verify-env ... --json FILE.",
            )
    return reports


def _is_property(item: Any) -> bool:
    kinds = {"name": str, "verdict": str}
    return (
        isinstance(item, dict)
        and all(isinstance(item.get(name), kind) for name, kind in kinds.items())
        and isinstance(item.get("counterexample"), dict | None)
    )


def _can_replay(report: dict[str, Any]) -> bool:
    if report["kind"] in KINDS:
        return bool(failed_names(report))
    return bool(_with_counterexample(report)) or _has_certificate(report)


def _has_certificate(report: dict[str, Any]) -> bool:
    certificate = next((item for item in report["properties"] if item["name"] == "layer_certificate"), None)
    return bool(report.get("layers")) and certificate is not None and certificate["verdict"] in ("proved", "passed")


def _with_counterexample(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The properties with a counterexample."""
    return [item for item in report["properties"] if item.get("counterexample")]


def _replay_report(report: dict[str, Any], command: RunCommand, where: str) -> RunResult:
    if report["kind"] in KINDS:
        return run_again(report, command, where)
    items = _with_counterexample(report)
    if report["kind"] == "env":
        properties = _replay_env(command, items, report, where)
    elif report["kind"] == "game":
        properties = _replay_game(command, items, report["seed"])
    else:
        check_symmetry(report, resolve_symmetry(command.options["symmetry"]).symmetry, where)
        properties = _replay_net(command, items, report["layers"] if _has_certificate(report) else None)
    return RunResult(
        kind=report["kind"],
        target=report["target"],
        symmetry=report["symmetry"],
        group=report["group"],
        properties=tuple(properties),
        alpha=report["alpha"],
        seed=report["seed"],
        versions=report.get("versions", {}),
        command=report["command"],
        method_reason=state("replayed_from", report=where),
    )


def _replay_env(
    command: RunCommand, items: Sequence[dict[str, Any]], report: dict[str, Any], where: str
) -> list[PropertyResult]:
    from symcheck.engine.environments import replay as env_replay
    from symcheck.envs.parallel import claim_of_agents
    from symcheck.envs.targets import resolve_environment

    options = from_texts(VerifyEnvOptions, command.options, leave_out=("baseline",))
    target = resolve_environment(command.target, env_kwargs=options.env_kwargs)
    symmetry = (
        symmetry_of_layout(target.single(), command.options["layout"])
        if "layout" in command.options
        else resolve_symmetry(command.options["symmetry"]).symmetry
    )
    check_symmetry(report, symmetry, where)
    symmetry = claim_of_agents(target.several, symmetry)
    try:
        return [
            env_replay.replay(target.make, symmetry, item["name"], item["counterexample"], options) for item in items
        ]
    except (TypeError, ValueError) as error:  # values that are not numbers, or lists instead of numbers
        raise SymcheckError(
            f"the counterexample does not fit the environment's spaces: {described(error)}.",
            where="replay",
            remedy="Replay the unchanged report with its original environment.",
        ) from error


def _replay_game(command: RunCommand, items: Sequence[dict[str, Any]], seed: int) -> list[PropertyResult]:
    from symcheck.engine.games.replay import replay_game
    from symcheck.games.opening import open_game

    given = command.options
    game = open_game(command.target, adapter=given.get("adapter"), symmetries=given.get("symmetries"))
    return [replay_game(game, item["name"], item["counterexample"], seed) for item in items]


def _replay_net(
    command: RunCommand, items: Sequence[dict[str, Any]], layers: Sequence[dict[str, Any]] | None
) -> list[PropertyResult]:
    from symcheck.api.verify_net import replay_net

    return replay_net(command, items, layers)

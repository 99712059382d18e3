"""`symcheck run`: every check of a project, one summary, one exit code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symcheck.cli import settings
from symcheck.cli.derive import values_of, with_options
from symcheck.cli.exit_codes import reports_mistakes
from symcheck.cli.outputs import Outputs
from symcheck.engine.option_fields import option
from symcheck.engine.options import REPORTS
from symcheck.errors import OptionError, SymcheckError

if TYPE_CHECKING:
    from symcheck.api.report import Report
    from symcheck.engine.events import Emit

_EXAMPLE = (
    'List checks: [[tool.symcheck.checks]] with env = "CartPole-v1" or net = "my_file.py:policy", and symmetry; '
    'or mirror = "my_file.py:augment" with model and layout; or policy = "my_file.py:load" with symmetry and data; '
    'or game = "my_game.py:Game".'
)
_NEEDED = {"env": (), "net": ("symmetry",), "mirror": ("model",), "policy": ("symmetry", "data"), "game": ()}


@dataclass(frozen=True)
class _RunOptions:
    baseline: Path | None = option(
        None,
        "A file that lists the violations that you accept and their largest sizes, TOML or JSON.",
        kind=Path,
        panel=REPORTS,
    )


@with_options(_RunOptions, Outputs)
@reports_mistakes
def command(**given: Any) -> None:
    """Run all checks of a project: tool.symcheck.checks in pyproject.toml, or checks in symcheck.toml.

    The nearest such file in this folder or a parent folder is used. Paths in the file are relative to its folder. The
    run prints one summary and returns one exit code, that of the worst check.

    Example: symcheck run --junit junit.xml --html report.html
    """
    outputs = Outputs(**values_of(Outputs, given))
    accepted = outputs.check()
    baseline = given["baseline"]
    table = settings.find_settings(Path.cwd())  # in the nearest folder
    if not table.checks or table.path is None:
        place = f"{table.path} lists none" if table.path else f"no settings were found in {Path.cwd()} or its parents"
        raise OptionError(f"there are no checks to run; {place}.", where="symcheck run", remedy=_EXAMPLE)
    shared = _shared_options(table, baseline)
    # Report a mistake in the last check before the first one runs for minutes.
    checks = [_read_check(check, f"{table.path}, checks[{i}]", shared) for i, check in enumerate(table.checks)]
    from symcheck.cli.watching import time_limit, watched

    reports: list[Report] = []
    try:
        with watched(outputs, baseline=shared.get("baseline")) as emit:
            for check in checks:
                # Paths in the checks are relative to the file that lists them.
                os.chdir(table.path.parent)
                with time_limit(check.arguments.get("max_time")):
                    reports.append(_run(check, emit))
                if reports[-1].interrupted:
                    break
    except SymcheckError:
        for report in reports:  # report the results obtained before the invalid check
            outputs.show(report)
        raise
    from symcheck.api.report import Report

    outputs.finish(Report([result for report in reports for result in report.results]), accepted)


@dataclass(frozen=True)
class _Check:
    """One check to run: its kind, its subject, arguments by name, and its place in the settings."""

    kind: str
    target: str | None
    arguments: Mapping[str, Any]
    where: str


def _shared_options(found: settings.Settings, baseline: Path | None) -> dict[str, Any]:
    """The defaults of every check; a baseline given on the command line is relative to the current folder."""
    shared = {key: value for key, value in found.shared.items() if key in settings.SHARED_CHECK}
    return shared if baseline is None else {**shared, "baseline": baseline.absolute()}  # the command line wins


def _read_check(check: Mapping[str, Any], where: str, shared: Mapping[str, Any]) -> _Check:
    """Read one check; all are read before the first is run.

    Raises:
        OptionError: the check names no subject, or has a setting that its kind does not support.
    """
    kind, target, given = _subject({key.replace("_", "-"): value for key, value in check.items()}, where)
    settings.check_names(given, settings.CHECK[kind], where)
    missing = [name for name in _NEEDED[kind] if name not in given]
    if missing:
        raise OptionError(f"{kind} = TARGET also needs {' and '.join(missing)}.", where=where, remedy=_EXAMPLE)
    # A mirror has no baseline: take only supported settings from those of all checks.
    common = {key: value for key, value in shared.items() if key in settings.SHARED_BY_KIND[kind]}
    arguments = {key.replace("-", "_"): value for key, value in {**common, **given}.items()}
    return _Check(kind, target, arguments, where)


def _run(check: _Check, emit: Emit) -> Report:
    try:
        if check.kind == "env":
            from symcheck.api.verify_env import verify_env

            return verify_env(str(check.target), emit=emit, **check.arguments)
        if check.kind == "mirror":
            from symcheck.api.verify_mirror import verify_mirror

            return verify_mirror(check.target, emit=emit, **check.arguments)
        if check.kind == "policy":
            from symcheck.api.audit_policy import audit_policy

            states = check.arguments["data"]
            given = {name: value for name, value in check.arguments.items() if name not in ("data", "symmetry")}
            return audit_policy(check.target, check.arguments["symmetry"], states, emit=emit, **given)
        if check.kind == "game":
            from symcheck.api.verify_game import verify_game

            return verify_game(check.target, emit=emit, **check.arguments)
        from symcheck.api.verify_net import verify_net

        return verify_net(str(check.target), emit=emit, **check.arguments)
    except SymcheckError as error:
        raise SymcheckError(str(error), where=check.where) from error
    # Unknown settings were rejected before, so this is a value of the wrong type.
    except TypeError as error:
        raise OptionError(f"a setting has the wrong type: {error}.", where=check.where) from error


def _subject(check: dict[str, Any], where: str) -> tuple[str, str | None, dict[str, Any]]:
    """The subject of a check: its kind, its target, and the remaining settings.

    `net = TARGET`, `env = TARGET`, `mirror = TARGET`, `policy = TARGET`, `game = TARGET`, or `kind = "env"|...` (or
    `command = "verify-env"`) with `target = TARGET`. A robot's model alone is `model = FILE` without a target.
    """
    target: Any
    if "target" in check or "kind" in check or "command" in check:
        word = str(check.pop("kind", check.pop("command", "")))
        kind, target = word.removeprefix("verify-").removeprefix("audit-"), check.pop("target", None)
    elif "mirror" in check or "model" in check:
        # Before env, which a mirror function may take as an argument.
        kind, target = "mirror", check.pop("mirror", None)
    else:
        kind = next((name for name in ("net", "policy", "game") if name in check), "env")
        target = check.pop(kind, None)
    alone = kind == "mirror" and target is None
    if kind not in _NEEDED or not (isinstance(target, str) or alone):
        raise OptionError(
            f"expected env, net, mirror, policy or game = TARGET, got {check or 'nothing'}.",
            where=where,
            remedy=_EXAMPLE,
        )
    return kind, target, check

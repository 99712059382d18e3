"""`verify_env`: check a claimed symmetry on a real Gymnasium environment."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.api.baseline import Baseline, as_baseline, with_baseline
from symcheck.api.commands import options_that_differ, to_command
from symcheck.api.options import VerifyEnvKeywords, VerifyEnvOptions
from symcheck.api.pictures import with_pictures
from symcheck.api.report import Report
from symcheck.api.reproduce import python_call, with_reproduction
from symcheck.api.specs import THREE_WAYS, NamedSymmetry, claimed_symmetries, resolve_symmetry, symmetry_of_layout
from symcheck.engine.environments.runner import run_env
from symcheck.engine.events import Emit
from symcheck.engine.option_fields import from_keywords, shows_options
from symcheck.engine.results import RunResult
from symcheck.envs.parallel import claim_of_agents
from symcheck.envs.targets import AnyEnv, EnvTarget, resolve_environment
from symcheck.errors import OptionError, SpecError
from symcheck.symmetry.symmetry import Symmetry

_SHORTEST_S = 1e-3


@shows_options(VerifyEnvOptions)
def verify_env(
    env: str | AnyEnv | Callable[[], AnyEnv],
    symmetry: Symmetry | str | None = None,
    *,
    emit: Emit | None = None,
    **options: Unpack[VerifyEnvKeywords],
) -> Report:
    """Check that an environment has a symmetry in its rewards, transitions, terminations, starts and observations.

    The claim is R(s, a) = R(L_g s, K_g^s a) and T(s'|s, a) = T(L_g s'|L_g s, K_g^s a) for the generators of the group.
    (The elements for which both equations hold form a subgroup.) A symmetric environment is reported as failed with
    probability at most `alpha` over the whole run.

    Args:
        env: a Gymnasium id, "module:factory", "file.py:factory", an environment (single, or a batch of them:
            a `gymnasium.vector.VectorEnv`) or a zero-argument factory.
        symmetry: a `Symmetry`, a SPEC, or None for every symmetry that the atlas claims for the environment.
        emit: receives the engine's events as they happen.
        **options: the fields of `symcheck.api.options.VerifyEnvOptions`: `samples`, `max_time` (seconds), `alpha` (in
            (0, 1)), `seed`, `method`, `fail_fast`, `accept_gap` (units of return), `discount`, `env_kwargs`,
            `layout` (the contents of a robot's observation, in place of a symmetry), `baseline`; None means the
            default.

    Returns:
        The report, with one result per symmetry.

    Raises:
        SymcheckError: the environment, the symmetry or an option cannot be used.

    Example:
        >>> verify_env("CartPole-v1", samples=200).verdict
        'passed'

    Source: van der Pol et al. 2020, equations 4 and 5.
    """
    chosen: VerifyEnvOptions = from_keywords(VerifyEnvOptions, options, caller="verify_env")
    accepted = as_baseline(chosen.baseline)
    if chosen.fail_fast and accepted is not None:
        raise OptionError(
            "a baseline can be applied only after all properties were checked.",
            where="--fail-fast with --baseline",
            remedy="Omit --fail-fast or --baseline.",
        )
    target = resolve_environment(env, env_kwargs=chosen.env_kwargs)
    named = _symmetries(target, symmetry, chosen.layout)
    results: list[RunResult] = []
    ends = None if chosen.max_time is None else time.monotonic() + chosen.max_time
    for item in named:
        command = _command(env, item, chosen, accepted)
        claim = claim_of_agents(target.several, item.symmetry)
        limited = chosen if ends is None else _with_share(chosen, ends, len(named) - len(results))
        result = run_env(target.make, claim, options=limited, target=target.label, command=command, emit=emit)
        drawn = with_pictures(_with_notes(result, item.symmetry), target, item.symmetry)
        given = options_that_differ(chosen, VerifyEnvOptions()) | {"seed": chosen.seed}
        call = python_call("verify_env", env, item.spec or item.symmetry, given)
        results.append(with_baseline(with_reproduction(drawn, call=call), accepted))
        if result.interrupted:
            break
    return Report(results)


def _with_share(options: VerifyEnvOptions, ends: float, left: int) -> VerifyEnvOptions:
    """The options of one of several runs, which share the remaining time equally."""
    return replace(options, max_time=max(ends - time.monotonic(), _SHORTEST_S) / left)


def _with_notes(result: RunResult, symmetry: Symmetry) -> RunResult:
    """The result, with notes on checks that were skipped when the symmetry was built added to its first property."""
    if not symmetry.notes or not result.properties:
        return result
    first, *others = result.properties
    return replace(result, properties=(replace(first, notes=(*first.notes, *symmetry.notes)), *others))


def _symmetries(target: EnvTarget, symmetry: Symmetry | str | None, layout: Any) -> list[NamedSymmetry]:
    if layout is not None:
        if symmetry is not None:
            raise OptionError(
                "a symmetry and a layout cannot be combined, because each of them says how the robot is mirrored.",
                where="--symmetry with --layout",
            )
        return [NamedSymmetry(symmetry_of_layout(target.single(), layout), None)]
    if symmetry is not None:
        return [resolve_symmetry(symmetry, where="symmetry")]
    if target.env_id is None:
        raise SpecError(
            f"no symmetry was given. The atlas has default symmetries for Gymnasium ids only, not for {target.label}.",
            where="symmetry",
            remedy=THREE_WAYS,
        )
    return claimed_symmetries(target.env_id)


def _command(env: object, item: NamedSymmetry, options: VerifyEnvOptions, baseline: Baseline | None) -> str:
    """The command line that repeats the run; "" if an object built in Python is part of it."""
    given = options_that_differ(options, VerifyEnvOptions())
    by_layout = isinstance(options.layout, str)
    if not isinstance(env, str) or (item.spec is None and not by_layout):
        return ""
    if baseline is not None:
        # The layout has been read into an object; the command needs its path.
        given["baseline"] = baseline.path
    return to_command("verify-env", env, ({} if item.spec is None else {"symmetry": item.spec}) | given)

"""`verify_env`: check a claimed symmetry on a real Gymnasium environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.api.baseline import Baseline, as_baseline, with_baseline
from symcheck.api.commands import options_that_differ, to_command
from symcheck.api.pictures import with_pictures
from symcheck.api.report import Report
from symcheck.api.reproduce import with_reproduction
from symcheck.api.specs import THREE_WAYS, NamedSymmetry, claimed_symmetries, resolve_symmetry
from symcheck.engine.environments.runner import run_env
from symcheck.engine.events import Emit
from symcheck.engine.options import DEFAULT_SAMPLES, EnvOptions, Method
from symcheck.envs.targets import AnyEnv, EnvTarget, resolve_environment
from symcheck.errors import OptionError, SpecError
from symcheck.symmetry.symmetry import Symmetry


def verify_env(
    env: str | AnyEnv | Callable[[], AnyEnv],
    symmetry: Symmetry | str | None = None,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    method: Method = "auto",
    samples: int | None = None,
    max_time: float | None = None,
    alpha: float = 0.01,
    seed: int = 0,
    baseline: Baseline | str | Path | None = None,
    accept_gap: float | None = None,
    discount: float = 0.99,
    fail_fast: bool = False,
    emit: Emit | None = None,
) -> Report:
    """Check that an environment has a symmetry: reward, transition, termination, start and observation.

    The claim is R(s, a) = R(L_g s, K_g^s a) and T(s'|s, a) = T(L_g s'|L_g s, K_g^s a) for the group's generators
    (elements under which it holds form a subgroup). A symmetric environment is reported as failed with probability at
    most `alpha` over the whole run.

    Args:
        env: a Gymnasium id, "module:factory", "file.py:factory", an environment (single, or a batch of them:
            a `gymnasium.vector.VectorEnv`) or a zero-argument factory.
        symmetry: a `Symmetry`, a SPEC, or None for every symmetry that the atlas claims for that id.
        env_kwargs: keyword arguments of `gymnasium.make` or the factory.
        method: auto, exact, paired, distribution or trajectory.
        samples: number of (state, action, element) pairs per property; None for the method's default.
        max_time: stop after this many seconds; what is then unfinished is undecided.
        alpha: probability of a false alarm over the whole run, in (0, 1).
        seed: reproduces the run, bit for bit on one machine.
        baseline: accepted approximate symmetries: a TOML or JSON file, see `symcheck.api.baseline`.
        accept_gap: violated equations whose gap of optimal values is at most this, in units of return, pass as
            approximate; None accepts none.
        discount: of the returns in which that gap is stated, in [0, 1).
        fail_fast: stop at the first property that fails; what was not decided by then is undecided.
        emit: receives the engine's events as they happen.

    Returns:
        The report, with one result per symmetry.

    Raises:
        SymcheckError: the environment, the symmetry or an option cannot be used.

    Example:
        >>> verify_env("CartPole-v1", samples=200).verdict
        'passed'

    Source: van der Pol et al. 2020, equations 4 and 5.
    """
    options = EnvOptions(
        samples=DEFAULT_SAMPLES if samples is None else samples,
        max_time=max_time,
        alpha=alpha,
        seed=seed,
        method=method,
        discount=discount,
        accept_gap=accept_gap,
        fail_fast=fail_fast,
    )
    accepted = as_baseline(baseline)
    if fail_fast and accepted is not None:
        raise OptionError(
            "what a baseline accepts is known only when all properties were checked.",
            where="--fail-fast with --baseline",
            remedy="Leave one of them out.",
        )
    target = resolve_environment(env, env_kwargs=env_kwargs)
    named = _symmetries(target, symmetry)
    results = []
    for item in named:
        command = _command(env, item, env_kwargs, options, accepted)
        result = run_env(target.make, item.symmetry, options=options, target=target.label, command=command, emit=emit)
        drawn = with_pictures(result, target, item.symmetry)
        results.append(with_baseline(with_reproduction(drawn), accepted))
        if result.interrupted:
            break
    return Report(results)


def _symmetries(target: EnvTarget, symmetry: Symmetry | str | None) -> list[NamedSymmetry]:
    if symmetry is not None:
        return [resolve_symmetry(symmetry, where="symmetry")]
    if target.env_id is None:
        raise SpecError(
            f"expected a symmetry to check, got none; the atlas knows Gymnasium ids only, not {target.label}.",
            where="symmetry",
            remedy=THREE_WAYS,
        )
    return claimed_symmetries(target.env_id)


def _command(
    env: object,
    item: NamedSymmetry,
    env_kwargs: Mapping[str, Any] | None,
    options: EnvOptions,
    baseline: Baseline | None,
) -> str:
    """The command line that repeats the run; "" where an object built in Python is part of it."""
    if not isinstance(env, str) or item.spec is None:
        return ""
    own: dict[str, Any] = {"symmetry": item.spec}
    if env_kwargs:
        own["env-kwargs"] = json.dumps(dict(env_kwargs))
    if baseline is not None:
        own["baseline"] = baseline.path
    return to_command("verify-env", env, {**own, **options_that_differ(options, EnvOptions())})

"""`verify_net`: prove from the weights that a network is equivariant, or test it and name the layer that fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import gymnasium as gym
from torch import nn

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.api.baseline import Baseline, as_baseline, with_baseline
from symcheck.api.commands import RunCommand, options_that_differ, to_command
from symcheck.api.hidden_state import hidden_representation
from symcheck.api.options import VerifyNetKeywords, VerifyNetOptions
from symcheck.api.report import Report
from symcheck.api.reproduce import python_call, with_reproduction
from symcheck.api.run_folders import networks_of_run
from symcheck.api.specs import resolve_symmetry
from symcheck.engine.events import Emit
from symcheck.engine.networks import replay as net_replay
from symcheck.engine.networks.pytest_file import pytest_source
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.subject.targets import resolve_network
from symcheck.engine.option_fields import from_keywords, from_texts, shows_options
from symcheck.engine.results import PropertyResult, RunResult
from symcheck.envs.observations import collect_observations, subspaces
from symcheck.envs.targets import resolve_environment
from symcheck.errors import OptionError
from symcheck.files import check_writable, write_text
from symcheck.symmetry.symmetry import Symmetry

# in addition to generated inputs; more would repeat the same few states of a random policy
_ROLLOUT_OBSERVATIONS = 1_000


@shows_options(VerifyNetOptions)
def verify_net(
    net: nn.Module | Callable[[], nn.Module] | str,
    symmetry: Symmetry | str,
    *,
    emit: Emit | None = None,
    **options: Unpack[VerifyNetKeywords],
) -> Report:
    """Check that a network is equivariant: K f(x) = f(L x) for every generator, with L on inputs and K on outputs.

    If the network can be traced, hidden units are matched layer by layer, and the proof follows from the weights
    (`proved`). Otherwise, a float64 copy with the same weights is tested on samples. The network itself stays
    unchanged, bit for bit.

    Args:
        net: a module, a zero-argument factory, "module:name", "file.py:name", a saved network, or a run folder of
            reference-agents (each of its networks is verified).
        symmetry: a `Symmetry` or a SPEC.
        emit: receives the engine's events as they happen.
        **options: the fields of `symcheck.api.options.VerifyNetOptions`: `input_shape` (without the batch axis, or a
            mapping or tuple of shapes), `env` (whose observations are the inputs), `outputs` (per output "action",
            "invariant", "observation", "action_scale", or entries), `checkpoint`, `mode`, `dtype`, `device`, `strict`,
            `noise_seed`, `trust`, `pytest_file`, `certificate` (a file), `samples`, `max_time` (seconds), `alpha` (in
            (0, 1)), `seed`, `baseline`; None means the default.

    Returns:
        The report; a failed property names the layer in `location`.

    Raises:
        SymcheckError: the network, the symmetry or an option cannot be used.

    Source: van der Pol et al. 2020, section 4; the proof from weights is derived in the project's documentation.
    """
    chosen = _with_observations(from_keywords(VerifyNetOptions, options, caller="verify_net"))
    if chosen.pytest_file is not None:
        check_writable(Path(chosen.pytest_file), "--pytest")
    if chosen.certificate is not None:
        check_writable(Path(chosen.certificate), "--certificate")
    accepted = as_baseline(chosen.baseline)
    named = resolve_symmetry(symmetry)
    results = []
    targets = networks_of_run(net) if isinstance(net, str) else [net]
    if chosen.certificate is not None and len(targets) > 1:
        raise OptionError(
            f"the run folder contains {len(targets)} networks, but only one can be verified here.",
            where="--certificate",
            remedy="Name one network of the folder.",
        )
    for target in targets:
        module = resolve_network(target, checkpoint=chosen.checkpoint, trust=chosen.trust)
        command = _command(target, named.spec, chosen, accepted)
        label = target if isinstance(target, str) else type(module).__name__
        result = run_net(module, named.symmetry, options=chosen, target=label, command=command, emit=emit)
        if chosen.pytest_file is not None and _has_counterexample(result):
            source = pytest_source(
                module, named.symmetry, result, target=label, options=chosen, checkpoint=chosen.checkpoint
            )
            write_text(chosen.pytest_file, source)
        given = options_that_differ(chosen, VerifyNetOptions()) | {"seed": chosen.seed}
        call = python_call("verify_net", net, named.spec or named.symmetry, given)
        results.append(with_baseline(with_reproduction(result, call=call), accepted))
        if result.interrupted:
            break
    hidden = hidden_representation(module, result, named.symmetry.group) if len(results) == 1 else None
    return Report(results, hidden)


def _has_counterexample(result: RunResult) -> bool:
    return any(item.name == "network_equivariance" and item.counterexample for item in result.properties)


def _with_observations(options: VerifyNetOptions) -> VerifyNetOptions:
    """The options, with the environment's observations added to the inputs if an environment is named."""
    # Settings files contain lists instead of tuples.
    if isinstance(options.input_shape, list):
        options = replace(options, input_shape=tuple(options.input_shape))
    if options.env is None:
        return options
    target = resolve_environment(options.env, where="--env")
    env = target.single()
    space = env.observation_space
    actions = options.action_space or env.action_space
    options = replace(options, space=options.space or space, action_space=actions)
    if subspaces(space) is not None:  # their inputs are generated, not rolled out; the space gives the shapes
        return options
    if isinstance(space, gym.spaces.Discrete):
        # One-hot vectors of the values, on which a permutation of values acts; there are few enough to generate them.
        return replace(options, input_shape=options.input_shape or (int(space.n),))
    observations = collect_observations(target.single, _ROLLOUT_OBSERVATIONS, options.seed)
    shape = options.input_shape if options.input_shape is not None else observations.shape[1:]
    return replace(options, input_shape=shape, observations=observations)


def _command(net: object, spec: str | None, options: VerifyNetOptions, baseline: Baseline | None) -> str:
    """The command line that repeats the run; "" if an object built in Python is part of it."""
    given = options_that_differ(options, VerifyNetOptions())
    if options.env is not None:
        given.pop("input-shape", None)  # the shape came from the environment
    # A repeated run must not write the test file again.
    given.pop("pytest", None)
    # Entries of outputs and structured shapes cannot be written on the command line.
    plain = all(isinstance(word, str) for word in given.get("outputs", ())) and all(
        isinstance(size, int) for size in given.get("input-shape", ())
    )
    if not isinstance(net, str) or spec is None or not plain or not isinstance(options.env, str | None):
        return ""
    if "outputs" in given:
        given["outputs"] = tuple(given["outputs"])
    if baseline is not None:
        given["baseline"] = baseline.path
    return to_command("verify-net", net, {"symmetry": spec, **given})


def replay_net(
    command: RunCommand, items: Sequence[Mapping[str, Any]], layers: Sequence[Mapping[str, Any]] | None = None
) -> list[PropertyResult]:
    """Evaluate the counterexamples of a JSON report again, and check its certificate.

    Args:
        command: the command in the report.
        items: the properties of the report that have a counterexample, as JSON objects.
        layers: the chain of layers of a certificate to check again, without the search; None for none.

    Returns:
        Their current verdicts.

    Raises:
        SymcheckError: the network or the symmetry cannot be found again.
    """
    texts = command.options
    options = _with_observations(from_texts(VerifyNetOptions, texts, leave_out=("baseline", "pytest_file")))
    module = resolve_network(command.target, checkpoint=options.checkpoint, trust=options.trust)
    symmetry = resolve_symmetry(texts["symmetry"]).symmetry
    results = [
        net_replay.replay(module, symmetry, item["name"], dict(item["counterexample"]), options) for item in items
    ]
    if layers is not None:
        results.append(net_replay.check_certificate(module, symmetry, layers, options))
    return results

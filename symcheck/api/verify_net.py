"""`verify_net`: prove from its weights that a network is equivariant, or test it and name the layer that is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import gymnasium as gym
from torch import nn

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.api.baseline import Baseline, as_baseline, with_baseline
from symcheck.api.commands import RunCommand, options_that_differ, to_command
from symcheck.api.report import Report
from symcheck.api.reproduce import with_reproduction
from symcheck.api.run_folders import networks_of_run
from symcheck.api.specs import resolve_symmetry
from symcheck.engine.events import Emit
from symcheck.engine.networks import replay as net_replay
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.pytest_file import pytest_source
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.targets import resolve_network
from symcheck.engine.results import PropertyResult, RunResult
from symcheck.envs.observations import collect_observations, subspaces
from symcheck.envs.targets import resolve_environment
from symcheck.files import check_writable, write_text
from symcheck.symmetry.symmetry import Symmetry

_ROLLOUT_OBSERVATIONS = 1_000  # beside the generated inputs; more would repeat the same few states of a random policy


def verify_net(
    net: nn.Module | Callable[[], nn.Module] | str,
    symmetry: Symmetry | str,
    *,
    input_shape: Sequence[Any] | Mapping[Any, Any] | None = None,
    env: str | gym.Env[Any, Any] | Callable[[], gym.Env[Any, Any]] | None = None,
    checkpoint: str | Path | None = None,
    outputs: Sequence[Any] | None = None,
    mode: str = "eval",
    dtype: str | None = None,
    device: str = "cpu",
    strict: bool = False,
    noise_seed: int | None = None,
    trust: bool = False,
    pytest_file: str | Path | None = None,
    samples: int | None = None,
    max_time: float | None = None,
    alpha: float = 0.01,
    seed: int = 0,
    baseline: Baseline | str | Path | None = None,
    emit: Emit | None = None,
) -> Report:
    """Check that a network is equivariant: K f(x) = f(L x) for every generator, with L on inputs and K on outputs.

    Where the network can be traced, hidden units are matched layer by layer and the weights are the proof (`proved`);
    the rest is tested on a float64 copy of the same weights. The network is left bit for bit as it was.

    Args:
        net: a module, a zero-argument factory, "module:name", "file.py:name", a saved network, or a run folder of
            reference-agents (each of its networks is verified).
        symmetry: a `Symmetry` or a SPEC.
        input_shape: shape of one input without the batch axis, or a mapping or tuple of shapes for networks that take
            dictionaries or tuples; inferred where it can be.
        env: an environment whose observations (and their shape) are the inputs.
        checkpoint: a state dict to load into the network.
        outputs: per output "action", "invariant", "observation", "action_scale", or entries; inferred by size.
        mode: "eval" or "train".
        dtype: the dtype it is deployed in; the parameters' own by default.
        device: the device it is deployed on.
        strict: whether weights that are only rounded fail.
        noise_seed: seeds torch before each call of a network that draws noise.
        trust: whether files whose loading may run code are loaded.
        pytest_file: where to write the counterexample as a plain test, when there is one.
        samples: number of (input, generator) pairs to test; None for the default.
        max_time: stop testing after this many seconds.
        alpha: probability of a false alarm over the whole run, in (0, 1).
        seed: reproduces the run, bit for bit on one machine.
        baseline: accepted approximate symmetries: a TOML or JSON file, see `symcheck.api.baseline`.
        emit: receives the engine's events as they happen.

    Returns:
        The report; a failed property names the layer in `location`.

    Raises:
        SymcheckError: the network, the symmetry or an option cannot be used.

    Source: van der Pol et al. 2020, section 4; the proof from weights is derived in the project's documentation.
    """
    options = _options(
        env,
        samples=samples,
        max_time=max_time,
        alpha=alpha,
        seed=seed,
        input_shape=tuple(input_shape) if isinstance(input_shape, list) else input_shape,
        outputs=outputs,
        mode=cast(Literal["eval", "train"], mode),
        dtype=dtype,
        device=device,
        strict=strict,
        noise_seed=noise_seed,
    )
    if pytest_file is not None:
        check_writable(Path(pytest_file), "--pytest")
    accepted = as_baseline(baseline)
    named = resolve_symmetry(symmetry)
    extra = {"env": env, "checkpoint": checkpoint, "trust": trust}
    extra["baseline"] = None if accepted is None else accepted.path
    results = []
    for target in networks_of_run(net) if isinstance(net, str) else [net]:
        module = resolve_network(target, checkpoint=checkpoint, trust=trust)
        command = _command(target, named.spec, extra, options)
        label = target if isinstance(target, str) else type(module).__name__
        result = run_net(module, named.symmetry, options=options, target=label, command=command, emit=emit)
        if pytest_file is not None and _has_counterexample(result):
            source = pytest_source(module, named.symmetry, result, target=label, options=options, checkpoint=checkpoint)
            write_text(pytest_file, source)
        results.append(with_baseline(with_reproduction(result), accepted))
        if result.interrupted:
            break
    return Report(results)


def _has_counterexample(result: RunResult) -> bool:
    return any(item.name == "network_equivariance" and item.counterexample for item in result.properties)


def _options(env: Any, **fields: Any) -> NetOptions:
    """The options, with the environment's observations among the inputs where one is named."""
    options = NetOptions(**fields)
    if env is None:
        return options
    target = resolve_environment(env, where="--env")
    space = target.single().observation_space
    parts = subspaces(space)
    if parts is not None:
        shapes = {key: part.shape for key, part in parts.items()}
        structured = shapes if isinstance(space, gym.spaces.Dict) else tuple(shapes.values())
        return NetOptions(**{**fields, "input_shape": fields["input_shape"] or structured})
    seen = collect_observations(target.single, _ROLLOUT_OBSERVATIONS, options.seed)
    shape = options.input_shape if options.input_shape is not None else seen.shape[1:]
    return NetOptions(**{**fields, "input_shape": shape, "observations": seen})


def _command(net: object, spec: str | None, extra: Mapping[str, Any], options: NetOptions) -> str:
    """The command line that repeats the run; "" where an object built in Python is part of it."""
    own = options_that_differ(options, NetOptions(), leave_out=["observations"])
    if extra["env"] is not None:
        own.pop("input-shape", None)
    plain = all(isinstance(word, str) for word in own.get("outputs", ())) and all(
        isinstance(size, int) for size in own.get("input-shape", ())
    )
    if not isinstance(net, str) or spec is None or not plain or not isinstance(extra["env"], str | None):
        return ""
    if "outputs" in own:
        own["outputs"] = tuple(own["outputs"])
    return to_command("verify-net", net, {"symmetry": spec, **extra, **own})


def replay_net(
    command: RunCommand, items: Sequence[Mapping[str, Any]], layers: Sequence[Mapping[str, Any]] | None = None
) -> list[PropertyResult]:
    """Evaluate counterexamples of a JSON report again, and its certificate.

    Args:
        command: the command that the report holds.
        items: its properties that have a counterexample, as JSON objects.
        layers: the chain of layers of a certificate to check again, without the search; None for none.

    Returns:
        Their verdicts now.

    Raises:
        SymcheckError: the network or the symmetry cannot be found again.
    """
    texts = command.options
    fields: dict[str, Any] = {
        name.replace("-", "_"): int(texts[name]) for name in ("samples", "seed", "noise-seed") if name in texts
    }
    fields |= {name.replace("-", "_"): float(texts[name]) for name in ("alpha", "max-time") if name in texts}
    fields |= {name: texts[name] for name in ("mode", "dtype", "device") if name in texts}
    if "input-shape" in texts:
        fields["input_shape"] = tuple(int(size) for size in texts["input-shape"].split(","))
    if "outputs" in texts:
        fields["outputs"] = tuple(texts["outputs"].split(","))
    options = _options(texts.get("env"), strict="strict" in texts, **fields)
    module = resolve_network(command.target, checkpoint=texts.get("checkpoint"), trust="trust" in texts)
    symmetry = resolve_symmetry(texts["symmetry"]).symmetry
    results = [
        net_replay.replay(module, symmetry, item["name"], dict(item["counterexample"]), options) for item in items
    ]
    if layers is not None:
        results.append(net_replay.check_certificate(module, symmetry, layers, options))
    return results

"""Training hyperparameters and presets.

`paper` has the hyperparameters of the paper "MDP Homomorphic Networks", and two details of the published code, without
which figures would not be comparable: time-limit truncation is treated as termination (no bootstrapping), and the
networks for CartPole start with biases. `paper-code` also has the other details of the published code, each of which is
a field here. `tuned` is the same algorithm without these details. `control` is for continuous actions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints

from symcheck.errors import OptionError, suggestion

Algorithm = Literal["ppo", "a2c"]
IN_EPOCHS = frozenset({"ppo"})
"""Algorithms that use epochs of minibatches, and the log probabilities of the actions."""
Evaluation = Literal["episodes", "window", "training"]


@dataclass(frozen=True)
class Settings:
    """The hyperparameters of one algorithm; the defaults are the paper's for CartPole.

    Attributes:
        algorithm: "ppo" (clipped surrogate, several epochs) or "a2c" (one step on the whole batch).
        steps: total environment steps of one run; the last update may exceed this by less than one batch.
        environments: number of parallel environments of one run.
        horizon: steps of each environment between two updates.
        discount: the discount factor, in (0, 1].
        gae_lambda: the decay of generalised advantage estimation, in [0, 1]; 1 gives returns minus values.
        value_coefficient: weight of the value loss, which is half the squared error.
        entropy_coefficient: weight of the entropy bonus.
        max_gradient_norm: each run's gradient is scaled down to this 2-norm.
        epochs: PPO: passes over each batch.
        minibatches: PPO: number of minibatches per pass; must divide `environments * horizon`.
        clip: PPO: the ratio of new to old probability is clipped to [1 - clip, 1 + clip].
        decorrelation_steps: each environment first takes a random number of random actions, at most this many, so that
            episodes of one run do not start in the same step; not counted in `steps`.
        evaluation_every: an evaluation follows the first update at or after each multiple of this many steps.
        evaluation_episodes: episodes of one evaluation, each on a separate environment.
        time_limit_is_terminal: True reproduces the paper's code, which treats `truncated` like `terminated`.
            False bootstraps from the value of the last observation if only the time limit ended the episode.
        evaluation: "episodes": mean return of whole episodes, each on a separate environment. "window": these
            environments take `evaluation_window` steps, and the episodes that finish within them count, so short
            episodes have more weight. "training": mean return of the training episodes that finished since the last
            evaluation.
        evaluation_window: steps of each environment if `evaluation` is "window".
        bias_gain: standard deviation of initial biases, as a multiple of the standard deviation of Xavier weights for a
            single input; 0 for biases of zero.
        input_scale: observations are multiplied by this before the first layer.
        max_episode_steps: episodes of environments outside the catalogue are truncated after this many steps; 0 for the
            environment's own time limit, or 1,000 if it has none.
        normalise_advantages: whether the advantages of each minibatch are scaled to mean 0 and standard deviation 1.
        normalise_returns: whether rewards are divided by the running standard deviation of discounted returns. Curves
            and evaluations use unscaled rewards.
        linear_decay: whether the learning rate decreases linearly to 0 over the run.
        normalise_observations: whether the running mean of vector observations is subtracted and the result divided by
            their running standard deviation; for equivariant networks, these statistics are invariant under the group.
            The trained network contains them in its first layer. Images, and inputs of custom networks, are not
            normalised.
        policy_gain: the initial weights of the policy head are multiplied by this.
        initial_deviation: the initial standard deviation of Gaussian actions, in units of their bounds.
        target_divergence: PPO: if an update changes a run's policy by more than twice this (KL, estimated on the
            batch), its learning rate is divided by 1.5; if by less than half, multiplied by 1.5; 0 for a learning rate
            that does not adapt.
        separate_bodies: whether policy and value of a network of vectors have separate hidden layers.
        width: channels (or units) of every hidden layer of a network of vectors; 0 for the network's own.
        bound_penalty: weight of a penalty on mean actions more than a tenth outside the bounds of a bounded Box: the
            mean square of the excess, in units of the bound.

    Raises:
        OptionError: the message names every field out of range.
    """

    algorithm: Algorithm = "ppo"
    steps: int = 100_000
    environments: int = 16
    horizon: int = 5
    discount: float = 0.99
    gae_lambda: float = 1.0
    value_coefficient: float = 1.0
    entropy_coefficient: float = 0.01
    max_gradient_norm: float = 1.0
    epochs: int = 4
    minibatches: int = 4
    clip: float = 0.1
    decorrelation_steps: int = 400
    evaluation_every: int = 500
    evaluation_episodes: int = 25
    time_limit_is_terminal: bool = True
    evaluation: Evaluation = "episodes"
    evaluation_window: int = 500
    bias_gain: float = 0.0
    input_scale: float = 1.0
    max_episode_steps: int = 0
    normalise_advantages: bool = False
    normalise_returns: bool = False
    linear_decay: bool = False
    normalise_observations: bool = False
    policy_gain: float = 1.0
    bound_penalty: float = 0.0
    initial_deviation: float = 1.0
    target_divergence: float = 0.0
    separate_bodies: bool = False
    width: int = 0

    def __post_init__(self) -> None:
        # Report all problems in one message; ranges are tested only if the types are correct.
        problems = list(_wrong_types(self) or _problems(self))
        if problems:
            raise OptionError(f"expected {'; '.join(problems)}.", where="--set")

    @property
    def batch(self) -> int:
        """The number of environment steps of one run between two updates."""
        return self.environments * self.horizon

    @property
    def in_epochs(self) -> bool:
        """Whether updates use epochs of minibatches; otherwise they take one step on the whole batch."""
        return self.algorithm in IN_EPOCHS

    @property
    def updates(self) -> int:
        """The number of batches of one run."""
        # The last batch is complete, so a run may exceed its steps by up to one batch.
        return math.ceil(self.steps / self.batch)

    def with_changes(self, **changes: Any) -> Settings:
        """The same settings with some fields replaced; fields given as None stay unchanged.

        Example:
            >>> Settings().with_changes(steps=1_000, horizon=None).steps
            1000
        """
        given = {key: value for key, value in changes.items() if value is not None}
        # 1e6 steps is an integer number of steps.
        whole = {key for key, kind in get_type_hints(Settings).items() if kind is int}
        rounded = {key: int(value) for key, value in given.items() if key in whole and _is_whole(value)}
        return dataclasses.replace(self, **(given | rounded))


_KINDS: dict[Any, tuple[str, Any]] = {
    bool: ("true or false", bool),
    int: ("a whole number", numbers.Integral),
    float: ("a number", numbers.Real),
}


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _wrong_types(settings: Settings) -> list[str]:
    """Fields with values of the wrong type: a string would count as true, and a fraction as a number of steps."""
    problems = []
    for name, kind in get_type_hints(Settings).items():
        value = getattr(settings, name)
        # A boolean is an integer in Python.
        fits = kind not in _KINDS or (
            isinstance(value, _KINDS[kind][1]) and (kind is bool or not isinstance(value, bool))
        )
        if not fits:
            problems.append(f"{name} to be {_KINDS[kind][0]}, got {value!r}")
    return problems


def _problems(settings: Settings) -> Sequence[str]:
    positive = (
        "steps", "environments", "horizon", "epochs", "minibatches", "evaluation_every", "evaluation_episodes",
        "evaluation_window",
    )  # fmt: skip
    problems = [
        f"{name} to be 1 or more, got {getattr(settings, name)}" for name in positive if getattr(settings, name) < 1
    ]
    if settings.algorithm not in get_args(Algorithm):
        known = " or ".join(map(repr, get_args(Algorithm)))
        problems.append(f"algorithm to be {known}, got {settings.algorithm!r}")
    if settings.evaluation not in get_args(Evaluation):
        problems.append(f"evaluation to be one of {', '.join(get_args(Evaluation))}, got {settings.evaluation!r}")
    coefficients = (
        "value_coefficient", "entropy_coefficient", "max_gradient_norm", "clip", "bias_gain", "input_scale",
        "policy_gain", "bound_penalty", "target_divergence",
    )  # fmt: skip
    problems += [
        f"{name} to be a finite number, 0 or more, got {getattr(settings, name)}"
        for name in coefficients
        if not 0.0 <= getattr(settings, name) < math.inf
    ]
    if not 0.0 < settings.initial_deviation < math.inf:
        problems.append(f"initial_deviation to be a finite number above 0, got {settings.initial_deviation}")
    if not 0.0 < settings.discount <= 1.0:
        problems.append(f"discount to lie in (0, 1], got {settings.discount}")
    if not 0.0 <= settings.gae_lambda <= 1.0:
        problems.append(f"gae_lambda to lie in [0, 1], got {settings.gae_lambda}")
    problems += [
        f"{name} to be 0 or more, got {getattr(settings, name)}"
        for name in ("decorrelation_steps", "max_episode_steps", "width")
        if getattr(settings, name) < 0
    ]
    # Divide only valid numbers.
    if not problems and settings.in_epochs and settings.batch % settings.minibatches:
        problems.append(f"minibatches to divide the batch of {settings.batch} steps, got {settings.minibatches}")
    return problems


def parse_changes(texts: Sequence[str]) -> dict[str, Any]:
    """Parse fields and values from the command line.

    Args:
        texts: each "NAME=VALUE".

    Returns:
        Values of the fields' types by name.

    Raises:
        OptionError: an unknown field (the message suggests the nearest), or a value of the wrong type.

    Example:
        >>> parse_changes(["horizon=8", "time_limit_is_terminal=false"])
        {'horizon': 8, 'time_limit_is_terminal': False}
    """
    # Annotations are strings; resolve the type hints.
    kinds = get_type_hints(Settings)
    changes: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if name not in kinds:
            raise OptionError(
                f"expected NAME=VALUE with the name of a setting, got {text!r}.",
                where="--set",
                remedy=suggestion(name, kinds),
            )
        changes[name] = _parse(name, value.strip(), kinds[name])
    return changes


def _parse(name: str, text: str, kind: Any) -> Any:
    if kind is bool:
        # `bool("false")` is True, so words are looked up.
        known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if text.lower() in known:
            return known[text.lower()]
    elif kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    else:
        return text
    raise OptionError(f"expected a value of type {kind.__name__} for {name}, got {text!r}.", where="--set")


# If Gymnasium steps the environment, an evaluation takes at most a quarter of the training steps between two
# evaluations, for episodes of 1,000 steps in "control" and of 200 otherwise. More frequent evaluations would take
# longer than training.
PRESETS: dict[str, dict[str, Settings]] = {
    "cartpole": {
        # The paper states no initial biases. Its code draws random ones; without them the plain network learns more
        # slowly.
        "paper": Settings(bias_gain=1.0),
        "paper-code": Settings(steps=96_000, evaluation_every=480, evaluation="window", bias_gain=1.0),
        "tuned": Settings(time_limit_is_terminal=False),
    },
    "gridworld": {
        "paper": Settings(
            algorithm="a2c", steps=2_000_000, value_coefficient=0.5, decorrelation_steps=1000, evaluation_every=10_000,
        ),
        "paper-code": Settings(
            algorithm="a2c", steps=2_000_000, value_coefficient=0.5, decorrelation_steps=1000, evaluation_every=10_000,
            evaluation="training", input_scale=1.0 / 255.0,
        ),
        "tuned": Settings(
            algorithm="a2c", steps=200_000, value_coefficient=0.5, decorrelation_steps=1000, evaluation_every=1_000,
            time_limit_is_terminal=False,
        ),
    },
    "acrobot": {
        "tuned": Settings(
            steps=100_000, horizon=32, gae_lambda=0.95, value_coefficient=0.5, epochs=4, minibatches=8, clip=0.2,
            evaluation_every=10_000, time_limit_is_terminal=False,
        ),
    },
    "pendulum": {
        "tuned": Settings(
            steps=200_000, horizon=64, discount=0.9, gae_lambda=0.95, value_coefficient=0.5, entropy_coefficient=0.0,
            epochs=10, minibatches=16, clip=0.2, decorrelation_steps=200, evaluation_every=20_000,
            time_limit_is_terminal=False, normalise_advantages=True, normalise_returns=True, linear_decay=True,
        ),
    },
}  # fmt: skip

_SCREENS = Settings(
    algorithm="a2c", steps=3_750_000, environments=4, value_coefficient=0.5, decorrelation_steps=1000,
    evaluation_every=10_000, evaluation_episodes=10, evaluation="training", input_scale=1 / 255,
)  # fmt: skip
# 15 million frames; the paper states this for Pong only
for _name, _steps in (("pong", 3_750_000), ("breakout", 10_000_000)):
    _paper = _SCREENS.with_changes(steps=_steps)
    _tuned = _paper.with_changes(environments=16, time_limit_is_terminal=False)
    PRESETS[_name] = PRESETS[f"{_name}-symmetrized"] = {"paper": _paper, "tuned": _tuned}

# Gaussian policies: Adam with learning rate 0.0003 on batches of 2,048, with normalised observations, rewards and
# advantages.
_CONTROL = Settings(
    steps=500_000, horizon=128, gae_lambda=0.95, value_coefficient=0.5, entropy_coefficient=0.0, max_gradient_norm=0.5,
    epochs=10, minibatches=32, clip=0.2, decorrelation_steps=100, evaluation_every=40_000, evaluation_episodes=10,
    time_limit_is_terminal=False, normalise_advantages=True, normalise_returns=True, linear_decay=True,
    normalise_observations=True, policy_gain=0.01, bound_penalty=0.01,
)  # fmt: skip
_pendulum = _CONTROL.with_changes(steps=200_000, discount=0.9, evaluation_every=10_000, separate_bodies=True)
PRESETS["pendulum"] = {"control": _pendulum, **PRESETS["pendulum"]}
_ELSEWHERE = {
    "control": _CONTROL,
    "tuned": Settings(
        steps=200_000, horizon=64, gae_lambda=0.95, value_coefficient=0.5, entropy_coefficient=0.0, epochs=10,
        minibatches=16, clip=0.2, evaluation_every=20_000, time_limit_is_terminal=False, normalise_advantages=True,
        normalise_returns=True, linear_decay=True,
    ),
}  # fmt: skip

# Settings that were better in short trials (listed in docs/agents.md): less exploration and a shorter horizon for dense
# rewards, and more updates on smaller batches for Ant.
_KNOWN: dict[str, dict[str, Any]] = {
    "HalfCheetah": {
        "discount": 0.98,
        "initial_deviation": 0.3,
        "gae_lambda": 0.92,
        "separate_bodies": True,
        "width": 128,
    },
    "Walker2d": {"separate_bodies": True, "width": 128},
    "Ant": {"initial_deviation": 0.3, "horizon": 32, "minibatches": 8, "clip": 0.1, "epochs": 20},
    "Reacher": {"discount": 0.9, "initial_deviation": 0.3},
}
_KNOWN_RATES = {"Ant": 0.0001}


def preset_name(task: str, given: str | None, *, continuous: bool = False) -> str:
    """The name of the preset: the given one, otherwise "paper" if the paper has the task, otherwise our default.

    Args:
        task: the task's name.
        given: a preset's name; None for the default.
        continuous: whether actions are real numbers.

    Example:
        >>> preset_name("cartpole", None), preset_name("acrobot", None), preset_name("Ant-v5", None, continuous=True)
        ('paper', 'tuned', 'control')
    """
    if given or "paper" in PRESETS.get(task, {}):
        return given or "paper"
    return "control" if continuous else "tuned"


def preset(task: str, name: str) -> Settings:
    """The settings of a task's preset.

    Args:
        task: the task's name.
        name: "paper" or "paper-code" if the paper has the task; "tuned"; or "control" for continuous actions. Tasks
            outside the catalogue share "tuned" and "control"; HalfCheetah, Walker2d, Ant and Reacher have a "control"
            of their own.

    Returns:
        The preset.

    Raises:
        OptionError: the task has no preset of that name; the message suggests the nearest.

    Example:
        >>> preset("cartpole", "paper").clip
        0.1
        >>> preset("Reacher-v5", "control").discount
        0.9
    """
    own = _CONTROL.with_changes(**_KNOWN.get(_without_version(task), {}))
    known = PRESETS.get(task) or {**_ELSEWHERE, "control": own}
    if name not in known:
        raise OptionError(
            f"unknown preset {name!r} of task {task!r}.", where="--preset", remedy=suggestion(name, known)
        )
    return known[name]


# The best of four learning rates by mean return over training, with the same seeds and steps for every network.
# Variants use the rate of the original network. docs/agents.md documents the searches.
_SEARCHED_RATES: dict[tuple[str, str], dict[str, float]] = {
    ("cartpole", "tuned"): {
        **dict.fromkeys(("equivariant", "extractor"), 0.01),
        **dict.fromkeys(("nullspace", "random", "mlp", "mlp-wide", "augmented", "averaged", "symmetrized"), 0.005),
    },
    ("acrobot", "tuned"): {
        **dict.fromkeys(("equivariant", "extractor"), 0.01),
        **dict.fromkeys(("nullspace", "mlp", "mlp-wide", "augmented", "averaged", "symmetrized"), 0.001),
        "random": 0.003,
    },
    ("pendulum", "control"): {
        **dict.fromkeys(("equivariant", "extractor", "nullspace"), 0.003),
        **dict.fromkeys(("mlp", "mlp-wide", "augmented", "averaged", "symmetrized"), 0.001),
        "random": 0.01,
    },
    ("gridworld", "tuned"): {
        **dict.fromkeys(("equivariant", "extractor"), 0.003),
        **dict.fromkeys(("nullspace", "random", "cnn", "augmented", "averaged", "symmetrized"), 0.001),
    },
}


def default_rate(task: str, preset: str, network: str, otherwise: float) -> float:
    """The learning rate of a network if none is given.

    Args:
        task: the task's name.
        preset: the preset's name.
        network: the network's name.
        otherwise: the rate in the catalogue, used if there was no search for the preset.

    Example:
        >>> default_rate("gridworld", "tuned", "cnn", 0.003), default_rate("gridworld", "paper", "cnn", 0.003)
        (0.001, 0.003)
        >>> default_rate("Ant-v5", "control", "mlp", 0.0003)
        0.0001
    """
    if preset == "control":
        otherwise = _KNOWN_RATES.get(_without_version(task), otherwise)
    return _SEARCHED_RATES.get((task, preset), {}).get(network, otherwise)


def _without_version(name: str) -> str:
    """The name of an environment without Gymnasium's version suffix."""
    return name.partition("-v")[0]

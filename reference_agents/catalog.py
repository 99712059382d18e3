"""The catalogue of tasks and of the networks for each task. Imports no heavy packages.

A network is described by its widths and by the kind of intertwiner basis that its layers use; `networks.build` turns
the description into stacked layers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from symcheck.errors import OptionError, suggestion


@dataclass(frozen=True)
class Convolution:
    """The window of one convolution, square, without padding."""

    kernel: int
    stride: int


@dataclass(frozen=True)
class NetworkPlan:
    """One network of one task.

    Attributes:
        name: the name on the command line.
        basis: "equivariant", "nullspace" or "random" for networks whose weights are spanned by a basis; "dense" for
            ordinary linear layers.
        channels: width of each hidden layer: channels of the regular representation, or units where dense.
        learning_rate: the default of `train`.
        summary: one line for `reference-agents list`.
        views: how the symmetry is used in addition to the layers: "symmetrized", "averaged" or "augmented"; "" for no
            use.
        free_heads: whether the heads are ordinary layers on top of the basis layers.
        convolutions: the windows of the first hidden layers; a global maximum follows the last of them.
        pool: "max" or "average"; "none" keeps every position of the image.
        free_layers: the number of last hidden layers that are ordinary ones on top of basis layers.
        init: the initialisation of weights: "" for Xavier's (He's if there are convolutions); "torch" for PyTorch's.
        bias_gain: as in `settings.Settings`.
        input_scale: as in `settings.Settings`.
        policy_gain: as in `settings.Settings`.
        initial_deviation: as in `settings.Settings`.
        separate_bodies: as in `settings.Settings`.
    """

    name: str
    basis: str
    channels: tuple[int, ...]
    learning_rate: float
    summary: str
    convolutions: tuple[Convolution, ...] = ()
    views: str = ""
    free_heads: bool = False
    pool: str = "max"
    free_layers: int = 0
    init: str = ""
    bias_gain: float = 0.0
    input_scale: float = 1.0
    policy_gain: float = 1.0
    initial_deviation: float = 1.0
    separate_bodies: bool = False

    def with_quirks(self, settings: Mapping[str, Any]) -> NetworkPlan:
        """The network with the settings that concern networks: initial biases, heads, widths, bodies.

        Raises:
            OptionError: widths or bodies are set, and this is not a network for vectors.

        Example:
            >>> find_network(find_task("gridworld"), "cnn").with_quirks({"input_scale": 0.5}).input_scale
            0.5
        """
        # Settings that are missing in a record do not change the network.
        gain, scale = settings.get("bias_gain", 0.0), settings.get("input_scale", 1.0)
        head, deviation = settings.get("policy_gain", 1.0), settings.get("initial_deviation", 1.0)
        width, separate = settings.get("width", 0), settings.get("separate_bodies", False)
        if (width or separate) and (self.convolutions or self.basis == "user"):
            raise OptionError(
                f"separate_bodies and width cannot be set for {self.name}, which is not a network for vectors.",
                where="--set",
                remedy="Both options change the hidden layers of the built-in networks for vectors.",
            )
        channels = (width,) * len(self.channels) if width else self.channels
        return dataclasses.replace(
            self, bias_gain=gain, input_scale=scale, policy_gain=head, initial_deviation=deviation, channels=channels,
            separate_bodies=separate,
        )  # fmt: skip

    @property
    def claims_equivariance(self) -> bool:
        """Whether the network is built to be equivariant, so that a verdict below `passed` is a defect."""
        # Free heads mix the equivariant features without constraint.
        return (self.basis == "equivariant" and not self.free_heads) or self.views in ("symmetrized", "averaged")


@dataclass(frozen=True)
class Sweep:
    """The training runs of the paper on a task.

    Attributes:
        networks: the networks.
        learning_rates: the learning rates of every network.
        seeds: the number of seeds.
    """

    networks: tuple[str, ...]
    learning_rates: tuple[float, ...]
    seeds: int


@dataclass(frozen=True)
class Task:
    """A task to train on.

    Attributes:
        name: the name on the command line.
        environment: the Gymnasium id whose dynamics are used.
        symmetry: the name of its symmetry, or a SPEC; "" for none.
        threshold: the mean return that counts as solved; None if there is none.
        algorithm: the default training algorithm.
        observation_shape: the shape of one observation: the length of a vector, or (channels, height, width).
        actions: the number of actions, or of coordinates of an action.
        sweep: the training runs of the paper.
        networks: name to plan.
        summary: one line for `reference-agents list`.
        continuous: whether actions are vectors of real numbers.
        masked: actions that are never taken, because others have the same effect.
        choices: the number of values of each component, if an action has several components; otherwise ().
        own: whether environment and symmetry are a user's own; `name` and `symmetry` are then references to them.
    """

    name: str
    environment: str
    symmetry: str
    threshold: float | None
    algorithm: str
    observation_shape: tuple[int, ...]
    actions: int
    sweep: Sweep
    networks: Mapping[str, NetworkPlan] = field(default_factory=dict)
    summary: str = ""
    continuous: bool = False
    masked: tuple[int, ...] = ()
    choices: tuple[int, ...] = ()
    own: bool = False

    def channels_in(self, *, dense: bool) -> int:
        """Channels of an observation: one copy of its representation; for dense layers, all of its components."""
        # An image has its channels first; a vector is one channel of the whole representation.
        return self.observation_shape[0] if dense or len(self.observation_shape) == 3 else 1


def _plans(*plans: NetworkPlan) -> dict[str, NetworkPlan]:
    return {plan.name: plan for plan in plans}


# Learning rates: for each network the best of seven as stated in the paper (table of CartPole learning rates). The wide
# and deep variants, which the paper does not list, use the rate of the original network.
_CARTPOLE_NETWORKS = _plans(
    NetworkPlan("equivariant", "equivariant", (64, 64), 0.01, "two layers of 64 regular channels, C2-equivariant"),
    NetworkPlan("nullspace", "nullspace", (64, 64), 0.005, "the same sizes, weights orthogonal to every intertwiner"),
    NetworkPlan("random", "random", (64, 64), 0.001, "the same sizes, weights in a random full-rank basis"),
    NetworkPlan("mlp", "dense", (64, 128), 0.001, "plain multilayer perceptron, 64 and 128 units"),
    NetworkPlan("mlp-wide", "dense", (128, 128), 0.001, "plain multilayer perceptron, two layers of 128 units"),
    NetworkPlan("extractor", "equivariant", (64, 64), 0.01, "equivariant layers, unconstrained heads", free_heads=True),
    NetworkPlan("augmented", "dense", (64, 128), 0.001, "mlp, trained on randomly mirrored pairs", views="augmented"),
    NetworkPlan(
        "averaged", "dense", (64, 128), 0.001, "mlp, policies averaged over all transformed inputs", views="averaged"
    ),
    NetworkPlan("symmetrized", "dense", (64, 128), 0.001, "mlp, averaged over the group", views="symmetrized"),
    NetworkPlan("equivariant-deep", "equivariant", (64,) * 4, 0.01, "four layers of 64 regular channels"),
    NetworkPlan("nullspace-deep", "nullspace", (64,) * 4, 0.005, "four layers, weights orthogonal to intertwiners"),
    NetworkPlan("random-deep", "random", (64,) * 4, 0.001, "four layers, weights in a random full-rank basis"),
    NetworkPlan("mlp-deep", "dense", (64, 128, 128, 128), 0.001, "plain multilayer perceptron of four layers"),
    NetworkPlan("mlp-wide-deep", "dense", (128,) * 4, 0.001, "plain multilayer perceptron, four layers of 128 units"),
)

_WINDOWS = (Convolution(7, 2), Convolution(5, 1))

# Learning rates: for each network the best of six as stated in the paper (table of grid-world learning rates).
_GRID_NETWORKS = _plans(
    NetworkPlan("equivariant", "equivariant", (8, 16, 256), 0.001, "convolutions and layers of C4 channels", _WINDOWS),
    NetworkPlan("nullspace", "nullspace", (8, 16, 256), 0.003, "the same sizes, orthogonal to intertwiners", _WINDOWS),
    NetworkPlan("random", "random", (8, 16, 256), 0.001, "the same sizes, weights in a random basis", _WINDOWS),
    NetworkPlan("cnn", "dense", (16, 32, 512), 0.003, "plain convolutional network of 16, 32, 512", _WINDOWS),
    NetworkPlan(
        "cnn-code", "dense", (16, 32, 512), 0.003, "cnn of the paper's code: average pool, PyTorch's initial weights",
        _WINDOWS, pool="average", init="torch",
    ),
    NetworkPlan("extractor", "equivariant", (8, 16, 256), 0.001, "C4 layers, unconstrained heads", _WINDOWS, "", True),
    NetworkPlan("augmented", "dense", (16, 32, 512), 0.003, "cnn, trained on rotated pairs", _WINDOWS, "augmented"),
    NetworkPlan(
        "averaged", "dense", (16, 32, 512), 0.003, "cnn, policies averaged over all transformed inputs", _WINDOWS,
        "averaged",
    ),
    NetworkPlan("symmetrized", "dense", (16, 32, 512), 0.003, "cnn, averaged over the group", _WINDOWS, "symmetrized"),
)  # fmt: skip


_SCREEN_WINDOWS = (Convolution(8, 4), Convolution(5, 2))


def _screen_networks(plain_rate: float) -> dict[str, NetworkPlan]:
    """The networks of Pong and Breakout.

    Widths and learning rates are those of the paper: widths 16, 32, 512 for the plain network, and these divided by
    sqrt(2) and rounded down for the others. A network without a rate in the paper uses that of the original network.
    """
    # The equivariant networks are narrower by about sqrt(2), so that the numbers of parameters are similar: 11 channels
    # are 22 planes under C2.
    rate, basis, plain = 0.0002, (11, 22, 362), (16, 32, 512)

    def paper_network(name: str, kind: str, summary: str) -> NetworkPlan:
        return NetworkPlan(
            name, kind, basis, rate, summary, _SCREEN_WINDOWS, free_heads=True, pool="none", free_layers=1
        )

    def dense(name: str, summary: str, views: str = "") -> NetworkPlan:
        return NetworkPlan(name, "dense", plain, plain_rate, summary, _SCREEN_WINDOWS, views, pool="none")

    return _plans(
        NetworkPlan(
            "equivariant", "equivariant", basis, rate, "C2 layers up to policy and value: equivariant from end to end",
            _SCREEN_WINDOWS, pool="none",
        ),
        paper_network(
            "extractor", "equivariant",
            "the paper's network: 2816 equivariant features, then unconstrained layers; its policy is NOT equivariant",
        ),
        paper_network("nullspace", "nullspace", "extractor with convolutions orthogonal to every intertwiner"),
        paper_network("random", "random", "extractor with convolutions in a random full-rank basis"),
        dense("cnn", "plain convolutional network of 16, 32, 512"),
        dense("augmented", "cnn, trained on randomly reflected pairs", "augmented"),
        dense("averaged", "cnn, policies averaged over an image and its reflection", "averaged"),
        dense("symmetrized", "cnn, averaged over the group", "symmetrized"),
    )  # fmt: skip


def control_networks(rate: float, *, continuous: bool = False) -> dict[str, NetworkPlan]:
    """The vector networks, with one learning rate for the method and its baselines.

    An average of Gaussian policies is not a Gaussian, so it is left out for continuous actions.
    """
    return {
        name: dataclasses.replace(plan, learning_rate=rate)
        for name, plan in _CARTPOLE_NETWORKS.items()
        # Averaging policies over views needs probabilities of the same actions; Gaussian means have no such average.
        if not (continuous and plan.views == "averaged")
    }


TUNED_SWEEP = Sweep(("equivariant", "nullspace", "random", "mlp", "mlp-wide"), (0.0003, 0.001, 0.003), 10)

TASKS: dict[str, Task] = {
    "cartpole": Task(
        "cartpole", "CartPole-v1", "cartpole/mirror", 475.0, "ppo", (4,), 2,
        # 25 seeds at seven rates, 20 at six: as the paper states them.
        Sweep(
            ("equivariant", "nullspace", "random", "mlp", "mlp-wide"),
            (0.01, 0.05, 0.001, 0.005, 0.0001, 0.0003, 0.0005), 25,
        ),
        _CARTPOLE_NETWORKS,
        "balance a pole on a cart; symmetric under mirroring with exchanged actions",
    ),
    "gridworld": Task(
        "gridworld", "symcheck/PredatorPrey-v0", "predator-prey/rotations", 0.70, "a2c", (1, 21, 21), 5,
        Sweep(("equivariant", "nullspace", "random", "cnn"), (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3), 20),
        _GRID_NETWORKS,
        "catch a prey on a torus, seen from above; symmetric under rotations by 90 degrees of image and moves",
    ),
    "acrobot": Task(
        "acrobot", "Acrobot-v1", "acrobot/mirror", -100.0, "ppo", (6,), 3, TUNED_SWEEP, control_networks(0.001),
        "swing up two links with the joint between them; symmetric under reflection with opposite torques",
    ),
    "pendulum": Task(
        "pendulum", "Pendulum-v1", "pendulum/mirror", -200.0, "ppo", (3,), 1, TUNED_SWEEP,
        control_networks(0.001, continuous=True),
        "swing up a pendulum with a bounded torque; symmetric under reflection with opposite torques", continuous=True,
    ),
    **{
        # Pong's last two actions, up and down with fire, repeat two others and are masked.
        name: Task(
            name, environment, symmetry, None, "a2c", (4, 80, 80), 6,
            Sweep(("extractor", "nullspace", "random", "cnn"), (1e-4, 2e-4, 3e-4), 15),
            _screen_networks(0.0001), summary, masked=(4, 5),
        )
        for name, environment, symmetry, summary in (
            ("pong", "symcheck/Pong-v0", "pong/flip", "table tennis against an opponent that is NOT symmetric"),
            (
                "pong-symmetrized", "symcheck/SymmetrizedPong-v0", "pong/symmetrized",
                "the same, with each game played upside down at random, so that the flip is an exact symmetry",
            ),
        )
    },
    **{
        name: Task(
            name, environment, symmetry, None, "a2c", (4, 80, 80), 4,
            Sweep(
                ("extractor", "cnn"), (0.001, 0.005, 0.0001, 0.0002, 0.0003, 0.0004, 0.0005, 0.00001, 0.00005), 14
            ),
            _screen_networks(0.0002), summary,
        )
        for name, environment, symmetry, summary in (
            ("breakout", "symcheck/Breakout-v0", "breakout/flip", "break bricks; nearly symmetric under reflection"),
            (
                "breakout-symmetrized", "symcheck/SymmetrizedBreakout-v0", "breakout/symmetrized",
                "the same, with each life mirrored at random, so that the flip is an exact symmetry",
            ),
        )
    },
}  # fmt: skip


def find_task(name: str) -> Task:
    """Find the task of a given name.

    Raises:
        OptionError: no task has that name; the message suggests the nearest name and lists the known ones.

    Example:
        >>> find_task("cartpole").environment
        'CartPole-v1'
    """
    if name not in TASKS:
        raise OptionError(f"unknown task {name!r}.", where="TASK", remedy=suggestion(name, TASKS))
    return TASKS[name]


def find_network(task: Task, name: str) -> NetworkPlan:
    """Find the network of a given name for a task.

    Raises:
        OptionError: no network has that name; the message suggests the nearest name and lists the known ones.

    Example:
        >>> find_network(find_task("cartpole"), "mlp").channels
        (64, 128)
    """
    if name not in task.networks:
        raise OptionError(
            # The internal name of a user's environment is meaningless to the user.
            f"task {(task.environment if task.own else task.name)!r} has no network {name!r}.",
            where="--network",
            remedy=suggestion(name, task.networks),
        )
    return task.networks[name]

"""The data of a learning-curve page, filled by the trainer.

One `CurveModel` is one page: one task, several networks, several seeds each. A network that was trained at several
learning rates has one `NetworkCurves` per rate; the one with `chosen=True` is drawn and tabulated, and the others
appear in the learning-rate table. This module computes nothing: statistics are in `symcheck_reports.curve_statistics`,
drawing in `symcheck_reports.curves`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from symcheck.verdict import Verdict


@dataclass(frozen=True)
class SeedCurve:
    """The learning curve of one run.

    Attributes:
        seed: the run's own seed.
        env_steps: environment steps taken when each evaluation was made, increasing, shape (n,).
        returns: mean return of each evaluation, shape (n,); NaN if an evaluation is missing.
    """

    seed: int
    env_steps: Sequence[int]
    returns: Sequence[float]


@dataclass(frozen=True)
class FailedRun:
    """A run that stopped early; the page names it and includes its curve in all statistics.

    Attributes:
        seed: the run's seed.
        reason: the reason, in one sentence ("the loss became NaN at update 12").
        env_steps: environment steps taken before it stopped.
    """

    seed: int
    reason: str
    env_steps: int = 0


@dataclass(frozen=True)
class NetworkCurves:
    """All runs of one network at one learning rate.

    Attributes:
        name: the network's name as on the command line ("equivariant", "mlp").
        learning_rate: the optimiser's step size.
        curves: one curve per seed, in order of the seeds, including the curves of runs that stopped early.
        verdict: the weakest verdict of `verify-net` on any of the trained networks; None if none was verified.
        verdict_detail: the evidence, or the reason why it was not verified, in a sentence.
        features_verdict: the verdict of the equivariant layers below unconstrained ones, if the whole network has no
            verdict.
        failed_runs: the runs that stopped early.
        parameters: the number of trainable parameters; None if unknown.
        chosen: whether this learning rate is the one to draw for this name.
    """

    name: str
    learning_rate: float
    curves: Sequence[SeedCurve]
    verdict: Verdict | None = None
    verdict_detail: str = ""
    failed_runs: Sequence[FailedRun] = ()
    parameters: int | None = None
    chosen: bool = True
    features_verdict: Verdict | None = None


@dataclass(frozen=True)
class CurveModel:
    """One learning-curve page.

    Attributes:
        task: the environment's id or the task's name ("CartPole-v1").
        networks: at least one; those with the same name differ in learning rate.
        settings: name to value as text, in the order to show ("algorithm": "PPO", "discount": "0.99").
        threshold: the return that counts as solved, in the task's own reward; None if the task has none.
        evaluation: how the returns were measured, in a sentence ("25 episodes on separate environments every 500 steps,
            greedy actions").
        choice_rule: how the learning rate was chosen, in a sentence; "" if there was only one.
        command: the command line that repeats the training run; "" if none exists.
        versions: package name to version.
        duration_s: wall time of training and evaluation, in seconds, summed over all runs; None if unknown.
        notes: further sentences to show unchanged ("preset paper", "run on 2 CPU cores").
        trained: the number of trained runs, including those used only to choose a learning rate; None if it equals the
            number of curves.
    """

    task: str
    networks: Sequence[NetworkCurves]
    settings: Mapping[str, str] = field(default_factory=dict)
    threshold: float | None = None
    evaluation: str = ""
    choice_rule: str = ""
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    duration_s: float | None = None
    notes: Sequence[str] = ()
    trained: int | None = None

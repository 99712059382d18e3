"""Chooses the training engine of a job: torch, or `learn.c` if it supports the job.

Both compute the same equations from the same random numbers, but sum in different orders, so their curves differ by
rounding after some updates. Each is reproducible bit for bit.
"""

from __future__ import annotations

from reference_agents.catalog import NetworkPlan, Task
from reference_agents.compiled.description import describe
from reference_agents.compiled.library import NoCompilerError, load_library
from reference_agents.networks.build import build_plan
from reference_agents.settings import Settings
from symcheck.errors import OptionError, suggestion

TORCH, COMPILED, AUTO = "torch", "compiled", "auto"
ENGINES = (AUTO, TORCH, COMPILED)
ENGINE_OPTION = "--engine"


def choose_engine(
    asked: str, task: Task, network: NetworkPlan, settings: Settings, device: str = "cpu"
) -> tuple[str, str]:
    """The engine of a training run.

    Args:
        asked: "auto", "torch" or "compiled".
        task: the task.
        network: the network.
        settings: the hyperparameters.
        device: the device.

    Returns:
        "torch" or "compiled", and a message for the user; "" for no message.

    Raises:
        OptionError: an unknown engine, or "compiled" was requested and is not available.

    Example:
        >>> from reference_agents.catalog import find_network, find_task
        >>> grid = find_task("gridworld")
        >>> choose_engine("auto", grid, find_network(grid, "cnn"), Settings(algorithm="a2c"))
        ('torch', '')
    """
    if asked not in ENGINES:
        raise OptionError(f"unknown engine {asked!r}.", where=ENGINE_OPTION, remedy=suggestion(asked, ENGINES))
    if asked == TORCH:
        return TORCH, ""
    if not _is_expressible(task, network, settings, device):
        if asked == AUTO:
            return TORCH, ""
        raise OptionError(
            "the compiled engine supports only PPO on the CPU, with a plain or equivariant network for vectors.",
            where=ENGINE_OPTION,
            remedy="Omit --engine, or use --engine torch.",
        )
    try:
        load_library()
    except NoCompilerError as error:
        if asked == AUTO:
            return TORCH, f"training with torch, which is three times as slow as the compiled engine: {error}"
        raise OptionError(
            f"the compiled engine requires a C compiler: {error}.",
            where=ENGINE_OPTION,
            remedy="Use --engine torch.",
        ) from error
    return COMPILED, ""


def _is_expressible(task: Task, network: NetworkPlan, settings: Settings, device: str) -> bool:
    """Whether `learn.c` supports everything that the job needs."""
    averages = network.views in ("symmetrized", "averaged")
    # A2C takes a single step per batch, for which the compiled engine saves little.
    if device != "cpu" or not settings.in_epochs or network.basis == "user" or averages:
        return False
    plan = build_plan(task, network)
    return describe(plan, plan.layout()) is not None

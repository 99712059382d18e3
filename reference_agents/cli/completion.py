"""Shell completion for named values; if nothing matches, the shell offers files.

Each function returns the values that begin with the text typed so far. No function loads torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import typer

from reference_agents.catalog import TASKS, Task

DEVICES, EXECUTORS = ("cpu", "cuda"), ("local", "dask")


def tasks(incomplete: str) -> list[str]:
    """Names of tasks.

    Example:
        >>> tasks("pong")
        ['pong', 'pong-symmetrized']
    """
    return _beginning(incomplete, TASKS)


def environments(incomplete: str) -> list[str]:
    """Gymnasium ids with a symmetry that the atlas claims.

    Example:
        >>> environments("Acro")
        ['Acrobot-v1']
    """
    from symcheck.envs import atlas

    return _beginning(incomplete, {id_ for entry in atlas.entries() if entry.claim for id_ in entry.environments})


def symmetries(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of atlas entries: for the task's environment if a task is given, otherwise all."""
    from symcheck.envs import atlas

    environment = _typed_environment(ctx)
    known = atlas.entries() if environment is None else atlas.entries_for(environment)
    return _beginning(incomplete, (entry.name for entry in known))


def network(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of networks: the task's if a task is given, otherwise all."""
    return _beginning(incomplete, _networks(ctx))


def network_list(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of networks after the last comma, without those already given."""
    before, comma, last = incomplete.rpartition(",")
    # Names before the last comma are not offered again.
    taken = before.split(",")
    return [before + comma + name for name in _beginning(last, _networks(ctx)) if name not in taken]


def presets(ctx: typer.Context, incomplete: str) -> list[str]:
    """Presets of the task if one is given, otherwise all."""
    from reference_agents.settings import PRESETS

    task = _task(ctx)
    # For environments outside the catalogue there is no preset of the paper.
    if task is None and _typed_environment(ctx) is not None:
        return _beginning(incomplete, ("control", "tuned"))
    known = [PRESETS[task.name]] if task is not None else PRESETS.values()
    return _beginning(incomplete, {name for table in known for name in table})


def changes(incomplete: str) -> list[str]:
    """Settings of a preset, in the form that `--set` takes.

    Example:
        >>> changes("hor")
        ['horizon=']
    """
    from dataclasses import fields

    from reference_agents.settings import Settings

    return _beginning(incomplete, (f"{field.name}=" for field in fields(Settings)))


def devices(incomplete: str) -> list[str]:
    """Devices.

    Example:
        >>> devices("cu")
        ['cuda']
    """
    return _beginning(incomplete, DEVICES)


def engines(incomplete: str) -> list[str]:
    """Engines.

    Example:
        >>> engines("c")
        ['compiled']
    """
    from reference_agents.compiled.engine import ENGINES

    return _beginning(incomplete, ENGINES)


def executors(incomplete: str) -> list[str]:
    """Executors.

    Example:
        >>> executors("")
        ['dask', 'local']
    """
    return _beginning(incomplete, EXECUTORS)


def _networks(ctx: typer.Context) -> Sequence[str]:
    task = _task(ctx)
    if task is not None:
        return list(task.networks)
    vectors_only = _typed_environment(ctx) is not None  # ids outside the catalogue take the networks of vector tasks
    known = [TASKS["acrobot"]] if vectors_only else TASKS.values()
    return list(dict.fromkeys(name for candidate in known for name in candidate.networks))


def _task(ctx: typer.Context) -> Task | None:
    """The task typed so far, by its name or by its environment's id.

    If an option still lacks its value, the parser has not reached the arguments: they are among the remaining words.
    """
    # Typer puts parsed values into `params` and leaves the rest in `args`.
    typed = {ctx.params.get("task"), ctx.params.get("env"), *ctx.args}
    return next((task for task in TASKS.values() if typed & {task.name, task.environment}), None)


def _typed_environment(ctx: typer.Context) -> str | None:
    task, env = _task(ctx), ctx.params.get("env")
    return task.environment if task is not None else env


def _beginning(incomplete: str, known: Iterable[str]) -> list[str]:
    return sorted(name for name in known if name.startswith(incomplete))

"""`verify_mirror`: check a robot's mirror function against its model, or check the symmetry of the model alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.api.commands import options_that_differ, to_command
from symcheck.api.options import VerifyMirrorKeywords, VerifyMirrorOptions
from symcheck.api.report import Report
from symcheck.engine.events import Emit, ignore
from symcheck.engine.mirrors.runner import run_mirror
from symcheck.engine.mirrors.source import mirror_source
from symcheck.engine.option_fields import from_keywords, shows_options
from symcheck.errors import OptionError
from symcheck.loading import is_reference, load_attribute
from symcheck.mujoco.layouts.document import WrittenLayout, read_layout
from symcheck.mujoco.layouts.laid_out import lay_out
from symcheck.mujoco.loading import load_model


@shows_options(VerifyMirrorOptions)
def verify_mirror(
    function: Callable[..., Any] | str | None = None,
    *,
    model: Any,
    emit: Emit | None = None,
    **options: Unpack[VerifyMirrorKeywords],
) -> Report:
    """Compare a batched mirror function, column by column, with the mirror derived from a robot's model.

    The images B_g(s) and B_g(a) that the function returns must equal L_g s and K_g a. L and K are derived from the
    model: the axes of the joints determine the image and the sign of each joint. No simulation is run.

    Args:
        function: `fn(env, obs, actions)` as rsl_rl and Isaac Lab expect it, an object with `augment_observations` and
            `augment_actions`, "module:attr" or "file.py:attr"; None checks the model alone.
        model: an MJCF or URDF file or its text, a `mujoco.MjModel`, or an environment that has one.
        emit: receives the engine's events as they happen.
        **options: the fields of `symcheck.api.options.VerifyMirrorOptions`: `layout` (a TOML file, or a dictionary of
            the same fields; needed with a function), `env` (passed to the function), `tolerance` (relative size, for
            the model alone), `samples`, `max_time` (seconds), `alpha`, `seed`; None means the default.

    Returns:
        The report; `report.columns` has one object per wrong column.

    Raises:
        SymcheckError: the function, the model, the layout or an option cannot be used.

    Example:
        >>> report = verify_mirror(model="Ant-v5", layout={"plane": "yz"})
        >>> report.verdict, report.results[0].differences
        ('passed', ())

    Source: derived in docs/robots.md.
    """
    chosen: VerifyMirrorOptions = from_keywords(VerifyMirrorOptions, options, caller="verify_mirror")
    if function is not None and chosen.layout is None:
        raise OptionError(
            "a mirror function can be checked only with a layout, which lists the terms of the "
            "observation and the order of the joints.",
            where="--layout",
            remedy="Give a TOML file with --layout FILE (layout=... in Python).",
        )
    layout = WrittenLayout("layout") if chosen.layout is None else read_layout(chosen.layout)
    loaded = load_model(model)
    called, env = (None, None) if function is None else _load_both(function, chosen.env)
    label = function if isinstance(function, str) else getattr(function, "__name__", type(function).__name__)
    result = run_mirror(
        called,
        loaded,
        layout,
        options=chosen,
        target=loaded.label if function is None else str(label),
        command=_command(function, model, chosen),
        emit=emit or ignore,
        env=env,
    )
    return Report([result])


def _load_both(function: Any, env: Any) -> tuple[Any, Any]:
    """The function and the environment that is passed to it; their modules may import tensordict."""
    from symcheck.mirror_functions.tensor_groups import tensordict_at_hand  # loads torch

    with tensordict_at_hand():
        return (_load(function) if isinstance(function, str) else function), _environment(env)


def _load(reference: str) -> Any:
    value = load_attribute(reference, where="TARGET")
    # Instantiate a class of such objects that needs no arguments.
    return value() if isinstance(value, type) and hasattr(value, "augment_observations") else value


def _environment(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    if is_reference(given):
        made = load_attribute(given, where="--env")
        described = ("observation_space", "single_observation_space", "get_observations", "num_envs")
        return made() if callable(made) and not any(hasattr(made, name) for name in described) else made
    from symcheck.envs.targets import resolve_environment

    return resolve_environment(given, where="--env").single()


def _command(function: object, model: object, options: VerifyMirrorOptions) -> str:
    """The command line that repeats the run; "" if an object built in Python is part of it."""
    given = options_that_differ(options, VerifyMirrorOptions())
    texts = (function, model, given.get("layout"), given.get("env"))
    if not all(isinstance(text, str | None) for text in texts) or str(model).lstrip().startswith("<"):
        return ""
    return to_command("verify-mirror", function if isinstance(function, str) else None, {"model": model, **given})


def mirror_text(model: Any, layout: Any, form: str) -> str:
    """The correct mirror function for a layout, as source text.

    Args:
        model: as for `verify_mirror`.
        layout: as for `verify_mirror`.
        form: "rsl_rl", "isaaclab" or "spec".

    Returns:
        Python source, or a SPEC file.

    Raises:
        SymcheckError: the model or the layout cannot be used.
    """
    if layout is None:
        raise OptionError(
            "a mirror function can be written only if a layout is given.",
            where="--emit",
            remedy="Give a layout with --layout.",
        )
    return mirror_source(lay_out(load_model(model), read_layout(layout)), form)

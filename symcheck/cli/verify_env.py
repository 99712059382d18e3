"""`symcheck verify-env`: check a symmetry on a real environment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from symcheck.cli import completion, options
from symcheck.cli.exit_codes import reports_mistakes
from symcheck.cli.outputs import Outputs
from symcheck.errors import OptionError

if TYPE_CHECKING:
    from symcheck.engine.options import Method


@reports_mistakes
def command(
    target: Annotated[
        str,
        typer.Argument(
            help="A Gymnasium id, module:Id-v0, pkg.mod:factory or path/file.py:factory.",
            autocompletion=completion.environments,
        ),
    ],
    symmetry: Annotated[
        str | None,
        typer.Option(
            help="An atlas name, pkg.mod:attr, path/file.py:attr or a .toml file; the atlas's claims when left out.",
            autocompletion=completion.symmetries,
        ),
    ] = None,
    env_kwargs: Annotated[
        str | None, typer.Option(help="Keyword arguments of the environment, as a JSON object.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="auto, exact, paired, distribution or trajectory.", autocompletion=completion.methods),
    ] = "auto",
    samples: options.Samples = None,
    max_time: options.MaxTime = None,
    fail_fast: options.FailFast = False,
    alpha: options.Alpha = 0.01,
    seed: options.Seed = 0,
    baseline: options.Baseline = None,
    accept_gap: options.AcceptGap = None,
    discount: options.Discount = 0.99,
    fail_on: options.FailOnOption = "failed,undecided",
    html: options.Html = None,
    json_path: options.Json = None,
    junit: options.Junit = None,
    markdown: options.Markdown = None,
    quiet: options.Quiet = False,
) -> None:
    """Check that an environment has a symmetry: reward, transition, termination, start, observation.

    Example: symcheck verify-env CartPole-v1 --html report.html
    """
    outputs = Outputs(html, json_path, junit, markdown, quiet, fail_on)
    accepted = outputs.check()
    kwargs = json_object(env_kwargs)
    from symcheck.api.verify_env import verify_env
    from symcheck.cli.progress import progress

    with progress(quiet=quiet) as emit:
        report = verify_env(
            target,
            symmetry,
            env_kwargs=kwargs,
            method=cast("Method", method),  # EnvOptions names the ones there are
            samples=samples,
            max_time=max_time,
            fail_fast=fail_fast,
            alpha=alpha,
            seed=seed,
            baseline=baseline,
            accept_gap=accept_gap,
            discount=discount,
            emit=emit,
        )
    outputs.finish(report, accepted)


def json_object(text: str | None) -> dict[str, Any]:
    """The keyword arguments of --env-kwargs.

    Raises:
        OptionError: the text is no JSON object.
    """
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise OptionError(
            f"expected a JSON object, got {text!r} ({error}).", where="--env-kwargs", remedy="""Try '{"g": 9.8}'."""
        ) from error
    if not isinstance(value, dict):
        raise OptionError(
            f"expected a JSON object, got {text!r}.", where="--env-kwargs", remedy="""Try '{"g": 9.8}'."""
        )
    return value

"""`symcheck verify-net`: prove or test that a network respects a symmetry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from symcheck.cli import completion, options
from symcheck.cli.exit_codes import reports_mistakes
from symcheck.cli.outputs import Outputs
from symcheck.errors import OptionError

_NETWORK = "Network"


@reports_mistakes
def command(
    target: Annotated[
        str, typer.Argument(help="pkg.mod:factory or path/file.py:factory (or a module instance), or a saved network.")
    ],
    symmetry: Annotated[
        str,
        typer.Option(
            help="An atlas name, pkg.mod:attr, path/file.py:attr or a .toml file.",
            show_default=False,
            autocompletion=completion.symmetries,
        ),
    ],
    input_shape: Annotated[
        str | None,
        typer.Option(help="Shape of one input without the batch, for instance 1,21,21.", rich_help_panel=_NETWORK),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            help="Take inputs from this environment's observations.",
            rich_help_panel=_NETWORK,
            autocompletion=completion.environments,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A state dict to load into the network.", rich_help_panel=_NETWORK)
    ] = None,
    outputs: Annotated[
        str | None,
        typer.Option(
            help="How each output transforms: action, invariant, observation, action_scale; comma-separated.",
            rich_help_panel=_NETWORK,
        ),
    ] = None,
    mode: Annotated[str, typer.Option(help="eval or train.", rich_help_panel=_NETWORK)] = "eval",
    dtype: Annotated[
        str | None, typer.Option(help="Deployed dtype; the parameters' own when left out.", rich_help_panel=_NETWORK)
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.", rich_help_panel=_NETWORK)] = "cpu",
    strict: Annotated[bool, typer.Option("--strict", help="Rounded weights fail.", rich_help_panel=_NETWORK)] = False,
    noise_seed: Annotated[
        int | None,
        typer.Option(help="Seed torch before every call, for networks that draw noise.", rich_help_panel=_NETWORK),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Load files whose loading may run code.", rich_help_panel=_NETWORK),
    ] = False,
    pytest_file: Annotated[
        Path | None,
        typer.Option(
            "--pytest", help="Write the counterexample as a plain test, if there is one.", rich_help_panel="Reports"
        ),
    ] = None,
    samples: options.Samples = None,
    max_time: options.MaxTime = None,
    alpha: options.Alpha = 0.01,
    seed: options.Seed = 0,
    baseline: options.Baseline = None,
    fail_on: options.FailOnOption = "failed,undecided",
    html: options.Html = None,
    json_path: options.Json = None,
    junit: options.Junit = None,
    markdown: options.Markdown = None,
    quiet: options.Quiet = False,
) -> None:
    """Prove from its weights that a network is equivariant, or test it and name the layer that is not.

    Example: symcheck verify-net examples/cartpole_networks.py:equivariant --symmetry cartpole/mirror
    """
    reports = Outputs(html, json_path, junit, markdown, quiet, fail_on)
    accepted = reports.check()
    shape = _shape(input_shape)
    from symcheck.api.verify_net import verify_net
    from symcheck.cli.progress import progress

    with progress(quiet=quiet) as emit:
        report = verify_net(
            target,
            symmetry,
            input_shape=shape,
            env=env,
            checkpoint=checkpoint,
            outputs=None if outputs is None else tuple(word.strip() for word in outputs.split(",")),
            mode=mode,
            dtype=dtype,
            device=device,
            strict=strict,
            noise_seed=noise_seed,
            trust=trust,
            pytest_file=pytest_file,
            samples=samples,
            max_time=max_time,
            alpha=alpha,
            seed=seed,
            baseline=baseline,
            emit=emit,
        )
    reports.finish(report, accepted)


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        shape = tuple(int(word) for word in text.split(","))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise OptionError(
            f"expected sizes of 1 or more separated by commas, got {text!r}.",
            where="--input-shape",
            remedy="Leave the batch out: --input-shape 1,21,21.",
        )
    return shape

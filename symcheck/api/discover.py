"""`discover`: search an environment for symmetries."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import gymnasium as gym

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.api.commands import options_that_differ, to_command
from symcheck.discovery import search
from symcheck.discovery.claims import toml_of
from symcheck.discovery.options import DiscoverKeywords, DiscoverOptions
from symcheck.discovery.result import Discovery, Trial
from symcheck.engine.events import Emit
from symcheck.engine.option_fields import from_keywords, shows_options
from symcheck.engine.results import PropertyResult
from symcheck.envs.targets import resolve_environment
from symcheck.errors import SymcheckError
from symcheck.files import write_text
from symcheck.symmetry.symmetry import Symmetry
from symcheck.verdict import Verdict
from symcheck_reports.discovery_model import DiscoveryCandidate, DiscoveryForm, DiscoveryModel, DiscoveryRotation
from symcheck_reports.formatting import count
from symcheck_reports.homomorphism_model import HomomorphismModel


@dataclass(frozen=True)
class Discovered:
    """The result of a search, with methods to save and display it.

    Attributes:
        result: everything, as plain data.
    """

    result: Discovery

    def __repr__(self) -> str:
        return f"<Discovered {self.result.group['name']} of {self.result.target}: {self.verdict}>"

    @property
    def symmetry(self) -> Symmetry | None:
        """The verified symmetry, with one generator per generator of its group; None if nothing was found."""
        return self.result.claim

    @property
    def verdict(self) -> Verdict:
        """The verdict; failed if every candidate was rejected, undecided if a candidate is undecided."""
        return self.result.verdict

    @property
    def spec(self) -> str:
        """The SPEC file as TOML; "" if nothing was found, or if data cannot express the symmetry."""
        if not self.result.fields:
            return ""
        remarks = [
            f"Found by symcheck discover: {self.result.group['name']}, order {count(self.result.group['order'])}.",
            *([f"Again: {self.result.command}"] if self.result.command else []),
        ]
        return toml_of(self.result.fields, remarks)

    def save_spec(self, path: str | Path) -> Path:
        """Write the SPEC file that `verify-env --symmetry` takes.

        Raises:
            SymcheckError: nothing was found, the symmetry cannot be written as data, or the path cannot be written.
        """
        if not self.result.fields:
            raise SymcheckError(
                f"no verified symmetry of {self.result.target} can be written to a SPEC file.", where="save_spec"
            )
        return write_text(path, self.spec)

    def to_dict(self) -> dict[str, Any]:
        """JSON types; verifications are objects of the schema `symcheck/2`."""
        return self.result.to_dict()

    def to_json(self) -> str:
        """The object of `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"

    def save_json(self, path: str | Path) -> Path:
        """Write the JSON text."""
        return write_text(path, self.to_json())

    def model(self) -> DiscoveryModel:
        """The model from which terminal output and pages are made."""
        return _model(self.result, self.spec)

    def to_text(self) -> str:
        """The terminal report as plain text."""
        from rich.console import Console

        from symcheck_reports.discovery_terminal import print_discovery

        stream = io.StringIO()
        print_discovery(self.model(), Console(file=stream, width=120, no_color=True, highlight=False))
        return stream.getvalue()

    def to_html(self) -> str:
        """One self-contained HTML page."""
        from symcheck_reports.discovery_page import render_discovery

        return render_discovery(self.model())

    def save_html(self, path: str | Path) -> Path:
        """Write the page."""
        return write_text(path, self.to_html())

    def _repr_html_(self) -> str:
        from symcheck_reports import html

        return html.frame(self.to_html(), 620)


@shows_options(DiscoverOptions)
def discover(
    env: str | gym.Env[Any, Any] | Callable[[], gym.Env[Any, Any]],
    *,
    emit: Emit | None = None,
    **options: Unpack[DiscoverKeywords],
) -> Discovered:
    """Search an environment for symmetries, and verify every candidate.

    The search covers signed permutations of the coordinates with matching action maps, reflections about equilibria,
    rotations and flips of images, and automorphisms of tables. A symmetry is claimed only if `verify_env` accepts it
    on fresh samples.

    Args:
        env: a Gymnasium id, "module:factory", "file.py:factory", an environment or a zero-argument factory.
        emit: receives the engine's events as they happen.
        **options: the fields of `DiscoverOptions`: `samples`, `max_time` (seconds), `alpha` (in (0, 1)), `seed`,
            `env_kwargs`; None means the default.

    Returns:
        The group found, a SPEC file, and every candidate with its verdict.

    Raises:
        SymcheckError: the environment or an option cannot be used.

    Example:
        >>> found = discover("CartPole-v1", samples=500)
        >>> found.result.group, found.symmetry
        ({'name': 'C2', 'order': 2}, Symmetry('CartPole-v1 C2', group=C2))

    Source: derived in docs/discover.md.
    """
    chosen: DiscoverOptions = from_keywords(DiscoverOptions, options, caller="discover")
    target = resolve_environment(env, env_kwargs=chosen.env_kwargs)
    command = ""
    if isinstance(env, str):  # no command line can name a Python object
        command = to_command("discover", env, options_that_differ(chosen, DiscoverOptions()))
    return Discovered(search.discover(target, options=chosen, command=command, emit=emit))


_EVIDENCE = {"states": "on fresh samples", "rollouts": "on fresh episodes", "table": "by enumeration"}


def _model(result: Discovery, spec: str) -> DiscoveryModel:
    verified = sum(trial.result is not None for trial in result.trials)
    sensitivities = result.sensitivities
    return DiscoveryModel(
        target=result.target,
        verdict=result.verdict,
        group=result.group["name"],
        order=result.group["order"],
        spec=spec,
        narrowing=(*result.narrowing, (f"{verified:,}", "verified " + _EVIDENCE[result.route])),
        how=result.how,
        candidates=[_candidate(trial) for trial in result.trials],
        rotations=[
            DiscoveryRotation(
                rotation.description,
                rotation.residual,
                rotation.reward_residual,
                rotation.angle,
                rotation.verdict,
                rotation.why,
            )
            for rotation in result.rotations
        ],
        remarks=result.remarks,
        names=sensitivities.names if sensitivities else (),
        effects=sensitivities.rows if sensitivities else (),
        alpha=result.alpha,
        level=result.level,
        seed=result.seed,
        duration_s=result.duration_s,
        command=result.command,
        interrupted=result.interrupted,
        orbits=_orbits(result),
        exhaustive=_is_exhaustive(result),
        forms=[DiscoveryForm(form.name, form.decided, form.open) for form in result.forms],
        bounds=[(each.name, each.bound) for each in _properties(result) if each.bound],
    )


def _properties(result: Discovery) -> Sequence[PropertyResult]:
    """The properties of the verified group; empty if no group was verified."""
    return result.verified.properties if result.verified is not None and result.found else ()


def _orbits(result: Discovery) -> HomomorphismModel | None:
    if result.orbits is None:
        return None
    from symcheck.mdp import pictures  # loads scipy

    return pictures.model(result.orbits, target=result.target)


def _is_exhaustive(result: Discovery) -> bool:
    """Whether the group is the full automorphism group of a table; without orbits to show, that group is trivial."""
    group = None if result.orbits is None else result.orbits.group
    return result.route == "table" and (1 if group is None else group.order) == result.group["order"]


def _candidate(trial: Trial) -> DiscoveryCandidate:
    return DiscoveryCandidate(
        trial.moves, trial.actions, trial.order, trial.verdict, trial.why, trial.residual, trial.kind
    )

"""The options of `verify_env` and `verify_net`: the engine's options and those that the commands add.

The command line, `[tool.symcheck]`, the Python signatures and `replay` are derived from these dataclasses. The typed
dictionaries repeat names and types for static checkers, which cannot derive them; a test keeps the two in sync.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symcheck.engine.games.options import GameKeywords, GameOptions
from symcheck.engine.mirrors.options import MirrorKeywords, MirrorOptions
from symcheck.engine.networks.options import NETWORK, NetKeywords, NetOptions
from symcheck.engine.option_fields import option, read_json_object
from symcheck.engine.options import REPORTS, EnvKeywords, EnvOptions
from symcheck.engine.policies.options import PolicyKeywords, PolicyOptions

if TYPE_CHECKING:
    from symcheck.api.baseline import Baseline

_BASELINE = "A file that lists the violations that you accept and their largest sizes, TOML or JSON."


@dataclass(frozen=True)
class VerifyEnvOptions(EnvOptions):
    """The options of `verify_env` and `symcheck verify-env`."""

    env_kwargs: Mapping[str, Any] | None = option(
        None, "Keyword arguments of the environment, as a JSON object.", read=read_json_object
    )
    layout: Any = option(
        None,
        "A layout file (TOML) that lists the terms of a robot's observation. Give a layout instead of a symmetry: the "
        "mirror is derived from the robot's model.",
    )
    baseline: Baseline | str | Path | None = option(None, _BASELINE, kind=Path, panel=REPORTS, is_shared=True)


@dataclass(frozen=True)
class VerifyNetOptions(NetOptions):
    """The options of `verify_net` and `symcheck verify-net`."""

    env: Any = option(
        None, "The environment whose observations are used as inputs.", panel=NETWORK, completion="environments"
    )
    checkpoint: str | Path | None = option(None, "A state dict to load into the network.", kind=Path, panel=NETWORK)
    trust: bool = option(False, "Load files even if loading them may run code.", kind=bool, panel=NETWORK)
    pytest_file: str | Path | None = option(
        None,
        "If there is a counterexample, write it to this file as a pytest test.",
        kind=Path,
        panel=REPORTS,
        flag="--pytest",
    )
    baseline: Baseline | str | Path | None = option(None, _BASELINE, kind=Path, panel=REPORTS, is_shared=True)


@dataclass(frozen=True)
class VerifyMirrorOptions(MirrorOptions):
    """The options of `verify_mirror` and `symcheck verify-mirror`."""

    layout: Any = option(None, "Terms of observations and actions, joint orders, plane and group; a TOML file.")
    env: Any = option(None, "Environment to pass to the function. Default: None.")


@dataclass(frozen=True)
class AuditPolicyOptions(PolicyOptions):
    """The options of `audit_policy` and `symcheck audit-policy`."""

    checkpoint: str | Path | None = option(None, "A state dict to load into the network.", kind=Path)
    trust: bool = option(False, "Load files even if loading them may run code.", kind=bool)


@dataclass(frozen=True)
class VerifyGameOptions(GameOptions):
    """The options of `verify_game` and `symcheck verify-game`."""

    adapter: str | None = option(
        None,
        "The library of the game: alphazero, openspiel, pgx or pettingzoo. Detected by default.",
    )


class VerifyEnvKeywords(EnvKeywords, total=False):
    """The keywords of `verify_env`, for static checkers."""

    env_kwargs: Mapping[str, Any] | None
    layout: Any
    baseline: Baseline | str | Path | None


class VerifyNetKeywords(NetKeywords, total=False):
    """The keywords of `verify_net`, for static checkers."""

    env: Any
    checkpoint: str | Path | None
    trust: bool
    pytest_file: str | Path | None
    baseline: Baseline | str | Path | None


class VerifyMirrorKeywords(MirrorKeywords, total=False):
    """The keywords of `verify_mirror`, for static checkers."""

    layout: Any
    env: Any


class VerifyGameKeywords(GameKeywords, total=False):
    """The keywords of `verify_game`, for static checkers."""

    adapter: str | None


class AuditPolicyKeywords(PolicyKeywords, total=False):
    """The keywords of `audit_policy`, for static checkers."""

    checkpoint: str | Path | None
    trust: bool

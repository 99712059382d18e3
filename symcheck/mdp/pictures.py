"""HTML pages of homomorphisms and symmetry groups, for `Homomorphism.save_html` and notebooks.

This is the only module of `symcheck.mdp` that calls a writer, and only when a page is requested.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from symcheck.array_types import Ints
from symcheck.files import write_text
from symcheck.groups.group import Group
from symcheck.mdp import solving
from symcheck.mdp.finite import FiniteMDP

if TYPE_CHECKING:
    from symcheck_reports.homomorphism_model import HomomorphismModel, Matching

_MOST_SOLVED = 2_000  # maximum number of abstract states for which a page computes optimal values, in under a second
_MOST_AS_GRAPH = 40  # the same limit as the page's
_MOST_BLOCKS, _MOST_STATES = 4, 8  # limits of the tables that show how actions are matched


class Drawn(Protocol):
    """The attributes of a homomorphism that a page needs."""

    @property
    def mdp(self) -> FiniteMDP:
        """The original."""

    @property
    def abstract_mdp(self) -> FiniteMDP:
        """The image of the original."""

    @property
    def state_map(self) -> Ints:
        """Abstract state of each state, (S,)."""

    @property
    def action_map(self) -> Ints:
        """Abstract action of each action, (S, A)."""

    @property
    def blocks(self) -> tuple[Ints, ...]:
        """The states of each block."""

    @property
    def origin(self) -> str:
        """How the homomorphism was computed, in words."""

    @property
    def is_exact(self) -> bool:
        """Whether the homomorphism is exact up to rounding."""

    @property
    def reward_error(self) -> float:
        """Largest deviation of rewards."""

    @property
    def transition_error(self) -> float:
        """Largest L1 distance of distributions."""

    @property
    def group(self) -> Group | None:
        """The group whose orbits are the blocks."""

    def value_loss_bound(self) -> float:
        """An upper bound on the loss of return."""


def model(h: Drawn, *, target: str = "MDP", command: str = "") -> HomomorphismModel:
    """The page model of a homomorphism.

    Args:
        h: the homomorphism.
        target: the name of the MDP.
        command: the command line that repeats the computation, if there is one.

    Returns:
        Plain data for `symcheck_reports.homomorphism_page.render_homomorphism`.
    """
    from symcheck_reports.homomorphism_model import HomomorphismModel

    # Optimal values need a discount below 1, and must be computed quickly enough for a notebook.
    solvable = h.mdp.discount < 1.0 and h.abstract_mdp.n_states <= _MOST_SOLVED
    return HomomorphismModel(
        target=target,
        origin=h.origin,
        block=h.state_map.tolist(),
        pairs=int(h.mdp.available.sum()),
        abstract_pairs=int(h.abstract_mdp.available.sum()),
        idle=(~h.mdp.acted_in).tolist(),
        edges=_transition_edges(h.abstract_mdp),
        # States with a layout are drawn on their map instead.
        state_edges=_transition_edges(h.mdp) if h.mdp.layout is None and h.mdp.n_states <= _MOST_AS_GRAPH else [],
        matchings=_matchings(h),
        place=None if h.mdp.layout is None else [(int(r), int(c)) for r, c in h.mdp.layout],
        labels=None if h.mdp.labels is None else [str(label) for label in h.mdp.labels],
        values=solving.value_iteration(h.abstract_mdp).values.tolist() if solvable else None,
        exact=h.is_exact,
        reward_error=h.reward_error,
        transition_error=h.transition_error,
        loss_bound=None if h.is_exact or not solvable else h.value_loss_bound(),
        group="" if h.group is None else h.group.name,
        order="" if h.group is None else f"{h.group.order:,}",
        command=command,
    )


def render(h: Drawn, *, target: str = "MDP", command: str = "") -> str:
    """Render the page of a homomorphism; see `model`.

    Returns:
        A complete HTML document.
    """
    from symcheck_reports.homomorphism_page import render_homomorphism

    return render_homomorphism(model(h, target=target, command=command))


def render_frame(h: Drawn) -> str:
    """The page in a frame, for notebooks."""
    from symcheck_reports import html

    return html.frame(render(h), 720)


def save(h: Drawn, path: str | Path, *, target: str = "MDP") -> Path:
    """Write the page atomically.

    Raises:
        SymcheckError: the folder does not exist or cannot be written.
    """
    return write_text(path, render(h, target=target))


def _transition_edges(mdp: FiniteMDP) -> list[tuple[int, int, float]]:
    """Transitions between different states, the largest probability over actions."""
    entries = mdp.transitions.tocoo()
    source, target = entries.row // mdp.n_actions, entries.col
    largest: dict[tuple[int, int], float] = {}
    for s, t, p in zip(source.tolist(), target.tolist(), entries.data.tolist(), strict=True):
        # Self-loops would clutter the picture and carry no information about symmetry.
        if s != t:
            largest[(s, t)] = max(largest.get((s, t), 0.0), p)
    return [(s, t, p) for (s, t), p in sorted(largest.items())]


def _matchings(h: Drawn) -> list[Matching]:
    """The first non-absorbing blocks of several states, each with a few of its states."""
    from symcheck_reports.homomorphism_model import Matching

    matchings: list[Matching] = []
    for block, states in enumerate(h.blocks):
        acted = states[h.mdp.acted_in[states]]
        # In a block with a single state there is nothing to match.
        if len(acted) > 1 and len(matchings) < _MOST_BLOCKS:
            shown = acted[:_MOST_STATES].tolist()
            width = int(h.abstract_mdp.available[block].sum())
            actions = [[np.flatnonzero(h.action_map[s] == a).tolist() for a in range(width)] for s in shown]
            matchings.append(Matching(block, shown, actions))
    return matchings

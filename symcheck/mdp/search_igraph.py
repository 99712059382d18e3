"""Automorphism search by igraph (BLISS): the MDP as a graph with coloured vertices.

Three kinds of vertices: states; distinct actions, joined to their state; and for every action one vertex per
probability, joined to the action and to all states that have it. Colours encode the kind of vertex, the reward and
multiplicity of an action, and the probability. They also determine the direction of every edge, so an undirected graph
is enough.

Source: T. Junttila and P. Kaski, "Engineering an efficient canonical labeling tool for large and sparse graphs", 2007.
"""

from __future__ import annotations

import numpy as np

from symcheck.array_types import Ints
from symcheck.errors import MissingExtraError
from symcheck.mdp.sparse_rows import renumber, row_of_entry
from symcheck.mdp.structure import Structure


def is_installed() -> bool:
    """Whether igraph (extra `discover`) is installed."""
    import importlib.util

    return importlib.util.find_spec("igraph") is not None


def search(structure: Structure) -> tuple[list[Ints], int]:
    """Generators and order of the automorphism group.

    Args:
        structure: the reduced MDP.

    Returns:
        Images of the states for each generator, and the order.

    Raises:
        MissingExtraError: igraph is not installed.
    """
    try:
        import igraph
    except ImportError as error:
        raise MissingExtraError("discover", needed_for="automorphism_group(method='igraph')") from error
    states, actions = len(structure.states), len(structure.owner)
    edges, outcome_weight = _edges(structure)
    # States, actions and outcomes have disjoint colours.
    colours = np.concatenate(
        [
            renumber(structure.state_colour),
            states + renumber(structure.colour),
            states + actions + outcome_weight,
        ]
    )
    graph = igraph.Graph(n=len(colours), edges=edges)
    listed = colours.tolist()
    generators = [np.array(images[:states], dtype=np.int64) for images in graph.automorphism_group(color=listed)]
    # BLISS may return identities.
    moving = [images for images in generators if (images != np.arange(states)).any()]
    return moving, _order(graph.count_automorphisms(color=listed), moving)


def _edges(structure: Structure) -> tuple[Ints, Ints]:
    """The edges, (edges, 2), and the probability class of each outcome vertex."""
    states, actions = len(structure.states), len(structure.owner)
    action = row_of_entry(structure.indptr)
    # One outcome vertex per (action, weight): equal probabilities share a vertex.
    wide = int(structure.weights.max(initial=0)) + 1
    key = action * wide + structure.weights
    distinct, outcome = np.unique(key, return_inverse=True)
    outcome = outcome.reshape(-1) + states + actions
    outcomes = np.arange(len(distinct)) + states + actions
    # Edges from states to their actions, from actions to outcome vertices, and from those to next states.
    acting = np.stack([structure.owner, np.arange(actions) + states], axis=1)
    having = np.stack([distinct // wide + states, outcomes], axis=1)
    leading = np.stack([outcome, structure.columns], axis=1)
    return np.concatenate([acting, having, leading]), distinct % wide


def _order(counted: float, generators: list[Ints]) -> int:
    """The order of the group: igraph's floating-point count up to 2^53, above that by Schreier-Sims."""
    if counted < 2**53:
        return round(counted)
    from symcheck.groups import large
    from symcheck.groups.element import Element

    return large.order([Element(tuple(images.tolist())) for images in generators])

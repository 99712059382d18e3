"""Claims about several agents: a permutation of agents, and a map of one agent's observations and actions.

In the image of a joint observation, agent h(i) has the transformed observation of agent i. The same holds for joint
actions. All agents may share one map, or a mapping gives each agent its own, as in multi-agent MDP homomorphisms (van
der Pol et al. 2021).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from symcheck.entries.forms import Entry, IdentityEntry, TreeEntry
from symcheck.errors import SpecError, suggestion
from symcheck.symmetry.symmetry import Symmetry

if TYPE_CHECKING:
    import gymnasium as gym

    from symcheck.symmetry.bound import BoundSymmetry

    Spaces = Mapping[str, gym.Space[Any]]
    """By agent."""


def joint_symmetry(
    symmetry: Symmetry, agents: Sequence[str], observation_spaces: Spaces, action_spaces: Spaces
) -> Symmetry:
    """The claim on the environment of all agents.

    Args:
        symmetry: the symmetry of one agent, with one permutation of agents per generator; without permutations, every
            agent is mapped to itself.
        agents: all agents.
        observation_spaces: the observation space of each agent.
        action_spaces: the action space of each agent.

    Returns:
        A claim with callables, which `group_axioms` tests on samples.

    Raises:
        SpecError: an unknown agent, an agent mapped to one with different spaces, or a continuous group.
    """
    if symmetry.is_continuous:
        raise SpecError(
            "continuous groups of several agents are not supported.",
            where="Symmetry.group",
            remedy="Name a finite subgroup, for instance C4.",
        )
    mappings = symmetry.agents or tuple({} for _ in symmetry.group.generators)
    places = [_read_places(mapping, agents, f"agents[{i}]") for i, mapping in enumerate(mappings)]
    for i, moved in enumerate(places):
        for agent, image in moved.items():
            if (observation_spaces[agent], action_spaces[agent]) != (observation_spaces[image], action_spaces[image]):
                raise SpecError(
                    f"agent {agent!r} is mapped to {image!r}, which has different spaces.",
                    where=f"agents[{i}]",
                )
    bound = {
        agent: _bind_one(symmetry, agent, agents, observation_spaces[agent], action_spaces[agent]) for agent in agents
    }
    generators = list(enumerate(places))
    return Symmetry(
        symmetry.name,
        symmetry.group,
        observation=[_move_observation(bound, moved, i) for i, moved in generators],
        action=[_move_action(bound, moved, i) for i, moved in generators],
        state=None if symmetry.state is None else [_move_state(bound, moved, i) for i, moved in generators],
        initial=symmetry.initial,
    )


def _bind_one(
    symmetry: Symmetry, agent: str, agents: Sequence[str], observed: gym.Space[Any], acted: gym.Space[Any]
) -> BoundSymmetry:
    """The claim for one agent, on its spaces, with its own entries if entries are given by agent.

    The group's relations hold for all agents together; they need not hold for one agent's maps along a permutation.
    """
    claim = copy.copy(symmetry)
    claim.observation = tuple(
        _own_entry(entry, agent, agents, observed, f"observation[{i}]") for i, entry in enumerate(symmetry.observation)
    )
    claim.action = tuple(
        _own_entry(entry, agent, agents, acted, f"action[{i}]") for i, entry in enumerate(symmetry.action)
    )
    with _naming(agent):
        return claim.bind(observed, acted)


@contextmanager
def _naming(agent: str) -> Iterator[None]:
    """Name the agent in errors: without `agents`, you may not know that entries map the values of one agent."""
    try:
        yield
    except SpecError as error:
        several = (
            "With several agents, an entry maps the observation or action of a single agent, not those "
            "of all agents together."
        )
        remedy = f"{error.remedy} {several}" if error.remedy else several
        raise SpecError(error.problem, where=f"{error.where} of agent {agent!r}", remedy=remedy) from error


def _own_entry(entry: Entry, agent: str, agents: Sequence[str], space: gym.Space[Any], where: str) -> Entry:
    """The entry of one agent; the identity if the agent is not named."""
    if not isinstance(entry, TreeEntry) or not set(entry.children) & set(agents):
        return entry
    parts = getattr(space, "spaces", None)
    # For a Dict space with these keys, the mapping is the entry itself.
    if isinstance(parts, Mapping) and set(entry.children) <= set(parts):
        return entry
    unknown = [name for name in entry.children if name not in agents]
    if unknown:
        raise SpecError(f"there is no agent {unknown[0]!r}.", where=where, remedy=suggestion(str(unknown[0]), agents))
    return entry.children.get(agent, IdentityEntry())


def _read_places(mapping: Mapping[str, str], agents: Sequence[str], where: str) -> dict[str, str]:
    """The image of every agent; agents that are not named are fixed."""
    unknown = [name for name in (*mapping.keys(), *mapping.values()) if name not in agents]
    if unknown:
        raise SpecError(f"there is no agent {unknown[0]!r}.", where=where, remedy=suggestion(unknown[0], agents))
    return {agent: mapping.get(agent, agent) for agent in agents}


def _move_observation(bound: Mapping[str, BoundSymmetry], places: Mapping[str, str], i: int) -> Callable[[Any], Any]:
    def moved(observation: Any) -> Any:
        views = {}
        for agent, image in places.items():
            with _naming(agent):
                views[image] = _move_view(bound[agent], observation[agent], i)
        return views

    return moved


def _move_view(bound: BoundSymmetry, view: Any, i: int) -> dict[str, Any]:
    """The image of one agent's observation; the placeholder for an agent that has left is not transformed."""
    seen = view["observation"]
    return {**view, "observation": bound.observation((i,), seen) if np.asarray(view["alive"]).item() > 0 else seen}


def _move_action(bound: Mapping[str, BoundSymmetry], places: Mapping[str, str], i: int) -> Callable[[Any, Any], Any]:
    def moved(action: Any, observation: Any) -> Any:
        actions = {}
        for agent, image in places.items():
            with _naming(agent):
                actions[image] = bound[agent].action((i,), action[agent], observation[agent]["observation"])
        return actions

    return moved


def _move_state(bound: Mapping[str, BoundSymmetry], places: Mapping[str, str], i: int) -> Callable[[Any], Any]:
    agents = list(places)
    source = [agents.index(next(a for a, image in places.items() if image == agent)) for agent in agents]
    first = bound[agents[0]]

    def moved(state: Any) -> Any:
        vector = np.asarray(state, dtype=np.float64)
        inner, watched = vector[: -len(agents)], vector[-len(agents) :]
        return np.concatenate([np.asarray(first.state((i,), inner), dtype=np.float64), watched[source]])

    return moved

"""Small MDPs for the tests: random ones, random ones with a planted symmetry, and brute-force answers about them."""

from __future__ import annotations

import itertools

import gymnasium as gym
import numpy as np

from symcheck.mdp.tabular import TabularMDP

TAXI = "Taxi-v4" if "Taxi-v4" in gym.registry else "Taxi-v3"  # older releases of Gymnasium have version 3

# Few distinct numbers, so that coincidences happen; thirds and sevenths, so that sums round.
CHANCES = np.array([1, 2, 3, 4, 7])
REWARDS = np.array([-1.0, 0.0, 0.1, 1 / 3, 2.0])


def random_mdp(
    rng: np.random.Generator, states: int, actions: int, *, discount: float = 0.9, ending: bool = True
) -> TabularMDP:
    """Sparse laws with few distinct probabilities; some pairs end the episode."""
    law = rng.choice(CHANCES, (states, actions, states)) * (rng.random((states, actions, states)) < 0.5)
    end = rng.choice(CHANCES, (states, actions)) * (rng.random((states, actions)) < 0.3) * ending
    empty = law.sum(axis=2) + end == 0
    law[empty, 0] = 1
    total = law.sum(axis=2) + end
    return TabularMDP(
        law / total[..., None], rng.choice(REWARDS, (states, actions)), discount, terminations=end / total
    )


def planted_mdp(
    rng: np.random.Generator, states: int, actions: int, turn: int, *, discount: float = 0.9
) -> tuple[TabularMDP, np.ndarray, np.ndarray]:
    """An MDP averaged over a cyclic group of order `turn`, then renamed at random, actions differently in each state.

    Returns:
        The MDP; the generator's state map (S,); its action map (S, A).
    """
    shift = _rotation(states, turn)
    swap = _rotation(actions, turn)
    law, rewards = np.zeros((states, actions, states)), np.zeros((states, actions))
    base_law = rng.choice(CHANCES, (states, actions, states)) * (rng.random((states, actions, states)) < 0.6) + 1e-3
    base_law /= base_law.sum(axis=2, keepdims=True)
    base_rewards = rng.choice(REWARDS, (states, actions))
    s, a = np.arange(states), np.arange(actions)
    for _ in range(turn):
        law += base_law[np.ix_(s, a, s)] / turn
        rewards += base_rewards[np.ix_(s, a)] / turn
        s, a = shift[s], swap[a]
    names = rng.permutation(states)
    renamed = np.stack([rng.permutation(actions) for _ in range(states)])  # new name of action a in (old) state s
    law_new, rewards_new = np.zeros_like(law), np.zeros_like(rewards)
    state_map = np.empty(states, dtype=np.int64)
    action_map = np.empty((states, actions), dtype=np.int64)
    state_map[names] = names[shift]
    for old in range(states):
        for action in range(actions):
            law_new[names[old], renamed[old, action], names] = law[old, action]
            rewards_new[names[old], renamed[old, action]] = rewards[old, action]
            action_map[names[old], renamed[old, action]] = renamed[shift[old], swap[action]]
    return TabularMDP(law_new, rewards_new, discount), state_map, action_map


def _rotation(points: int, turn: int) -> np.ndarray:
    """A permutation of order `turn` (cycles of that length as long as they fit)."""
    images = np.arange(points)
    for start in range(0, points - turn + 1, turn):
        images[start : start + turn] = start + (np.arange(turn) + 1) % turn
    return images


def laws(mdp: TabularMDP) -> np.ndarray:
    """T as an array (S, A, S)."""
    return mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)


def counted_by_brute_force(mdp: TabularMDP) -> int:
    """The number of permutations of all states that extend to an automorphism with one-to-one action maps."""
    t, r, e = laws(mdp), mdp.rewards, mdp.termination
    found = 0
    for images in itertools.permutations(range(mdp.n_states)):
        p = np.array(images)
        found += all(_rows_match(t, r, e, s, p) for s in range(mdp.n_states))
    return found


def _rows_match(t: np.ndarray, r: np.ndarray, e: np.ndarray, s: int, p: np.ndarray) -> bool:
    def rows(state: int, columns: np.ndarray) -> list[tuple[float, ...]]:
        table = np.concatenate([t[state][:, columns], r[state][:, None], e[state][:, None]], axis=1)
        return sorted(map(tuple, np.round(table, 9) + 0.0))

    return rows(s, np.arange(len(p))) == rows(int(p[s]), p)


def coarsest_by_brute_force(mdp: TabularMDP) -> int:
    """The least number of blocks of a partition of the states that is a homomorphism's."""
    best = mdp.n_states
    for labels in _partitions(mdp.n_states):
        blocks = max(labels) + 1
        if blocks < best and _is_stable(mdp, np.array(labels)):
            best = blocks
    return best


def _partitions(count: int) -> list[list[int]]:
    found = [[0]]
    for _ in range(count - 1):
        found = [[*labels, new] for labels in found for new in range(max(labels) + 2)]
    return found


def _is_stable(mdp: TabularMDP, labels: np.ndarray) -> bool:
    onto = np.eye(labels.max() + 1)[labels]
    described = np.concatenate([laws(mdp) @ onto, mdp.rewards[..., None]], axis=2)
    sets = [frozenset(map(tuple, np.round(described[s][mdp.available[s]], 9) + 0.0)) for s in range(mdp.n_states)]
    return all(sets[i] == sets[j] for i in range(len(sets)) for j in range(i) if labels[i] == labels[j])

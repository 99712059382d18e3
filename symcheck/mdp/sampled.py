"""The MDP estimated from sampled transitions: relative frequencies, mean rewards and visit counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from symcheck.array_types import Ints
from symcheck.errors import SpecError

if TYPE_CHECKING:
    from symcheck.mdp.finite import FiniteMDP, ModelT


def count_model(
    cls: type[ModelT],
    states: npt.ArrayLike,
    actions: npt.ArrayLike,
    rewards: npt.ArrayLike,
    next_states: npt.ArrayLike,
    terminated: npt.ArrayLike | None,
    *,
    discount: float,
    sizes: tuple[int | None, int | None],
    initial: Any,
    unseen: Literal["refuse", "unavailable"],
) -> ModelT:
    """See `TabularMDP.from_samples`."""
    s, a, following = (_read_indices(given, name) for given, name in _name_arrays(states, actions, next_states))
    gained = np.asarray(rewards, dtype=np.float64)
    ended = np.zeros(len(s), dtype=np.bool_) if terminated is None else np.asarray(terminated, dtype=np.bool_)
    lengths = [len(part) for part in (s, a, gained, following, ended)]
    if len(set(lengths)) > 1 or not lengths[0]:
        raise SpecError(
            f"expected arrays of the same length (at least 1), got lengths {lengths}.", where="from_samples"
        )
    n_states = _read_size(sizes[0], max(s.max(), following.max()), "n_states")
    n_actions = _read_size(sizes[1], a.max(), "n_actions")
    # Pair (s, a) as a row number.
    pair = s * n_actions + a
    visits = np.bincount(pair, minlength=n_states * n_actions)
    available, idle = _available(visits.reshape(n_states, n_actions), following, ended, unseen)
    shape = (n_states * n_actions, n_states)
    # States in which no action was sampled get one action that stays: every row needs a distribution.
    alone = np.flatnonzero(idle)
    going = _frequencies(
        np.concatenate([pair[~ended], alone * n_actions]), np.concatenate([following[~ended], alone]), visits, shape
    )
    # Mean rewards; unsampled pairs have a sum of 0.
    total = np.bincount(pair, weights=gained, minlength=n_states * n_actions)
    model = cls(
        going,
        (total / np.maximum(visits, 1)).reshape(n_states, n_actions),
        discount,
        initial,
        terminations=_frequencies(pair[ended], following[ended], visits, shape),
        available=available,
    )
    model.counts = visits.reshape(n_states, n_actions)
    return model


def _frequencies(rows: Ints, columns: Ints, visits: Ints, shape: tuple[int, int]) -> Any:
    """The relative frequency of each entry within its row."""
    counts = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    return sparse.csr_array(sparse.diags_array(1.0 / np.maximum(visits, 1)) @ counts)


def _name_arrays(states: Any, actions: Any, next_states: Any) -> list[tuple[Any, str]]:
    return [(states, "states"), (actions, "actions"), (next_states, "next_states")]


def _read_indices(given: Any, name: str) -> Ints:
    array = np.asarray(given)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and array.min() < 0):
        raise SpecError(
            f"expected integers of at least 0, shape (n,), got shape {array.shape} ({array.dtype}).",
            where=name,
            remedy="Number the states first, for instance with numpy.unique(..., return_inverse=True, axis=0).",
        )
    return array.astype(np.int64)


def _read_size(given: int | None, largest: int, name: str) -> int:
    if given is not None and given <= largest:
        raise SpecError(
            f"expected a number above the largest index in the samples, {int(largest)}; got {given}.", where=name
        )
    return int(largest) + 1 if given is None else given


def _available(visits: Ints, following: Ints, ended: Any, unseen: str) -> tuple[Any, Any]:
    """The available pairs, and the states without samples. These get one action that stays with reward 0."""
    if unseen not in ("refuse", "unavailable"):
        raise SpecError(f"expected 'refuse' or 'unavailable', got {unseen!r}.", where="unseen")
    idle = visits.sum(axis=1) == 0
    live = np.zeros(len(visits), dtype=np.bool_)
    # The last state of a terminated sample needs no sampled action.
    live[following[~ended]] = True
    dangling = np.flatnonzero(idle & live)
    if len(dangling):
        raise SpecError(
            f"samples lead to {len(dangling)} states from which no sample starts; the first is state {dangling[0]}.",
            where="from_samples",
            remedy="Add samples that start in these states, or mark the transitions to them as terminated.",
        )
    # Unsampled pairs of states in which other actions were sampled.
    gaps = np.argwhere((visits == 0) & ~idle[:, None])
    if len(gaps) and unseen == "refuse":
        state, action = gaps[0]
        raise SpecError(
            f"the samples do not contain {len(gaps)} of the {visits.size} pairs; the first is action "
            f"{action} in state {state}.",
            where="from_samples",
            remedy="Sample these pairs, or make them unavailable: unseen='unavailable'.",
        )
    available = visits > 0
    available[idle, 0] = True
    return available, idle


def largest_deviation(mdp: FiniteMDP, alpha: float) -> float:
    """See `TabularMDP.sampling_tolerance`."""
    if mdp.counts is None:
        raise SpecError(
            "this method needs an MDP that was estimated from samples, but the MDP has exact probabilities.",
            where="sampling_tolerance",
            remedy="Build the MDP with TabularMDP.from_samples.",
        )
    if not 0.0 < alpha < 1.0:
        raise SpecError(f"expected a number in (0, 1), got {alpha!r}.", where="alpha")
    # The rarest pair deviates most.
    visits = mdp.counts[mdp.counts > 0]
    # Next states and the end.
    outcomes = mdp.n_states + 1
    # Weissman et al.: a union bound over all subsets of outcomes; log1p keeps the logarithm accurate for many.
    sets = outcomes * math.log(2.0) + math.log1p(-(2.0 ** (1 - outcomes)))  # ln(2^k - 2)
    deviation = math.sqrt((sets + math.log(len(visits) / alpha)) / (2.0 * int(visits.min())))
    # Both distributions deviate from the truth, hence twice; probabilities differ by at most 1.
    return min(1.0, 2.0 * deviation)

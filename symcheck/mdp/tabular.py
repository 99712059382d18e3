"""`TabularMDP`, the public finite MDP: its constructors, and the search for its symmetries and homomorphisms."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt

from symcheck.mdp.automorphisms import AutomorphismGroup, find_automorphisms
from symcheck.mdp.enumeration import enumerate_model
from symcheck.mdp.finite import FiniteMDP
from symcheck.mdp.gymnasium_table import read_environment
from symcheck.mdp.homomorphism import Homomorphism
from symcheck.mdp.minimal import minimal_homomorphism
from symcheck.mdp.sampled import count_model, largest_deviation

if TYPE_CHECKING:
    from symcheck.symmetry.symmetry import Symmetry


class TabularMDP(FiniteMDP):
    """A finite MDP with S states and A actions.

    Args:
        transitions: T, an array (S, A, S); or one (S, S) matrix per action, dense or sparse; or a sparse matrix
            (S * A, S) with the distribution of (s, a) in row s * A + a. Rows sum to one together with `terminations`.
        rewards: R, (S, A) in units of reward, or (S, A, S) for each next state; its expectation is then used.
        discount: in [0, 1].
        initial: the start distribution (S,), or one state; None if episodes may start in any state.
        terminations: probability that the episode ends, (S, A), or that it ends in each state, in a form of
            `transitions`; none by default.
        available: whether each action exists in each state, booleans (S, A); all by default.
        layout: row and column of each state, integers (S, 2), for pictures; None if states have no position.
        labels: a name for each state, for reports; numbers by default.

    Raises:
        SpecError: shapes that do not match, rows that do not sum to one (the message gives row and error), negative
            probabilities, rewards that are NaN, actions without an outcome, or a discount outside [0, 1].

    Example:
        >>> flip = TabularMDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [1.0]], 0.5)
        >>> flip
        TabularMDP(2 states, 1 action, discount 0.5)
        >>> flip.minimal_homomorphism().state_map.tolist()
        [0, 0]

    Source: van der Pol et al. 2020, section 2.2.
    """

    @classmethod
    def from_gymnasium(cls, env: Any, *, discount: float = 0.99, **kwargs: Any) -> TabularMDP:
        """The MDP of an environment with a table `P[s][a] = [(probability, s', reward, terminated), ...]`.

        Args:
            env: an environment, a Gymnasium id, or a zero-argument factory.
            discount: in [0, 1]; environments do not define one.
            **kwargs: passed to `gymnasium.make` if `env` is an id.

        Returns:
            The MDP; outcomes marked as terminated become `terminations`, the start distribution is the environment's.

        Raises:
            TargetError: no such environment, or an environment without a table; the message gives its size and the
                alternatives.
            SpecError: a table with missing states or actions, or that is not a distribution.

        Example:
            >>> TabularMDP.from_gymnasium("FrozenLake-v1")
            TabularMDP(16 states, 4 actions, discount 0.99; no action taken in 5)
        """
        return read_environment(cls, env, discount, kwargs)

    @classmethod
    def from_model(
        cls,
        start: Iterable[Hashable],
        actions: int,
        outcomes: Callable[[Any, int], Iterable[tuple[float, Hashable, float, bool]]],
        *,
        discount: float,
        initial: Literal["uniform"] | None = "uniform",
        limit: int = 1_000_000,
    ) -> TabularMDP:
        """The MDP of all states reachable from some start states, enumerated breadth first.

        Args:
            start: states to start from, any hashable values; they are numbered first.
            actions: the number of actions.
            outcomes: `outcomes(state, action)` yields (probability, next state, reward, terminated).
            discount: in [0, 1].
            initial: "uniform" over `start`, or None.
            limit: the largest number of states.

        Returns:
            The MDP; `labels` are the states' values.

        Raises:
            SpecError: more than `limit` states, or outcomes that are not a distribution.

        Example:
            >>> walk = TabularMDP.from_model([0], 1, lambda s, a: [(1.0, s + 1, 0.0, s == 2)], discount=0.9)
            >>> walk.labels
            (0, 1, 2, 3)
        """
        return enumerate_model(cls, start, actions, outcomes, discount=discount, initial=initial, limit=limit)

    @classmethod
    def from_samples(
        cls,
        states: npt.ArrayLike,
        actions: npt.ArrayLike,
        rewards: npt.ArrayLike,
        next_states: npt.ArrayLike,
        terminated: npt.ArrayLike | None = None,
        *,
        discount: float,
        n_states: int | None = None,
        n_actions: int | None = None,
        initial: Any = None,
        unseen: Literal["refuse", "unavailable"] = "refuse",
    ) -> TabularMDP:
        """The model estimated from samples: relative frequencies and mean rewards; the counts are in `counts`.

        Args:
            states: s of each transition, integers (n,).
            actions: a of each transition, integers (n,).
            rewards: r of each transition, (n,).
            next_states: s' of each transition, integers (n,).
            terminated: whether each transition ended the episode, booleans (n,); none by default.
            discount: in [0, 1].
            n_states: the number of states; the largest observed index plus one by default.
            n_actions: the number of actions; the largest observed index plus one by default.
            initial: as in `TabularMDP`.
            unseen: how to treat pairs without samples: "refuse", or leave them out as "unavailable". States that
                occur only at the end of episodes need no sample.

        Returns:
            The estimated MDP. Its symmetries hold up to sampling error: `minimal_homomorphism(tolerance=...)`.

        Raises:
            SpecError: arrays of different lengths, numbers out of range, or pairs without a sample.

        Example:
            >>> model = TabularMDP.from_samples([0, 0, 1], [0, 0, 0], [0, 1, 1], [0, 1, 0], discount=0.9)
            >>> model.rewards.tolist(), model.counts.tolist()
            ([[0.5], [1.0]], [[2], [1]])
        """
        arrays_ = (states, actions, rewards, next_states, terminated)
        return count_model(
            cls, *arrays_, discount=discount, sizes=(n_states, n_actions), initial=initial, unseen=unseen
        )

    def sampling_tolerance(self, *, alpha: float = 0.01) -> float:
        """The largest difference of the estimated probabilities of two equally distributed pairs due to sampling.

        With probability 1 - alpha, the relative frequency of every set of next states is within half of this tolerance
        of the true probability, simultaneously for all observed pairs: 2 sqrt((ln(2^k - 2) + ln(pairs / alpha)) / (2
        n)), with k = S + 1 outcomes (termination is one of them) and n the number of samples of the rarest pair. With
        this `tolerance`, `minimal_homomorphism` does not split the true blocks; rewards must agree within it too.

        Args:
            alpha: in (0, 1).

        Returns:
            A difference of probabilities in (0, 1]; 1 if there are too few samples.

        Raises:
            SpecError: the MDP was not estimated from samples, or alpha is out of range.

        Example:
            >>> coin = TabularMDP.from_samples([0] * 9999, [0] * 9999, [0] * 9999, [0] * 9999, discount=0.9)
            >>> round(coin.sampling_tolerance(), 3)
            0.033

        Source: derived: Hoeffding's inequality for each of the 2^k - 2 sets of outcomes of each pair, with a union
        bound.
        """
        return largest_deviation(self, alpha)

    def automorphism_group(
        self,
        *,
        method: Literal["auto", "igraph", "builtin"] = "auto",
        preserve_initial: bool = False,
    ) -> AutomorphismGroup:
        """All symmetries (L, K) of the MDP, found by graph automorphism and verified by enumeration.

        Actions of a state with equal rewards and distributions are interchangeable, which is a trivial symmetry, so
        they are merged first. States in which no episode takes an action are not counted.

        Args:
            method: "igraph" needs the extra `discover`; "builtin" is for small MDPs; "auto" uses igraph if it is
                installed.
            preserve_initial: whether the symmetries must also preserve the start distribution.

        Returns:
            Generators, order, orbits, state and action maps, with the verdict `proved`.

        Raises:
            MissingExtraError: igraph was requested and is not installed.
            SymcheckError: the built-in search exceeded its budget; the message names the extra.

        Example:
            >>> TabularMDP.from_gymnasium("FrozenLake-v1").automorphism_group().order
            1
        """
        return find_automorphisms(self, method=method, preserve_initial=preserve_initial)

    def minimal_homomorphism(self, *, tolerance: float = 0.0) -> Homomorphism:
        """The coarsest abstract MDP with the same rewards and distributions, with state-dependent action maps.

        Two states become one abstract state if their actions can be matched so that rewards and distributions over
        abstract states agree.

        Args:
            tolerance: rewards, and probabilities of abstract states, that differ by at most this count as equal. The
                homomorphism is then approximate and not unique; `value_loss_bound` bounds its loss.

        Returns:
            The homomorphism; see `Homomorphism`.

        Raises:
            SpecError: a tolerance that is negative or not a number.

        Example:
            >>> lake = TabularMDP.from_gymnasium("FrozenLake-v1", is_slippery=False)
            >>> lake.minimal_homomorphism().abstract_mdp
            TabularMDP(12 states, 4 actions, discount 0.99; no action taken in 1)

        Source: Ravindran and Barto 2001; van der Pol et al. 2020, equations for the abstract reward and transition.
        """
        return minimal_homomorphism(self, tolerance=tolerance)

    def homomorphism_from(
        self, symmetry: Symmetry, *, observations: npt.ArrayLike | None = None, approximate: bool = False
    ) -> Homomorphism:
        """The group-structured homomorphism of a symmetry: states and pairs are merged along orbits.

        Args:
            symmetry: acts on state indices, or on `observations`; its actions are those of the MDP.
            observations: the observation of each state, (S, ...), if the symmetry acts on observations.
            approximate: whether to accept a symmetry that does not hold exactly; the homomorphism then averages over
                orbits, and `value_loss_bound` bounds its loss.

        Returns:
            The homomorphism.

        Raises:
            SpecError: the symmetry does not fit, maps a state to no state, or does not hold exactly without
                `approximate`.

        Source: van der Pol et al. 2020, "Group-structured MDP homomorphisms".
        """
        from symcheck.mdp.from_symmetry import homomorphism_from_symmetry  # loads gymnasium

        return homomorphism_from_symmetry(self, symmetry, observations=observations, approximate=approximate)

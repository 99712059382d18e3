"""Gymnasium's own tables: `P[s][a] = [(probability, next state, reward, terminated), ...]`.

Gymnasium's toy-text environments have such a table. `symcheck.envs.tables` handles wrappers that change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from symcheck.array_types import Ints
from symcheck.errors import SpecError, TargetError, suggestion

if TYPE_CHECKING:
    from symcheck.mdp.finite import ModelT


def read_environment(cls: type[ModelT], env: Any, discount: float, kwargs: Mapping[str, Any]) -> ModelT:
    """The MDP of an environment that has a table; see `TabularMDP.from_gymnasium`."""
    made = _make_target(env, kwargs)
    table = _require_table(made)
    states, actions = _sizes(made, table)
    rows, columns, probabilities, ended, rewards = _read_outcomes(table, states, actions)
    shape = (states * actions, states)
    # Terminating outcomes are stored separately from continuing ones.
    going = ~ended
    transitions = sparse.csr_array((probabilities[going], (rows[going], columns[going])), shape=shape)
    terminations = sparse.csr_array((probabilities[ended], (rows[ended], columns[ended])), shape=shape)
    # Duplicate outcomes of a pair add up.
    expected = np.bincount(rows, weights=probabilities * rewards, minlength=states * actions)
    start = getattr(made.unwrapped, "initial_state_distrib", None)
    return cls(
        transitions,
        expected.reshape(states, actions),
        discount,
        start,
        terminations=terminations,
        layout=_layout(made.unwrapped, states),
    )


def _make_target(env: Any, kwargs: Mapping[str, Any]) -> Any:
    import gymnasium as gym

    if isinstance(env, str):
        try:
            return gym.make(env, **kwargs)
        except gym.error.UnregisteredEnv as error:
            raise TargetError(
                f"no environment is registered as {env!r}.", where="env", remedy=suggestion(env, gym.registry)
            ) from error
        except gym.error.Error as error:
            raise TargetError(f"{env!r} cannot be made: {error}", where="env") from error
    # A factory; an environment may be callable too.
    made = env() if callable(env) and not isinstance(env, gym.Env) else env
    if not isinstance(made, gym.Env):
        raise TargetError(
            f"expected an environment, an id or a factory of one, got {type(made).__name__}.", where="env"
        )
    return made


def _require_table(env: Any) -> Mapping[int, Mapping[int, Any]]:
    from symcheck.envs.tables import opaque_wrapper, table_of

    table = table_of(env)
    if table is not None:
        return table
    # Wrappers that may change the dynamics make the inner table unusable.
    opaque = opaque_wrapper(env)
    if opaque is not None and hasattr(env.unwrapped, "P"):
        raise TargetError(
            f"the wrapper {opaque} may make the table wrong.",
            where="env",
            remedy="Give the environment without this wrapper: env.unwrapped.",
        )
    name = env.spec.id if getattr(env, "spec", None) is not None else type(env.unwrapped).__name__
    raise TargetError(
        f"{name} has no table P of its transitions, so it cannot be enumerated. Its observation space is "
        f"{env.observation_space}, and its action space is {env.action_space}.",
        where="env",
        remedy=(
            "Verify a symmetry on samples (symcheck verify-env), search for one (symcheck discover), "
            "enumerate a model that you write (TabularMDP.from_model), or estimate the table from "
            "samples (TabularMDP.from_samples)."
        ),
    )


def _sizes(env: Any, table: Mapping[int, Mapping[int, Any]]) -> tuple[int, int]:
    """The numbers of states and actions, after checking that all are present."""
    states = int(getattr(env.observation_space, "n", len(table)))
    # Without a Discrete space, use the widest row of the table.
    actions = int(getattr(env.action_space, "n", max(len(row) for row in table.values())))
    missing = sorted(set(range(states)) - set(table))
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise SpecError(f"P must contain all {states} states, but {_list_numbers(missing)} {verb} missing.", where="P")
    strangers = sorted(set(table) - set(range(states)))
    if strangers:
        raise SpecError(
            f"P must contain only the states 0..{states - 1}, but it also contains {_list_numbers(strangers)}.",
            where="P",
        )
    gaps = [(state, action) for state in range(states) for action in range(actions) if action not in table[state]]
    if gaps:
        raise SpecError(
            f"P must contain {actions} actions in every state. Missing pairs: {len(gaps)}, starting with {gaps[0]}.",
            where="P",
            remedy=(
                "The agent can choose these actions. Give their outcomes, or build the MDP from arrays with available=."
            ),
        )
    return states, actions


def _list_numbers(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")


def _read_outcomes(
    table: Mapping[int, Mapping[int, Any]], states: int, actions: int
) -> tuple[Ints, Ints, Any, Any, Any]:
    """All outcomes as parallel arrays: row, next state, probability, whether it ended, reward."""
    rows, columns, probabilities, ended, rewards = [], [], [], [], []
    for state in range(states):
        for action in range(actions):
            for outcome in table[state][action]:
                probability, following, reward, terminated = _read_outcome(outcome, state, action, states)
                rows.append(state * actions + action)
                columns.append(following)
                probabilities.append(probability)
                ended.append(terminated)
                rewards.append(reward)
    numbers = np.array(probabilities), np.array(ended, dtype=np.bool_), np.array(rewards)
    return np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64), *numbers


def _read_outcome(outcome: Any, state: int, action: int, states: int) -> tuple[float, int, float, bool]:
    """One outcome as numbers."""
    try:
        probability, following, reward, terminated = outcome
        # Converted here, so that an error names the place in the table.
        read = float(probability), int(following), float(reward), bool(terminated)
    except (TypeError, ValueError) as error:
        raise SpecError(
            f"expected outcomes (probability, next state, reward, terminated), got {outcome!r} in "
            f"P[{state}][{action}].",
            where="P",
        ) from error
    if not 0 <= read[1] < states:
        raise SpecError(
            f"P[{state}][{action}] leads to state {read[1]}, but the states are 0..{states - 1}.", where="P"
        )
    return read


def _layout(env: Any, states: int) -> Ints | None:
    """Row and column of each state, if the environment is a map with one cell per state."""
    # FrozenLake has nrow and ncol, CliffWalking and Taxi a shape.
    shape = getattr(env, "shape", None) or (getattr(env, "nrow", 0), getattr(env, "ncol", 0))
    if (
        len(shape) != 2
        or not all(isinstance(side, int | np.integer) for side in shape)
        or shape[0] * shape[1] != states
    ):
        return None
    # States are numbered row by row.
    return np.stack(np.divmod(np.arange(states), shape[1]), axis=1).astype(np.int64)

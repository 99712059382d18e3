"""The one table of equations: what every property claims, of which quantity, in which unit.

A property registers itself under a name of this table, or under a name of its own with a claim of its own; whoever
needs an equation's noun, unit or tolerance looks here. A new equation is a row here, its measurement and a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Part = Literal["observation", "reward", "transition", "termination"]


@dataclass(frozen=True)
class Equation:
    """What one property claims.

    Attributes:
        name: the property's published name.
        claim: the equation, with g acting on states, observations and actions.
        meaning: the same in words.
        unit: norm and place of its residuals.
        noun: what is compared, in the singular.
        tolerance: where the tolerance of its residuals comes from, as a code of `notes.toml`; "" where none applies.
    """

    name: str
    claim: str
    meaning: str
    unit: str
    noun: str
    tolerance: str = ""


OBSERVATION = Equation(
    "observation_equivariance",
    "obs(g s) = g obs(s)",
    "the observation of the moved state is the moved observation",
    "max norm over observation coordinates",
    "observation",
    "tolerance_rounding",
)
REWARD = Equation(
    "reward_invariance",
    "R(g s, g a) = R(s, a)",
    "the moved step earns the same reward",
    "absolute difference of rewards",
    "reward",
    "tolerance_nudged",
)
TRANSITION = Equation(
    "transition_invariance",
    "T(g s, g a) = g T(s, a)",
    "moving and then stepping is stepping and then moving",
    "max norm over next-state coordinates",
    "next observation",
    "tolerance_nudged",
)
TERMINATION = Equation(
    "termination_invariance",
    "terminated(g s, g a) = terminated(s, a)",
    "the moved episode ends at the same step",
    "terminated on one side only",
    "end",
    "tolerance_none",
)
START = Equation(
    "initial_invariance",
    "g s_0 ~ s_0",
    "the start distribution is the same after moving",
    "standardised difference of the two samples",
    "start",
)
GROUP_AXIOMS = Equation(
    "group_axioms",
    "(g h) s = g (h s),  (g h) a = g (h a)",
    "the maps on observations and actions compose as the group does",
    "max norm over coordinates",
    "relation",
)
LAYER = Equation(
    "layer_certificate",
    "rho_out(g) W = W rho_in(g), rho_out(g) b = b",
    "every layer commutes with the group, read off its weights",
    "max norm over weights and biases of a layer",
    "layer",
)
NETWORK = Equation(
    "network_equivariance",
    "f(g x) = g f(x)",
    "moving the input moves the output in the way that the symmetry says",
    "max norm over output entries, relative to the output's scale",
    "output",
)
PROPAGATION = Equation(
    "representation_propagation",
    "h_l(g x) = rho_l(g) h_l(x)",
    "each hidden layer carries an action of the group",
    "",
    "layer",
)

OBSERVATION_COLUMNS = Equation(
    "observation_columns",
    "B_g(s) = L_g s",
    "the function moves every observation column as the robot's model says",
    "max norm over observation columns",
    "column",
    "tolerance_columns",
)
ACTION_COLUMNS = Equation(
    "action_columns",
    "B_g(a) = K_g a",
    "the function moves every action column as the robot's model says",
    "max norm over action columns",
    "column",
    "tolerance_columns",
)
MODEL_SYMMETRY = Equation(
    "model_symmetry",
    "g(model) = model",
    "every number of the model is the image of its counterpart's",
    "largest relative difference of a number",
    "number",
    "tolerance_model",
)
POLICY = Equation(
    "policy_equivariance",
    "pi(g s) = g pi(s)",
    "on the states that the policy meets, its action in the moved state is the moved action",
    "largest residual of an action",
    "action",
    "tolerance_policy",
)

LEGAL_MOVES = Equation(
    "legal_moves",
    "legal(g s) = g legal(s)",
    "the legal moves of the moved position are the moved legal moves",
    "moves that disagree",
    "legal move",
)
NEXT_STATE = Equation(
    "next_state",
    "T(g s, g a) = g T(s, a)",
    "moving and then playing is playing and then moving",
    "cells that differ",
    "next position",
)
OUTCOME = Equation(
    "outcome",
    "z(g s) = z(s)",
    "the moved position is won, lost, drawn or open as the position is",
    "outcomes that differ",
    "outcome",
)
POLICY_MAP = Equation(
    "policy_map",
    "(g pi)[g a] = pi[a]",
    "the policy vector is rearranged as the moves are, in the same way at every position",
    "entries that differ",
    "policy entry",
)
DISTINCT_IMAGES = Equation(
    "distinct_images",
    "g s != h s for g != h",
    "no two images are the same board at every position",
    "images that repeat another",
    "image",
)

BY_PART: dict[Part, Equation] = {
    "observation": OBSERVATION,
    "reward": REWARD,
    "transition": TRANSITION,
    "termination": TERMINATION,
}
"""The equations that are judged step by step, by the quantity that they compare."""

STEP_PARTS: tuple[Part, ...] = ("reward", "transition", "termination")
"""The parts of the MDP itself, which every method judges."""

BY_NAME: dict[str, Equation] = {row.name: row for row in tuple(vars().values()) if isinstance(row, Equation)}

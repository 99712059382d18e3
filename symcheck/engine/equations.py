"""The table of equations: the claim of every property, its quantity and its unit.

A property registers under a name of this table, or under its own name with its own claim. All code that needs an
equation's noun, unit or tolerance reads it here. A new equation needs a row here, its measurement and a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Part = Literal["observation", "reward", "transition", "termination"]


@dataclass(frozen=True)
class Equation:
    """The claim of one property.

    Attributes:
        name: the property's published name.
        claim: the equation, with g acting on states, observations and actions.
        meaning: the same in words.
        unit: norm and place of its residuals.
        noun: the compared quantity, in the singular.
        tolerance: the origin of the tolerance of its residuals, as a code of `notes.toml`; "" if none applies.
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
    "the observation of the transformed state is the transformed observation",
    "max norm over observation coordinates",
    "observation",
    "tolerance_rounding",
)
REWARD = Equation(
    "reward_invariance",
    "R(g s, g a) = R(s, a)",
    "the transformed step has the same reward",
    "absolute difference of rewards",
    "reward",
    "tolerance_nudged",
)
TRANSITION = Equation(
    "transition_invariance",
    "T(g s, g a) = g T(s, a)",
    "stepping from the transformed state gives the transformed next state",
    "max norm over next-state coordinates",
    "next observation",
    "tolerance_nudged",
)
TERMINATION = Equation(
    "termination_invariance",
    "terminated(g s, g a) = terminated(s, a)",
    "the transformed step terminates exactly when the original step does",
    "terminated on one side only",
    "end",
    "tolerance_none",
)
START = Equation(
    "initial_invariance",
    "g s_0 ~ s_0",
    "the start distribution is invariant under the group",
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
    "every layer commutes with the group action, by its weights",
    "max norm over weights and biases of a layer",
    "layer",
)
NETWORK = Equation(
    "network_equivariance",
    "f(g x) = g f(x)",
    "transforming the input transforms the output as the symmetry says",
    "max norm over output entries, relative to the output's scale",
    "output",
)
PROPAGATION = Equation(
    "representation_propagation",
    "h_l(g x) = rho_l(g) h_l(x)",
    "the group acts on the output of each hidden layer",
    "",
    "layer",
)

OBSERVATION_COLUMNS = Equation(
    "observation_columns",
    "B_g(s) = L_g s",
    "the function transforms every observation column as the robot's model requires",
    "max norm over observation columns",
    "column",
    "tolerance_columns",
)
ACTION_COLUMNS = Equation(
    "action_columns",
    "B_g(a) = K_g a",
    "the function transforms every action column as the robot's model requires",
    "max norm over action columns",
    "column",
    "tolerance_columns",
)
MODEL_SYMMETRY = Equation(
    "model_symmetry",
    "g(model) = model",
    "every parameter of the model equals the image of the corresponding parameter",
    "largest relative difference of a parameter",
    "number",
    "tolerance_model",
)
POLICY = Equation(
    "policy_equivariance",
    "pi(g s) = g pi(s)",
    "on the states that the policy visits, its action in the transformed state is the transformed action",
    "largest residual of an action",
    "action",
    "tolerance_policy",
)

LEGAL_MOVES = Equation(
    "legal_moves",
    "legal(g s) = g legal(s)",
    "the legal moves of the transformed position are the transformed legal moves",
    "moves that disagree",
    "legal move",
)
NEXT_STATE = Equation(
    "next_state",
    "T(g s, g a) = g T(s, a)",
    "playing the transformed move in the transformed position gives the transformed next position",
    "cells that differ",
    "next position",
)
OUTCOME = Equation(
    "outcome",
    "z(g s) = z(s)",
    "the transformed position has the same outcome: won, lost, drawn or open",
    "outcomes that differ",
    "outcome",
)
POLICY_MAP = Equation(
    "policy_map",
    "(g pi)[g a] = pi[a]",
    "the policy vector is permuted as the moves are, in the same way at every position",
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
"""The equations that are tested step by step, by the quantity that they compare."""

STEP_PARTS: tuple[Part, ...] = ("reward", "transition", "termination")
"""The parts of the MDP itself, which every method tests."""

BY_NAME: dict[str, Equation] = {row.name: row for row in tuple(vars().values()) if isinstance(row, Equation)}

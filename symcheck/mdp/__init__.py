"""Finite MDPs: exact values, homomorphisms onto smaller MDPs, and all their symmetries."""

from symcheck.mdp.automorphisms import AutomorphismGroup
from symcheck.mdp.bounds import lifted_policy_loss_bound, value_gap_bound
from symcheck.mdp.homomorphism import Homomorphism
from symcheck.mdp.solving import Solution, evaluate_policy, policy_iteration, q_values, value_iteration
from symcheck.mdp.tabular import TabularMDP
from symcheck.mdp.worlds import torus_chase

__all__ = [
    "AutomorphismGroup",
    "Homomorphism",
    "Solution",
    "TabularMDP",
    "evaluate_policy",
    "lifted_policy_loss_bound",
    "policy_iteration",
    "q_values",
    "torus_chase",
    "value_gap_bound",
    "value_iteration",
]

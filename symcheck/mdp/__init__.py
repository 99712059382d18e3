"""Finite MDPs: their symmetries, their homomorphisms, their exact values."""

from symcheck.mdp.bounds import lifted_policy_loss_bound, value_gap_bound

__all__ = ["lifted_policy_loss_bound", "value_gap_bound"]

"""Checks that precede any statement about a symmetry: determinism, set versus reached states, isolation, resets."""

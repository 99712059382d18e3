"""Controls before any statement about a symmetry: determinism, set states against reached ones, isolation, resets."""

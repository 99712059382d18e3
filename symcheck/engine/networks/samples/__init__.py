"""Samples: inputs for a network, residuals of the claim, rounding that may explain them, and counterexamples."""

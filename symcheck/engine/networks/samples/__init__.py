"""Samples: inputs for a network, residuals of the claim on them, the rounding that explains them, counterexamples."""

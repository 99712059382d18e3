"""Samples: inputs to run a network on, residuals of the claim there, rounding that explains them, counterexamples."""

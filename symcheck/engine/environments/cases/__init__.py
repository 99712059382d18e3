"""The cases of a comparison: sampled states, measurements of both sides, tolerances, shrunk counterexamples."""

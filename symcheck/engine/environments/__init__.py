"""Testing the equations of a symmetry on an environment: stepping, sampling, judging, shrinking, diagnosing."""

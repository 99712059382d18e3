"""How the equations of a symmetry are tested on an environment: stepping, sampling, judging, shrinking, diagnosing."""

"""Check, build and prove symmetries of reinforcement-learning problems."""

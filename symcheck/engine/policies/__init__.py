"""Runs over a trained policy: the residual of each action on the states that it meets, and the part that makes it."""

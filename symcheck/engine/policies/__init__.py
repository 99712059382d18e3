"""Audits of a trained policy: the residual of each action on visited states, and the part that causes it."""

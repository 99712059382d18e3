"""Observations and actions of any space as the arrays that networks read and give, and a claim on those arrays."""

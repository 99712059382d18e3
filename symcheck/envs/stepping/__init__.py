"""Sets and steps one environment; only these modules call a user's environment."""

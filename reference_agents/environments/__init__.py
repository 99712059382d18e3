"""Environments vectorised over runs, with one random stream per run."""

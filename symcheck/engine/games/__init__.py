"""Runs over board games: positions by legal play, what is compared there, and why it differs."""

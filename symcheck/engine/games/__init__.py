"""Runs over board games: positions from legal play, what is compared there, and causes of differences."""

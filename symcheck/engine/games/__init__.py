"""Runs on board games: positions from legal play, comparisons, and causes of differences."""

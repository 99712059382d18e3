"""Pong and Breakout for many runs at once."""

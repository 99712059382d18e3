"""Pong and Breakout: vectorised image environments as in the paper, and an emulator whose state can be set."""

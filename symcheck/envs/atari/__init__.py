"""Pong and Breakout: the paper's images by the thousand, and a machine whose whole state can be read and set."""

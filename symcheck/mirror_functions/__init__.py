"""Batched mirror functions of robot-learning libraries: called, checked block by block, and read as maps."""

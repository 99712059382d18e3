"""The network under test: as it came, as a function of one flat input, and what a claim says of it."""

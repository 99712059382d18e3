"""The network under test: as given, as a function of one flat input, and with its claims."""

"""Parse the entry that a user writes for one generator into one of five forms."""

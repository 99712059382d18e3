"""What a user writes for one generator, read into one of five forms."""

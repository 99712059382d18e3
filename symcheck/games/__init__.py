"""Board games with a common interface: legal moves, next states, outcomes, and the images claimed by a function."""

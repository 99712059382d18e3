"""Board games behind one interface: legal moves, next states, outcomes, and the images that a function claims."""

"""Networks as graphs of a few kinds of nodes, and certificates of the group action on them."""

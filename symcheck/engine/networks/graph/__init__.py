"""Networks as graphs of a few kinds of nodes, what a group does at each of them, and certificates of that."""

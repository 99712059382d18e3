"""Networks as graphs of a few kinds of nodes, and certificates of what groups do to them."""

"""Capture of a network as a graph, and the conditions under which the graph represents every input, batch and call."""

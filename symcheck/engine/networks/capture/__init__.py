"""The network captured as a graph, and what must hold before that graph stands for every input, batch and call."""

"""Training entirely on one device: environments, random numbers, rollouts and updates as one captured graph.

Nothing is copied to the CPU between two evaluations, so an update is one launch of a CUDA graph. The learner is that of
the stacked program; environments and optimiser are separate implementations without synchronisation. The same code runs
on the CPU, where tests compare it with the other implementation.
"""

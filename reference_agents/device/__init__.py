"""Whole trainings on one device: environments, random numbers, rollouts and updates in tensors, captured as one graph.

Nothing goes back to the processor between two evaluations, so that an update is one launch of a CUDA graph. The learner
is that of the stacked program; environments and optimiser are written again without anything that has to wait for the
device. The same code runs on the processor, where the tests compare it with the rest.
"""

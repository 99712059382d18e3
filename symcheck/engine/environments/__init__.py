"""Tests the equations of a symmetry on an environment: steps, samples, decides, shrinks and diagnoses."""

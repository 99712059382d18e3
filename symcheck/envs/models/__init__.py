"""Batched forms of known environments: thousands of states a step, with the numbers that the environment gives."""

from symcheck.envs.models.model import BatchModel, Transitions
from symcheck.envs.models.recognise import find_model

__all__ = ["BatchModel", "Transitions", "find_model"]

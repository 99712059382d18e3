"""Batched forms of known environments, which step thousands of states at once with the environment's own parameters."""

from symcheck.envs.models.model import BatchModel, Transitions
from symcheck.envs.models.recognise import find_model

__all__ = ["BatchModel", "Transitions", "find_model"]

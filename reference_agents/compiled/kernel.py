"""Calls `learn.c` for one network of many runs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.compiled.description import Description, EntryRow, JobRow, LayerRow, describe
from reference_agents.compiled.library import load_library
from reference_agents.learning.distributions import SOFT_BOUND, Distribution, Gaussian, MultiCategorical
from reference_agents.networks.actor_critic import ActorCritic
from reference_agents.networks.parameters import ALIGNMENT
from reference_agents.networks.plans import MASKED_LOGIT
from reference_agents.settings import Settings
from symcheck.array_types import Bools, Floats


class Kernel:
    """The tables of a network in memory, with the operations of `learn.c`.

    Args:
        network: the network of all runs, on the processor; `description.describe` has tables of it.
        settings: the hyperparameters.
        policy: the action distribution of the network's outputs.

    Raises:
        NoCompilerError: `learn.c` cannot be built on this machine.
    """

    def __init__(self, network: ActorCritic, settings: Settings, policy: Distribution) -> None:
        self._library = load_library()
        description = describe(network.plan, network.parameters.layout)
        if description is None:
            raise ValueError("the compiled engine has no tables for this network")
        self._values = network.parameters.values
        self.heads = description.heads
        self._job = _job_row(network, description, settings, policy)
        self._layers = (LayerRow * len(description.layers))(*description.layers)
        self._entries = (EntryRow * max(1, len(description.entries)))(*description.entries)
        numbers = description.heads - 1
        self._places = description.places
        choices = policy.choices if isinstance(policy, MultiCategorical) else (numbers,)
        self._choices = np.array(choices, dtype=np.int32)
        self._masked = np.isin(np.arange(numbers), network.plan.masked).astype(np.uint8)
        bounds = policy.bounds if isinstance(policy, Gaussian) else None
        self._bounds = np.full(numbers, np.inf, dtype=np.float32) if bounds is None else bounds.numpy()
        self._job_at = ctypes.byref(self._job)
        size = int(self._library.matrix_floats(self._job_at, self._layers))
        # torch's memory is aligned to cache lines, as the vectors of `learn.c` require; unwritten memory is zero.
        self._matrices = torch.zeros(len(self._values) * size)
        self._one_matrices = torch.zeros(size)
        self._scratch = torch.zeros(self._scratch_floats(int(self._job.minibatch)))
        self._rows_scratch = torch.empty(0)

    def prepare(self) -> None:
        """Rebuild every run's matrices after the parameters have changed."""
        self._library.prepare(self._job_at, self._layers, self._entries, *_addresses(self._values, self._matrices))

    def answer(self, observations: torch.Tensor, wanted: Bools | None) -> torch.Tensor:
        """Outputs of the heads (runs, rows, heads) for observations (runs, rows, size); zeros if not `wanted`."""
        rows = observations.shape[1]
        outputs = torch.zeros(len(self._values), rows, self.heads)
        selected = None if wanted is None else np.ascontiguousarray(wanted, dtype=np.uint8)
        self._library.answer(
            self._job_at, self._layers,
            *_addresses(self._places, self._masked, self._values, self._matrices, self._scratch_of(rows),
                        observations.contiguous(), selected),
            ctypes.c_int64(rows), *_addresses(outputs),
        )  # fmt: skip
        return outputs

    def play_carts(
        self,
        cart: Any,
        uniforms: Floats,
        states: Floats,
        lengths: npt.NDArray[np.int64],
        running: npt.NDArray[np.uint8],
    ) -> None:
        """Continue episodes of CartPole, in place.

        Args:
            cart: a `description.CartRow`.
            uniforms: the uniform numbers that draw actions, (runs, steps, episodes).
            states: the states of the carts, (runs, episodes, 4).
            lengths: the number of steps so far, (runs, episodes).
            running: which episodes are not over, (runs, episodes).
        """
        _, steps, episodes = uniforms.shape
        self._library.play_carts(
            self._job_at, self._layers,
            *_addresses(self._places, self._masked, self._values, self._matrices, self._scratch_of(episodes)),
            ctypes.byref(cart), *_addresses(uniforms), ctypes.c_int64(steps), ctypes.c_int64(episodes),
            *_addresses(states, lengths, running),
        )  # fmt: skip

    def learn(
        self,
        steps: Sequence[torch.Tensor],
        orders: npt.NDArray[np.int64],
        rates: npt.NDArray[np.float32],
        before: int,
        moments: Sequence[torch.Tensor],
    ) -> Bools:
        """Learn from one batch, in place; returns for each run whether every gradient was finite.

        Args:
            steps: observations, actions, log probabilities, advantages and returns, each (runs, batch, ...).
            orders: the orders of the batch in each epoch, (runs, epochs, batch).
            rates: the learning rate of each run.
            before: the number of previous optimiser steps.
            moments: the means of gradients and of their squares, in the shape of the parameters.
        """
        finite = np.zeros(len(self._values), dtype=np.uint8)
        counts = np.full(len(self._values), before, dtype=np.int64)
        inputs = [part.contiguous() for part in steps]
        self._library.learn(
            self._job_at, self._layers, self._entries,
            *_addresses(self._places, self._choices, self._masked, self._bounds, *inputs, orders, rates, counts,
                        self._values, *moments, self._one_matrices, self._scratch, finite),
        )  # fmt: skip
        return finite.astype(bool)

    @property
    def steps(self) -> int:
        """The number of optimiser steps in one update."""
        return int(self._job.minibatches)

    def _scratch_of(self, rows: int) -> torch.Tensor:
        """Allocate memory for a number of observations per run."""
        floats = self._scratch_floats(rows)
        if len(self._rows_scratch) < floats:
            self._rows_scratch = torch.zeros(floats)
        return self._rows_scratch

    def _scratch_floats(self, rows: int) -> int:
        return int(self._library.scratch_floats(self._job_at, self._layers, ctypes.c_int64(rows))) + ALIGNMENT


def _addresses(*arrays: torch.Tensor | npt.NDArray[Any] | None) -> list[ctypes.c_void_p]:
    """The addresses of arrays; the caller must keep the arrays alive."""
    return [
        ctypes.c_void_p(array.data_ptr() if isinstance(array, torch.Tensor) else array.ctypes.data)
        if array is not None
        else ctypes.c_void_p()
        for array in arrays
    ]


def _job_row(network: ActorCritic, description: Description, settings: Settings, policy: Distribution) -> Any:
    values = network.parameters.values
    # A Gaussian action has no discrete components.
    components = 0 if isinstance(policy, Gaussian) else len(getattr(policy, "choices", (0,)))
    return JobRow(
        runs=len(values), batch=settings.batch, observation=network.plan.layers[0].inputs,
        minibatch=settings.batch // settings.minibatches, minibatches=settings.epochs * settings.minibatches,
        layers=len(description.layers), features=description.features, heads=description.heads,
        numbers=description.heads - 1, parameters=values.shape[1], components=components,
        normalise=settings.normalise_advantages, clip=settings.clip, value_coefficient=settings.value_coefficient,
        entropy_coefficient=settings.entropy_coefficient, max_norm=settings.max_gradient_norm,
        bound_penalty=settings.bound_penalty, soft_bound=SOFT_BOUND, input_scale=network.plan.input_scale,
        masked_logit=MASKED_LOGIT, **description.spans,
    )  # fmt: skip

"""A user's own torch module, trained for many runs at once like any other network.

The module maps observations (batch, ...) to a pair: logits, or means for continuous actions, (batch, actions); and
values (batch, 1) or (batch,). Parameters of all runs are stacked and the module is mapped over them; gradients come
from automatic differentiation. Seeds reproduce a run only among the same runs; among others, the last bits may differ,
because torch chooses other kernels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch.func import functional_call

from reference_agents.catalog import NetworkPlan, Task
from reference_agents.networks.parameters import Layout, StackedParameters
from reference_agents.networks.plans import DEVIATION
from reference_agents.randomness import Purpose, stream_seeds
from reference_agents.settings import Settings
from symcheck.errors import OptionError, TargetError
from symcheck.loading import load_attribute

WHERE = "--network"


def build_module(network: NetworkPlan, task: Task, *, seed: int = 0) -> torch.nn.Module:
    """A new module of a user's network, checked against the task.

    Args:
        network: the description, named `pkg.mod:factory` or `path/file.py:factory`, of a module class or any
            zero-argument factory.
        task: the task, which determines the shapes.
        seed: the seed of torch's generator during construction; the generator's state is restored afterwards.

    Returns:
        The module, in float32 on the CPU.

    Raises:
        TargetError: not a factory of modules, buffers that training would have to update, or outputs of wrong shapes.
    """
    factory = load_attribute(network.name, where=WHERE)
    try:
        # torch's generator is seeded for the factory, and its state is restored.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = factory()
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"it returned {type(module).__name__}")
        module = module.float()
        with torch.no_grad():
            # A batch of 2, so that a module that drops its batch axis is noticed.
            outputs = module(torch.zeros(2, *task.observation_shape))
    except Exception as error:
        raise TargetError(
            "expected a factory without arguments that returns a module for observations (batch, "
            f"{', '.join(map(str, task.observation_shape))}), but {network.name!r} failed: {error}.",
            where=WHERE,
        ) from error
    _check_outputs(outputs, task, network.name)
    # Buffers are not part of the stacked parameters: runs would share and overwrite them.
    if any(True for _ in module.buffers()):
        raise TargetError(
            f"modules with buffers are not supported, but {network.name!r} has "
            f"{', '.join(dict(module.named_buffers()))}.",
            where=WHERE,
            remedy=("Running statistics of several runs cannot share one buffer. Use LayerNorm instead of BatchNorm."),
        )
    return module


def _check_outputs(outputs: object, task: Task, name: str) -> None:
    wanted = (2, task.actions)
    pair = (
        isinstance(outputs, tuple) and len(outputs) == 2 and all(isinstance(output, torch.Tensor) for output in outputs)
    )
    shapes = [tuple(output.shape) for output in outputs] if pair else type(outputs).__name__  # type: ignore[attr-defined]
    if not pair or shapes[0] != wanted or shapes[1] not in ((2, 1), (2,)):
        raise TargetError(
            f"expected a pair of outputs of shapes (batch, {task.actions}) and (batch, 1), got {shapes} for a batch "
            f"of 2 from {name!r}.",
            where=WHERE,
        )


def settings_of_module(settings: Settings, changed: Mapping[str, object], *, where: str) -> Settings:
    """The settings for a user's own network, which initialises its weights and scales its input itself.

    Args:
        settings: the preset with the user's changes.
        changed: the settings that the user changed.
        where: the option or argument that changes settings, for the message.

    Raises:
        OptionError: the user set an option that such a network handles itself.
    """
    own = {
        "bias_gain": 0.0, "input_scale": 1.0, "policy_gain": 1.0, "normalise_observations": False,
        "separate_bodies": False, "width": 0,
    }  # fmt: skip
    if asked := [name for name, value in own.items() if changed.get(name, value) != value]:
        raise OptionError(
            f"{' and '.join(asked)} cannot be set for a network of your own.",
            where=where,
            remedy="Set the initial weights and the input scale in the module itself.",
        )
    return settings.with_changes(**own)


class UserActorCritic:
    """The stacked network of a user's module; the interface is that of `ActorCritic`.

    Args:
        network: the description of the network.
        task: the task, which determines the shapes.
        seeds: one seed per run, which draws the initial parameters.
        device: the device of the parameters.
    """

    def __init__(self, network: NetworkPlan, task: Task, seeds: Sequence[int], device: torch.device) -> None:
        self._module = build_module(network, task).to(device)
        layout = Layout()
        for name, parameter in self._module.named_parameters():
            layout.add(name, tuple(parameter.shape))
        if task.continuous:
            layout.add(DEVIATION, (task.actions,))
        self.parameters = StackedParameters(layout, len(seeds), device)
        self._values = layout.views(self.parameters.values)
        self._gradients = layout.views(self.parameters.gradients)
        for run, seed in enumerate(seeds):
            # A seed for each run, from its stream of parameters.
            module = build_module(network, task, seed=stream_seeds(seed, Purpose.PARAMETERS, 0, 1)[0])
            for name, parameter in module.named_parameters():
                self._values[name][run] = parameter.detach()
        if task.continuous:
            self._values[DEVIATION].fill_(math.log(network.initial_deviation))
        self._tape: tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor] | None = None

    def refresh(self) -> None:
        """Do nothing, because nothing is derived from the parameters."""

    def forward(self, observations: torch.Tensor, *, keep: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """As `ActorCritic.forward`."""
        if not keep:
            with torch.no_grad():
                return self._call(self._values, observations)
        # Use views of the buffer as leaves: gradients are taken with respect to them and copied.
        leaves = {name: view.detach().requires_grad_() for name, view in self._values.items()}
        with torch.enable_grad():
            numbers, values = self._call(leaves, observations)
        self._tape = (leaves, numbers, values)
        return numbers.detach(), values.detach()

    def _call(
        self, parameters: Mapping[str, torch.Tensor], observations: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        own = {name: value for name, value in parameters.items() if name != DEVIATION}

        def one_run(values: dict[str, torch.Tensor], x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            numbers, value = functional_call(self._module, values, (x,))
            return numbers, value.reshape(len(x))

        # One call for all runs: vmap maps over the first axis of parameters and observations.
        numbers, values = torch.vmap(one_run)(own, observations)
        if DEVIATION in parameters:
            log_deviation = parameters[DEVIATION].unsqueeze(1).expand_as(numbers)
            numbers = torch.cat([numbers, log_deviation], dim=2)
        return numbers, values

    def backward(self, d_numbers: torch.Tensor, d_values: torch.Tensor) -> None:
        """As `ActorCritic.backward`."""
        if self._tape is None:
            raise RuntimeError("backward needs a forward pass whose intermediate values were kept")
        leaves, numbers, values = self._tape
        outputs, given = (numbers, values), (d_numbers, d_values)
        gradients: Sequence[torch.Tensor | None] = torch.autograd.grad(
            # A module may have parameters that its outputs do not use.
            outputs,
            list(leaves.values()),
            given,
            allow_unused=True,
        )
        for name, gradient in zip(leaves, gradients, strict=True):
            if gradient is None:
                self._gradients[name].zero_()
            else:
                self._gradients[name].copy_(gradient)


class UserNetwork(torch.nn.Module):
    """A user's trained module, together with the standard deviations of continuous actions.

    Args:
        network: the user's module.
        task: the task, which says whether actions are continuous.
    """

    def __init__(self, network: torch.nn.Module, task: Task) -> None:
        super().__init__()
        self.network = network
        if task.continuous:
            self.register_buffer("log_deviation", torch.zeros(task.actions))

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The outputs of the user's module: logits or means, and values."""
        numbers, values = self.network(observation)
        return numbers, values.reshape(len(observation), 1)

    def numbers(self, observation: torch.Tensor) -> torch.Tensor:
        """The parameters of the action distribution: logits, or means followed by log standard deviations."""
        policy: torch.Tensor = self(observation)[0]
        deviation = getattr(self, "log_deviation", None)
        return policy if deviation is None else torch.cat([policy, deviation.expand_as(policy)], dim=-1)


def export_user_network(network: NetworkPlan, task: Task, parameters: Mapping[str, torch.Tensor]) -> UserNetwork:
    """Build the module of one run.

    Args:
        network: the description of the network.
        task: the task, which determines the shapes.
        parameters: one run's parameters by name.

    Returns:
        The module with those parameters.
    """
    module = UserNetwork(build_module(network, task), task)
    state = {name if name == DEVIATION else f"network.{name}": value for name, value in parameters.items()}
    module.load_state_dict(state)
    return module

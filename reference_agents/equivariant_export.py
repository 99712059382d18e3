"""Rebuilds a trained equivariant run from `symcheck.nn` layers, whose types ensure equivariance.

The stacked program scales every basis matrix to norm 1, whereas `symcheck.nn` uses integer bases for signed
permutations, so the coefficients are divided by the norms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch

from reference_agents.catalog import NetworkPlan, Task
from reference_agents.export import plain_bias, plain_weight
from reference_agents.networks.build import build_plan, image_size, unit_basis
from reference_agents.networks.plans import (
    MASKED_LOGIT,
    ConvPlan,
    FlattenPlan,
    GlobalMaxPoolPlan,
    LinearPlan,
    PoolPlan,
)
from reference_agents.symmetries import spatial_operators, task_symmetry
from symcheck.errors import OptionError
from symcheck.nn.basis_layer import BasisLayer
from symcheck.nn.conv import BasisConv2d
from symcheck.nn.linear import BasisLinear
from symcheck.nn.pooling import GlobalAveragePool, GlobalMaxPool
from symcheck.nn.sequential import EquivariantHeads, EquivariantSequential
from symcheck.nn.shapes import FlattenPixels, MergeChannels, SplitChannels
from symcheck.representations import constructors as representations
from symcheck.representations import grids, operations
from symcheck.representations.representation import Representation

Layer = TypeVar("Layer", bound=BasisLayer)


def to_equivariant_module(task: Task, network: NetworkPlan, parameters: Mapping[str, torch.Tensor]) -> EquivariantHeads:
    """The equivariant module of one run.

    Args:
        task: the task, which names the symmetry.
        network: a network that claims equivariance.
        parameters: one run's parameters by name, from `StackedParameters.of_run`.

    Returns:
        Observations (batch, ...) to (logits (batch, actions), values (batch, 1)).

    Raises:
        OptionError: the network is not equivariant.
    """
    if network.basis != "equivariant" or network.free_heads:
        raise OptionError(f"expected an equivariant network, got {network.name!r}.", where="network")
    symmetry, plan = task_symmetry(task), build_plan(task, network)
    spatial = spatial_operators(task)
    trivial: Representation = representations.trivial(symmetry.group)
    hidden: Representation = representations.regular(symmetry.group)
    if network.separate_bodies:
        # Every component has a copy for the policy and one for the value; coefficients between them are zero.
        hidden = operations.tensor(hidden, representations.trivial(symmetry.group, 2))
    # An image's channels are scalars on a grid; a vector carries the representation of the observations.
    rho = trivial if spatial else symmetry.observation_representation
    size = (task.observation_shape[-2], task.observation_shape[-1]) if spatial else None
    modules: list[torch.nn.Module] = [SplitChannels(rho, task.channels_in(dense=False), spatial=spatial, size=size)]
    for layer in plan.trunk:
        if isinstance(layer, FlattenPlan):
            modules.append(FlattenPixels())
            # After flattening, the representation acts on channels and positions together.
            height, width = image_size(task, network)
            rho = grids.with_grid(hidden, height, width, spatial or ())
        elif isinstance(layer, PoolPlan):
            modules.append(GlobalMaxPool(hidden) if isinstance(layer, GlobalMaxPoolPlan) else GlobalAveragePool(hidden))
        else:
            # Only the first layer reads the input, so the input scale is folded into its weights.
            scale = plan.input_scale if layer is plan.trunk[0] else 1.0
            modules += [_hidden_layer(layer, rho, hidden, spatial, parameters, scale), torch.nn.ReLU()]
            rho = hidden
    heads = {
        name: EquivariantSequential(_linear(head, hidden, to, parameters), MergeChannels())
        for name, head, to in (("action", plan.policy, symmetry.action_representation), ("value", plan.value, trivial))
    }
    _mask(heads["action"], plan.masked)
    return EquivariantHeads(EquivariantSequential(*modules, input_size=size), heads)


def _mask(head: EquivariantSequential, masked: tuple[int, ...]) -> None:
    """Make masked logits constant: remove the basis from their rows, and set their bias to a constant."""
    layer = next(module for module in head.modules() if isinstance(module, BasisLinear))
    if not masked or layer.bias_basis is None or layer.bias_coefficients is None:
        return
    rows = list(masked)
    with torch.no_grad():
        weight, bias = layer.basis.matrices(), layer.bias_basis.matrices()
        # Remove the basis elements that have an entry in a masked row.
        layer.coefficients[..., torch.as_tensor(weight[:, rows].any(axis=(1, 2)))] = 0.0
        layer.bias_coefficients[..., torch.as_tensor(bias[:, rows].any(axis=(1, 2)))] = MASKED_LOGIT


def _hidden_layer(
    plan: LinearPlan | ConvPlan,
    rho_in: Representation,
    rho_out: Representation,
    spatial: tuple[str, ...] | None,
    parameters: Mapping[str, torch.Tensor],
    scale: float,
) -> BasisLayer:
    if isinstance(plan, LinearPlan):
        return _linear(plan, rho_in, rho_out, parameters, scale)
    # Units are counted with the representation's dimension.
    channels_in = plan.units_in // plan.dim_in
    layer = BasisConv2d(
        rho_in,
        rho_out,
        channels_in,
        plan.linear.channels_out,
        plan.kernel,
        spatial=spatial or (),
        stride=plan.stride,
    )
    return _fill_coefficients(layer, plan.linear, parameters, scale)


def _linear(
    plan: LinearPlan,
    rho_in: Representation,
    rho_out: Representation,
    parameters: Mapping[str, torch.Tensor],
    scale: float = 1.0,
) -> BasisLinear:
    layer = BasisLinear(rho_in, rho_out, plan.channels_in, plan.channels_out)
    # Spatial positions (pixels > 1) are flattened in a different order than in the trained layer. With separate bodies,
    # the trained layer has only a part of the basis.
    same = plan.pixels == 1 and np.array_equal(unit_basis(layer.basis), plan.weight_basis)
    fill = _fill_coefficients if same else _project_weight
    return fill(layer, plan, parameters, scale)


def _project_weight(
    layer: BasisLinear, plan: LinearPlan, parameters: Mapping[str, torch.Tensor], scale: float
) -> BasisLinear:
    """The layer, with coefficients that are computed from the weight."""
    dense = scale * plain_weight(plan, parameters)
    basis = torch.as_tensor(layer.basis.matrices(), dtype=torch.float32)
    weight = dense.reshape(plan.channels_out, basis.shape[1], plan.channels_in, basis.shape[2])
    _fill_bias(layer, plan, parameters)
    with torch.no_grad():
        # The basis is orthogonal and not normalised: coefficient = <W, B_r> / <B_r, B_r>.
        squared = torch.as_tensor(layer.basis.squared_norms, dtype=torch.float32)
        layer.coefficients.copy_(torch.einsum("odie,rde->oir", weight, basis) / squared)
    return layer


def _fill_coefficients(layer: Layer, plan: LinearPlan, parameters: Mapping[str, torch.Tensor], scale: float) -> Layer:
    """The layer with one run's coefficients, (rank, in, out) for unit matrices, as (out, in, rank) for its own basis.

    The scale of the network's input goes into the weight of its first layer.
    """
    with torch.no_grad():
        weight = scale * parameters[f"{plan.name}.weight"].permute(2, 1, 0)
        layer.coefficients.copy_(weight / _norms(layer.basis.squared_norms))
    _fill_bias(layer, plan, parameters)
    return layer


def _fill_bias(layer: BasisLayer, plan: LinearPlan, parameters: Mapping[str, torch.Tensor]) -> None:
    with torch.no_grad():
        if plan.bias_basis is not None and layer.bias_basis is not None and layer.bias_coefficients is not None:
            basis = torch.as_tensor(layer.bias_basis.matrices()[:, :, 0], dtype=torch.float32)
            dense = plain_bias(plan, parameters).reshape(plan.channels_out, basis.shape[1])
            squared = torch.as_tensor(layer.bias_basis.squared_norms, dtype=torch.float32)
            layer.bias_coefficients.copy_((dense @ basis.T / squared).reshape(layer.bias_coefficients.shape))


def _norms(squared: npt.NDArray[np.float64]) -> torch.Tensor:
    # Parameters are coefficients of unit matrices; divide by the norms to get those of the layer's basis.
    return torch.as_tensor(np.sqrt(squared), dtype=torch.float32)

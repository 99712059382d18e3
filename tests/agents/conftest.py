"""The simulated device, in the places where the code asks for CUDA's own, and products as on a device."""

from __future__ import annotations

import importlib

import pytest
import torch

from reference_agents.device import graph
from reference_agents.learning import transfer
from reference_agents.networks import actor_critic, layers
from reference_agents.networks.blocks import ConvRelu
from tests.agents.simulated_device import DEVICE, SimulatedDevice


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> SimulatedDevice:
    device = SimulatedDevice()
    monkeypatch.setattr(graph, "record", device.record)
    monkeypatch.setattr(transfer, "new_event", device.event)
    monkeypatch.setattr("reference_agents.device.loop.STEPS_AT_ONCE", 5)  # so that evaluations come to be recorded
    monkeypatch.setattr(graph, "seeded_generator", lambda _, seed: torch.Generator().manual_seed(seed))
    # torch's fused Adam asks whether it knows a device by name
    optimizer = importlib.import_module("torch.optim.optimizer")
    monkeypatch.setattr(optimizer, "_get_fused_kernels_supported_devices", lambda: ["cpu", DEVICE])
    return device


@pytest.fixture
def same_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor computes as a device does: it has other ways to convolve large images and to expand weights."""
    monkeypatch.setattr(actor_critic, "DirectConvRelu", ConvRelu)
    monkeypatch.setattr(layers, "_MOST_BLOCKS", -1)  # one product with the basis: sums have its order

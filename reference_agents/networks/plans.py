"""Plans of networks: descriptions of the layers, without parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from reference_agents.networks.parameters import Layout
from symcheck.array_types import Floats

Uniform = Callable[[tuple[int, ...]], npt.NDArray[np.float64]]
DEVIATION = "log_deviation"
Init = Literal["xavier", "he", "torch"]
MASKED_LOGIT = -30.0
"""The logit of a masked action. exp(-30) is 1e-13, so the action hardly occurs in 10^12 steps, and -30 is within the
usual range of logits."""


@dataclass(frozen=True)
class LinearPlan:
    """One linear layer.

    Attributes:
        name: prefix of its parameters.
        channels_in: number of copies of the input representation.
        channels_out: number of copies of the output representation.
        weight_basis: shape (rank, dim_out, dim_in).
        bias_basis: shape (rank, dim_out, 1): intertwiners from the trivial representation; None for no bias.
        init: the rule for the variance of the entries of the initial weight.
        bias_gain: the standard deviation of the initial bias, as a multiple of the standard deviation of Xavier weights
            for a single input; 0 for a zero bias.
        components_in: for dense layers on top of basis layers, the number of components of each channel of the input.
        pixels: the number of positions of the image that was flattened to its input; components are ordered position by
            position.
        gain: the factor of the initial weights.
    """

    name: str
    channels_in: int
    channels_out: int
    weight_basis: Floats
    bias_basis: Floats | None
    init: Init = "xavier"
    components_in: int = 1
    bias_gain: float = 0.0
    pixels: int = 1
    gain: float = 1.0

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return int(self.weight_basis.shape[2]) * self.channels_in

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return int(self.weight_basis.shape[1]) * self.channels_out

    @property
    def linear(self) -> LinearPlan:
        """The layer itself, for the same interface as convolutions."""
        return self

    def declare(self, layout: Layout) -> None:
        """Add the layer's coefficients to a layout."""
        layout.add(f"{self.name}.weight", (len(self.weight_basis), self.channels_in, self.channels_out))
        if self.bias_basis is not None:
            layout.add(f"{self.name}.bias", (len(self.bias_basis), 1, self.channels_out))

    def initial_weight(self, uniform: Uniform) -> npt.NDArray[np.float64]:
        """Draw coefficients for which the entries of the weight have, on average, the variance of `init`.

        Xavier's is 2 / (inputs + outputs), He's is 2 / inputs, PyTorch's 1 / (3 inputs).

        Args:
            uniform: returns uniform numbers in [0, 1) of a given shape.

        Returns:
            Coefficients, shape (rank, channels_in, channels_out).

        Source:
            Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010,
            equation 16; He et al., "Delving deep into rectifiers", 2015, equation 10.
        """
        # Variances of Glorot and Bengio (2010) and of He et al. (2015); torch's Linear draws from U(-1/sqrt(inputs),
        # 1/sqrt(inputs)), whose variance is 1 / (3 inputs).
        variances = {
            "xavier": 2.0 / (self.inputs + self.outputs),
            "he": 2.0 / self.inputs,
            "torch": 1.0 / (3.0 * self.inputs),
        }
        return _draw_coefficients(
            self.weight_basis, (self.channels_in, self.channels_out), self.gain**2 * variances[self.init], uniform
        )

    def initial_bias(self, uniform: Uniform) -> npt.NDArray[np.float64] | None:
        """Coefficients of the bias, shape (rank, 1, channels_out); None if it starts at zero, or there is none.

        PyTorch's bias has the variance of its weight; other biases have the variance of Xavier weights for a single
        input, times the square of `bias_gain`.
        """
        if self.bias_basis is None or not (self.bias_gain or self.init == "torch"):
            return None
        # Xavier's variance for the bias as a matrix of one column, scaled by the gain, as in the paper's code.
        xavier = self.bias_gain**2 * 2.0 / (1 + self.outputs)
        variance = 1.0 / (3.0 * self.inputs) if self.init == "torch" else xavier
        return _draw_coefficients(self.bias_basis, (1, self.channels_out), variance, uniform)


def _draw_coefficients(
    basis: Floats, channels: tuple[int, int], variance: float, uniform: Uniform
) -> npt.NDArray[np.float64]:
    """Uniform coefficients for which the entries of the matrix have a variance on average, shape (rank, *channels)."""
    # An entry is a sum over basis elements: its variance is the coefficients' times this mean square.
    mean_square = float(np.square(basis).sum()) / max(1, basis.shape[1] * basis.shape[2])
    # A uniform number on [-b, b] has variance b^2 / 3.
    bound = math.sqrt(3.0 * variance / mean_square) if mean_square else 0.0
    return (2.0 * uniform((len(basis), *channels)) - 1.0) * bound


@dataclass(frozen=True)
class ConvPlan:
    """One convolution: a linear layer from every window of the image to one position of the output.

    Attributes:
        linear: the layer. Its inputs are ordered by pixel of the window, row by row, then component, then channel.
        kernel: height and width of a window.
        stride: the number of pixels between two windows.
        dim_in: dimension of the input representation; 1 if the layer is dense.
    """

    linear: LinearPlan
    kernel: int
    stride: int
    dim_in: int

    @property
    def units_in(self) -> int:
        """The number of units at each pixel of the input."""
        return self.linear.inputs // self.kernel**2


@dataclass(frozen=True)
class GlobalMaxPoolPlan:
    """The maximum of every channel over all positions of an image."""


@dataclass(frozen=True)
class GlobalAveragePoolPlan:
    """The average of every channel over all positions of an image."""


@dataclass(frozen=True)
class FlattenPlan:
    """Flattens an image, position by position."""


PoolPlan = GlobalMaxPoolPlan | GlobalAveragePoolPlan | FlattenPlan
HiddenPlan = LinearPlan | ConvPlan | PoolPlan


@dataclass(frozen=True)
class ActorCriticPlan:
    """The layers of one network.

    Attributes:
        trunk: hidden layers; a ReLU follows every linear layer and convolution.
        policy: the layer from the last hidden layer to the logits.
        value: the layer from the last hidden layer to the value.
        deviation_basis: for continuous actions, the basis of the log standard deviations, which are the same for every
            observation, shape (rank, coordinates, 1); None for discrete actions.
        input_scale: the factor of observations before the first layer.
        masked: logits that are `MASKED_LOGIT` for every observation.
        initial_deviation: for continuous actions, the initial standard deviation.
    """

    trunk: tuple[HiddenPlan, ...]
    policy: LinearPlan
    value: LinearPlan
    deviation_basis: Floats | None = None
    input_scale: float = 1.0
    masked: tuple[int, ...] = ()
    initial_deviation: float = 1.0

    @property
    def layers(self) -> tuple[LinearPlan, ...]:
        """All layers with parameters: the trunk, the policy head, the value head."""
        trunk = (layer.linear for layer in self.trunk if not isinstance(layer, PoolPlan))
        return (*trunk, self.policy, self.value)

    @property
    def takes_images(self) -> bool:
        """Whether observations are images (channels, height, width)."""
        return isinstance(self.trunk[0], ConvPlan)

    def layout(self) -> Layout:
        """The layout of the parameters of one run."""
        layout = Layout()
        for layer in self.layers:
            layer.declare(layout)
        if self.deviation_basis is not None:
            layout.add(DEVIATION, (len(self.deviation_basis), 1, 1))
        return layout

    def initial_log_deviation(self) -> Floats | None:
        """The initial coefficients of `deviation_basis`, shape (rank,); None for discrete actions."""
        if self.deviation_basis is None:
            return None
        # The blocks are orbits of coordinates, so every coordinate can have the same value.
        basis = self.deviation_basis[..., 0].T
        wanted = np.full(len(basis), math.log(self.initial_deviation))
        coefficients: Floats = np.linalg.lstsq(basis, wanted, rcond=None)[0]
        return coefficients

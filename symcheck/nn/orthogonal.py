"""Orthogonal initial weights that commute with the group.

The polar factor U = W (W^T W)^(-1/2) of an intertwiner W of orthogonal representations is an intertwiner too, because
functions of W^T W commute with everything that W^T W commutes with. U is the matrix with singular values 1 that is
nearest to W. Such initial weights correspond to those of `torch.nn.init.orthogonal_` for plain layers.
"""

from __future__ import annotations

import torch

from symcheck.nn.linear import BasisLinear

# Singular values below this fraction of the largest belong to directions outside the basis: float64 rounding gives
# values of 1e-16 times the size of the matrix.
_REACHED = 1e-9


def orthogonal_(layer: BasisLinear, gain: float = 1.0, *, generator: torch.Generator | None = None) -> BasisLinear:
    """Initialise an equivariant layer in place with random weights whose singular values are all `gain`.

    On directions on which every intertwiner is zero, the singular values stay 0. Between non-orthogonal representations
    the polar factor is not an intertwiner, so the layer's own initialiser is used, scaled by `gain`.

    Args:
        layer: the layer; its coefficients are replaced and its bias becomes 0.
        gain: the singular values of the plain layer's weight.
        generator: source of randomness; torch's own by default.

    Returns:
        The layer.

    Example:
        >>> from symcheck.groups import cyclic
        >>> from symcheck.representations import regular
        >>> layer = orthogonal_(BasisLinear(regular(cyclic(4)), regular(cyclic(4)), 8, 8), 2.0)
        >>> torch.allclose(torch.linalg.svdvals(layer.materialize().weight), torch.tensor(2.0))
        True

    Source: A. M. Saxe, J. L. McClelland, S. Ganguli (2014), for plain layers; the polar factor as derived above.

    Cost: one singular value decomposition of the plain weight.
    """
    layer.reset_parameters(gain=gain, generator=generator)
    rho_in, rho_out = layer.input_type.rho, layer.output_type.rho
    if not (rho_in.is_orthogonal and rho_out.is_orthogonal) or not layer.basis.rank:
        return layer
    weight = layer.materialize().weight.detach().double()
    left, values, right = torch.linalg.svd(weight, full_matrices=False)
    kept = values > _REACHED * values.max()
    factor = left[:, kept] @ right[kept]
    # From (channels_out * dim_out, channels_in * dim_in) to one matrix per pair of channels.
    shape = (layer.output_type.channels, rho_out.dim, layer.input_type.channels, rho_in.dim)
    blocks = factor.reshape(shape).transpose(1, 2).cpu().numpy()
    with torch.no_grad():
        layer.coefficients.copy_(gain * torch.from_numpy(layer.basis.coefficients(blocks)))
    return layer

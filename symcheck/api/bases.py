"""The layers that a symmetry allows: ranks, parameter counts and certificates, for vectors and for images."""

from __future__ import annotations

from symcheck.entries.forms import SpatialEntry
from symcheck.intertwiners.summary import LayerRow, filter_table, layer_table
from symcheck.representations import constructors
from symcheck.symmetry.symmetry import Symmetry


def layers_of(symmetry: Symmetry) -> list[LayerRow]:
    """One row per kind of layer that a policy network under this symmetry may use.

    Args:
        symmetry: a symmetry with linear observation entries, or with spatial operators on an image.

    Returns:
        For vectors, the layers between observation, hidden units, action and value; for images, convolutions of the
        usual sizes and the layers after the last of them.

    Raises:
        SpecError: observation or action entries that are not linear data (callables, offsets, sub-spaces).

    Example:
        >>> from symcheck.groups import catalog
        >>> mirror = Symmetry("m", catalog.cyclic(2), observation=[[-1, -1, -1, -1]], action=[[1, 0]])
        >>> [row.rank for row in layers_of(mirror)]
        [4, 2, 2, 1, 4, 0]
    """
    spatial = [entry.operator for entry in symmetry.observation if isinstance(entry, SpatialEntry)]
    if spatial and len(spatial) == len(symmetry.observation):
        return _image_layers(symmetry, spatial)
    return layer_table(symmetry.observation_representation, symmetry.action_representation)


def _image_layers(symmetry: Symmetry, spatial: list[str]) -> list[LayerRow]:
    pixels = constructors.trivial(symmetry.group)
    hidden = constructors.regular(symmetry.group)
    after = layer_table(hidden, symmetry.action_representation)
    heads = [row for row in after if row.name in ("hidden -> hidden", "hidden -> action", "hidden -> value")]
    return [*filter_table(pixels, hidden, spatial), *heads]

"""Equivariant torch layers: built from intertwiner bases, checked when composed, exportable as plain torch."""

from symcheck.nn.bilinear import InvariantProducts, TensorProduct
from symcheck.nn.conv import BasisConv2d
from symcheck.nn.dense import to_dense
from symcheck.nn.field_type import EquivariantModule, FieldType
from symcheck.nn.linear import BasisLinear
from symcheck.nn.nonlinearity import GatedNonlinearity, NormNonlinearity, PointwiseNonlinearity
from symcheck.nn.normalization import EquivariantBatchNorm, EquivariantLayerNorm
from symcheck.nn.orthogonal import orthogonal_
from symcheck.nn.pooling import GlobalAveragePool, GlobalMaxPool
from symcheck.nn.sequential import EquivariantHeads, EquivariantSequential
from symcheck.nn.shapes import FlattenPixels, MergeChannels, SplitChannels

__all__ = [
    "BasisConv2d",
    "BasisLinear",
    "EquivariantBatchNorm",
    "EquivariantHeads",
    "EquivariantLayerNorm",
    "EquivariantModule",
    "EquivariantSequential",
    "FieldType",
    "FlattenPixels",
    "GatedNonlinearity",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "InvariantProducts",
    "MergeChannels",
    "NormNonlinearity",
    "PointwiseNonlinearity",
    "SplitChannels",
    "TensorProduct",
    "orthogonal_",
    "to_dense",
]

"""Hypothesis strategies for tests with symmetries: group elements, representations, observations, actions, networks.

Arrays are never drawn entry by entry, because Hypothesis would draw only about 44 images of 21 x 21 per second.
Instead a seed, a scale and a structure are drawn, and the array is computed from them. Shrinking leads to seed 0,
scale 1, all zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from symcheck.errors import SymcheckError
from symcheck.groups import catalog
from symcheck.groups.element import Element
from symcheck.groups.group import Group
from symcheck.representations import constructors, operations
from symcheck.representations.representation import Representation
from symcheck_properties import space_strategies

if TYPE_CHECKING:
    import gymnasium
    from torch import nn

LISTED = 200
"""Elements of groups up to this order are drawn from a list; for larger groups, words of generators are drawn."""


def groups(max_order: int = 24) -> st.SearchStrategy[Group]:
    """Groups of the catalogue: abelian and non-abelian, with one or several generators.

    Args:
        max_order: the largest order.

    Returns:
        A strategy of groups.

    Example:
        >>> from hypothesis import find
        >>> find(groups(4), lambda G: G.order == 4).name
        'C4'
    """
    known: list[Callable[[], Group]] = [
        catalog.trivial,
        *(lambda n=n: catalog.cyclic(n) for n in range(2, 7)),
        *(lambda n=n: catalog.dihedral(n) for n in range(1, 6)),
        *(lambda n=n: catalog.symmetric(n) for n in range(2, 5)),
        lambda: catalog.alternating(4),
        lambda: catalog.hyperoctahedral(2),
        catalog.klein_four,
        catalog.quaternion,
        lambda: catalog.product(catalog.cyclic(2), catalog.cyclic(3)),
        lambda: catalog.product(catalog.cyclic(2), catalog.symmetric(3)),
    ]
    fitting = [make for make in known if make().order <= max_order]
    return st.sampled_from(fitting).map(lambda make: make())


def group_elements(G: Group) -> st.SearchStrategy[Element]:
    """Elements of a group; shrinks to the identity.

    Args:
        G: any group. For groups too large to list, products of up to 30 generators are drawn.

    Returns:
        A strategy of elements.

    Example:
        >>> from hypothesis import given, settings
        >>> D4 = catalog.dihedral(4)
        >>> @given(group_elements(D4))
        ... @settings(max_examples=20, database=None)
        ... def inverses_cancel(g):
        ...     assert g * ~g == D4.identity
        >>> inverses_cancel()
    """
    if G.order <= LISTED:
        return st.sampled_from(G.elements())
    # Words in the generators; the empty word, to which lists shrink, is the identity.
    letters = st.integers(0, len(G.generators) - 1)
    return st.lists(letters, max_size=30).map(G.evaluate)


def representations(G: Group, *, max_dim: int = 12, signed_only: bool = False) -> st.SearchStrategy[Representation]:
    """Representations of a group: ready-made ones, their sums and products, and some in a skewed basis.

    Args:
        G: a group small enough to list.
        max_dim: largest dimension.
        signed_only: whether to draw signed permutation representations only.

    Returns:
        A strategy of representations; shrinks to the trivial one of dimension 1.

    Raises:
        SymcheckError: no representation fits, because max_dim is below 1.

    Example:
        >>> from hypothesis import find
        >>> find(representations(catalog.cyclic(3)), lambda rho: rho.dim > 1).name
        'trivial(C3)'
    """
    if max_dim < 1:
        raise SymcheckError(f"expected a dimension of at least 1, got max_dim = {max_dim}.", where="representations")
    simple = [rho for rho in _ready_made(G, signed_only) if rho.dim <= max_dim]
    base = st.sampled_from(simple)
    pairs = st.tuples(base, base)
    sums = pairs.filter(lambda p: p[0].dim + p[1].dim <= max_dim).map(lambda p: operations.direct_sum(*p))
    products = pairs.filter(lambda p: p[0].dim * p[1].dim <= max_dim).map(lambda p: operations.tensor(*p))
    # Two of dimension 1 or more have a sum of dimension 2 or more, but may have a product of dimension 1.
    options = [base, products] if max_dim == 1 else [base, sums, products]
    if not signed_only:
        options.append(st.tuples(base, st.integers(0, 2**16)).map(lambda drawn: _skew_basis(*drawn)))
    return st.one_of(options)


def _ready_made(G: Group, signed_only: bool) -> list[Representation]:
    # Trivial ones first, because draws shrink towards the front of the list.
    ready: list[Representation] = [constructors.trivial(G), constructors.trivial(G, 2), constructors.natural(G)]
    ready.extend([constructors.regular(G), constructors.sign(G)])
    if G.degree > 1:
        ready.append(constructors.standard(G))
    if signed_only:
        from symcheck.representations.representation import SignedPermutationRepresentation

        ready = [rho for rho in ready if isinstance(rho, SignedPermutationRepresentation)]
    return ready


def _skew_basis(rho: Representation, seed: int) -> Representation:
    """The same representation in a basis that is not orthogonal, with a condition number of at most a few hundred."""
    rng = np.random.default_rng(seed)
    # Upper triangular with ones on the diagonal: always invertible.
    change = np.eye(rho.dim) + np.triu(rng.uniform(-1, 1, (rho.dim, rho.dim)), 1) / max(1, rho.dim - 1)
    inverse = np.linalg.inv(change)
    matrices = [change @ np.asarray(m, dtype=np.float64) @ inverse for m in rho.generator_matrices]
    return constructors.from_matrices(rho.group, matrices, name=f"skewed {rho.name}")


def arrays(shape: tuple[int, ...], *, dtype: Any = np.float32) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    """Dense normal, sparse, constant and zero arrays at scales from 1e-3 to 1e3.

    Args:
        shape: the shape of the array.
        dtype: a floating dtype.

    Returns:
        A strategy of arrays; shrinks to zeros.

    Example:
        >>> from hypothesis import find
        >>> find(arrays((2, 3)), lambda array: True).tolist()
        [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def build(structure: str, seed: int, exponent: int) -> np.ndarray[Any, Any]:
        rng = np.random.default_rng(seed)
        values = rng.standard_normal(shape)
        if structure == "zero":
            values = np.zeros(shape)
        elif structure == "constant":
            values = np.full(shape, rng.standard_normal())
        elif structure == "sparse":
            # Mostly zeros: a single non-zero entry shows which column of a map is wrong.
            values = values * (rng.random(shape) < 0.1)
        return (values * 10.0**exponent).astype(dtype)

    kinds = st.sampled_from(["zero", "constant", "sparse", "dense"])
    return st.builds(build, kinds, st.integers(0, 2**32 - 1), st.sampled_from([0, -3, -2, -1, 1, 2, 3]))


def observations(space: gymnasium.Space[Any]) -> st.SearchStrategy[Any]:
    """Members of an observation space with any nesting; see `space_strategies.values`.

    Args:
        space: any Gymnasium space.

    Returns:
        A strategy of observations; boxes shrink to their centre, sequences and strings to empty ones.

    Example:
        >>> import gymnasium
        >>> box = gymnasium.spaces.Box(-1, 1, (2,))
        >>> from hypothesis import find
        >>> find(observations(box), box.contains).tolist()
        [0.0, 0.0]
    """
    return space_strategies.values(space)


def actions(space: gymnasium.Space[Any]) -> st.SearchStrategy[Any]:
    """Members of an action space with any nesting; see `space_strategies.values`.

    Args:
        space: any Gymnasium space.

    Returns:
        A strategy of actions.

    Example:
        >>> import gymnasium
        >>> from hypothesis import find
        >>> find(actions(gymnasium.spaces.Discrete(2)), lambda action: action > 0)
        1
    """
    return space_strategies.values(space)


def networks(
    rho_in: Representation, rho_out: Representation, *, max_depth: int = 3, max_channels: int = 4
) -> st.SearchStrategy[nn.Module]:
    """Equivariant networks from rho_in to rho_out with random weights, biases included.

    Inputs are (batch, 1, rho_in.dim), outputs (batch, 1, rho_out.dim); hidden layers carry the regular representation.

    Args:
        rho_in: the representation on the input.
        rho_out: the representation on the output, of the same group.
        max_depth: largest number of hidden layers.
        max_channels: largest number of channels.

    Returns:
        A strategy of `symcheck.nn.EquivariantSequential` networks.

    Example:
        >>> C2 = catalog.cyclic(2)
        >>> rho = constructors.regular(C2)
        >>> from hypothesis import find
        >>> len(find(networks(rho, rho), lambda net: len(net) > 1))
        3
    """

    def build(widths: list[int], activation: str, seed: int) -> nn.Module:
        import torch

        from symcheck.nn.linear import BasisLinear
        from symcheck.nn.nonlinearity import PointwiseNonlinearity
        from symcheck.nn.sequential import EquivariantSequential

        layers: list[nn.Module] = []
        rho, channels = rho_in, 1
        for width in widths:
            hidden = constructors.regular(rho_in.group)
            layers.append(BasisLinear(rho, hidden, channels, width))
            layers.append(PointwiseNonlinearity(hidden, activation))
            rho, channels = hidden, width
        layers.append(BasisLinear(rho, rho_out, channels, 1))
        net = EquivariantSequential(*layers)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in net.parameters():
                # Draw biases too: with zero biases, a wrong bias space would not be detected.
                parameter.normal_(generator=generator)
        return net

    widths = st.lists(st.integers(1, max_channels), max_size=max_depth)
    return st.builds(build, widths, st.sampled_from(["relu", "tanh", "gelu"]), st.integers(0, 2**32 - 1))

"""Core operators, classified by their effect along the batch axis."""

from __future__ import annotations

_POINTWISE_NAMES = (
    "where clone _to_copy detach alias lift_fresh_copy lift_fresh copy fill clamp masked_fill gelu silu "
    "glu_jvp native_dropout nan_to_num lerp addcmul addcdiv mul add sub div rsub pow to contiguous "
    "conj_physical _conj resolve_conj hardtanh leaky_relu prelu _prelu_kernel rrelu_with_noise celu elu selu "
    "mish softplus hardswish hardsigmoid softshrink hardshrink threshold log_sigmoid_forward isnan isinf "
    "tanh_backward sigmoid_backward softplus_backward elu_backward gelu_backward silu_backward threshold_backward "
    "leaky_relu_backward isfinite bitwise_not logical_and logical_or logical_not logical_xor heaviside expand "
    "broadcast_to round fmod remainder view_as_real view_as_complex real imag _unsafe_masked_index "
)
POINTWISE = frozenset(_POINTWISE_NAMES.split())
VIEWS = frozenset(["view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "_reshape_alias", "_reshape_copy"])
PERMUTING = frozenset(["permute", "transpose", "t", "numpy_T", "swapaxes", "movedim"])
_ALONG_NAMES = (
    "_softmax softmax _safe_softmax _log_softmax log_softmax sum mean amax amin var std prod argmax argmin "
    "max min sort topk cumsum cumprod flip roll slice select gather index_select cat stack split "
    "split_with_sizes unbind chunk narrow logsumexp unsafe_split unsafe_split_with_sizes unsafe_chunk "
    "linalg_vector_norm norm any all median kthvalue scatter scatter_add scatter_reduce slice_scatter "
    "select_scatter unfold var_mean std_mean aminmax argsort cummax cummin logcumsumexp mode glu "
    "count_nonzero nansum diagonal diag_embed nanmedian renorm split_copy index_add index_fill index_copy index_reduce "
    "diff nanmean unflatten linalg_cross rot90 slice_backward select_backward "
)
ALONG = frozenset(_ALONG_NAMES.split())
LAST_TWO = frozenset(["tril", "triu"])
_UNIFORM_NAMES = (
    "zeros ones full empty zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty "
    "empty_strided new_empty_strided scalar_tensor "
)
UNIFORM = frozenset(_UNIFORM_NAMES.split())
NUMBERING = frozenset(["arange", "range", "linspace", "logspace", "eye", "tril_indices", "triu_indices"])
PRODUCTS = frozenset(["mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "linear", "_sparse_mm"])
_ON_GRIDS_NAMES = (
    "convolution avg_pool max_pool adaptive_avg_pool adaptive_max_pool _adaptive_avg_pool upsample "
    "reflection_pad replication_pad grid_sampler pixel_shuffle pixel_unshuffle channel_shuffle "
    "native_channel_shuffle _upsample im2col col2im max_unpool fractional_max_pool affine_grid _convolution "
    "mkldnn "
)
ON_GRIDS = tuple(_ON_GRIDS_NAMES.split())
MAY_RAISE = ("linalg_", "_linalg", "cholesky", "lu_", "inverse", "multinomial", "_assert", "lstsq", "ormqr", "svd")
RANDOM = ("rand", "normal", "bernoulli", "uniform", "exponential", "poisson", "geometric", "cauchy", "log_normal")
_AT_PLACES_NAMES = "gather index_select scatter scatter_add scatter_reduce index_add index_fill index_copy"
AT_PLACES = {"embedding": "indices", **dict.fromkeys(_AT_PLACES_NAMES.split(), "index")}
"""Operators that read or write at integer positions, with the argument that holds these positions."""

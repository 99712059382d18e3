"""`audit_policy`: measure how far a trained policy is from equivariance on given states, and find the cause."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

import numpy as np

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.api.commands import options_that_differ, to_command
from symcheck.api.options import AuditPolicyKeywords, AuditPolicyOptions
from symcheck.api.report import Report
from symcheck.api.specs import resolve_symmetry
from symcheck.engine.events import Emit, ignore
from symcheck.engine.networks.subject.targets import resolve_network
from symcheck.engine.option_fields import from_keywords, shows_options
from symcheck.engine.policies.runner import run_policy
from symcheck.errors import SpecError
from symcheck.symmetry.symmetry import Symmetry

_KEYS = ("observations", "observation", "obs", "arr_0")


@shows_options(AuditPolicyOptions)
def audit_policy(
    net: Any,
    symmetry: Symmetry | str,
    observations: Any,
    *,
    emit: Emit | None = None,
    **options: Unpack[AuditPolicyKeywords],
) -> Report:
    """Check on given states that a policy is equivariant: its action in a transformed state is the transformed action.

    The residual |pi(g s) - g pi(s)| is reported for each action, in the unit of the action. The report also gives the
    contributions of the observation normaliser, the network and the post-processing. Stochastic policies are compared
    by mean and standard deviation.

    Args:
        net: a module, a zero-argument factory, "module:name", "file.py:name" or a saved network.
        symmetry: a `Symmetry` or a SPEC.
        observations: observations that the policy visits, shape (N, ...); for Dict spaces a mapping from keys to such
            arrays; or the path of an .npz file that contains them.
        emit: receives the engine's events as they happen.
        **options: the fields of `symcheck.api.options.AuditPolicyOptions`: `units` (of actions), `tolerance` (in these
            units; 1e-5 of each action's spread when left out), `checkpoint`, `trust`, `samples`, `max_time`, `alpha`,
            `seed`; None means the default.

    Returns:
        The report; `report["policy_equivariance"].parts` has the residual of each part.

    Raises:
        SymcheckError: the policy, the symmetry, the data or an option cannot be used.

    Example:
        >>> import torch
        >>> from symcheck.groups import catalog
        >>> mirror = Symmetry("mirror", catalog.cyclic(2), observation=[[-1, 1]], action=[[-1]])
        >>> net = torch.nn.Linear(2, 1, bias=False)
        >>> _ = net.weight.data.copy_(torch.tensor([[2.0, 0.0]]))
        >>> audit_policy(net, mirror, np.random.default_rng(0).normal(size=(50, 2))).verdict
        'passed'
    """
    chosen: AuditPolicyOptions = from_keywords(AuditPolicyOptions, options, caller="audit_policy")
    named = resolve_symmetry(symmetry)
    states = _read_states(observations)
    module = resolve_network(net, checkpoint=chosen.checkpoint, trust=chosen.trust)
    command = ""
    if isinstance(net, str) and named.spec is not None and isinstance(observations, str | Path):
        given = options_that_differ(chosen, AuditPolicyOptions())
        command = to_command("audit-policy", net, {"symmetry": named.spec, "data": str(observations), **given})
    result = run_policy(
        module,
        named.symmetry,
        states,
        options=chosen,
        target=net if isinstance(net, str) else type(module).__name__,
        command=command,
        emit=emit or ignore,
    )
    return Report([result])


def _read_states(given: Any) -> Any:
    if isinstance(given, str | Path):
        given = _load(Path(given))
    if isinstance(given, Mapping):
        states: Any = {key: _array(value, f"observations[{key!r}]") for key, value in given.items()}
        counts = {len(value) for value in states.values()}
        if len(counts) != 1:
            raise SpecError(
                f"every key must have the same number of states, got {sorted(counts)}.", where="observations"
            )
        return states
    return _array(given, "observations")


def _array(value: Any, where: str) -> Any:
    value = value.detach().cpu().numpy() if hasattr(value, "detach") else value
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.ndim < 2 or not len(array):
        raise SpecError(
            f"expected a numeric array of shape (N, ...) with N at least 1, got {array.dtype} of shape {array.shape}.",
            where=where,
        )
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise SpecError("the data contains NaN or infinity.", where=where, remedy="Remove these states.")
    return array


def _load(path: Path) -> Any:
    if not path.is_file():
        raise SpecError(f"there is no file {path}.", where="--data", remedy="Save states with numpy.savez.")
    try:
        data = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise SpecError(f"expected an .npz file, got: {error}.", where=f"--data {path}") from error
    if isinstance(data, np.ndarray):
        return data
    tables = {key: data[key] for key in data.files}
    if len(tables) == 1:
        return next(iter(tables.values()))
    named = next((key for key in _KEYS if key in tables), None)
    # A whole vector next to other data (actions, rewards), or one array per key of a Dict space.
    return tables if named is None else tables[named]

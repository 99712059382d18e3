"""Assertions for test suites, which fail with the terminal report."""

from __future__ import annotations

from typing import Any

from symcheck.api.report import Report, SymmetryFailedError
from symcheck.api.verify_env import verify_env
from symcheck.api.verify_net import verify_net

# "undecided" is not evidence: an assertion must not pass.
_ACCEPTED = ("proved", "passed")


def assert_env_symmetric(env: Any, symmetry: Any = None, **options: Any) -> Report:
    """Assert that an environment has a symmetry.

    Args:
        env: as for `verify_env`.
        symmetry: as for `verify_env`.
        **options: as for `verify_env`.

    Returns:
        The report, for further inspection.

    Raises:
        SymmetryFailedError: an AssertionError; the verdict is failed or undecided.
        SymcheckError: the environment, the symmetry or an option cannot be used.

    Example:
        >>> assert_env_symmetric("CartPole-v1", samples=200)
        <Report passed: CartPole-v1 under cartpole/mirror>
    """
    return _require_accepted(verify_env(env, symmetry, **options))


def assert_net_equivariant(net: Any, symmetry: Any, **options: Any) -> Report:
    """Assert that a network is equivariant.

    Args:
        net: as for `verify_net`.
        symmetry: as for `verify_net`.
        **options: as for `verify_net`.

    Returns:
        The report, for further inspection.

    Raises:
        SymmetryFailedError: an AssertionError; the verdict is failed or undecided.
        SymcheckError: the network, the symmetry or an option cannot be used.
    """
    return _require_accepted(verify_net(net, symmetry, **options))


def _require_accepted(report: Report) -> Report:
    if report.verdict not in _ACCEPTED:
        raise SymmetryFailedError(report)
    return report

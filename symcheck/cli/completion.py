"""Shell completion for named values; if nothing matches, the shell offers files.

Each function takes the text typed so far and returns the values that begin with it. No function loads torch.
"""

from __future__ import annotations

from collections.abc import Iterable

METHODS = ("auto", "exact", "paired", "distribution", "trajectory")


def symmetries(incomplete: str) -> list[str]:
    """Names of atlas entries.

    Example:
        >>> symmetries("cartp")
        ['cartpole/mirror']
    """
    from symcheck.envs import atlas

    return _beginning(incomplete, (entry.name for entry in atlas.entries()))


def environments(incomplete: str) -> list[str]:
    """Gymnasium ids that are registered here.

    Example:
        >>> environments("Acro")
        ['Acrobot-v1']
    """
    import gymnasium as gym

    from symcheck.envs import registration

    registration.register()
    return _beginning(incomplete, gym.registry)


def atlas_subjects(incomplete: str) -> list[str]:
    """Arguments of `symcheck atlas`: names of entries, and their environments.

    Example:
        >>> atlas_subjects("cart"), atlas_subjects("CartPole-v1")
        (['cartpole/mirror'], ['CartPole-v1'])
    """
    from symcheck.envs import atlas

    known = atlas.entries()
    ids = {env_id for entry in known for env_id in entry.environments}
    return _beginning(incomplete, [*(entry.name for entry in known), *ids])


def codes(incomplete: str) -> list[str]:
    """Codes of causes (in upper or lower case) and of reasons.

    Example:
        >>> codes("sym00")[:2]
        ['SYM001', 'SYM002']
        >>> codes("nan")
        ['nan_only']
    """
    from symcheck import findings

    causes = _beginning(incomplete.upper(), findings.findings())
    return [*causes, *_beginning(incomplete.lower(), findings.findings("reasons"))]


def methods(incomplete: str) -> list[str]:
    """Methods of `verify-env`.

    Example:
        >>> methods("p")
        ['paired']
    """
    return _beginning(incomplete, METHODS)


def _beginning(incomplete: str, known: Iterable[str]) -> list[str]:
    return sorted(name for name in known if name.startswith(incomplete))

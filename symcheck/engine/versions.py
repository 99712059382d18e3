"""The versions used in a run, for its report."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata


def versions_of(*packages: str) -> dict[str, str]:
    """The version of Python and of each package that is installed.

    Args:
        packages: names of distributions; packages that are not installed are omitted.

    Example:
        >>> list(versions_of("numpy", "no-such-package"))
        ['python', 'numpy']
    """
    versions = {"python": platform.python_version()}
    return versions | {package: version for package in packages if (version := _version(package)) is not None}


@cache  # reading a distribution's metadata from the disk takes milliseconds
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None

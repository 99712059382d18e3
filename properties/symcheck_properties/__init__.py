"""The properties that symcheck checks, one file each.

Importing the package registers every property with `symcheck.engine.registry`, so a new property needs only a new
file here. Property files import no heavy packages; `strategies` and `env_cases` need Hypothesis and are imported on
demand.
"""

from importlib import import_module
from pkgutil import iter_modules

_NOT_PROPERTIES = {"env_cases", "space_strategies", "strategies"}

for _module in iter_modules(__path__):
    if _module.name not in _NOT_PROPERTIES:
        import_module(f"{__name__}.{_module.name}")

import sys
from pathlib import Path

import symcheck_properties  # noqa: F401  (registers the properties)

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "networks")]

import sys
from pathlib import Path

import symcheck_properties  # noqa: F401  (registers the properties)

sys.path.insert(0, str(Path(__file__).parent))

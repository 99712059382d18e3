import sys
from pathlib import Path

import pytest

pytest.importorskip("mujoco")
sys.path.insert(0, str(Path(__file__).parent))

import sys
from pathlib import Path

HERE = Path(__file__).parent
TABLES = ["defects/networks", "defects/environments", "networks"]
sys.path[:0] = [str(HERE), *(str(HERE.parent / folder) for folder in TABLES)]

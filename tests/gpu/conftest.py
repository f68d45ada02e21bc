"""These tests use the support of tests/python, and the number of GPUs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python" / "support"))

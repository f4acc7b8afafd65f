"""Side by side with peers, in one run, printed as ratios."""

from __future__ import annotations

import sys
from pathlib import Path

# The Pinocchio twins of our robots live with the tests.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

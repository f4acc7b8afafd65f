"""Settings that must be in place before NumPy is imported."""

from __future__ import annotations

import os

# Tests run in two processes on two cores: more threads inside each would only wait for one another.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

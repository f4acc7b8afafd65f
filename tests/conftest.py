"""Settings that must be in place before NumPy is imported, and how tests draw their examples."""

from __future__ import annotations

import os

from hypothesis import settings

# Tests run in two processes on two cores: more threads inside each would only wait for one another.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# What fails once must fail for everybody. `--hypothesis-profile searching` draws other examples each time, `bench fuzz` many.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("searching", derandomize=False)
settings.load_profile("repeatable")

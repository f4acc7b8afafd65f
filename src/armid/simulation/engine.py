"""MuJoCo's own manners: by default it writes its warnings to a file in the working directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from armid.errors import MissingDependencyError

try:
    import mujoco
except ImportError:
    raise MissingDependencyError("mujoco", "the embedded robot and shapes of links", "sim") from None


@contextmanager
def engine_warnings() -> Iterator[list[str]]:
    """Collects MuJoCo's warnings instead of letting them be written to MUJOCO_LOG.TXT."""
    collected: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(collected.append)
    try:
        yield collected
    finally:
        mujoco.set_mju_user_warning(before)

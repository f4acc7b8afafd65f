"""Words for how measurements are read and fitted; free of NumPy, so that the command line knows them before it starts."""

from __future__ import annotations

from enum import StrEnum


class StepRule(StrEnum):
    """How a step is taken."""

    LEAST_SQUARES = "least-squares"
    """[Kolyubin2017] eq. 11: the full linear step, every time."""
    LEVENBERG_MARQUARDT = "levenberg-marquardt"
    """[Kolyubin2017] eq. 12: damped by `lambda diag(W^T W)`; lambda / 10 after a better step, * 10 after a worse one."""


class SetupSharing(StrEnum):
    """Whether several files share sensor and tool frames."""

    AUTO = "auto"
    """As the data say: shared when common frames fit about as well as separate ones."""
    SHARED = "shared"
    PER_FILE = "per-file"


class LengthUnit(StrEnum):
    """Of positions and sliding joints in a file."""

    M = "m"
    MM = "mm"


class AngleUnit(StrEnum):
    """Of joint angles and Euler angles in a file."""

    RAD = "rad"
    DEG = "deg"


class SensorPlace(StrEnum):
    """Where the sensor is."""

    FIXED = "fixed"
    """It stands still and sees a target on the arm."""
    HAND = "hand"
    """It rides on the arm and sees a target that stands still."""


QUATERNION_ORDERS = ("quaternion-wxyz", "quaternion-xyzw")
_ORDERS = ("xyz", "zyx", "xzy", "yxz", "yzx", "zxy", "zyz", "zxz", "xyx", "xzx", "yxy", "yzy")
EULER = tuple(f"euler-{order}" for order in _ORDERS)
MOVING_EULER = tuple(f"euler-{order.upper()}" for order in _ORDERS)
ORIENTATIONS = (*QUATERNION_ORDERS, *EULER, *MOVING_EULER, "rotation-vector")
"""How three or four orientation columns are read; lower-case Euler orders are about fixed axes, upper-case about moving ones."""

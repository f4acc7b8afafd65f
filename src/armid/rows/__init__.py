"""Sources of rows: what a measurement says about the parameters, linear in them. Each loads when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_ROWS = {
    "AxisInertiaRows": "axis_inertia",
    "OneSensorRows": "elastic",
    "GravityRows": "gravity",
    "InertiaMatrixRows": "inertia_matrix",
    "PoseRows": "pose",
    "TorqueRows": "torque",
    "TwoSensorRows": "elastic",
}

__all__ = list(_ROWS)


def __getattr__(name: str) -> Any:
    if name in _ROWS:
        return getattr(import_module(f"armid.rows.{_ROWS[name]}"), name)
    raise AttributeError(f"module 'armid.rows' has no attribute {name!r}")

"""Sources of rows `y = A(x) pi`: whatever an experiment can tell, as something to compile, accumulate and solve."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from armid.rows.axis_inertia import AxisInertiaRows
    from armid.rows.elastic import OneSensorRows, TwoSensorRows
    from armid.rows.gravity import GravityRows
    from armid.rows.inertia_matrix import InertiaMatrixRows
    from armid.rows.pose import PoseRows
    from armid.rows.quantity import Quantity, sources_for
    from armid.rows.torque import TorqueRows, space_of

__all__ = [
    "AxisInertiaRows",
    "GravityRows",
    "InertiaMatrixRows",
    "OneSensorRows",
    "PoseRows",
    "Quantity",
    "TorqueRows",
    "TwoSensorRows",
    "sources_for",
    "space_of",
]

_PLACES = {
    "AxisInertiaRows": "axis_inertia",
    "GravityRows": "gravity",
    "InertiaMatrixRows": "inertia_matrix",
    "OneSensorRows": "elastic",
    "PoseRows": "pose",
    "Quantity": "quantity",
    "TorqueRows": "torque",
    "TwoSensorRows": "elastic",
    "sources_for": "quantity",
    "space_of": "torque",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

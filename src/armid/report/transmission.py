"""The page about elastic joints."""

from __future__ import annotations

from armid.page import Figure, Report, Section
from armid.report.judged import judged_page
from armid.report.plots import BLUE, axes, short
from armid.transmission.one_sensor import OneSensorJoint
from armid.transmission.transmission import Transmission, joints_table


def transmission_page(found: Transmission) -> Report:
    """Stiffness of every joint with its interval."""
    section = Section("joints", "Joints", (joints_table(found.joints), _stiffness_figure(found)))
    return judged_page(found, f"{found.robot.name}: elastic joints", f"{len(found.joints)} joints", section)


def _stiffness_figure(found: Transmission) -> Figure:
    deviations = [
        j.stiffness_deviation if isinstance(j, OneSensorJoint) else float(j.standard_deviations[0])
        for j in found.joints
    ]
    bars = {
        "type": "scatter",
        "mode": "markers",
        "x": [joint.joint for joint in found.joints],
        "y": short([joint.stiffness for joint in found.joints]),
        "error_y": {"type": "data", "array": short([2.0 * s for s in deviations])},
        "name": "stiffness",
        "marker": {"color": BLUE, "size": 9},
    }
    caption = "Stiffness with two standard deviations on either side; joints that came out rigid have no point."
    return Figure("stiffness", (bars,), axes("joint", "stiffness [N m/rad]"), caption)

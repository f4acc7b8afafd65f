"""`armid elastic`: stiffness and motor inertia of elastic joints."""

from __future__ import annotations

from typing import Any

from armid.cli import experiment_options as own
from armid.cli import options as opt
from armid.cli.experiment import Answer, experiment


@experiment
def elastic(
    robot: opt.RobotArgument,
    logs: opt.LogsArgument,
    joint: own.ElasticJointOption = None,
    motor_inertia: own.ElasticMotorInertiaOption = None,
    eccentric: own.ElasticEccentricOption = None,
    one_sensor: own.ElasticOneSensorOption = False,
    instruments: own.ElasticInstrumentsOption = True,
    cutoff_hz: own.ElasticCutoffHzOption = None,
    **where: Any,
) -> Answer:
    """Stiffness and motor inertia of joints with encoders on both sides of the transmission.

    For example `armid elastic kr300.yaml kr300-A-elastic.yaml --joint joint2`.
    """
    from armid.transmission.identify import identify_transmission

    return identify_transmission(
        robot,
        logs,
        joints=joint,
        motor_inertia=motor_inertia or (),
        one_sensor=one_sensor,
        instruments=instruments,
        eccentric=eccentric,
        cutoff_hz=cutoff_hz,
        **where,
    )

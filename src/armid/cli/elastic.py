"""`armid elastic`: stiffness and motor inertia of elastic joints."""

from __future__ import annotations

from armid.cli import experiment_options as own
from armid.cli import options as opt
from armid.cli.output import busy, render, verb


@verb
def elastic(
    robot: opt.RobotArgument,
    logs: opt.LogsArgument,
    joint: own.ElasticJointOption = None,
    motor_inertia: own.ElasticMotorInertiaOption = None,
    eccentric: own.ElasticEccentricOption = None,
    one_sensor: own.ElasticOneSensorOption = False,
    instruments: own.ElasticInstrumentsOption = True,
    cutoff_hz: own.ElasticCutoffHzOption = None,
    data_root: opt.DataRootOption = None,
    out: opt.OptionalOutOption = None,
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Stiffness and motor inertia of joints with encoders on both sides of the transmission.

    For example `armid elastic kr300.yaml kr300-A-elastic.yaml --joint joint2`.
    """
    from armid.transmission.identify import identify_transmission

    found = busy("reading and fitting", identify_transmission)(
        robot,
        logs,
        joints=joint,
        motor_inertia=motor_inertia or (),
        one_sensor=one_sensor,
        instruments=instruments,
        eccentric=eccentric,
        cutoff_hz=cutoff_hz,
        data_root=data_root,
        base=base,
        tip=tip,
    )
    render(found, as_json=as_json, out=out)

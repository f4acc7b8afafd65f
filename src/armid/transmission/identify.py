"""`armid.identify_transmission`: recordings of an arm with elastic joints in, stiffness and motor inertia out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from armid.errors import InputError, UnknownNameError
from armid.identification.inputs import LogsInput, Recordings, RobotInput, files_of, robot_of
from armid.logs.log import Channel, Log, matched
from armid.outcome import Provenance
from armid.robot.robot import Robot
from armid.threads import one_blas_thread
from armid.transmission.one_sensor import OneSensorJoint, OneSensorSearch
from armid.transmission.transmission import Transmission, joint_checks
from armid.transmission.two_encoders import STILL, ElasticJoint, TransmissionSearch

_CUTOFF = 10.0
"""[Hz] With encoders on both sides."""

_ONE_SENSOR_CUTOFF = 6.0
"""[Hz] With one encoder, whose fourth derivative is needed."""


@one_blas_thread
def identify_transmission(
    robot: RobotInput,
    logs: LogsInput,
    *,
    joints: Sequence[str] | None = None,
    motor_inertia: Mapping[str, float] | Sequence[str] = (),
    one_sensor: bool = False,
    instruments: bool = True,
    eccentric: bool | None = None,
    cutoff_hz: float | None = None,
    data_root: str | Path | None = None,
    base: str | None = None,
    tip: str | None = None,
) -> Transmission:
    """Stiffness and motor inertia of elastic joints, [Gaz2014] eqs. 2 and 4-5.

    Args:
        robot: the arm, or where its description is; only its kinematics are used.
        logs: recordings of link position, motor position and motor torque (paths or logs).
        joints: which; every one whose link moves by default.
        motor_inertia: joint -> motor inertia times gear ratio squared [kg m^2] where it is known, or words `joint1=600`; then
            it is not fitted.
        one_sensor: do without the motors' encoders: B / K, and the stiffness where the motor's inertia is known.
        instruments: let the columns of the rigid model stand in for the measured deflection, which removes the bias that
            errors of the encoders cause; without them plain least squares.
        eccentric: whether encoders may be off centre (an error once per turn); where gravity loads nothing by default.
        cutoff_hz: of the zero-phase low-pass on everything [Hz]; 10, with one sensor 6.
        data_root: where mapping files find recordings.
        base, tip: links of a branched URDF between which the arm lies.

    Raises:
        UnknownNameError: a joint or channel that does not exist.
        InputError: recordings of the wrong kind.
    """
    arm = robot_of(robot, base=base, tip=tip)
    read = [matched(log, arm) for log in Recordings(data_root=data_root).read(logs, arm)]
    if not read:
        raise InputError("recordings", "there are none", "motor and link position, and motor torque")
    names = tuple(joints) if joints else _moving(read[0])
    known = _known_inertias(motor_inertia, read[0].joints)
    cutoff = cutoff_hz or (_ONE_SENSOR_CUTOFF if one_sensor else _CUTOFF)
    found: tuple[ElasticJoint, ...] | tuple[OneSensorJoint, ...]
    if one_sensor:
        with_one = OneSensorSearch(cutoff=cutoff, motor_inertia=known)
        found = tuple(with_one.fit(read, name, arm) for name in names)
    else:
        with_two = TransmissionSearch(cutoff=cutoff, motor_inertia=known, eccentric=eccentric)
        model: Robot | None = arm if instruments else None
        found = tuple(with_two.fit(read, name, model) for name in names)
    settings = {"one_sensor": one_sensor, "instruments": instruments, "cutoff_hz": cutoff, "motor_inertia": known}
    return Transmission(
        robot=arm,
        joints=found,
        checks=tuple(check for joint in found for check in joint_checks(joint)),
        notes=tuple(note for joint in found for note in joint.notes),
        provenance=Provenance(inputs=files_of(arm, read), settings=settings),
    )


def _moving(log: Log) -> tuple[str, ...]:
    """Joints whose link moves."""
    if Channel.POSITION not in log:
        raise UnknownNameError(
            f"channel in {log.name}", Channel.POSITION.value, [channel.value for channel in log.channels]
        )
    travel = np.ptp(log[Channel.POSITION], axis=0)
    return tuple(name for name, way in zip(log.joints, travel, strict=True) if way > STILL)


def _known_inertias(given: Mapping[str, float] | Sequence[str], joints: Sequence[str]) -> dict[str, float]:
    """Motor inertias by joint, from a mapping or from words `joint1=609`.

    Raises:
        InputError: not a positive number.
        UnknownNameError: a joint that does not exist.
    """
    pairs = given.items() if isinstance(given, Mapping) else (word.partition("=")[::2] for word in given)
    out: dict[str, float] = {}
    for name, text in pairs:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not 0.0 < value < float("inf"):
            raise InputError("motor inertia", f"{name}={text}", "expected JOINT=KGM2, for example joint1=600")
        if name not in joints:
            raise UnknownNameError("joint", name, joints)
        out[name] = value
    return out

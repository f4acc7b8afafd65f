"""Rotor inertias that are there and not estimated are noticed; those that are not there are not."""

from __future__ import annotations

import numpy as np
import pytest

from armid.arrays import FloatArray
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import Run, information_of
from armid.identifiability.structure import structural_base
from armid.identification.omitted import missing_rotors, unfelt_rotors
from armid.kernels.dynamics import inverse_dynamics
from armid.logs.log import Channel
from armid.notes import Note
from armid.parameters.effects import Effects, TorqueSide
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows

ROBOT = load_robot("panda")
NOISE = 0.05


def motion(seconds: float, rate: float) -> FloatArray:
    rng = np.random.default_rng(4)
    t = np.arange(0.0, seconds, 1.0 / rate)[:, np.newaxis, np.newaxis]
    w, phase, a = rng.uniform(1.0, 4.0, (3, 7)), rng.uniform(0.0, 6.0, (3, 7)), 0.3
    angle = w * t + phase
    waves = (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle))
    return np.hstack([a * x.sum(axis=1) for x in waves])


def notes(rotors: FloatArray, effects: Effects) -> tuple[Note, ...]:
    x = motion(10.0, 100.0)
    q, qd, qdd = np.split(x, 3, axis=1)
    rng = np.random.default_rng(5)
    torque = inverse_dynamics(ROBOT, q, qd, qdd) + rotors * qdd + NOISE * rng.normal(size=q.shape)
    source = TorqueRows(ROBOT, effects)
    runs = [Run(name="motion", source=source, inputs=x, y=torque, rate=100.0)]
    estimate = WeightedLeastSquares().fit(information_of(runs), structural_base(source))
    return missing_rotors(runs, estimate)


def test_what_is_missing_is_said() -> None:
    (note,) = notes(np.full(7, 0.1), Effects(viscous=True))
    assert note.code == "rotor-inertia-missing"
    assert "--rotor-inertia" in note.message


@pytest.mark.parametrize(
    ("rotors", "effects"), [(0.0, Effects(viscous=True)), (0.1, Effects(viscous=True, rotor_inertia=True))]
)
def test_nothing_is_said_without_reason(rotors: float, effects: Effects) -> None:
    assert notes(np.full(7, rotors), effects) == ()


def test_negative_ones_mend_something_else() -> None:
    assert notes(np.full(7, -0.1), Effects(viscous=True)) == ()


def test_rotors_asked_of_joint_torque_sensors_are_said_to_be_unfelt() -> None:
    asked, both = Effects(rotor_inertia=True), (Channel.LINK_TORQUE, Channel.MOTOR_TORQUE)
    (note,) = unfelt_rotors(asked, both)
    assert "--torques motor" in note.message
    assert unfelt_rotors(Effects(), both) == ()
    assert unfelt_rotors(Effects(torques=TorqueSide.MOTOR), both) == ()
    assert unfelt_rotors(asked, (Channel.LINK_TORQUE,)) == (), "the only torque there is may be the motors'"

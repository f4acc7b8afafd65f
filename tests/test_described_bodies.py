"""A common gain and a payload nobody mentioned, held against the described bodies: sized where planted, else bounded or open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.estimation.estimate import Estimate
from armid.identifiability.structure import structural_base
from armid.identification.described_bodies import drive_gain_faults, payload_faults, scale_faults
from armid.identification.faults import Answer, Fault
from armid.identification.gains import DriveGains
from armid.identification.metrics import nominal_standard
from armid.parameters.effects import Effects
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from armid.simulation.variation import varied

EFFECTS = Effects(viscous=True, coulomb=True, offset=True)


def faults(
    *,
    gain: float = 1.0,
    mass: float = 0.0,
    name: str = "panda",
    off: float = 0.1,
    described: float = 1.0,
    seed: int = 0,
) -> dict[str, Fault]:
    """Of an arm off its description, carrying a mass, with torque multiplied and the described bodies, too."""
    robot = load_robot(name)
    base = structural_base(TorqueRows(robot, EFFECTS))
    specimen = varied(robot, off, np.random.default_rng(seed))
    values = nominal_standard(specimen, base.parameters)
    last = [base.parameters.index(f"link{robot.n_joints}.{q}") for q in ("mass", "mx", "my", "mz")]
    values[last] += mass * np.array([1.0, 0.01, 0.02, 0.15])
    links = [
        replace(link, inertial=None if link.inertial is None else described * np.asarray(link.inertial))
        for link in robot.links
    ]
    estimate = Estimate(
        base=base,
        units=("",) * len(base),
        values=gain * base.values(values),
        covariance=1e-8 * np.eye(len(base)),
        covariance_kind="iid",
        sigma={},
        method="planted",
    )
    found = scale_faults(replace(robot, links=tuple(links)), estimate, rows_per_sample=1.0, gains_known=False)
    return {fault.kind: fault for fault in found}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mass", [2.0, 4.0])
def test_a_payload_is_found_and_its_interval_holds_it(mass: float, seed: int) -> None:
    payload = faults(mass=mass, seed=seed)["payload"]
    assert payload.answer is Answer.FOUND
    assert payload.low < mass < payload.high
    assert not payload.large  # the model predicts the arm as it was recorded


@pytest.mark.parametrize("seed", range(3))
def test_without_one_none_is_found_and_a_small_one_is_open(seed: int) -> None:
    for mass in (0.0, 0.2):
        found = faults(mass=mass, seed=seed)
        assert found["payload"].answer is not Answer.FOUND
        assert found["payload"].low <= mass < found["payload"].high
        assert found["common gain"].answer is not Answer.FOUND


@pytest.mark.parametrize("gain", [0.4, 2.0, 10.0])
def test_torques_that_are_all_too_large_are_found(gain: float) -> None:
    found = faults(gain=gain)["common gain"]
    assert found.answer is Answer.FOUND
    assert found.low < gain - 1.0 < found.high
    assert found.large == (gain == 10.0)  # in another unit, and then no reason to trust the model


def test_a_description_far_off_says_less() -> None:
    good, bad = (
        np.mean([faults(off=off, seed=k)["payload"].standard_deviation for k in range(5)]) for off in (0.1, 1.0)
    )
    assert bad > 1.3 * good


def test_gains_of_currents_are_part_of_the_drive_gains_and_said_to_be() -> None:
    assert drive_gain_faults(None) == ()
    base = structural_base(TorqueRows(load_robot("cmu-dd-arm2"), EFFECTS))
    planted = Estimate(
        base=base,
        units=("",) * len(base),
        values=np.ones(len(base)),
        covariance=np.eye(len(base)),
        covariance_kind="iid",
        sigma={},
        method="planted",
    )
    gains = DriveGains(
        estimate=planted,
        channels=("a", "b"),
        values=np.array([11.5, 8.0]),
        standard_deviations=np.ones(2),
        iterations=1,
    )
    found = drive_gain_faults(gains)
    assert [(fault.name, fault.answer) for fault in found] == [
        ("gain of a", Answer.UNDECIDABLE),
        ("gain of b", Answer.UNDECIDABLE),
    ]
    assert "11.5 N m/A" in found[0].experiment


def test_a_description_without_masses_says_nothing() -> None:
    found = faults(described=0.0)
    assert {fault.answer for fault in found.values()} == {Answer.UNDECIDABLE}
    assert all(not np.isfinite(fault.bound) for fault in found.values())


def test_a_payload_has_no_negative_mass() -> None:
    missing, payload = payload_faults(0.1, -0.8, 0.1)
    assert missing.kind == "missing load"
    assert missing.answer is Answer.FOUND
    assert missing.low < 0.8 < missing.high
    assert "not mounted" in missing.words
    assert payload.answer is Answer.EXCLUDED
    assert payload.bound == 0.0
    (open_,) = payload_faults(0.1, -0.2, 0.3)
    assert open_.answer is Answer.UNDECIDABLE
    assert open_.estimate == open_.low == 0.0
    (carried,) = payload_faults(0.1, 0.8, 0.1)
    assert carried.kind == "payload"
    assert carried.answer is Answer.FOUND

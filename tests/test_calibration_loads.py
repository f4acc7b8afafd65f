"""Under which torque joints sag: measured ones, and the weight of a tool that no description has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.calibration.calibrate import calibrate
from armid.calibration.read import read_poses
from armid.cli import application
from armid.errors import InputError
from armid.kernels.dynamics import gravity
from armid.kinematics.correction import load_correction, read_correction
from armid.kinematics.load import with_tool
from armid.kinematics.measurement import joined
from armid.robot.load import load_robot
from tests.support.calibration_cells import Cell

SOFT = -2e-5 * np.array([0.5, 1.0, 1.5, 1.0, 2.0, 2.0, 1.0])
"""[rad/(N m)] of every joint: below zero, as joints sag."""


@pytest.fixture(scope="module")
def cell():
    return Cell.drawn("panda", seed=8, size=0.2)


def compliances(found):
    return np.array([found.parameters[f"joint{k}.compliance"].value for k in range(2, 7)])


def test_measured_torques_drive_compliance_where_the_description_has_no_masses(cell):
    """Torques that no gravity explains: somebody pulls at the arm."""
    rng = np.random.default_rng(0)
    q = cell.poses(70, rng)
    torque = 30.0 * rng.normal(size=q.shape)
    m = cell.measured(70, rng, q=q, joints=lambda q: SOFT * torque)
    light = cell.robot.with_inertial(np.zeros(70))
    with pytest.raises(InputError, match="measure joint torques"):
        calibrate(light, m, terms="offset,compliance")
    found = calibrate(light, replace(m, torque=torque + 0.05 * rng.normal(size=q.shape)))
    assert "compliance" in found.as_dict()["terms"]
    assert np.allclose(compliances(found), SOFT[1:6], atol=4e-6)
    assert found.held_out.after.position.mean() < 2.5e-4
    assert any(n.code == "measured-torque" and "leave the sag out" in n.message for n in found.notes)


def test_a_stated_tool_sags_with_the_arm_and_stays_out_of_the_description(cell, tmp_path):
    rng = np.random.default_rng(1)
    arm = with_tool(cell.robot, 3.0, (0.0, 0.05, 0.1))
    m = cell.measured(70, rng, joints=lambda q: SOFT * gravity(arm, q))
    stated = {"terms": "offset,compliance", "tool_mass": 3.0, "tool_centre": (0.0, 0.05, 0.1)}
    found, without = calibrate(cell.robot, m, **stated), calibrate(cell.robot, m, terms="offset,compliance")
    assert found.held_out.after.position.mean() < without.held_out.after.position.mean()
    assert np.allclose(compliances(found)[:4], SOFT[1:5], rtol=0.2)
    assert np.array_equal(found.robot.inertial, cell.robot.inertial)
    found.save(tmp_path / "out")
    model, values = load_correction(tmp_path / "out" / "correction.json", cell.robot)
    assert np.allclose(model.robot.inertial, arm.inertial)
    assert np.allclose(values, found.fit.after.values, atol=1e-12)
    assert np.array_equal(
        read_correction(tmp_path / "out" / "correction.json", cell.robot).robot.inertial, cell.robot.inertial
    )


def test_torque_columns_are_read_by_name_or_number_and_halves_are_refused(tmp_path):
    arm = load_robot("ur10e")
    q, tau = np.arange(12.0).reshape(2, 6) / 10, np.arange(12.0).reshape(2, 6)

    def written(titles):
        path = tmp_path / "p.csv"
        head = [f"q{k}" for k in range(1, 7)] + titles + ["x", "y", "z"]
        rows = [",".join(map(str, [*a, *b[: len(titles)], 0.1, 0.2, 0.3])) for a, b in zip(q, tau, strict=True)]
        path.write_text("\n".join([",".join(head), *rows]) + "\n")
        return read_poses(path, arm.joint_names)

    for titles in ([f"tau{k}" for k in range(1, 7)], [f"torque_{name}" for name in arm.joint_names]):
        found = written(titles)
        np.testing.assert_array_equal(found.torque, tau)
        assert not found.remarks
    assert written([]).torque is None
    with pytest.raises(InputError, match="joint torques without tau6"):
        written([f"tau{k}" for k in range(1, 6)])
    both = joined([written([f"tau{k}" for k in range(1, 7)]), written([])])
    assert np.isnan(both.torque[2:]).all()
    np.testing.assert_array_equal(both.subset(np.array([False, True, False, False])).torque, tau[1:])


@pytest.mark.parametrize("words", [["--tool-mass-kg", "-1"], ["--tool-mass-kg", "1", "--tool-centre-m", "1,2"]])
def test_a_tool_that_cannot_be_is_refused(tmp_path, words):
    path = tmp_path / "p.csv"
    path.write_text("q1,q2,q3,q4,q5,q6,x,y,z\n0,0,0,0,0,0,1,2,3\n")
    done = CliRunner().invoke(application(), ["calibrate", "ur10e", str(path), "--out", str(tmp_path / "o"), *words])
    assert done.exit_code == 1
    assert "tool" in done.stderr

"""Signs, sizes and ranges that cannot be, or were not measured, are told."""

from dataclasses import replace

import numpy as np
import pytest

from armid.calibration.calibrate import calibrate
from armid.calibration.fit import fit
from armid.calibration.physics import physics_notes, range_notes
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.correction import load_correction
from armid.kinematics.measurement import Observations, Observed
from armid.kinematics.model import ErrorModel, covering
from armid.kinematics.words import Term
from tests.support.calibration_cells import Cell

RICH = ErrorModel(terms=frozenset({Term.OFFSET, Term.ECCENTRICITY}))
TERMS = frozenset({Term.OFFSET, Term.ECCENTRICITY, Term.COMPLIANCE})


def test_a_joint_that_rises_under_load_and_a_gear_too_eccentric_are_told():
    cell, rng = Cell.drawn("ur10e", seed=2, size=0.1), np.random.default_rng(2)
    found = fit(cell.robot, cell.measured(30, rng), ErrorModel(terms=TERMS))
    values, covariance = np.zeros_like(found.after.values), 1e-12 * np.eye(len(found.after.values))
    for name, value in (("joint2.compliance", 3e-5), ("joint3.compliance", -3e-5), ("joint1.eccentricity_sin", 8e-3)):
        values[found.model.index(name)] = value
    changed = replace(found, after=replace(found.after, values=values, covariance=covariance))
    notes = physics_notes(changed)
    assert [n.code for n in notes] == ["compliance-sign", "eccentricity-size"]
    assert notes[0].subject == "joint2.compliance"
    assert "(try --terms offset,gain)" in notes[1].message

    # Among six joints one is beyond two deviations on the wrong side every eighth time, with nothing behind it.
    by_chance = replace(changed.after, covariance=(1.2e-5) ** 2 * np.eye(len(values)))
    assert [n.code for n in physics_notes(replace(changed, after=by_chance))] == ["eccentricity-size"]


def test_leaving_the_calibrated_ranges_is_told():
    seen = np.array([[0.0, -1.0], [1.0, 1.0]])
    assert range_notes(("a", "b"), seen, np.array([[0.5, 1.05]]), "targets") == []
    (note,) = range_notes(("a", "b"), seen, np.array([[0.5, 1.5]]), "targets")
    assert "targets leave the calibrated joint ranges (b by 0.5 beyond -1 to 1" in note.message


def test_eccentricity_is_held_where_nothing_was_measured(tmp_path):
    """Seen over a sixth of a turn a sine says nothing about the rest: beyond it the value at the edge is kept."""
    cell, rng = Cell.drawn("ur10e", seed=4, size=0.2), np.random.default_rng(2)

    def gear(q):  # what no model here has
        return 4e-4 * np.sin(3.0 * q)

    near, far = rng.uniform(-0.5, 0.5, (60, 6)), rng.uniform(-2.5, 2.5, (40, 6))
    m = cell.measured(60, rng, q=near, joints=gear)
    found = calibrate(cell.robot, m, validate=cell.measured(40, rng, q=far, joints=gear), candidates=[RICH])
    free = covering(found.fit.model, dict.fromkeys(range(6), (-np.inf, np.inf)))
    want = predicted_poses(cell.model, cell.values, far + gear(far), setup="sensor", target="tool")[:, :3, 3]
    values = found.fit.after.values
    errors = [
        np.linalg.norm(
            predicted_poses(model, values, far, setup="sensor", target="tool")[:, :3, 3] - want, axis=1
        ).mean()
        for model in (found.fit.model, free)
    ]
    assert errors[0] < 0.7 * errors[1]
    assert found.held_out.after.position.mean() == pytest.approx(errors[0], rel=0.1)
    assert any(n.code == "beyond-range" for n in found.notes)
    found.save(tmp_path / "out")
    model, stored = load_correction(tmp_path / "out" / "correction.json", cell.robot)
    again = predicted_poses(model, stored, far, setup="sensor", target="tool")
    assert np.allclose(again, predicted_poses(found.fit.model, values, far, setup="sensor", target="tool"), atol=1e-9)


def test_lengths_averaged_with_positions_are_told_apart():
    cell, rng = Cell.drawn("ur10e", seed=5), np.random.default_rng(3)
    m = cell.measured(40, rng)
    p = m.observations[0].position
    rows, others = np.arange(0, 40, 2), np.arange(1, 40, 2)
    bar = Observations(
        quantity=Observed.LENGTH, rows=rows, other_rows=others, distance=np.linalg.norm(p[rows] - p[others], axis=1)
    )
    both = replace(m, observations=(*m.observations, bar))
    (note,) = (n for n in calibrate(cell.robot, both, terms="offset", folds=1).notes if n.code == "mixed-kinds")
    assert "40 positions" in note.message
    assert "20 lengths" in note.message
    assert not any(n.code == "mixed-kinds" for n in calibrate(cell.robot, m, terms="offset", folds=1).notes)


def test_an_error_that_flatters_is_told():
    """Eight poses of a seven-joint arm: the fit passes through them, and says so."""
    cell, rng = Cell.drawn("iiwa14", seed=11, size=0.25), np.random.default_rng(4)
    few, many = (calibrate(cell.robot, cell.measured(n, rng), terms="offset", folds=2) for n in (8, 80))
    (note,) = (n for n in few.notes if n.code == "few-configurations")
    assert "48 equations for" in note.message
    assert not any(n.code in ("few-configurations", "unlike-configurations") for n in many.notes)
    # Enough of them, but held out elsewhere, where gears err otherwise: more of the same would not help, and is not asked for.
    near, far = (
        cell.measured(60, rng, q=x * cell.poses(60, rng), joints=lambda q: 1e-3 * np.sin(3 * q)) for x in (0.2, 1)
    )
    unlike = calibrate(cell.robot, near, validate=far, terms="offset", setups="shared")
    (note,) = (n for n in unlike.notes if "configurations" in n.code)
    assert note.code == "unlike-configurations"
    assert "measure where the arm will work" in note.message


def test_a_tool_direction_that_poses_hardly_show_stays_where_it_was():
    """Eight poses with the tool pointing down, but for a milliradian: how far it hangs is noise, and is not followed."""
    cell, rng = Cell.drawn("ur10e", seed=6, size=0.1), np.random.default_rng(5)
    q = rng.uniform(-1.2, 1.2, (8, 6))
    q[:, 3] = -np.pi / 2 - q[:, 1] - q[:, 2]
    q[:, 4] = -np.pi / 2
    q[:, 3:5] += 1e-3 * rng.normal(size=(8, 2))
    found = fit(cell.robot, cell.measured(8, rng, q=q, position=3e-4, orientation=5e-4))
    names = [f"tool.{axis}" for axis in ("tx", "ty", "tz")]
    places = [found.model.index(name) for name in names]
    held = [i for i in places if not found.after.selection.kept[i]]
    assert len(held) == 1
    assert np.abs(found.after.values[places]).max() < 0.01

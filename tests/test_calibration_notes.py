"""Signs, sizes and ranges that cannot be, or were not measured, are told."""

from dataclasses import replace

import numpy as np

from armid.calibration.fit import fit
from armid.calibration.physics import physics_notes, range_notes
from armid.kinematics.model import ErrorModel
from armid.kinematics.words import Term
from tests.support.calibration_cells import Cell

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


def test_leaving_the_calibrated_ranges_is_told():
    seen = np.array([[0.0, -1.0], [1.0, 1.0]])
    assert range_notes(("a", "b"), seen, np.array([[0.5, 1.05]]), "targets") == []
    (note,) = range_notes(("a", "b"), seen, np.array([[0.5, 1.5]]), "targets")
    assert "targets leave the calibrated joint ranges (b by 0.5 beyond -1 to 1" in note.message

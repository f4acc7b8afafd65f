"""A body wider than its link is put right where the data leave it open, and stays where the torque asks for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.arrays import FloatArray
from armid.consistency.consistent import ConsistentEstimate
from armid.consistency.link_shapes import relative_spreads
from armid.consistency.plausible import widest_spreads
from armid.consistency.possible import PossibleBodies, Way
from armid.consistency.prior import nominal_prior
from armid.consistency.within_links import within_links
from armid.identification.plausibility import plausibility_checks
from armid.information.information import ChannelInformation, Information, triangular
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects
from armid.robot import Robot
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows

SETTINGS = PossibleBodies()
NOISE = 0.1
"""[N m]."""


def rows_of(robot: Robot, truth: FloatArray, *, seed: int = 0) -> tuple[Information, tuple[str, ...], FloatArray]:
    """Rows at random states in units of their noise, the parameters' units, and the rows without torque."""
    source = TorqueRows(robot, Effects(viscous=True, coulomb=True))
    rng = np.random.default_rng(seed)
    n, count = robot.n_joints, 200
    inputs = rng.uniform(-2.0, 2.0, size=(count, len(source.inputs)))
    A = evaluate_rows(source, inputs).reshape(count * n, -1)
    y = A @ truth + NOISE * rng.normal(size=len(A))
    factor = triangular(np.column_stack([A, y]) / NOISE)
    channel = ChannelInformation("all", np.arange(A.shape[1]), factor, float(len(A)))
    return Information(source.columns, (channel,)), source.space.units, A


def spreads(robot: Robot, estimate: ConsistentEstimate) -> FloatArray:
    return relative_spreads(robot, [body.of(estimate.values) for body in estimate.bodies])


def widened(robot: Robot, link: int, by: float) -> FloatArray:
    """The description's parameters with more inertia about every axis of one link [kg m^2]."""
    values = np.array(nominal_prior(robot, TorqueRows(robot, Effects(viscous=True, coulomb=True)).columns).values)
    values[[10 * link + k for k in (4, 7, 9)]] += by
    return values


@pytest.mark.parametrize("name", ["iiwa14", "ur10e"])
def test_what_no_torque_shows_is_placed_within_the_link(name: str) -> None:
    robot = load_robot(name)
    information, units, A = rows_of(robot, widened(robot, 0, 0.0))
    prior = nominal_prior(robot, information.parameters)
    found = within_links(robot, SETTINGS.fit(information, units, prior), information, SETTINGS)
    assert within_links(robot, found, information, SETTINGS) is found
    # Inertia of the first link about axes that never turn: as wide as one likes, and no torque changes.
    values = np.array(found.values)
    silent = [k for k in range(10) if np.linalg.norm(A[:, k]) < 1e-9 * np.linalg.norm(A) and k in (4, 7, 9)]
    assert silent
    values[silent] += 30.0
    wide = replace(found, values=values)
    assert spreads(robot, wide)[0] > widest_spreads(robot)[0]
    placed = within_links(robot, wide, information, SETTINGS)
    assert np.all(spreads(robot, placed) <= widest_spreads(robot))
    assert placed.is_physical
    assert "placed-within-link" in {note.code for note in placed.notes}
    error = A @ (placed.values - found.values)
    assert np.sqrt(np.mean(error**2)) < 0.1 * NOISE


@pytest.mark.parametrize("name", ["iiwa14", "ur10e"])
def test_a_body_that_the_torque_asks_to_be_wide_stays_for_the_gate(name: str) -> None:
    robot = load_robot(name)
    last = robot.n_joints - 1
    information, units, _ = rows_of(robot, widened(robot, last, 2.0))
    found = SETTINGS.fit(information, units, nominal_prior(robot, information.parameters))
    # Wide as planted, or so heavy that it need not be wide: the gate names either.
    failing = {check.code for check in plausibility_checks(robot, found) if not check.passed}
    assert failing & {"plausible-extent", "plausible-mass"}
    assert within_links(robot, found, information, SETTINGS) is found


def test_smooth_coordinates_keep_what_they_found() -> None:
    robot = load_robot("iiwa14")
    information, units, _ = rows_of(robot, widened(robot, 0, 0.0))
    found = SETTINGS.fit(information, units, nominal_prior(robot, information.parameters))
    values = np.array(found.values)
    values[[4, 7]] += 30.0
    wide = replace(found, values=values)
    assert within_links(robot, wide, information, PossibleBodies(way=Way.LOG_CHOLESKY)) is wide

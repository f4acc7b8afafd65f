"""Friction shapes, presliding, gravity direction, drive gains: planted values found again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from armid.estimation.friction import FrictionSearch, Shape, shape_values
from armid.estimation.gains import DriveGainSearch
from armid.estimation.gravity import GravityDirection, angle
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.presliding import CANDIDATES, chosen_distances, contact_state, followed
from armid.estimation.recording import FilteredTorqueRows, averaged_sign, runs_of
from armid.estimation.run import Run, information_of
from armid.estimation.status import EstimationError
from armid.experiments.torque import TorqueRows
from armid.identifiability.structure import structural_base
from armid.kernels.evaluate import evaluate_rows
from armid.logs.conditioning import Conditioning, condition
from armid.logs.log import Channel, Log
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import from_centre_of_mass
from elbow import FRICTION, case, elbow_arm, fourier_motion, standard_values


@pytest.fixture(scope="module")
def arm():
    return case(7, count=1500)


def shaped(arm, shape, scale, amount, rng):
    qd = arm.inputs[:, 3:6]
    extra = np.column_stack([amount * shape_values(shape, qd[:, j], scale=scale) for j in range(3)])
    return arm.run(extra + rng.normal(size=arm.clean.shape) * 0.05)


@pytest.mark.parametrize("shape", [Shape.STRIBECK, Shape.SMOOTH])
def test_the_velocity_scale_of_a_shape_is_found(arm, shape):
    run = shaped(arm, shape, 0.25, 3.0, np.random.default_rng(0))
    plain = WeightedLeastSquares().fit(information_of([run]), arm.base)
    fit = FrictionSearch(shape, candidates=12, fastest=0.6, slowest=0.02).fit([run], plain)
    assert all(0.15 < scale < 0.4 for scale in fit.scales.values())
    assert fit.improvement > 0.5
    values = dict(zip(fit.estimate.names, fit.estimate.values, strict=True))
    assert values[f"joint2.{shape.quantity}"] == pytest.approx(3.0, rel=0.25)


def test_asymmetric_and_load_dependent_friction_are_found(arm):
    rng = np.random.default_rng(1)
    run = shaped(arm, Shape.ASYMMETRIC, 1.0, 0.8, rng)
    plain = WeightedLeastSquares().fit(information_of([run]), arm.base)
    found = FrictionSearch(Shape.ASYMMETRIC).fit([run], plain).estimate
    assert dict(zip(found.names, found.values, strict=True))["joint3.viscous_asymmetry"] == pytest.approx(0.8, abs=0.05)
    rigid = np.where([n.startswith("joint") for n in arm.source.columns], 0.0, arm.standard)
    load = arm.rows @ rigid
    run = arm.run(0.05 * np.abs(load) * np.sign(arm.inputs[:, 3:6]) + rng.normal(size=arm.clean.shape) * 0.05)
    plain = WeightedLeastSquares().fit(information_of([run]), arm.base)
    found = FrictionSearch(Shape.LOAD).fit([run], plain).estimate
    assert dict(zip(found.names, found.values, strict=True))["joint2.coulomb_load"] == pytest.approx(0.05, rel=0.2)


def test_contact_state_solves_its_differential_equation():
    rate, x0 = 100.0, 0.02
    t = np.arange(300) / rate
    q, qd = 0.3 * np.sin(4 * t), 1.2 * np.cos(4 * t)

    def slope(time, z):
        v = 1.2 * np.cos(4 * time)
        return v / x0 * (1.0 - np.sign(v) * z)

    exact = solve_ivp(slope, (0.0, t[-1]), [1.0], t_eval=t, rtol=1e-8, max_step=1e-3).y[0]
    found = contact_state(q, qd, rate, x0)
    assert np.abs(found - exact)[1:-1].max() < 0.02
    assert np.array_equal(followed(np.zeros(5), x0), np.zeros(5))
    assert np.all(np.abs(followed(q, 1e-9)[2:]) > 1.0 - 1e-9)


def test_presliding_is_chosen_only_where_it_pays():
    sigma = np.ones((1 + len(CANDIDATES), 3))
    sigma[2, 0], sigma[3, 1] = 0.5, 0.99
    assert chosen_distances(sigma) == pytest.approx([CANDIDATES[1], 0.0, 0.0])


def test_a_reversal_between_samples_is_placed_where_it_happened():
    qd, qdd = np.array([[0.1], [0.02], [-0.06]]), np.full((3, 1), -8.0)
    assert averaged_sign(qd, qdd, 100.0)[:, 0] == pytest.approx([1.0, 0.5, -1.0])


def test_filtered_rows_explain_filtered_friction_better(arm):
    rng = np.random.default_rng(2)
    inputs = fourier_motion(rng, 3, 6000, 200.0)
    torque = evaluate_rows(arm.source, inputs) @ arm.standard + rng.normal(size=(6000, 3)) * 0.3
    log = Log(
        "log",
        arm.robot.joint_names,
        np.arange(6000) / 200.0,
        {Channel.POSITION: inputs[:, :3], Channel.LINK_TORQUE: torque},
    )
    samples = condition(log, arm.robot, Conditioning(cutoff=4.0))
    (run,) = runs_of(samples, arm.robot, FRICTION)
    assert isinstance(run.source, FilteredTorqueRows)
    assert run.y_raw is not None
    plain = Run("plain", TorqueRows(arm.robot, FRICTION), samples.inputs(), run.y)
    values = [WeightedLeastSquares().fit(information_of([r]), arm.base) for r in (run, plain)]
    places = [i for i, n in enumerate(arm.base.names) if n.endswith("coulomb")]
    off = [np.abs(e.values - arm.truth)[places].max() for e in values]
    assert off[0] < 0.5 * off[1]
    assert sum(values[0].sigma.values()) < 0.5 * sum(values[1].sigma.values())


def test_a_tilted_base_is_measured():
    down = np.array([0.02, -0.03, -1.0])
    down *= 9.81 / np.linalg.norm(down)
    tilted = case(8, count=1200, robot=elbow_arm(np.random.default_rng(8), gravity=down))
    level = TorqueRows(tilted.robot.with_gravity([0.0, 0.0, -9.81]), FRICTION)
    run = Run(
        "tilted", level, tilted.inputs, tilted.clean + np.random.default_rng(3).normal(size=tilted.clean.shape) * 0.1
    )
    fit = GravityDirection().fit([run])
    assert np.rad2deg(angle(fit.gravity, down)) < 0.1
    assert fit.standard_deviation < np.deg2rad(0.2)
    assert [note.code for note in fit.notes] == ["gravity-tilted"]


def test_a_reversed_mounting_is_found_not_fitted_around():
    hanging = case(9, count=1200, robot=elbow_arm(np.random.default_rng(9), gravity=[0.0, 0.0, 9.81]))
    upright = TorqueRows(hanging.robot.with_gravity([0.0, 0.0, -9.81]), FRICTION)
    noise = np.random.default_rng(4).normal(size=hanging.clean.shape) * 0.1
    run = Run("hanging", upright, hanging.inputs, hanging.clean + noise)
    blind = WeightedLeastSquares().fit(information_of([run]), structural_base(upright))
    assert np.sqrt(np.mean(run.residuals(blind.standard) ** 2)) < 0.2 * np.sqrt(np.mean(run.y**2))
    fit = GravityDirection().fit([run])
    assert fit.gravity[2] > 9.7
    assert [note.code for note in fit.notes] == ["gravity-reversed"]
    assert fit.consistent_error["as described"] > 3.0 * fit.consistent_error["reversed"]


def test_drive_gains_come_from_a_weighed_payload():
    rng = np.random.default_rng(5)
    robot = elbow_arm(np.random.default_rng(10))
    effects = Effects(viscous=True, coulomb=True, offset=True, torques=TorqueSide.MOTOR, payload=PayloadRuns.BOTH)
    gains = np.array([12.0, 9.0, 7.5])
    payload = from_centre_of_mass(2.5, [0.05, 0.02, 0.3], np.eye(3) * 0.01)
    sources = [TorqueRows(robot, effects, loaded=loaded) for loaded in (False, True)]
    arm_only = [name for name in sources[0].columns if not name.startswith("payload")]
    own = standard_values(robot, replace(sources[0], effects=replace(effects, payload=PayloadRuns.NONE)))
    standard = np.concatenate([own, payload])
    assert len(arm_only) == len(own)
    runs = []
    for k, source in enumerate(sources):
        x = fourier_motion(rng, 3, 1500, 50.0)
        current = evaluate_rows(source, x) @ standard / gains + rng.normal(size=(1500, 3)) * 0.02
        runs.append(Run(f"run {k}", source, x, current))
    base = structural_base(*sources)
    information = information_of(runs)
    found = DriveGainSearch().fit(information, base, {"payload.mass": 2.5})
    assert found.values == pytest.approx(gains, rel=0.01)
    assert np.all(np.abs(found.values - gains) < 5.0 * found.standard_deviations)
    truth = base.values(standard)
    place = base.names.index("joint2.viscous")
    assert found.estimate.values[place] == pytest.approx(truth[place], rel=0.02)
    with pytest.raises(EstimationError, match="known payload"):
        DriveGainSearch().fit(information, base, {"payload.colour": 1.0})

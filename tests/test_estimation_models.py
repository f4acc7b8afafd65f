"""Friction shapes, presliding, gravity direction, drive gains: planted values found again."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from armid.errors import InputError
from armid.estimation.covariance import PerChannelNoise
from armid.estimation.fit_record import FitRecord, LoopBasis, NominalCorrection
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import runs_of
from armid.estimation.run import Run, information_of
from armid.identifiability.structure import structural_base
from armid.identification.friction import FrictionSearch, Shape, Shapes, rigid_part, scale_deviations, shape_values
from armid.identification.gains import DriveGainSearch
from armid.identification.gravity import GravityDirection, angle
from armid.information.status import EstimationError
from armid.kernels.evaluate import evaluate_rows
from armid.logs.conditioning import Conditioning, condition
from armid.logs.log import Channel, Log
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import from_centre_of_mass
from armid.rows.filtered import FilteredTorqueRows
from armid.rows.friction import Velocity, averaged_sign, column_values, smoothed
from armid.rows.presliding import CANDIDATES, SUBSTEPS, chosen_options, contact_state, followed
from armid.rows.torque import TorqueRows
from support.elbow import FRICTION, case, elbow_arm, fourier_motion, standard_values


@pytest.fixture(scope="module")
def arm():
    return case(7, count=1500)


def builder(arm, torque, shape):
    """Runs with given shapes of friction; nothing is filtered."""
    words = {shape.value: True}
    source = FilteredTorqueRows(TorqueRows(arm.robot, replace(FRICTION, **words)))
    linear = Run(name="motion", source=arm.source, inputs=arm.inputs, y=torque, rate=arm.rate)
    qd = arm.inputs[:, 3:6]

    def build(shapes):
        load = None
        if shapes.load is not None:
            load = linear.predicted([shapes.load.get(name, 0.0) for name in arm.source.columns])
        sign = np.sign(qd)[:, np.newaxis]
        columns = source.torque.shape_columns
        velocity = Velocity(qd, arm.inputs[:, 6:9])
        parts = [smoothed(sign, velocity, source.torque.effects, shapes)]
        parts.append(column_values(columns, arm.robot, velocity, sign, shapes, load))
        return (replace(linear, source=source, inputs=np.hstack([arm.inputs, *(x[:, 0] for x in parts)])),)

    return build


STILL = Shapes(presliding=(0.0, 0.0, 0.0))


@pytest.mark.parametrize("shape", [Shape.STRIBECK, Shape.SMOOTH])
def test_the_velocity_scale_of_a_shape_is_found_within_its_deviation(arm, shape):
    rng, qd = np.random.default_rng(0), arm.inputs[:, 3:6]
    scales = np.array([0.25, 0.1, 0.4])
    extra = np.column_stack([3.0 * shape_values(shape, qd[:, j], scale=scales[j]) for j in range(3)])
    places = [arm.source.columns.index(f"joint{j + 1}.coulomb") for j in range(3)]
    level = arm.standard[places]
    if shape is Shape.SMOOTH:
        extra -= level * np.sign(qd)
    torque = arm.clean + extra + rng.normal(size=arm.clean.shape) * 0.05
    build = builder(arm, torque, shape)
    fit = FrictionSearch().fit(build, STILL)
    assert fit.converged
    estimate, deviations = scale_deviations(build, fit.runs, fit.shapes, fit.estimate, PerChannelNoise())
    off = (np.array(fit.shapes.scales) - scales) / np.array(deviations)
    assert np.abs(off).max() < 3.5
    assert np.all(np.array(deviations) < 0.1 * scales)
    found = dict(zip(estimate.names, zip(estimate.values, estimate.standard_deviations, strict=True), strict=True))
    value, deviation = found["joint2.stribeck" if shape is Shape.STRIBECK else "joint2.coulomb"]
    assert abs(value - 3.0) < 3.5 * deviation
    assert np.all(estimate.standard_deviations >= fit.estimate.standard_deviations * (1.0 - 1e-6))


def test_a_scale_that_no_friction_shows_has_an_infinite_deviation(arm):
    noise = np.random.default_rng(2).normal(size=arm.clean.shape) * 0.05
    build = builder(arm, arm.clean + noise, Shape.STRIBECK)
    fit = FrictionSearch().fit(build, STILL)
    estimate, deviations = scale_deviations(build, fit.runs, fit.shapes, fit.estimate, PerChannelNoise())
    assert np.isinf(deviations).any()
    amounts = [
        abs(v) / s
        for n, v, s in zip(estimate.names, estimate.values, estimate.standard_deviations, strict=True)
        if n.endswith("stribeck")
    ]
    assert max(amounts) < 4.0


def test_asymmetric_and_load_dependent_friction_are_found(arm):
    rng, qd = np.random.default_rng(1), arm.inputs[:, 3:6]
    torque = arm.clean + 0.8 * np.abs(qd) + rng.normal(size=arm.clean.shape) * 0.05
    found = FrictionSearch().fit(builder(arm, torque, Shape.ASYMMETRIC), STILL).estimate
    assert dict(zip(found.names, found.values, strict=True))["joint3.viscous_asymmetry"] == pytest.approx(0.8, abs=0.05)
    rigid = np.where([n.startswith("joint") for n in arm.source.columns], 0.0, arm.standard)
    torque = arm.clean + 0.05 * np.abs(arm.rows @ rigid) * np.sign(qd) + rng.normal(size=arm.clean.shape) * 0.05
    plain = WeightedLeastSquares().fit(information_of([arm.run()]).select(range(arm.rows.shape[2])), arm.base)
    start = replace(STILL, load=rigid_part(plain))
    fit = FrictionSearch().fit(builder(arm, torque, Shape.LOAD), start)
    assert fit.converged
    values = dict(zip(fit.estimate.names, fit.estimate.values, strict=True))
    assert [values[f"joint{j}.coulomb_load"] for j in (2, 3)] == pytest.approx([0.05, 0.05], rel=0.05)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"stribeck": True}, "without coulomb"),
        ({"coulomb": True, "asymmetric": True}, "without viscous and offset"),
        ({"coulomb": True, "smooth": True, "stribeck": True}, "choose one"),
        ({"coulomb": True, "load": True, "torques": TorqueSide.BOTH}, "one side"),
    ],
)
def test_contradictory_friction_is_refused(fields, message):
    with pytest.raises(InputError, match=message):
        Effects(**fields)


def test_friction_of_coupled_joints_needs_some():
    with pytest.raises(InputError, match="no joint that several drives move"):
        TorqueRows(elbow_arm(np.random.default_rng(0)), replace(FRICTION, coupled=True)).columns  # noqa: B018


def test_contact_state_solves_its_differential_equation():
    rate, x0 = 100.0, 0.02
    t = np.arange(300) / rate
    q, qd = 0.3 * np.sin(4 * t), 1.2 * np.cos(4 * t)

    def slope(time, z):
        v = 1.2 * np.cos(4 * time)
        return v / x0 * (1.0 - np.sign(v) * z)

    exact = solve_ivp(slope, (0.0, t[-1]), [1.0], t_eval=t, rtol=1e-8, max_step=1e-3).y[0]
    found = contact_state(q, qd, rate, x0)[:, SUBSTEPS // 2]
    assert np.abs(found - exact)[1:-1].max() < 0.02
    assert np.array_equal(followed(np.zeros(5), x0), np.zeros(5))
    assert np.all(np.abs(followed(q, 1e-9)[2:]) > 1.0 - 1e-9)


def test_presliding_is_chosen_only_where_it_pays():
    sigma = np.ones((1 + len(CANDIDATES), 3))
    sigma[2, 0], sigma[3, 1] = 0.5, 0.99
    assert chosen_options(sigma).tolist() == [2, 0, 0]


def test_a_reversal_between_samples_is_placed_where_it_happened():
    qd, qdd = np.array([[0.1], [0.02], [-0.06]]), np.full((3, 1), -8.0)
    assert averaged_sign(qd, qdd, 100.0)[:, 0] == pytest.approx([1.0, 0.5, -1.0])


def test_filtered_rows_explain_filtered_friction_better(arm):
    rng = np.random.default_rng(2)
    inputs = fourier_motion(rng, 3, 6000, 200.0)
    torque = evaluate_rows(arm.source, inputs) @ arm.standard + rng.normal(size=(6000, 3)) * 0.3
    log = Log(
        name="log",
        joints=arm.robot.joint_names,
        time=np.arange(6000) / 200.0,
        channels={Channel.POSITION: inputs[:, :3], Channel.LINK_TORQUE: torque},
    )
    samples = condition(log, arm.robot, Conditioning(cutoff=4.0))
    (run,) = runs_of(samples, arm.robot, FRICTION)
    assert isinstance(run.source, FilteredTorqueRows)
    assert run.y_raw is not None
    plain = Run(name="plain", source=TorqueRows(arm.robot, FRICTION), inputs=samples.inputs(), y=run.y)
    values = [WeightedLeastSquares().fit(information_of([r]), arm.base) for r in (run, plain)]
    places = [i for i, n in enumerate(arm.base.names) if n.endswith("coulomb")]
    off = [np.abs(e.values - arm.truth)[places].max() for e in values]
    assert off[0] < 0.5 * off[1]
    assert sum(values[0].sigma.values()) < 0.5 * sum(values[1].sigma.values())


def test_a_low_pass_leaves_coulomb_friction_its_size(arm):
    """Torque is thinned out after the filter: a column filtered at the thin rate is too smooth, and friction 0.1 % too large."""
    rate, count = 1000.0, 20_000
    inputs = fourier_motion(np.random.default_rng(2), 3, count, rate)
    torque = evaluate_rows(arm.source, inputs) @ arm.standard
    channels = {Channel.POSITION: inputs[:, :3], Channel.LINK_TORQUE: torque}
    log = Log(name="log", joints=arm.robot.joint_names, time=np.arange(count) / rate, channels=channels)
    (run,) = runs_of(condition(log, arm.robot, Conditioning(cutoff=10.0)), arm.robot, FRICTION)
    assert run.rate < 0.1 * rate
    found = WeightedLeastSquares().fit(information_of([run]), arm.base)
    places = [i for i, n in enumerate(arm.base.names) if n.endswith("coulomb")]
    assert found.values[places] == pytest.approx(arm.truth[places], rel=5e-4)


def test_a_tilted_base_is_measured():
    down = np.array([0.02, -0.03, -1.0])
    down *= 9.81 / np.linalg.norm(down)
    tilted = case(8, count=1200, robot=elbow_arm(np.random.default_rng(8), gravity=down))
    level = TorqueRows(tilted.robot.with_gravity([0.0, 0.0, -9.81]), FRICTION)
    run = Run(
        name="tilted",
        source=level,
        inputs=tilted.inputs,
        y=tilted.clean + np.random.default_rng(3).normal(size=tilted.clean.shape) * 0.1,
    )
    fit = GravityDirection().fit([run])
    assert np.rad2deg(angle(fit.gravity, down)) < 0.1
    assert fit.standard_deviation < np.deg2rad(0.2)
    assert [note.code for note in fit.notes] == ["gravity-tilted"]


def test_a_reversed_mounting_is_found_not_fitted_around():
    hanging = case(9, count=1200, robot=elbow_arm(np.random.default_rng(9), gravity=[0.0, 0.0, 9.81]))
    upright = TorqueRows(hanging.robot.with_gravity([0.0, 0.0, -9.81]), FRICTION)
    noise = np.random.default_rng(4).normal(size=hanging.clean.shape) * 0.1
    run = Run(name="hanging", source=upright, inputs=hanging.inputs, y=hanging.clean + noise)
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
        runs.append(Run(name=f"run {k}", source=source, inputs=x, y=current))
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


def test_what_a_method_says_beside_its_values_comes_back_from_plain_values() -> None:
    loop = LoopBasis(
        start="weighted least squares",
        noise_fed_back=True,
        position_noise=(1e-5, 2e-5),
        gains=((10.0, 20.0), (1.0, 2.0)),
        gain_deviations=((0.1, 0.2), (0.0, 0.0)),
    )
    record = FitRecord(
        corrections={"link1.mx": NominalCorrection(nominal=1.0, correction=0.1, standard_deviation=0.01)},
        row_noise={"link1.mx": 0.5},
        loop=loop,
    )
    assert FitRecord.from_dict(json.loads(json.dumps(record.as_dict()))) == record
    assert FitRecord().as_dict() == {}
    assert FitRecord.from_dict({}) == FitRecord()

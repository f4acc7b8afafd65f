"""[Kolyubin2017]'s kinematic experiment, simulated with its published deviations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.calibration.enough import MEAN_OVER_RMS, position_uncertainty
from armid.calibration.fit import FitSettings, fit
from armid.calibration.identifiable import select
from armid.calibration.noise import VectorLoss
from armid.calibration.solve import SolverSettings
from armid.calibration.start import ALL
from armid.calibration.words import StepRule
from armid.design.poses import PoseMethod, PoseSettings, Purpose, design_poses
from armid.identifiability.base import base_parameters
from armid.kernels.dynamics import gravity
from armid.kinematics.build import kinematic_model
from armid.kinematics.measurement import Measurements, Observations, Observed
from armid.kinematics.model import ErrorModel, FrameModel, pose_and_derivative
from armid.kinematics.rotations import rotation_exp, rotation_log
from armid.kinematics.words import UnknownGeometry
from armid.robot.load import load_robot
from armid.rows.pose import ChainErrors as RowErrors
from armid.studies import replica
from support import kolyubin

MDH = ErrorModel(UnknownGeometry.MDH)
CAMERA_KNOWN = frozenset({"link1.alpha", "link1.a", "link1.theta", "link1.d"})
POSITION_NOISE = 60e-6
ORIENTATION_NOISE = 200e-6  # 60 um over the 0.3 m between the LEDs of the fixture


def whole_model():
    return kinematic_model(
        kolyubin.arm(), MDH, setups={"camera": kolyubin.camera(free=True)}, targets={"tool": kolyubin.fixture()}
    )


def rows_of(model, q, wanted=None):
    _, _, J = pose_and_derivative(model, np.zeros(len(model.parameters)), q, "camera", "tool", wanted=wanted)
    return J.reshape(len(J), -1).T


def random_poses(rng, count):
    return rng.uniform(-1, 1, (count, 7)) * kolyubin.LIMITS


@pytest.mark.parametrize(("tool_offset", "lost"), [(0.0, {"link7.theta", "link7.d"}), (0.0015, {"link7.d"})])
def test_36_parameters_of_which_32_are_base(monkeypatch, tool_offset, lost):
    """alpha0, d0, theta7 and r7 fall out with the tool on the axis; 1.5 mm beside it theta7 is separable, but only just."""
    table = (*kolyubin.NOMINAL[:8], (0.0, tool_offset, 0.79, 0.093))
    monkeypatch.setattr(kolyubin, "NOMINAL", table)
    model = whole_model()
    assert len(model.parameters) == 36
    A = rows_of(model, random_poses(np.random.default_rng(0), 100))
    base = base_parameters(A[:, ::-1], parameters=model.names[::-1])
    assert set(model.names) - set(base.names) == {"camera.alpha", "camera.a", *lost}


def test_selection_by_noise_drops_the_same_parameters_as_the_paper():
    """1.5 mm of tool offset against 60 um of noise from 17 poses tells theta7 no better than 20 mrad... it does, barely."""
    model = whole_model()
    A = rows_of(model, random_poses(np.random.default_rng(1), 17))
    noise = np.repeat([POSITION_NOISE, ORIENTATION_NOISE], 3 * 17)
    chosen = select(model, A / noise[:, np.newaxis])
    dropped = {name for name, kept in zip(model.names, chosen.kept, strict=True) if not kept}
    assert dropped >= {"camera.alpha", "camera.a", "link7.d"}
    assert len(dropped) <= 4


def optimised(seed):
    """17 poses by the library's own search (exchanges over a pool of 3000)."""
    settings = PoseSettings(
        count=17, method=PoseMethod.EXCHANGE, pool=(3000,), self_collision=False, transitions=False, starts=2
    )
    design = design_poses(kolyubin.arm(), Purpose.CALIBRATION, settings, seed=seed)
    assert design.condition_number < design.initial_condition_number
    assert len(design.poses) == 17
    return design.poses


def measured(rng, q, shown):
    T = kolyubin.poses(q)
    n = len(q)
    p = T[:, :3, 3] + POSITION_NOISE * rng.normal(size=(n, 3))
    R = rotation_exp(ORIENTATION_NOISE * rng.normal(size=(n, 3))) @ T[:, :3, :3]
    sigma = np.array([POSITION_NOISE] * 3 + [ORIENTATION_NOISE] * 3)
    return Measurements(
        q=shown,
        observations=(
            Observations(
                quantity=Observed.POSE, rows=np.arange(n), position=p, rotation=R, sigma=sigma, setup="camera"
            ),
        ),
    )


def fitted(measurements, method=StepRule.LEVENBERG_MARQUARDT):
    settings = FitSettings(
        SolverSettings(method=method, loss=VectorLoss(0.0)),
        setups={"camera": kolyubin.camera(free=False)},
        targets={"tool": kolyubin.fixture()},
        fixed=CAMERA_KNOWN,
    )
    return fit(kolyubin.arm(), measurements, MDH, settings=settings)


def errors(fit, q, truth):
    R, p, _ = pose_and_derivative(fit.model, fit.after.values, q, "camera", "tool")
    away = np.linalg.norm(p.T - truth[:, :3, 3], axis=1)
    turned = np.linalg.norm(rotation_log(truth[:, :3, :3] @ np.transpose(R, (2, 1, 0))), axis=1)
    return away, turned


def test_before_calibration_the_errors_are_the_published_ones():
    q = random_poses(np.random.default_rng(0), 400)
    away = np.linalg.norm((kolyubin.poses(q) - kolyubin.poses(q, kolyubin.NOMINAL))[:, :3, 3], axis=1)
    assert away.mean() == pytest.approx(5.6e-3, abs=0.2e-3)  # table 3: 5.90
    assert away.max() == pytest.approx(9.9e-3, abs=0.4e-3)  # table 3: 9.68


def test_after_calibration_errors_on_fresh_poses_are_what_the_noise_predicts():
    rng = np.random.default_rng(2)
    q = optimised(2)
    found = []
    for _ in range(5):
        fit = fitted(measured(rng, q, q))
        fresh = random_poses(rng, 200)
        away, _ = errors(fit, fresh, kolyubin.poses(fresh))
        there = Measurements(
            q=fresh, observations=(Observations(quantity=Observed.POINT, rows=np.arange(200), setup="camera"),)
        )
        sigma = position_uncertainty(fit, fit.after.covariance, there)
        predicted = MEAN_OVER_RMS * float(np.sqrt((sigma**2).mean()))
        assert away.mean() < 1.5 * predicted
        assert predicted < 0.1e-3
        found.append(away.mean() / predicted)
    assert 0.6 < np.mean(found) < 1.4  # and the prediction is not merely an upper bound


def test_the_librarys_replica_is_the_arm_of_the_table():
    """Its poses against plain products of the table's rows, with drives that sag and read off centre."""
    rng = np.random.default_rng(4)
    arm = replica.replica(replica.Disturbance(2e-5, 3e-4), rng=rng)
    q = random_poses(rng, 20)
    term = {name: arm.values[arm.truth.index(name)] for name in arm.truth.names if name.startswith("joint")}
    moved = q - 2e-5 * gravity(load_robot("lwr4plus"), q)
    for i in range(7):
        sine, cosine = (term[f"joint{i + 1}.eccentricity_{k}"] for k in ("sin", "cos"))
        assert np.hypot(sine, cosine) == pytest.approx(3e-4, rel=1e-12)
        moved[:, i] += sine * np.sin(q[:, i]) + cosine * np.cos(q[:, i])
    np.testing.assert_allclose(arm.poses(q), kolyubin.poses(moved), atol=1e-12)


def test_unmodelled_compliance_and_eccentricity_leave_less_than_published():
    """30 urad/(N m) and 0.3 mrad at every joint: below table 3 without terms for them, at the noise with them.

    `python -m bench replica` prints the frontier: about 36 urad/(N m), where the sag of the joints itself moves the tool
    by the published error. A rigid model absorbs two per cent of it, however many poses it is fitted at.
    """
    met, exceeded = replica.replica_table([replica.Disturbance(3e-5, 3e-4), replica.Disturbance(5e-5)], draws=2)
    assert met.rigid.below_published
    assert not exceeded.bound.below_published  # nor is there any rigid arm that would be
    for row in (met, exceeded):
        assert row.rigid.mean < 1.1 * row.bound.mean
        assert row.bound.mean == pytest.approx(row.displacement, rel=0.1)
        assert row.modelled.mean < 1.5 * row.predicted < 0.2e-3


def test_poses_for_the_seeds_own_parameters():
    """32 parameters and a condition number of its order (11.19); in joint-local errors the same arm has 34 and 1.5."""
    settings = PoseSettings(
        frame="led_fixture",
        errors=RowErrors.DESCRIBED,
        method=PoseMethod.EXCHANGE,
        pool=(2000,),
        self_collision=False,
        transitions=False,
        starts=1,
    )
    lwr = load_robot("lwr4plus")
    found = design_poses(lwr, Purpose.CALIBRATION, settings)
    assert len(found.base) == 32
    assert 10.0 < found.condition_number < 20.0
    assert found.condition_number < found.initial_condition_number
    local = design_poses(lwr, Purpose.CALIBRATION, replace(settings, errors=RowErrors.COMPLETE))
    assert len(local.base) == 34
    # The joint-local condition number again, from a Jacobian of the calibration's own model.
    model = kinematic_model(
        lwr,
        ErrorModel(),
        setups={"s": FrameModel.around(np.eye(4), ALL, outside=True)},
        targets={"t": FrameModel.around(lwr.frame("led_fixture").T_link_frame, ALL, outside=False)},
    )
    A = pose_and_derivative(model, np.zeros(len(model.parameters)), local.poses, "s", "t")[2]
    base = base_parameters(A.reshape(len(A), -1).T, parameters=model.names)
    assert len(base) == 34
    cond = np.linalg.cond(A.reshape(len(A), -1).T[:, base.independent])
    assert local.condition_number == pytest.approx(cond, rel=1e-3)  # the tool's place moves it in the fifth digit
    assert cond < 2.0


def test_iterated_least_squares_and_damped_steps_end_at_the_same_place():
    rng = np.random.default_rng(5)
    q = random_poses(rng, 30)
    measurements = measured(rng, q, q)
    a, b = (fitted(measurements, method) for method in StepRule)
    sigma = np.sqrt(np.diag(a.after.covariance))
    kept = a.after.selection.kept
    assert a.after.converged
    assert b.after.converged
    assert np.abs((a.after.values - b.after.values)[kept] / sigma[kept]).max() < 0.01
    assert list(b.after.costs) == sorted(b.after.costs, reverse=True)  # eq. 12 never accepts a worse step


def test_recovered_deviations_lie_within_their_intervals():
    rng = np.random.default_rng(6)
    q = random_poses(rng, 40)
    fit = fitted(measured(rng, q, q))
    truth = dict.fromkeys(fit.model.names, 0.0)
    for i, row in enumerate(kolyubin.DEVIATIONS):
        owner = f"link{i + 2}" if i < 6 else "tool"
        truth |= {f"{owner}.{name}": value for name, value in zip(kolyubin.NAMES, row, strict=True)}
    sigma = np.sqrt(np.diag(fit.after.covariance))
    names = [
        n
        for n, k in zip(fit.model.names, fit.after.selection.kept, strict=True)
        if k and n not in ("tool.theta", "tool.d")
    ]
    z = [(fit.after.values[fit.model.index(n)] - truth[n]) / sigma[fit.model.index(n)] for n in names]
    assert np.sqrt(np.mean(np.square(z))) < 1.6

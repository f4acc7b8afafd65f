"""Several targets on one body whose mutual positions are known."""

from __future__ import annotations

import numpy as np
import pytest

from armid.calibration.correction import correction
from armid.calibration.fit import FitSettings, fit
from armid.calibration.start import ALL
from armid.identifiability.base import base_parameters
from armid.kinematics.build import kinematic_model
from armid.kinematics.correction import load_correction
from armid.kinematics.measurement import Measurements, Observations, Observed
from armid.kinematics.model import ErrorModel, FrameModel, known_cluster, pose_and_derivative
from armid.kinematics.rotations import rigid, rotation_exp
from armid.robot.load import load_robot

POINTS = {"t1": np.array([0.1, 0.0, 0.02]), "t2": np.array([-0.05, 0.09, 0.0]), "t3": np.array([-0.06, -0.08, 0.05])}
T_SENSOR = rigid(rotation_exp(np.array([0.3, -0.2, 0.5])), np.array([1.0, 0.4, -0.2]))
T_BODY = rigid(rotation_exp(np.array([0.1, 0.4, -0.3])), np.array([0.02, -0.03, 0.1]))


def clustered(count):
    targets = known_cluster(T_BODY, dict(list(POINTS.items())[:count]))
    return {"sensor": FrameModel.around(T_SENSOR, ALL, outside=True)}, targets


@pytest.mark.parametrize(("count", "expected"), [(1, 27), (2, 29), (3, 30)])
def test_identifiable_parameters_of_a_6r_arm_seen_at_known_points(count, expected):
    """One point leaves the body's rotation open, two the rotation about their line, three nothing."""
    setups, targets = clustered(count)
    model = kinematic_model(load_robot("ur10e"), ErrorModel(), setups=setups, targets=targets)
    assert sum(name.startswith("tool.") for name in model.names) == 6
    q = np.random.default_rng(3).uniform(-3, 3, (120, 6))
    rows = [pose_and_derivative(model, np.zeros(len(model.names)), q, "sensor", name)[2][:, :3] for name in targets]
    A = np.vstack([J.reshape(len(J), -1).T for J in rows])
    assert len(base_parameters(A, parameters=model.names)) == expected


def test_fitted_and_stored(tmp_path):
    import json

    robot, rng = load_robot("ur10e"), np.random.default_rng(5)
    setups, targets = clustered(3)
    model = kinematic_model(robot, ErrorModel(), setups=setups, targets=targets)
    values = 0.2 * np.minimum(model.tolerances, 5e-3) * rng.normal(size=len(model.names))
    q = rng.uniform(-3, 3, (60, 6))
    seen = tuple(
        Observations(
            quantity=Observed.POSITION,
            rows=np.arange(60),
            position=pose_and_derivative(model, values, q, "sensor", name)[1].T,
            target=name,
        )
        for name in targets
    )
    found = fit(robot, Measurements(q=q, observations=seen), settings=FitSettings(setups=setups, targets=targets))
    fresh = rng.uniform(-3, 3, (50, 6))
    (tmp_path / "c.json").write_text(json.dumps(correction(robot, found)))
    stored = load_correction(tmp_path / "c.json", robot)
    for name in targets:
        truth = pose_and_derivative(model, values, fresh, "sensor", name)[1]
        for m, v in ((found.model, found.after.values), stored):
            np.testing.assert_allclose(pose_and_derivative(m, v, fresh, "sensor", name)[1], truth, atol=2e-5)

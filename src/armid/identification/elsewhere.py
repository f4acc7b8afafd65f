"""What the motion leaves open of the torque at other poses: an error that no held-out motion like it can show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.estimation.run import Run
from armid.identification.thresholds import LIGHT_ERROR
from armid.kernels.evaluate import evaluate_rows
from armid.outcome import Check
from armid.robot.robot import JointKind, Robot

_STATES = 400
"""Poses: their mean square is known to a few percent."""


def elsewhere_checks(robot: Robot, runs: Sequence[Run], estimate: Estimate, *, seed: int = 0) -> tuple[Check, ...]:
    """Names the torque error to be expected over the whole range of the joints, where it is large; never decisive.

    A motion in a corner of the range, or torque that is mostly noise, may leave combinations open that neither it nor a held-out
    motion like it shows. With base parameters b of covariance P the expected squared error at a state x is tr(A(x) P A(x)'),
    beside the torque |A(x) b|^2; both are summed over poses within the limits, with speeds and accelerations of the training.

    Args:
        robot: with position limits; half a turn or 1 m to either side where it has none.
        runs: training motion.
        estimate: unconstrained, of these runs. Possible bodies near a prior are as a rule better than it.
        seed: of the poses.
    """
    source, inputs = runs[0].source, runs[0].inputs
    if not len(inputs) or not np.isfinite(estimate.covariance).all():
        return ()
    states = _other_states(robot, inputs, np.random.default_rng(seed))
    rows = evaluate_rows(source, states)[:, :, list(estimate.base.independent)]
    error = np.einsum("kci,ij,kcj->", rows, estimate.covariance, rows)
    torque = float(np.sum((rows @ estimate.values) ** 2))
    expected = float(np.sqrt(max(error, 0.0) / torque)) if torque > 0.0 else 0.0
    if expected <= LIGHT_ERROR.value:
        return ()
    text = (
        f"at other poses within the joint limits the torque is expected to be wrong by up to {expected:.0%} of the arm's "
        f"(limit {LIGHT_ERROR.value:.0%}), which motion like that of the training does not show; move through more of the range, "
        "faster, or record longer (armid design --after this result)"
    )
    return (
        Check(
            code="expected-elsewhere",
            passed=False,
            value=expected,
            limit=LIGHT_ERROR.value,
            message=text,
            decisive=False,
        ),
    )


def _other_states(robot: Robot, inputs: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Random poses, with velocities, accelerations and whatever follows from these as in the motion."""
    n = robot.n_joints
    reach = np.array([np.pi if joint.kind is JointKind.REVOLUTE else 1.0 for joint in robot.joints])
    low, high = np.maximum(robot.limit("lower"), -reach), np.minimum(robot.limit("upper"), reach)
    poses = rng.uniform(np.minimum(low, high), np.maximum(low, high), size=(_STATES, n))
    return np.hstack([poses, inputs[rng.integers(len(inputs), size=_STATES), n:]])

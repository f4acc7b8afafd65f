"""Rows of a stage: those of one joint, and whatever stands beside them after the same filter."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray, samples
from armid.errors import UnknownNameError
from armid.information.status import EstimationError, Status
from armid.kernels.evaluate import evaluate_rows
from armid.rows.torque import TorqueRows
from armid.sequential.stages import Stage

PIECE = 8192
"""Samples whose rows of all joints are in memory at a time."""


def stage_rows(source: TorqueRows, stage: Stage, beside: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Rows [n, p] of the stage's joint, what stands beside them [n, k], and how many independent ones they are.

    Args:
        source: the torque model.
        stage: whose joint is looked at.
        beside: torque and whatever else passes the filter of the rows, shape [n_samples, k].

    Raises:
        UnknownNameError: a joint that the arm does not have.
        EstimationError: the filter leaves nothing.
    """
    if stage.joint not in source.channels:
        raise UnknownNameError("joint", stage.joint, source.channels)
    k = source.channels.index(stage.joint)
    inputs = samples("inputs", stage.inputs, len(source.inputs))
    # In pieces: of every sample's rows only those of one joint are kept.
    rows = np.concatenate([evaluate_rows(source, inputs[i : i + PIECE])[:, k] for i in range(0, len(inputs), PIECE)])
    count = float(len(rows))
    if stage.filter is not None:
        rows, beside, count = stage.filter.apply(rows, beside, inputs[:, source.robot.n_joints + k])
    if count < 1:
        raise EstimationError(Status.TOO_FEW_ROWS, f"stage {stage.joint}")
    return rows, beside, count

"""Held-out numbers of a stored result on other logs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.run import Run
from armid.estimation.torque_error import JointErrors, TorqueErrors, stacked_relative_error, torque_errors
from armid.identification.comparison import Comparison, compared, compared_residuals
from armid.parameters.inertial import N_INERTIAL
from armid.robot.robot import Robot

MOST_TRACE_SAMPLES = 20_000
"""Per run in a result folder: enough to see anything, small enough to keep."""


def held_out_errors(runs: Sequence[Run], standard: FloatArray, train: Sequence[JointErrors]) -> tuple[JointErrors, ...]:
    """Errors on new runs beside the training errors that are already known."""
    known = {joint.name: joint.train for joint in train}
    return tuple(
        JointErrors(name, known.get(name, TorqueErrors()), errors)
        for name, errors in torque_errors(runs, standard).items()
    )


def nominal_standard(robot: Robot, names: Sequence[str]) -> FloatArray:
    """The description's own parameters in the order of the names; zero where it says nothing."""
    inertial = robot.inertial.reshape(robot.n_joints, N_INERTIAL)
    values = np.zeros(len(names))
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        owner, quantity = name.split(".", 1)
        if owner.startswith("link"):
            place = seen.get(owner, 0)
            values[i] = inertial[int(owner[4:]) - 1, place]
            seen[owner] = place + 1
        elif owner.startswith("joint"):
            values[i] = getattr(robot.joints[int(owner[5:]) - 1].drive, quantity.removeprefix("motor_"), 0.0)
    return values


def against_nominal(
    runs: Sequence[Run], robot: Robot, standard: FloatArray, names: Sequence[str]
) -> tuple[Comparison, ...]:
    """Parameters beside the description's own on held-out runs, per joint; empty when the description has no masses.

    Args:
        runs: nothing of which was used for estimation.
        robot: as described.
        standard: parameters judged, in the order of the names.
        names: of the standard parameters.
    """
    if not all(link.inertial is not None and link.inertial[0] > 0.0 for link in robot.links[1:]):
        return ()
    whole = nominal_standard(robot, names)
    # Friction in a URDF is often there to calm a simulator; the description is taken at its best, with or without it.
    rigid = np.where([name.startswith("joint") for name in names], 0.0, whole)
    best = min((whole, rigid), key=lambda values: stacked_relative_error(runs, values)) if runs else whole
    return compared(runs, standard, best)


def against_constant(train: Sequence[Run], held_out: Sequence[Run], standard: FloatArray) -> tuple[Comparison, ...]:
    """Parameters beside the mean training torque of every channel, on held-out runs."""
    if not train or not held_out:
        return ()
    mean = sum(run.y.sum(axis=0) for run in train) / sum(len(run) for run in train)
    mine, constant = [run.residuals(standard) for run in held_out], [run.y - mean for run in held_out]
    return compared_residuals(held_out, mine, constant, tolerated=1.0)


def traces(
    runs: Sequence[Run],
    standard: FloatArray,
    free: FloatArray,
    *,
    temperatures: Sequence[FloatArray | None] = (),
) -> dict[str, FloatArray]:
    """Motion and torque over time of held-out runs, for reports: measured, raw, and predicted by both estimates."""
    out: dict[str, FloatArray] = {}
    for k, run in enumerate(runs):
        every = max(1, -(-len(run) // MOST_TRACE_SAMPLES))
        out[f"run{k}.time"] = np.arange(len(run))[::every] / run.rate
        out[f"run{k}.inputs"] = run.inputs[::every]
        out[f"run{k}.measured"] = run.y[::every]
        if run.y_raw is not None:
            out[f"run{k}.raw"] = run.y_raw[::every]
        if k < len(temperatures) and (celsius := temperatures[k]) is not None:
            out[f"run{k}.temperature"] = celsius[::every]
        out[f"run{k}.consistent"] = run.predicted(standard)[::every]
        out[f"run{k}.free"] = run.predicted(free)[::every]
    return out

"""Kinematic calibration: speed, held-out errors, few poses, agreement of halves, coverage, what is stated.

    python -m bench calibration                                      all of it
    python -m bench calibration --speed | --held-out | --few | --halves | --coverage | --stated | --changes [--quick]

*Speed*: 12 000 poses of a six-joint arm beside scipy's least_squares with a numeric Jacobian on the same measurements, parameters
and start; the peer evaluates poses in one vectorised call. *Held out*: recordings in `../shared/data/kinematics`, random and
blocked folds. *Few*: 8, 12, 20 poses of UR10 series A beside a plain MAP fit with priors of 1 mm and 2 mrad. *Halves*: one
recording fitted in two halves; the difference of link parameters in stated deviations. *Coverage*: of 95 % intervals on simulated
arms with gear errors, sag and drift that no model has. *Stated*: the held-out error that a calibration states beside its error at
configurations it never saw. *Changes*: trackers that move by little along a recording, found with their row, beside recordings
where nothing moved.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter, process_time

import numpy as np
from scipy.optimize import least_squares

from armid.calibration.fit import FitSettings, fit
from armid.calibration.noise import VectorLoss
from armid.calibration.solve import SolverSettings
from armid.calibration.start import ALL
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.measurement import Measurements, Observations, Observed
from armid.kinematics.model import ErrorModel, FrameModel
from armid.kinematics.rotations import rigid, rotation_exp
from armid.kinematics.words import Term
from armid.parameters.space import OwnerKind
from armid.robot.load import load_robot
from armid.rows.pose_residual import residuals
from bench.calibration_tables import (
    changes_table,
    coverage_table,
    few_table,
    halves_table,
    held_out_table,
    stated_table,
)

POSES = 12_000
POSITION_NOISE, ORIENTATION_NOISE = 1e-4, 2e-4
ERRORS = ErrorModel(terms=frozenset({Term.OFFSET, Term.ECCENTRICITY}))


@dataclass(frozen=True)
class Problem:
    robot: object
    measurements: Measurements
    truth: np.ndarray


def problem(count: int = POSES) -> Problem:
    """An arm with planted errors of a third of the tolerances, seen with a tracker's noise."""
    rng = np.random.default_rng(0)
    robot = load_robot("ur10e")
    model = kinematic_model(
        robot,
        ERRORS,
        setups={
            "sensor": FrameModel.around(
                rigid(rotation_exp([0.3, 0.2, 1.0]), np.array([2.0, 1.0, 0.5])), ALL, outside=True
            )
        },
        targets={
            "tool": FrameModel.around(
                rigid(rotation_exp([0.1, 0.2, 0.3]), np.array([0.0, 0.0, 0.1])), ALL, outside=False
            )
        },
    )
    arm = model.owned(OwnerKind.LINK, OwnerKind.JOINT)
    values = np.where(arm, 0.3 * model.tolerances * rng.normal(size=len(arm)), 0.0)
    q = rng.uniform(-2.5, 2.5, (count, 6))
    T = predicted_poses(model, values, q, setup="sensor", target="tool")
    p = T[:, :3, 3] + POSITION_NOISE * rng.normal(size=(count, 3))
    R = rotation_exp(ORIENTATION_NOISE * rng.normal(size=(count, 3))) @ T[:, :3, :3]
    return Problem(
        robot,
        Measurements(
            q=q, observations=(Observations(quantity=Observed.POSE, rows=np.arange(count), position=p, rotation=R),)
        ),
        T,
    )


def ours(task: Problem, *, robust: bool):
    settings = FitSettings(SolverSettings(loss=VectorLoss() if robust else VectorLoss(0.0)))
    return fit(task.robot, task.measurements, ERRORS, settings=settings)


def peer(task: Problem, reference):
    """scipy least_squares, method lm, 2-point Jacobian, on the same parameters with the noise known beforehand."""
    model, kept = reference.model, reference.after.selection.kept
    none = np.zeros(len(kept), dtype=bool)
    sigma = np.array([POSITION_NOISE] * 3 + [ORIENTATION_NOISE] * 3)[:, np.newaxis]

    def whitened(x):
        values = np.zeros(len(kept))
        values[kept] = x
        (residual,) = residuals(model, values, task.measurements, wanted=none)
        return np.concatenate([(residual.r / sigma).ravel(), (values / model.tolerances)[kept]])

    result = least_squares(
        whitened, np.zeros(int(kept.sum())), jac="2-point", x_scale=model.tolerances[kept], method="trf"
    )
    values = np.zeros(len(kept))
    values[kept] = result.x
    return values


def best_of(function, repeats=3):
    """Wall-clock and processor time of the best of several calls, and the last value."""
    times, value = [], None
    for _ in range(repeats):
        start = perf_counter(), process_time()
        value = function()
        times.append((perf_counter() - start[0], process_time() - start[1]))
    return *min(times), value


def speed() -> None:
    task = problem()
    ours(problem(500), robust=True)  # warm-up
    print(f"{POSES} poses x 6 joints, full geometry + zeros + eccentricity, frames found from scratch")
    for robust in (False, True):
        seconds, busy, result = best_of(lambda robust=robust: ours(task, robust=robust))
        name = "armid, robust, noise estimated" if robust else "armid, least squares, noise estimated"
        told = f"{int(result.after.selection.kept.sum())} parameters, {result.after.iterations} iterations"
        print(f"  {name:42s} {seconds:6.2f} s ({busy:.2f} s of processor)   {told}")
        if not robust:
            plain, plain_busy = result, busy
    seconds, busy, values = best_of(lambda: peer(task, plain), repeats=1)
    sigma = np.sqrt(np.diag(plain.after.covariance))
    kept = plain.after.selection.kept
    apart = float(np.abs((values - plain.after.values)[kept] / sigma[kept]).max())
    name = "scipy least_squares, numeric Jacobian"
    print(f"  {name:42s} {seconds:6.2f} s ({busy:.2f} s of processor)   {busy / plain_busy:.1f} x as much")
    print(f"  largest difference between the two: {apart:.3f} standard deviations")


def main(options: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench calibration")
    tables = {
        "speed": speed,
        "held-out": held_out_table,
        "few": few_table,
        "halves": halves_table,
        "coverage": coverage_table,
        "stated": stated_table,
        "changes": changes_table,
    }
    for name in tables:
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    asked = vars(parser.parse_args(list(options)))
    chosen = [name for name in tables if asked[name.replace("-", "_")]] or list(tables)
    for name in chosen:
        if name == "speed":
            speed()
        else:
            tables[name](quick=asked["quick"])


if __name__ == "__main__":
    main()

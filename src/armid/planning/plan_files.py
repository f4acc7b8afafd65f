"""A planned motion as files for controllers and for further use; the same kinds as a designed motion."""

from __future__ import annotations

from pathlib import Path

from armid.errors import InputError
from armid.motions.trajectory import SampledTrajectory, grid
from armid.motions.trajectory_files import save_csv, save_joint_trajectory, save_trajectory
from armid.planning.plan import Plan

UNVALIDATED = "UNVALIDATED"
"""Part of the name of every file that rests on a result that is not to be trusted."""


def save_plan(plan: Plan, folder: Path, *, rate_hz: float, trusted: bool) -> tuple[Path, ...]:
    """Writes `plan.json` (samples and their derivatives), `plan.csv` and `plan-joint-trajectory.yaml` at a rate.

    Args:
        plan: the motion.
        folder: created when missing.
        rate_hz: of the samples; the end of the motion is always one of them.
        trusted: whether the model may be relied on; the names say so if not.

    Raises:
        InputError: the folder cannot be written.
    """
    if not rate_hz > 0.0:
        raise InputError("rate", f"{rate_hz} Hz", "a positive rate")
    stem = "plan" if trusted else f"plan-{UNVALIDATED}"
    t = grid(plan.duration, rate_hz)
    sampled = SampledTrajectory(plan.trajectory.joint_names, t, *plan.trajectory.sample(t))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return (
            save_trajectory(sampled, folder / f"{stem}.json", robot=plan.model.robot.name),
            save_csv(plan.trajectory, folder / f"{stem}.csv", rate_hz=rate_hz),
            save_joint_trajectory(plan.trajectory, folder / f"{stem}-joint-trajectory.yaml", rate_hz=rate_hz),
        )
    except OSError as error:
        raise InputError(folder, f"cannot be written: {error.strerror or error}", "choose another --out") from None

"""Joint targets for a controller that only knows the nominal arm: what to command so that the tool goes where it was meant to."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.calibration.hold_out import Advice
from armid.calibration.physics import range_notes
from armid.calibration.targets import Targets, read_targets
from armid.documents import write_text
from armid.kernels.kinematics import forward_kinematics, jacobian
from armid.kinematics.calibrated import calibrated_robot, predicted_poses
from armid.kinematics.correction import Correction, read_correction
from armid.kinematics.model import KinematicModel
from armid.kinematics.rotations import rotation_log
from armid.notes import Note
from armid.outcome import Check, InputFile, Outcome, Provenance
from armid.page import Table
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.threads import one_blas_thread
from armid.words import wrong_kind

if TYPE_CHECKING:
    from armid.calibration.calibrate import Calibration

_EXACT = 1e-10
"""[m, rad] Residual of a target at which the iteration ends: a thousandth of any encoder step."""
_REACHED = 1e-6
"""[m, rad] What may be left of a target that counts as reached: a tenth of what the best instrument sees."""
_ITERATIONS = 60

_DAMPING = 1e-2
"""[m/rad, rad/rad] First damping: singular values of the Jacobian below this move the joints little. Where steps help it
shrinks, so that ordinary targets converge as fast as by Newton's own steps."""
_STALLED = 1e3
"""Damping beyond which a step no longer moves anything: the target is as near as it gets."""

_POSITION_FIRST = 1e-2
"""[m] What a radian counts as where a pose cannot be reached: an arm of four or five joints that cannot turn by the milliradian
that is missing shall not give up the millimetre that it can mend. Of a position about a ten-thousandth of that angle is left."""


@dataclass(frozen=True, eq=False)
class CompensatedTargets:
    """What to command.

    Args:
        q: joint targets, shape [n, n_joints].
        position_error, orientation_error: what is left to each target [m, rad], shape [n]; not zero where an arm with
            fewer than six joints cannot reach the pose exactly.
        within_limits: whether every joint stays within its limits, shape [n].
    """

    q: FloatArray
    position_error: FloatArray
    orientation_error: FloatArray
    within_limits: npt.NDArray[np.bool_]

    @property
    def reached(self) -> npt.NDArray[np.bool_]:
        """Whether each target is reached, shape [n]."""
        return (self.position_error < _REACHED) & (self.orientation_error < _REACHED)


def compensated_targets(
    model: KinematicModel,
    values: FloatArray,
    q_nominal: npt.ArrayLike,
    *,
    poses: FloatArray | None = None,
) -> CompensatedTargets:
    """Joint positions at which the real arm is where the nominal one would be at `q_nominal`.

    Damped Newton steps on the calibrated model with the Jacobian of its geometry; terms a description cannot hold
    (eccentricity, compliance) enter the pose and change that Jacobian by less than a thousandth. A step that does not
    come nearer is not taken: at a singular pose the joints stay near where they were instead of turning round. Of a pose that
    cannot be reached the position comes first (`_POSITION_FIRST`).

    Args:
        model, values: the calibrated arm.
        q_nominal: what would be commanded to a nominal arm, shape [n, n_joints]; the start of the iteration.
        poses: T_base_tip to reach instead, shape [n, 4, 4].
    """
    q = np.array(samples("q_nominal", q_nominal, model.robot.n_joints))
    wanted = forward_kinematics(model.robot, q) if poses is None else np.asarray(poses, dtype=np.float64)
    arm = calibrated_robot(model, values)
    q, e = _approached(model, values, arm, q, wanted)
    short = np.abs(e).max(axis=1, initial=0.0) > _REACHED
    if short.any():
        again, left = _approached(model, values, arm, q[short], wanted[short], lever=_POSITION_FIRST)
        nearer = np.linalg.norm(left[:, :3], axis=1) < np.linalg.norm(e[short, :3], axis=1)
        rows = np.flatnonzero(short)[nearer]
        q[rows], e[rows] = again[nearer], left[nearer]
    lower, upper = model.robot.limit("lower"), model.robot.limit("upper")
    inside: npt.NDArray[np.bool_] = np.all((q >= lower) & (q <= upper), axis=1, keepdims=True)[:, 0]
    return CompensatedTargets(q, np.linalg.norm(e[:, :3], axis=1), np.linalg.norm(e[:, 3:], axis=1), inside)


def _approached(
    model: KinematicModel, values: FloatArray, arm: Robot, q: FloatArray, wanted: FloatArray, *, lever: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Joint positions as near to the wanted poses as damped steps come, and the twist that is left, shape [n, 6].

    Args:
        model, values, arm: the calibrated arm, with and without the terms of its encoders.
        q: start, shape [n, n_joints].
        wanted: T_base_tip, shape [n, 4, 4].
        lever: what a radian counts as [m].
    """
    weight = np.repeat([1.0, lever], 3)
    q = np.array(q)
    e = weight * _twist_to(predicted_poses(model, values, q), wanted)
    damping = np.full(len(q), _DAMPING * lever)
    for _ in range(_ITERATIONS):
        open_ = (np.abs(e).max(axis=1, initial=0.0) > _EXACT) & (damping < _STALLED)
        if not open_.any():
            break
        J = weight[:, np.newaxis] * jacobian(arm, q[open_])
        trial = q[open_] + _damped_step(J, e[open_], damping[open_])
        left = weight * _twist_to(predicted_poses(model, values, trial), wanted[open_])
        better = np.linalg.norm(left, axis=1) < np.linalg.norm(e[open_], axis=1)
        rows = np.flatnonzero(open_)
        q[rows[better]], e[rows[better]] = trial[better], left[better]
        damping[rows] *= np.where(better, 0.1, 10.0)
    return q, e / weight


def _damped_step(J: FloatArray, e: FloatArray, damping: FloatArray) -> FloatArray:
    """`J^T (J J^T + lambda^2 I)^-1 e` for every target, shape [n, n_joints]."""
    Jt = np.swapaxes(J, 1, 2)
    G = J @ Jt + (damping**2)[:, np.newaxis, np.newaxis] * np.eye(6)
    return np.asarray((Jt @ np.linalg.solve(G, e[..., np.newaxis]))[..., 0])


def _twist_to(T: FloatArray, wanted: FloatArray) -> FloatArray:
    """Position difference and rotation vector from T to the wanted pose, in base axes, shape [n, 6]."""
    turn = rotation_log(wanted[:, :3, :3] @ np.swapaxes(T[:, :3, :3], 1, 2))
    return np.hstack([wanted[:, :3, 3] - T[:, :3, 3], turn])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Compensation(Outcome):
    """Joint targets for a nominal controller, and how far they can be used.

    Args:
        robot: nominal arm.
        wanted: what a nominal arm would be sent.
        found: what to command instead.
        checks: whether every target is reached within the joint limits.
        notes: what else a reader must know.
        provenance: files it rests on.
    """

    _page: ClassVar[str] = "armid.report.calibration:compensation_report"

    robot: Robot
    wanted: Targets
    found: CompensatedTargets
    checks: tuple[Check, ...]
    notes: tuple[Note, ...] = ()
    provenance: Provenance

    @property
    def q(self) -> FloatArray:
        """What to command [rad or m], shape [n, n_joints]."""
        return self.found.q

    @property
    def reached(self) -> npt.NDArray[np.bool_]:
        """Whether each target is reached, shape [n]."""
        return self.found.reached

    @property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Whether each target is reached within the joint limits, shape [n]."""
        return self.reached & self.found.within_limits

    @property
    def largest_change(self) -> FloatArray:
        """How far each joint had to move at most [rad or m], shape [n_joints]."""
        change: FloatArray = np.abs(self.found.q - self.wanted.q).max(axis=0, initial=0.0)
        return change

    def _heading(self) -> str:
        return f"{self.robot.name}: {int(self.usable.sum())} of {len(self.q)} targets can be used"

    def _tables(self) -> tuple[Table, ...]:
        rows = tuple(
            (name, 1e3 * float(x)) for name, x in zip(self.robot.joint_names, self.largest_change, strict=True)
        )
        return (Table(("joint", "largest change [mrad, mm]"), rows),)

    def as_dict(self) -> dict[str, Any]:
        """Counts of targets, what is left of the worst one [m, rad], and the largest change of every joint."""
        return {
            "targets": len(self.q),
            "reached": int(self.reached.sum()),
            "within_limits": int(self.found.within_limits.sum()),
            "usable": int(self.usable.sum()),
            "position_error": float(self.found.position_error.max(initial=0.0)),
            "orientation_error": float(self.found.orientation_error.max(initial=0.0)),
            "largest_change": self.largest_change.tolist(),
            "verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "checks": [check.as_dict() for check in self.checks],
            "notes": [note.as_dict() for note in self.notes],
            "provenance": self.provenance.as_dict(),
        }

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `targets.csv`: joint targets, one per line, with what is left of the error."""
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow([*self.robot.joint_names, "position_error", "orientation_error", "within_limits"])
        found = self.found
        for q, p, r, ok in zip(
            found.q.tolist(), found.position_error, found.orientation_error, found.within_limits, strict=True
        ):
            writer.writerow([*(repr(x) for x in q), f"{p:.3g}", f"{r:.3g}", str(bool(ok)).lower()])
        return (write_text(Path(folder) / "targets.csv", out.getvalue()),)


@one_blas_thread
def compensate(
    robot: Robot | str | Path,
    correction: Calibration | Correction | str | Path,
    targets: Targets | npt.ArrayLike | str | Path,
    *,
    poses: bool = False,
    base: str | None = None,
    tip: str | None = None,
) -> Compensation:
    """Rewrite joint targets so that the real arm goes where the nominal one would, for controllers nobody can teach.

    Args:
        robot: nominal arm, or its URDF path, YAML path or catalogue name.
        correction: a calibration, its folder, or the `correction.json` in it.
        targets: joint targets of a nominal arm: a file (docs/formats.md), or positions [rad or m], shape [n, n_joints].
        poses: the file also has the tip's poses in the base frame: reach those.
        base, tip: links of a branched description where the arm begins and ends.

    Returns:
        What to command; untrusted when some target is not reached, lies beyond a joint limit, or the calibration is not trusted.

    Raises:
        InputError: a file that cannot be read, or a correction of another arm.
    """
    arm = robot if isinstance(robot, Robot) else load_robot(robot, base=base, tip=tip)
    inputs = [InputFile(arm.source.path or arm.name, arm.source.sha256, "robot")]
    if isinstance(correction, str | Path):
        path = Path(correction)
        correction = read_correction(path / "correction.json" if path.is_dir() else path, arm)
    if isinstance(correction, Correction):
        inputs.append(InputFile(str(correction.path), "", "correction"))
        found = compensated(arm, correction.model, correction.values, targets, poses=poses, inputs=tuple(inputs))
        measured = np.array([correction.measured[name] for name in arm.joint_names]).T if correction.measured else None
        return _held_against(found, measured, correction.advice)
    if not hasattr(correction, "fit"):
        raise wrong_kind("correction", correction, "a Calibration, or the folder or correction.json of one")
    fit = correction.fit
    found = compensated(arm, fit.model, fit.after.values, targets, poses=poses, inputs=tuple(inputs))
    return _held_against(found, correction.measurements.q, str(correction.advice))


def _held_against(found: Compensation, measured: FloatArray | None, advice: str) -> Compensation:
    """The same with what its calibration covers, and whether that is to be trusted, where they are known."""
    notes = [] if measured is None else range_notes(found.robot.joint_names, measured, found.wanted.q, "targets")
    trusted = advice == Advice.TRUSTED
    text = "the calibration is trusted" if trusted else f"the calibration itself is not to be used: {advice}"
    own = Check(code="calibration", passed=trusted, value=float(trusted), limit=1.0, message=text)
    return replace(found, notes=(*found.notes, *notes), checks=(*found.checks, *([own] if advice else [])))


def compensated(
    robot: Robot,
    model: KinematicModel,
    values: FloatArray,
    targets: Targets | npt.ArrayLike | str | Path,
    *,
    poses: bool = False,
    inputs: tuple[InputFile, ...] = (),
) -> Compensation:
    """Targets rewritten with a model and its parameters, and judged."""
    wanted = _wanted(targets, robot, poses=poses)
    found = compensated_targets(model, values, wanted.q, poses=wanted.poses)
    if isinstance(targets, str | Path):
        inputs = (*inputs, InputFile(str(targets), "", "targets"))
    return Compensation(
        robot=robot,
        wanted=wanted,
        found=found,
        checks=_checks(found),
        provenance=Provenance(inputs=inputs, settings={"poses": poses}),
    )


def _wanted(targets: Targets | npt.ArrayLike | str | Path, robot: Robot, *, poses: bool) -> Targets:
    if isinstance(targets, Targets):
        return targets
    if isinstance(targets, str | Path):
        return read_targets(Path(targets), robot, poses=poses)
    return Targets(samples("targets", targets, robot.n_joints))


def _checks(found: CompensatedTargets) -> tuple[Check, Check]:
    missed, outside = int((~found.reached).sum()), int((~found.within_limits).sum())
    away = f"{1e3 * found.position_error.max(initial=0.0):.3g} mm"
    turned = f"{1e3 * found.orientation_error.max(initial=0.0):.3g} mrad"
    return (
        Check(
            code="targets-reached",
            passed=missed == 0,
            value=float(missed),
            limit=0.0,
            message=f"{missed} of {len(found.q)} targets not reached, up to {away} and {turned} away: fewer than six joints, or "
            "out of reach"
            if missed
            else f"all {len(found.q)} targets are reached",
        ),
        Check(
            code="joint-limits",
            passed=outside == 0,
            value=float(outside),
            limit=0.0,
            message=f"{outside} of {len(found.q)} targets beyond a joint limit"
            if outside
            else f"all {len(found.q)} targets are within the joint limits",
        ),
    )

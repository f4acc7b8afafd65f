"""Is the file what it claims to be? Wrong units, orders and conventions leave a pattern; here it gets a name.

With nominal links and freely placed sensor and tool, even a badly built arm fits to a per cent of its reach. If it does
not, the numbers mean something else, and the reading under which they do fit says what.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit
from armid.calibration.noise import VectorLoss
from armid.calibration.readings import readings
from armid.calibration.solve import SolverSettings, solve
from armid.calibration.start import start_frames
from armid.calibration.tool_error import error_table
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.build import kinematic_model
from armid.kinematics.measurement import MeasurementError, Measurements, Observations
from armid.kinematics.model import ErrorModel
from armid.kinematics.words import UnknownGeometry
from armid.notes import Note, Severity
from armid.robot.robot import JointKind, Robot
from armid.rows.pose_residual import Residual, residuals

_TOO_FAR = 0.015
"""Position misfit, as a fraction of the arm's reach, that no manufacturing error explains: real arms show up to 0.005."""
_TOO_TURNED = 0.06
"""[rad] The same for orientation."""
_CLEARLY_BETTER = 0.25
"""A reading must reduce the misfit to this fraction to be named as the cause."""
_FULL_TURNS = 4 * np.pi
"""[rad] No common arm turns further; joint angles beyond it are degrees."""
_FAR = 30.0
"""Ratio of a position's distance from the others to the arm's reach from which on that row has another unit."""
_PLAUSIBLE = 3.0
"""Ratio of measured spread to the arm's reach up to which positions may be metres: twice the reach from one end to the other, and
a sensor on the arm."""
_UNITS = {
    "millimetres (use --lengths mm)": 1000.0,
    "centimetres (write them in metres or millimetres)": 100.0,
    "inches (write them in metres or millimetres)": 1.0 / 0.0254,
}
"""Other units of length, and how many of them are a metre."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Length of residuals with nominal links: position [m] and orientation [rad]; NaN where not measured."""

    position: float
    orientation: float

    def score(self, reach: float) -> float:
        """The worse of the two, in units of what no real arm of that reach [m] would show."""
        parts = (self.position / (_TOO_FAR * reach), self.orientation / _TOO_TURNED)
        return max((x for x in parts if np.isfinite(x)), default=0.0)


def misfit(robot: Robot, measurements: Measurements) -> Misfit:
    """How badly nominal links fit with the best placement of sensors and tools."""
    setups, targets = start_frames(robot, measurements).models(measurements)
    model = kinematic_model(robot, ErrorModel(UnknownGeometry.NONE, frozenset()), setups=setups, targets=targets)
    settings = SolverSettings(iterations=20, rounds=3, loss=VectorLoss(0.0))
    return _misfit_of(solve(model, measurements, settings=settings).residuals)


def _rough_misfit(robot: Robot, measurements: Measurements) -> Misfit:
    """The same with closed-form placements: quick, good enough to rank readings."""
    setups, targets = start_frames(robot, measurements).models(measurements)
    model = kinematic_model(robot, ErrorModel(UnknownGeometry.NONE, frozenset()), setups=setups, targets=targets)
    values = np.zeros(len(model.parameters))
    return _misfit_of(residuals(model, values, measurements, wanted=np.zeros(len(values), dtype=bool)))


def _misfit_of(found: Iterable[Residual]) -> Misfit:
    """Lengths that a quarter of the residual vectors exceeds: a few outliers do not condemn a good file, and
    a mistake that shows only where one joint moves is still seen.
    """
    table = error_table(found)
    return Misfit(
        *(float(np.quantile(x, 0.75)) if len(x) else float("nan") for x in (table.position, table.orientation))
    )


def diagnose(robot: Robot, measurements: Measurements) -> tuple[Measurements, list[Note]]:
    """The measurements without stale ones, and notes; raises when they cannot be used, naming the likely cause."""
    _check_counts(robot, measurements)
    _check_units(robot, measurements)
    kept, notes = _without_stale(measurements)
    return kept, [
        *(Note("not-used", Severity.INFO, remark) for remark in measurements.remarks),
        *notes,
        *twins(measurements),
    ]


_SAME_PLACE = 2e-6
"""[m] Two targets that are never further apart than this are one, written twice: a file that counts in micrometres rounds either
copy by half of one, and no two markers are this near."""


def twins(measurements: Measurements) -> list[Note]:
    """Targets that say the same at every configuration: a duplicated marker counts one measurement twice."""
    notes = []
    placed = [o for o in measurements.observations if o.position is not None]
    for i, a in enumerate(placed):
        for b in placed[i + 1 :]:
            rows, at, to = np.intersect1d(a.rows, b.rows, return_indices=True)
            if a.target == b.target or a.setup != b.setup or len(rows) < 3:
                continue
            assert a.position is not None
            assert b.position is not None
            if np.abs(a.position[at] - b.position[to]).max() < _SAME_PLACE:
                text = (
                    f"{a.target} and {b.target} are equal on {len(rows)} rows: one marker written twice; leave one out"
                )
                notes.append(Note("duplicated-marker", Severity.ERROR, text, b.target))
    return notes


def check_misfit(robot: Robot, measurements: Measurements, fit: KinematicFit) -> list[Note]:
    """Refuse measurements that nominal links with fitted frames miss by more than any common arm would.

    Unless no mistake explains them and corrections within the tolerances do: then it is an arm far from its description,
    which is worth a warning.
    """
    reach = arm_reach(robot)
    before, after = (_misfit_of(s.residuals) for s in (fit.before, fit.after))
    if before.score(reach) <= 1.0:
        return []
    text, cause = _explained(robot, thinned(measurements))
    if cause is None and after.score(reach) < _EXPLAINED * min(before.score(reach), _LARGEST):
        return [Note("far-from-nominal", Severity.WARNING, f"{text}; corrections within the tolerances explain it")]
    unknown = "no common mistake explains it: is this the right robot, in the right joint order?"
    raise MeasurementError(f"{text}; {cause or unknown}")


_EXPLAINED = 0.1
"""Fraction of the misfit that a fit of the whole arm may leave to count as its explanation."""
_LARGEST = 5.0
"""Misfits beyond this many times the limit are never blamed on the arm: at least a tenth of its reach."""
_TWICE = 2.0
"""Readings that fit within this factor of the best are equally likely; the commoner mistake is then named first."""
_MOST_LIKELY = 8
"""Readings looked at closely, the best by their closed-form misfit."""


def _explained(robot: Robot, measurements: Measurements) -> tuple[str, str | None]:
    """What is wrong, and the other reading under which the measurements fit, if there is one."""
    reach = arm_reach(robot)
    found = misfit(robot, measurements)
    away = "" if np.isnan(found.position) else f"{1e3 * found.position:.0f} mm"
    turned = "" if np.isnan(found.orientation) else f"{np.degrees(found.orientation):.1f} deg"
    missed = " and ".join(x for x in (away, turned) if x)
    text = f"the measurements miss the nominal arm by {missed} however sensor and tool are placed"
    ranked = sorted(readings(robot, measurements), key=lambda r: _rough_misfit(r.robot, r.measurements).score(reach))
    tried = [(misfit(r.robot, r.measurements).score(reach), r) for r in ranked[:_MOST_LIKELY]]
    least = min(score for score, _ in tried)
    tried.sort(key=lambda pair: (pair[0] > _TWICE * least, not pair[1].common, pair[0]))
    fitting = [(score, r.cause) for score, r in tried if score < _CLEARLY_BETTER * found.score(reach)]
    if not fitting:
        return text, None
    best = fitting[0]
    also = [cause for score, cause in fitting[1:3] if score < _TWICE * best[0]]
    more = f" (or: {'; '.join(also)})" if also else ""
    times = min(found.score(reach) / max(best[0], 1e-9), 1e4)
    return text, f"they fit {times:.0f} times better if {best[1]}{more}"


_ENOUGH = 40
"""Rows used to try other readings."""


def thinned(measurements: Measurements) -> Measurements:
    """An even selection of configurations."""
    kept = np.zeros(len(measurements.q), dtype=bool)
    kept[:: max(1, len(kept) // _ENOUGH)] = True
    return measurements.subset(kept)


def _check_counts(robot: Robot, measurements: Measurements) -> None:
    """Enough equations to place sensor and tool at all."""
    if measurements.q.shape[1] != robot.n_joints:
        raise MeasurementError(f"the measurements have {measurements.q.shape[1]} joints, the robot {robot.n_joints}")
    moving = [
        name for name, span in zip(robot.joint_names, np.ptp(measurements.q, axis=0), strict=True) if span > _MOVED
    ]
    if len(moving) < min(2, robot.n_joints):
        told = f"only {moving[0]} moves" if moving else "no joint moves"
        raise MeasurementError(f"{told}: one axis alone cannot place sensor and tool; move the other joints, too")
    placed = {measurements.places[name].body for name in measurements.targets if name in measurements.places}
    frames = 6 * (len(measurements.setups) + len(placed)) + sum(
        6 if any(o.quantity.has_orientation for o in measurements.observations if o.target == name) else 3
        for name in measurements.targets
        if name not in measurements.places
    )
    groups = len(np.unique(measurements.group))
    if measurements.n_distinct_equations <= frames or groups < 3:
        raise MeasurementError(
            f"{measurements.n_distinct_equations} equations from {groups} configurations cannot even place sensor and tool "
            f"({frames} unknowns), let alone the arm: measure at least {max(3, -(-frames // 3))} different configurations, "
            "better five times as many as joints"
        )


def _check_units(robot: Robot, measurements: Measurements) -> None:
    """Degrees for radians and millimetres for metres show in the size of the numbers."""
    turns = np.array([joint.kind is JointKind.REVOLUTE for joint in robot.joints])
    beyond = (np.abs(measurements.q) > _FULL_TURNS) & turns
    if beyond.any():
        raise MeasurementError(_in_degrees(robot, measurements, beyond))
    _check_lengths(robot, measurements)


def _in_degrees(robot: Robot, measurements: Measurements, beyond: npt.NDArray[np.bool_]) -> str:
    """What is wrong with joint positions of which some are larger than radians can be, shape [n, n_joints]."""
    i = int(np.flatnonzero(beyond.any(axis=0))[0])
    rows, largest = np.flatnonzero(beyond[:, i]), float(np.abs(measurements.q[:, i]).max())
    if len(rows) <= 0.5 * len(measurements.q):
        where = f"{len(rows)} rows, the first {measurements.labels[rows[0]]}"
        return (
            f"joint {robot.joint_names[i]} reaches {largest:.4g} rad ({where}): these are degrees (use --angles deg); "
            "units are mixed within the file"
        )
    text = f"joint {robot.joint_names[i]} reaches {largest:.4g} rad (all rows): these are degrees"
    large = [robot.joint_names[k] for k in np.unique(np.nonzero(beyond)[1])]
    moves = np.ptp(measurements.q, axis=0) > _MOVED
    others = [
        name
        for name, x, joint in zip(robot.joint_names, moves, robot.joints, strict=True)
        if x and name not in large and joint.kind is JointKind.REVOLUTE
    ]
    if len(others) < len(large):
        return f"{text} (use --angles deg)"
    return (
        f"{text}, while {', '.join(others)} stay below {_FULL_TURNS:.3g} as radians would (write the unit into the title of "
        f"the column of {', '.join(large)}, as in q1_deg; use --angles deg if all of them are degrees)"
    )


def _check_lengths(robot: Robot, measurements: Measurements) -> None:
    """Millimetres, centimetres or inches for metres, in all rows or in some."""
    reach = arm_reach(robot)
    for o in measurements.observations:
        if o.position is None or len(o) < 3:
            continue
        away = _distances(o.position)
        typical, far = float(np.median(away)), np.flatnonzero(away > _FAR * reach)
        # Rows that are plausible in metres beside others that are not: two units. Otherwise one, and it is not the metre.
        if typical > _PLAUSIBLE * reach:
            nominal = float(np.median(_distances(forward_kinematics(robot, measurements.q[o.rows])[:, :3, 3])))
            ratio = typical / max(nominal, 0.1 * reach)
            unit = min(_UNITS, key=lambda name: abs(np.log(ratio / _UNITS[name])))
            raise MeasurementError(
                f"positions of {o.target} spread over {typical:.4g} m, those of the nominal arm over {nominal:.2g} m: "
                f"these are {unit}"
            )
        if len(far):
            raise MeasurementError(
                f"{len(far)} positions of {o.target} are {away[far].max():.4g} m from the others, the first at "
                f"{measurements.labels[o.rows[far[0]]]}: units are mixed within the file (millimetres among metres?)"
            )


def _distances(points: FloatArray) -> FloatArray:
    """From the middle of all [m], shape [n, 3] -> [n]."""
    return np.asarray(np.linalg.norm(points - np.median(points, axis=0), axis=1))


def arm_reach(robot: Robot) -> float:
    """Sum of all link offsets [m]: no point of the arm is further from its base."""
    total = sum(abs(e.value) for j in robot.joints for e in j.transforms if not e.motion.is_rotation)
    slides = sum(
        max(abs(j.limits.lower), abs(j.limits.upper))
        if np.isfinite(j.limits.lower) and np.isfinite(j.limits.upper)
        else 1.0
        for j in robot.joints
        if j.kind is JointKind.PRISMATIC
    )
    return max(total + slides, 0.1)


_MANY_STALE = 0.1
"""Fraction of repeated target values from which on nothing in the file is to be trusted."""


def _without_stale(measurements: Measurements) -> tuple[Measurements, list[Note]]:
    """Leaves out measurements that repeat an earlier one although the joints moved: a frozen sensor, or a copied line."""
    notes, kept = [], []
    rows = np.arange(len(measurements.q))
    for o in measurements.observations:
        stale = _stale_rows(o, measurements.q)
        if stale.any():
            where = ", ".join(measurements.labels[i] for i in o.rows[stale][:5])
            severity = Severity.ERROR if stale.mean() > _MANY_STALE else Severity.WARNING
            text = (
                f"{int(stale.sum())} measurements of {o.target} repeat an earlier one to the last digit although the joints "
                f"moved (a sensor that froze, or copied lines) and are left out: {where}"
            )
            notes.append(Note("duplicated-target", severity, text, o.target))
        kept.append(o.take(~stale, rows) if stale.any() else o)
    return replace(measurements, observations=tuple(kept)), notes


_MOVED = 1e-3
"""[rad or m] Joints that differ by more than this put the target elsewhere."""


def _stale_rows(o: Observations, q: FloatArray) -> npt.NDArray[np.bool_]:
    """Mask of the observations whose position equals an earlier one's at other joint positions."""
    if o.position is None or len(o) < 2:
        return np.zeros(len(o), dtype=bool)
    _, first, which = np.unique(o.position, axis=0, return_index=True, return_inverse=True)
    original = first[np.ravel(which)]
    return np.asarray(np.abs(q[o.rows] - q[o.rows[original]]).max(axis=1) > _MOVED)


_COMPUTED = 2e-6
"""[m, rad] No arm is built and no tool measured this well."""


def misfit_notes(fit: KinematicFit, measurements: Measurements) -> list[Note]:
    """Fewer equations than parameters, and joints that never moved."""
    notes = []
    wanted = int(np.count_nonzero([p.rank < 3 for p in fit.model.parameters]))
    if measurements.n_distinct_equations < wanted:
        notes.append(
            Note(
                "few-equations",
                Severity.WARNING,
                f"{measurements.n_distinct_equations} equations for {wanted} parameters: the prior decides the rest; "
                "measure more",
            )
        )
    found = _misfit_of(fit.before.residuals)
    if np.nanmax([found.position, found.orientation]) < _COMPUTED:
        notes.append(
            Note(
                "computed-poses",
                Severity.WARNING,
                "the poses are those of the nominal arm to the last digits: a controller computed them, no instrument "
                "measured them",
            )
        )
    span = np.ptp(measurements.q, axis=0)
    still = [name for name, s in zip(fit.model.robot.joint_names, span, strict=True) if s < 1e-3]
    if still:
        notes.append(
            Note(
                "frozen-joints",
                Severity.WARNING,
                f"{', '.join(still)} never moved: nothing beyond the tool frame can be said about them",
                still[0],
            )
        )
    return notes

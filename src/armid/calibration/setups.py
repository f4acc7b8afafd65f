"""Several files: do they share sensor and tool frames? Decided by an F test, and said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.calibration.fit import fit
from armid.calibration.hold_out import row_blocks
from armid.calibration.noise import VectorLoss, lengths
from armid.calibration.thresholds import FRAMES_BY_CHANCE, FRAMES_PLAINLY_DIFFER
from armid.calibration.tool_error import error_table
from armid.calibration.words import SetupSharing
from armid.estimation.quantiles import fisher_above
from armid.kinematics.measurement import MeasurementError, Measurements, Observed, joined
from armid.notes import Note, Severity
from armid.robot.robot import Robot
from armid.rows.pose_residual import Residual
from armid.rows.pose_residual import parts as parts_of

_ROWS = 80
"""Configurations per file that the test looks at; more cost time and change no decision."""
_ENOUGH_FOR_HALVES = 16
"""Configurations of a file from which on its own halves tell how far frames differ without having moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameTest:
    """Whether files share frames.

    Args:
        sensor, tool: whether the frame is common to all.
        statistic: F of common sensor and tool frames against frames of their own, beside what halves of one file show.
        limit: of it.
        together, apart: rms error with common frames and with frames of their own [m; rad where no position was measured].
        unit: of a thousandth of these.
    """

    sensor: bool
    tool: bool
    statistic: float
    limit: float
    together: float
    apart: float
    unit: str

    @property
    def shared(self) -> bool:
        return self.sensor and self.tool

    @property
    def plainly_apart(self) -> bool:
        """Whether common frames are out of the question."""
        return not self.shared and self.together > FRAMES_PLAINLY_DIFFER.value * self.apart


def renamed(measurements: Measurements, prefix: str, *, sensor: bool = True, tool: bool = True) -> Measurements:
    """The same measurements with setups or targets of their own."""
    before = f"{prefix}."
    s, t = before if sensor else "", before if tool else ""
    return replace(
        measurements,
        observations=tuple(replace(o, setup=s + o.setup, target=t + o.target) for o in measurements.observations),
        places={t + name: replace(place, body=t + place.body) for name, place in measurements.places.items()},
    )


def frame_test(robot: Robot, parts: Sequence[Measurements]) -> FrameTest:
    """F test of common frames: is the misfit they cause beyond what halves of one file show between themselves?

    Residuals of a real arm are no independent noise: they follow the configuration. Two halves of one file, given frames of
    their own, therefore gain more than chance; the gain between files is held against that gain.

    Args:
        robot: nominal arm.
        parts: the measurements of each file.
    """
    few = [_thinned(part) for part in parts]
    halves = _fitted(robot, [half for i, part in enumerate(few) for half in _halves(part, str(i))])
    apart = _fitted(robot, [renamed(part, str(i)) for i, part in enumerate(few)])
    yardstick = _yardstick(halves, apart)
    first: _Against | None = None
    for sensor, tool in ((True, True), (False, True), (True, False)):
        found = _fitted(robot, [renamed(part, str(i), sensor=not sensor, tool=not tool) for i, part in enumerate(few)])
        tested = _against(yardstick, found, apart)
        first = first or tested
        if tested.statistic <= tested.limit:
            return _outcome(first, apart, sensor=sensor, tool=tool)
    assert first is not None
    return _outcome(first, apart, sensor=False, tool=False)


@dataclass(frozen=True, eq=False, slots=True)
class _Fitted:
    """A fit as far as the test needs it: residual vectors by kind, and how many parameters they cost."""

    residuals: tuple[Residual, ...]
    parameters: int

    @property
    def error(self) -> float:
        errors = error_table(self.residuals).main[0]
        return float(np.sqrt(np.mean(errors**2)))

    def cost(self, sigma: Mapping[str, float]) -> float:
        """Robust sum of squares in units of given noise."""
        loss, total = VectorLoss(), 0.0
        for residual in self.residuals:
            for part, rows in parts_of(residual.observations.quantity):
                total += loss.cost(lengths(residual.r[rows] / sigma[part]), rows.stop - rows.start)
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class _Yardstick:
    """Noise by kind, the gain per parameter that is ordinary, and from how many degrees of freedom that is known."""

    sigma: Mapping[str, float]
    gain: float
    freedom: int


@dataclass(frozen=True, slots=True)
class _Against:
    statistic: float
    limit: float
    together: float


def _yardstick(halves: _Fitted, apart: _Fitted) -> _Yardstick:
    """What frames of their own gain where nothing moved."""
    squares: dict[str, list[float]] = {}
    for residual in halves.residuals:
        for part, rows in parts_of(residual.observations.quantity):
            squares.setdefault(part, []).extend((residual.r[rows] ** 2).ravel())
    equations = sum(len(values) for values in squares.values())
    spare = max(equations - halves.parameters, 1)
    sigma = {part: max(float(np.sqrt(np.mean(x) * equations / spare)), 1e-9) for part, x in squares.items()}
    more = halves.parameters - apart.parameters
    gain = (apart.cost(sigma) - halves.cost(sigma)) / more if more > 0 else 0.0
    return _Yardstick(sigma=sigma, gain=max(gain, 1.0), freedom=more if gain > 1.0 else spare)


def _against(yardstick: _Yardstick, found: _Fitted, apart: _Fitted) -> _Against:
    count = apart.parameters - found.parameters
    if count <= 0:
        return _Against(0.0, 1.0, found.error)
    gain = (found.cost(yardstick.sigma) - apart.cost(yardstick.sigma)) / count
    limit = fisher_above(FRAMES_BY_CHANCE.value, count, yardstick.freedom)
    return _Against(gain / yardstick.gain, limit, found.error)


def _outcome(tested: _Against, apart: _Fitted, *, sensor: bool, tool: bool) -> FrameTest:
    return FrameTest(
        sensor=sensor,
        tool=tool,
        statistic=tested.statistic,
        limit=tested.limit,
        together=tested.together,
        apart=apart.error,
        unit="mm" if len(error_table(apart.residuals).position) else "mrad",
    )


def _fitted(robot: Robot, parts: Sequence[Measurements]) -> _Fitted:
    solution = fit(robot, joined(parts)).after
    return _Fitted(solution.residuals, int(solution.selection.kept.sum()))


def _thinned(measurements: Measurements) -> Measurements:
    """An even selection of configurations, whole groups at a time."""
    if any(o.quantity is Observed.LENGTH for o in measurements.observations):
        return measurements  # Lengths join two configurations: most of a selection would lose one end.
    groups = np.unique(measurements.group)
    kept = groups[:: max(1, -(-len(groups) // _ROWS))]
    return measurements.subset(np.isin(measurements.group, kept))


def _halves(part: Measurements, prefix: str) -> list[Measurements]:
    """The first and the second half of a file, with frames of their own; the whole when it is short."""
    if len(np.unique(part.group)) < _ENOUGH_FOR_HALVES:
        return [renamed(part, prefix)]
    first, second = (part.subset(rows) for rows in row_blocks(part, 2))
    if set(first.targets) != set(second.targets):
        return [renamed(part, prefix)]
    return [renamed(first, f"{prefix}a"), renamed(second, f"{prefix}b")]


def combined(
    robot: Robot, parts: Mapping[str, Measurements], setups: SetupSharing
) -> tuple[Measurements, tuple[Note, ...]]:
    """All parts as one, and what was decided about their frames.

    Args:
        robot: nominal arm.
        parts: measurements by name.
        setups: whether they share frames.

    Raises:
        MeasurementError: frames were said to be shared and are plainly not.
    """
    if setups is SetupSharing.PER_FILE:
        return joined([renamed(part, name) for name, part in parts.items()]), ()
    if len(parts) == 1:
        return next(iter(parts.values())), ()
    found = frame_test(robot, list(parts.values()))
    note = sharing_note(tuple(parts), found, setups)
    if setups is SetupSharing.SHARED or found.shared:
        return joined(parts.values()), (note,)
    named = [renamed(part, name, sensor=not found.sensor, tool=not found.tool) for name, part in parts.items()]
    return joined(named), (note,)


def sharing_note(names: Sequence[str], found: FrameTest, setups: SetupSharing) -> Note:
    """What was decided, in words.

    Raises:
        MeasurementError: frames were said to be shared and are plainly not.
    """
    files, F = ", ".join(names), f"F = {found.statistic:.3g}, limit {found.limit:.3g}"
    unit = found.unit
    cost = f"error {1e3 * found.together:.3g} {unit} with common frames, {1e3 * found.apart:.3g} {unit} with frames of their own"
    if setups is SetupSharing.SHARED and found.plainly_apart:
        raise MeasurementError(
            f"{files}: these files do not share a frame ({cost}); use --setups auto or per-file, or name the moved sensor "
            "apart in a column `setup`"
        )
    if found.shared:
        return Note("setups", Severity.INFO, f"{files} share sensor and tool frames ({F})")
    lost = (
        "sensor and tool frames"
        if not found.sensor and not found.tool
        else "sensor frame"
        if found.tool
        else "tool frame"
    )
    if setups is SetupSharing.SHARED:
        text = f"{files}: a common {lost} was asked for and is kept, but does not fit as well as one for each ({F}; {cost})"
        return Note("setups", Severity.WARNING, text)
    shared = (
        "" if not found.sensor and not found.tool else f"; the {'tool' if found.tool else 'sensor'} frame is shared"
    )
    return Note("setups", Severity.INFO, f"{files} do not share the {lost}: fitted for each ({F}; {cost}){shared}")


def unsure_note(found: FrameTest) -> Note:
    """Held-out rows stand elsewhere in joint space: nothing is refitted there, and why that may be wrong is said."""
    own, common = (f"{1e3 * x:.3g} {found.unit}" for x in (found.apart, found.together))
    text = (
        "held-out rows keep the frames of the training files, although frames of their own fit better "
        f"(F = {found.statistic:.3g}, limit {found.limit:.3g}; error {common} with common frames, {own} with their own): these "
        "rows stand where the others do not, so that a model error there looks the same as a moved frame; "
        "if sensor or target did move, use --setups per-file"
    )
    return Note("setups", Severity.WARNING, text)

"""The answer of an on-line estimator: what the arm looks like now, and whether that may be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from armid.documents import write_json
from armid.estimation.estimate import Estimate, EstimatedParameter, estimated_parameters
from armid.estimation.friction_sign import friction_sign
from armid.notes import Note
from armid.online.drifts import ImperfectionDrift, News
from armid.outcome import Check, Listing, Outcome, Provenance
from armid.page import Table
from armid.parameters.space import ParameterSpace
from armid.robot.robot import Robot
from armid.rows.imperfections import Family

_NOTABLE_REST = 0.15
"""Of the torque so far: an arm that is to be trusted leaves less of a motion it has not seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorDrift:
    """A channel against the arm it started from.

    Args:
        name: of the channel.
        gain, gain_deviation: share by which it reads too much, beyond what the result knew.
        offset, offset_deviation: constant that it reads too much [N m or N].
    """

    name: str
    gain: float
    gain_deviation: float
    offset: float
    offset_deviation: float

    def as_dict(self) -> dict[str, float | str]:
        return {
            "channel": self.name,
            "gain": self.gain,
            "gain_deviation": self.gain_deviation,
            "offset": self.offset,
            "offset_deviation": self.offset_deviation,
        }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OnlineState(Outcome):
    """Base parameters while the arm moves.

    Args:
        robot: the arm.
        estimate: base parameters; an infinite variance where nothing has determined one yet.
        frozen: names of those.
        samples: that were used.
        gaps: in the stream.
        delay: how old the state is that the newest sample's update refers to [s].
        time: of the newest sample [s]; None when the stream has no clock.
        relative_error: what the parameters leave of the torque so far, a fraction.
        condition_number_scaled: of the determined parameters.
        events: changes of the arm, and drifts of sensors and friction, that were noticed.
        drifts: every imperfection that is watched, against the arm it started from; empty when it started from nothing.
        checks: what the estimate was held against.
        provenance: robot and settings.
    """

    _page: ClassVar[str] = "armid.report.online:online_page"
    _loads = True

    robot: Robot
    estimate: Estimate
    frozen: tuple[str, ...]
    samples: int
    gaps: int
    delay: float
    time: float | None
    relative_error: float
    condition_number_scaled: float
    events: tuple[Note, ...] = ()
    drifts: tuple[ImperfectionDrift, ...] = ()
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def values(self) -> dict[str, float]:
        """Base parameter -> present value."""
        return dict(zip(self.estimate.names, self.estimate.values.tolist(), strict=True))

    @property
    def parameters(self) -> Listing[EstimatedParameter]:
        """Base parameters as rows, with 95 % intervals."""
        e = self.estimate
        return estimated_parameters(e.names, e.values, e.standard_deviations, e.units)

    @property
    def sensors(self) -> tuple[SensorDrift, ...]:
        """Gain and offset of every torque channel, of `drifts`."""
        gains = (drift for drift in self.drifts if drift.family is Family.GAIN)
        offsets = (drift for drift in self.drifts if drift.family is Family.DRIFT)
        return tuple(
            SensorDrift(
                name=gain.subject,
                gain=gain.value,
                gain_deviation=gain.deviation,
                offset=offset.value,
                offset_deviation=offset.deviation,
            )
            for gain, offset in zip(gains, offsets, strict=True)
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "base_parameters": len(self.estimate),
            "samples": self.samples,
            "gaps": self.gaps,
            "delay": self.delay,
            "condition_number_scaled": self.condition_number_scaled,
            "relative_error": self.relative_error,
            "frozen": self.frozen,
            "parameters": self.parameters.as_dicts(),
            "events": [event.as_dict() for event in self.events],
            "sensors": [sensor.as_dict() for sensor in self.sensors],
            "drifts": [drift.as_dict() for drift in self.drifts],
            "verdict": self.verdict,
            "reasons": self.reasons,
            "checks": [check.as_dict() for check in self.checks],
        }

    def _heading(self) -> str:
        return (
            f"{self.robot.name}: {len(self.estimate)} base parameters from {self.samples} samples, condition number "
            f"{self.condition_number_scaled:.0f} (scaled), {self.gaps} gaps"
        )

    def _tables(self) -> tuple[Table, ...]:
        return (parameters_table(self),)

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `online.json`."""
        return (write_json(Path(folder) / "online.json", self.as_dict()),)


def parameters_table(state: OnlineState) -> Table:
    """Present values with deviations."""
    rows = tuple((p.name, p.value, p.standard_deviation, p.unit) for p in state.parameters)
    return Table(("base parameter", "value", "+-", "unit"), rows, digits=5)


def start_check(reasons: Sequence[str]) -> Check:
    """Whether the result that an estimator started from may be used; what it knows counts as data."""
    return Check(
        code="start-trusted",
        passed=not reasons,
        value=len(reasons),
        limit=0,
        message=f"the result it started from is not to be trusted: {'; '.join(reasons)}"
        if reasons
        else "the result it started from is trusted",
    )


def online_checks(
    estimate: Estimate, space: ParameterSpace, *, frozen: tuple[str, ...], relative_error: float, events: int, gaps: int
) -> tuple[Check, ...]:
    """What an on-line estimate is held against.

    Everything must have been excited, and friction must not drive. An arm that changed, a stream with gaps, and torque that
    is not explained are worth a word: what is known of a changed arm is learnt anew.
    """
    return (
        Check(
            code="excited",
            passed=not frozen,
            value=len(frozen),
            limit=0,
            message=f"nothing has excited {', '.join(frozen[:5])}{', ...' if frozen[5:] else ''} yet: move more joints"
            if frozen
            else "every base parameter has been excited",
        ),
        friction_sign(estimate, space).check(),
        Check(
            code="torque-explained",
            passed=relative_error < _NOTABLE_REST,
            value=relative_error,
            limit=_NOTABLE_REST,
            message=f"{100 * relative_error:.1f} % of the torque so far are not explained",
            decisive=False,
        ),
        Check(
            code="arm-unchanged",
            passed=events == 0,
            value=events,
            limit=0,
            message=f"the arm changed {events} times; older samples count for little since",
            decisive=False,
        ),
        Check(
            code="stream-whole",
            passed=gaps == 0,
            value=gaps,
            limit=0,
            message=f"{gaps} gaps in the stream; derivatives start anew after each",
            decisive=False,
        ),
    )


def drift_checks(drifts: Sequence[tuple[News, Note]], *, watched: bool) -> tuple[Check, ...]:
    """Whether sensors, friction and load are as they were when the arm was identified.

    A gain, an offset, friction and what the arm carries are worth a word: what is estimated follows them. A zero that slipped and
    torque that comes late are felt by every parameter and can be made by nothing that the arm carries: proven, they decide.

    Args:
        drifts: that were noticed, each with its note.
        watched: whether anything was known to hold them against.
    """
    if not watched:
        return ()
    decisive = [note for news, note in drifts if news.decisive]
    rest = [note for news, note in drifts if not news.decisive]
    sensors, friction, load = (
        [note for note in rest if note.code == code] for code in ("sensor-drift", "friction-drift", "load-changed")
    )
    return (
        _steady("sensors-steady", sensors, "every torque sensor reads as when the arm was identified"),
        _steady("friction-steady", friction, "friction is what it was when the arm was identified"),
        _steady("load-steady", load, "the arm carries what it carried when it was identified"),
        _steady(
            "zeros-and-delays-steady",
            decisive,
            "no encoder has slipped and no torque comes late",
            "; nothing that an arm carries makes that: what is estimated with it is wrong",
        ),
    )


def _steady(code: str, notes: Sequence[Note], well: str, why: str = "") -> Check:
    """One of these checks: decisive where it says why."""
    return Check(
        code=code,
        passed=not notes,
        value=len(notes),
        limit=0,
        message=f"{notes[-1].message}{why}" if notes else well,
        subject=notes[-1].subject if notes else "",
        decisive=bool(why),
    )

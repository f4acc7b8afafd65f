"""What a result holds of sensors and friction beside its parameters, and runs freed from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, nan
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.recording import torque_source
from armid.estimation.run import Run
from armid.estimation.runs import changed_runs
from armid.identification.elapsed import Place
from armid.identification.encoders import centred, sooner
from armid.identification.on_time import advanced
from armid.identification.sizes import said, said_within
from armid.kernels.evaluate import residuals
from armid.page import Table
from armid.rows.filtered import FilteredTorqueRows
from armid.rows.imperfections import (
    COSINE,
    KINDS,
    SINE,
    WITH_VELOCITIES,
    ColumnReference,
    Columns,
    Family,
    Imperfection,
    Motion,
)

_EXACT = (
    Family.GAIN,
    Family.ZERO,
    Family.SCALE,
    Family.GEAR_RATIO,
    Family.CLOCK,
    Family.ECCENTRICITY,
    Family.ENCODER_DELAY,
)
"""Families undone exactly; the others are subtracted as columns times sizes, delays of faults apart."""

_ROUND_OFF = 1e-6
"""Of a tolerance: less is not said."""

DELAYS = (Family.DELAY, Family.COMMON_DELAY, Family.ENCODER_DELAY)
"""Families of torque, or motion of a joint, that is recorded early or late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyUse:
    """A family that entered the model.

    Args:
        family: which.
        factor: of its base tolerance, chosen on the training motion.
        explains: share of the cross-validated squared error inside the training motion that it took away when it was added.
        held_out: relative change of the held-out error it brings, bodies free; negative is better, nan without held-out motion.
    """

    family: Family
    factor: float
    explains: float
    held_out: float = nan

    @property
    def pays(self) -> bool:
        """Whether it lowers the held-out error."""
        return self.held_out < 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "family": self.family.value,
            "factor": self.factor,
            "explains": self.explains,
            "held_out_change": self.held_out,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> FamilyUse:
        change = values["held_out_change"]
        return FamilyUse(
            family=Family(values["family"]),
            factor=float(values["factor"]),
            explains=float(values["explains"]),
            held_out=nan if change is None else float(change),
        )


@dataclass(frozen=True, slots=True)
class Sized:
    """An imperfection with its size.

    Args:
        item: which.
        value, standard_deviation: [unit of the item].
    """

    item: Imperfection
    value: float
    standard_deviation: float

    @property
    def notable(self) -> bool:
        """Whether it is more than what rounding leaves of a size that was undone twice."""
        return abs(self.value) > _ROUND_OFF * self.item.tolerance

    def as_dict(self) -> dict[str, Any]:
        return {
            "family": self.item.family.value,
            "joint": self.item.joint,
            "part": self.item.part,
            "unit": self.item.unit,
            "tolerance": self.item.tolerance,
            "scale": self.item.scale,
            "linear": list(self.item.linear),
            "other": self.item.other,
            "value": self.value,
            "standard_deviation": self.standard_deviation,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Sized:
        item = Imperfection(
            family=Family(values["family"]),
            joint=values["joint"],
            part=values["part"],
            unit=values["unit"],
            tolerance=float(values["tolerance"]),
            scale=float(values["scale"]),
            linear=tuple(values["linear"]),
            other=values.get("other"),
        )
        deviation = values["standard_deviation"]  # null where nobody knows, as of a sensor file
        return Sized(item, float(values["value"]), nan if deviation is None else float(deviation))


@dataclass(frozen=True, eq=False, kw_only=True)
class Imperfections:
    """What a result holds of sensors and friction beside its parameters; with it runs are freed from them.

    Args:
        joints: names.
        families: that entered the model.
        sizes: of every imperfection in them.
        names: of the parameters of `reference`.
        reference: where columns are taken.
        rows_per_sample: how many samples told as much as one independent one.
        before: what runs are freed from first; None for nothing.
        moves: whether late torque is moved in time, as for a fault of a recording. Delays within tolerance stand in for what
            filters leave at reversals, and are subtracted as columns times sizes.
    """

    joints: tuple[str, ...]
    families: tuple[FamilyUse, ...] = ()
    sizes: tuple[Sized, ...] = ()
    names: tuple[str, ...] = ()
    reference: ColumnReference
    rows_per_sample: float = 1.0
    before: Imperfections | None = None
    moves: bool = False

    def __bool__(self) -> bool:
        return bool(self.sizes or self.before)

    def size(self, family: Family, joint: int | None = None, part: str | None = None) -> float:
        """Of one imperfection, or of all its parts; zero when it is not there."""
        own = (s for s in self.sizes if s.item.family is family and s.item.joint == joint)
        return sum(s.value for s in own if part is None or s.item.part == part)

    def per_joint(self, family: Family) -> FloatArray:
        """Sizes of a family, shape [n_joints]."""
        return np.array([self.size(family, j) for j in range(len(self.joints))])

    @property
    def gains(self) -> FloatArray:
        """Shares by which torque reads too large, gear ratios included, shape [n_joints]."""
        return (1.0 + self.per_joint(Family.GAIN)) * (1.0 + self.per_joint(Family.GEAR_RATIO)) - 1.0

    @property
    def scales(self) -> FloatArray:
        """Shares by which angles read too large, gear ratios included, shape [n_joints]."""
        return (1.0 + self.per_joint(Family.SCALE)) / (1.0 + self.per_joint(Family.GEAR_RATIO)) - 1.0

    @property
    def late(self) -> bool:
        """Whether some torque, or motion of a joint, was recorded early or late."""
        return any(sized.item.family in DELAYS for sized in self.sizes)

    @property
    def moved_back(self) -> float:
        """By how much torque was moved in time on most joints, corrections in a row included [s]."""
        own = self.size(Family.COMMON_DELAY) + float(np.median(self.per_joint(Family.DELAY))) if self.moves else 0.0
        return own + (0.0 if self.before is None else self.before.moved_back)

    @property
    def needs_model(self) -> bool:
        """Whether undoing them takes the model of `reference`, and not the recording alone."""
        return any(sized.item.family not in _EXACT for sized in self.sizes) or bool(self.before)

    @property
    def _slower(self) -> tuple[float, float]:
        """By how much velocities and accelerations are recorded too small, where a clock stamped time too long."""
        clock, both = (1.0 + self.size(Family.CLOCK, part=part) for part in ("", WITH_VELOCITIES))
        own = (1.0, clock) if self.reference.recorded_velocity else (clock, clock**2)
        return own[0] * both, own[1] * both**2

    def after(self, earlier: Imperfections | None) -> Imperfections:
        """These, of runs that were freed from earlier ones before."""
        return replace(self, before=earlier if self.before is None else self.before.after(earlier))

    def corrected(self, run: Run) -> Run:
        """The run as perfect sensors and linear friction would have given it."""
        if self.before is not None:
            run = self.before.corrected(run)
        if not self.sizes:
            return run
        n = len(self.joints)
        gain, zero, scale = self.gains, self.per_joint(Family.ZERO), self.scales
        slower = self._slower
        inputs = np.array(run.inputs)
        inputs[:, :n] = (inputs[:, :n] - zero) / (1.0 + scale)
        inputs[:, n : 2 * n] *= slower[0] / (1.0 + scale)
        inputs[:, 2 * n : 3 * n] *= slower[1] / (1.0 + scale)
        for j in range(n):
            sine, cosine = (self.size(Family.ECCENTRICITY, j, part) for part in (SINE, COSINE))
            if sine or cosine:
                inputs[:, j : 3 * n : n] = centred(inputs[:, j : 3 * n : n], sine, cosine)
        inputs = self._with_encoders_on_time(run, inputs)
        back = (1.0 + gain) * (np.array(run.torque_scale) if run.torque_scale else 1.0)
        scale_back = tuple(back.tolist()) if np.any(back != 1.0) else ()
        moved = replace(run, inputs=inputs, y=run.y / (1.0 + gain), torque_scale=scale_back)
        raw = None if run.y_raw is None else self._on_time(moved, run.y_raw / (1.0 + gain))
        moved = replace(moved, y=self._on_time(moved, moved.y))
        beside = self._subtracted(moved)
        return replace(moved, y=moved.y - beside, y_raw=None if raw is None else raw - beside)

    def _with_encoders_on_time(self, run: Run, inputs: FloatArray) -> FloatArray:
        """Motion of every joint as it was when it was recorded, within every segment of the run."""
        n = len(self.joints)
        end = (4 if isinstance(run.source, FilteredTorqueRows) else 3) * n
        for j, late in enumerate(self.per_joint(Family.ENCODER_DELAY)):
            for start, stop in run.segments if late else ():
                inputs[start:stop, j:end:n] = sooner(inputs[start:stop, j:end:n], late, run.rate)
        return inputs

    def _on_time(self, run: Run, values: FloatArray) -> FloatArray:
        """Torques moved back in time by what each is late, within every segment of the run."""
        late = self.per_joint(Family.DELAY) + self.size(Family.COMMON_DELAY)
        if not self.moves or not np.any(late):
            return values
        out = np.array(values)
        for start, stop in run.segments:
            own = slice(start, stop)
            out[own] = advanced(values[own], late * run.rate, partial(self._predicted, run, own))
        return out

    def _predicted(self, run: Run, segment: slice, part: slice) -> FloatArray:
        """Torque of the model along a part of a segment, or none of it without a model, shape [n, n_channels]."""
        inputs, none = run.inputs[segment][part], np.zeros_like(run.y[segment][part])
        return -residuals(run.source, inputs, none, self._standard(run)) if self.names else none

    def _standard(self, run: Run) -> FloatArray:
        """The parameters of the model in the order of the run's rows."""
        known = dict(zip(self.names, self.reference.standard, strict=True))
        return np.array([known.get(name, 0.0) for name in run.source.columns])

    def _subtracted(self, run: Run) -> FloatArray:
        """Torque of what is not undone exactly, shape [n_samples, n_channels]."""
        exact = (*_EXACT, *DELAYS) if self.moves else _EXACT
        beside = [s for s in self.sizes if s.item.family not in exact and s.value != 0.0]
        if not beside or not self.names:
            return np.zeros_like(run.y)
        columns = Columns(motion_of(run), replace(self.reference, standard=self._standard(run)))
        torque = np.zeros_like(run.y)
        for s in beside:
            if s.item.family is Family.LENGTH:
                torque += columns.of_length(s.item, s.value)
        tilts = [s for s in beside if s.item.family is Family.TILT]
        if tilts:
            torque += _of_tilt(columns, tilts)
        kept = [s for s in beside if s.item.family not in (Family.LENGTH, Family.TILT)]
        # A few at a time: all columns of a long piece are forty megabytes.
        for few in (kept[k : k + 8] for k in range(0, len(kept), 8)):
            torque += columns.of([s.item for s in few]) @ np.array([s.value for s in few])
        return torque

    def table(self) -> Table:
        """Families in the model, for people."""
        rows = []
        for use in self.families:
            own = [s for s in self.sizes if s.item.family is use.family]
            top = max(own, key=lambda s: abs(s.value) / s.item.tolerance)
            largest = f"{top.item.name(self.joints)} {said_within(top.value, top.standard_deviation, top.item.unit)}"
            change = f"{100 * use.held_out:+.1f} %" if isfinite(use.held_out) else ""
            rows.append((use.family.value, use.factor, f"{100 * use.explains:.0f} %", change, largest))
        return Table(
            ("family", "tolerance x", "explains in training", "held-out error", "largest"),
            tuple(rows),
            caption="imperfections beside the parameters, undone in the errors above; exports hold bodies and linear friction",
        )

    def sentences(self) -> tuple[str, ...]:
        """What the recordings were freed from, corrections in a row included: sensors by size, friction by family."""
        steps: list[Imperfections] = []
        step: Imperfections | None = self
        while step is not None:
            steps.append(step)
            step = step.before
        sizes = [sized for step in steps for sized in step.sizes if sized.notable]
        sensors = [_said(sized, self.joints) for sized in sizes if KINDS[sized.item.family].sensors]
        friction = dict.fromkeys(s.item.family.value for s in sizes if not KINDS[s.item.family].sensors)
        out = []
        if sensors:
            out.append(
                f"recorded with these errors of the sensors, undone before anything was estimated: {', '.join(sensors)}"
            )
        if friction:
            out.append(f"torque of these families subtracted beside linear friction: {', '.join(friction)}")
        return tuple(out)

    def as_dict(self) -> dict[str, Any]:
        r = self.reference
        return {
            "joints": list(self.joints),
            "families": [use.as_dict() for use in self.families],
            "sizes": [sized.as_dict() for sized in self.sizes],
            "rows_per_sample": self.rows_per_sample,
            "moves": self.moves,
            "before": None if self.before is None else self.before.as_dict(),
            "reference": {
                "standard": dict(zip(self.names, r.standard.tolist(), strict=True)),
                "speed": r.speed.tolist(),
                "load": r.load.tolist(),
                "size": r.size.tolist(),
                "acceleration": r.acceleration.tolist(),
                "recorded_velocity": r.recorded_velocity,
            },
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Imperfections:
        r = values["reference"]
        before = values["before"]
        arrays = {key: np.array(r[key], dtype=np.float64) for key in ("speed", "load", "size", "acceleration")}
        return Imperfections(
            joints=tuple(values["joints"]),
            families=tuple(FamilyUse.from_dict(use) for use in values["families"]),
            sizes=tuple(Sized.from_dict(sized) for sized in values["sizes"]),
            names=tuple(r["standard"]),
            reference=ColumnReference(
                standard=np.array(list(r["standard"].values()), dtype=np.float64),
                recorded_velocity=bool(r["recorded_velocity"]),
                **arrays,
            ),
            rows_per_sample=float(values["rows_per_sample"]),
            before=None if before is None else Imperfections.from_dict(before),
            moves=bool(values.get("moves", False)),
        )


def _of_tilt(columns: Columns, tilts: Sequence[Sized]) -> FloatArray:
    """Torque of a base tilted about two axes across gravity, shape [n_samples, n_channels].

    Turned by an angle about an axis k across it, gravity becomes g + sin(angle) k x g - (1 - cos(angle)) g.
    """
    along = columns.of([s.item for s in tilts]) @ np.array([s.value for s in tilts])
    angle = float(np.linalg.norm([s.value for s in tilts]))
    if angle == 0.0:
        return along
    weight = Imperfection(family=Family.WEIGHT, joint=None, unit="1", tolerance=KINDS[Family.WEIGHT].tolerance)
    return np.asarray(np.sin(angle) / angle * along + (1.0 - np.cos(angle)) * columns.of([weight])[:, :, 0])


def _said(sized: Sized, joints: Sequence[str]) -> str:
    """Such as `gain of joint4 +3.1 %`."""
    return f"{sized.item.name(joints)} {said(sized.value, sized.item.unit, digits=2)}"


def corrected_runs(runs: Sequence[Run], found: Imperfections) -> Sequence[Run]:
    """Every run corrected; put aside again when they were."""
    if not found:
        return runs
    return changed_runs(runs, found.corrected)


def motion_of(run: Run, *, every: int = 1, place: Place | None = None) -> Motion:
    """A run as columns are computed on; one without a place is all there is."""
    source, count = torque_source([run]), len(run)
    at = place or Place(before=0, total=count, before_alone=0, total_alone=count)
    return Motion(
        source=run.source,
        robot=source.robot,
        effects=source.effects,
        loaded=source.loaded,
        inputs=run.inputs,
        rate=run.rate,
        segments=run.segments,
        elapsed=at.elapsed(count),
        elapsed_alone=at.elapsed_alone(count),
        every=every,
        recorded=run.y,
    )

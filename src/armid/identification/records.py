"""What a result says besides its parameters, as records: conditioning, gains, friction shapes, sensitivity, origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any, NamedTuple

from armid.estimation.essential import Removal
from armid.identification.torque_error import number_or_nan


class Gain(NamedTuple):
    """A drive gain [N m/A] with its standard deviation."""

    value: float
    standard_deviation: float

    def as_dict(self) -> dict[str, float]:
        return self._asdict()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedConditioning:
    """The choices beside which every error must be read; all of them made on the training motion.

    Args:
        cutoff_hz, torque_cutoff_hz: of the low-pass on motion and torque; None for no filter.
        filter_order: of that filter, one way.
        filter: its kind.
        averaged: whether the repetitions of a motion were averaged.
        torque_delay_s: by which torque was moved earlier.
        rate_hz: of the samples.
        velocity: `position` or `measured`.
        differentiator: how derivatives were taken.
        torque: channels of torque the logs have.
        presliding: distance over which Coulomb friction turns around, per joint [rad or m].
        friction_width: velocity over which it does, per joint [rad/s or m/s].
        samples_train, samples_held_out: after conditioning.
    """

    cutoff_hz: float | None = None
    torque_cutoff_hz: float | None = None
    filter_order: int = 4
    filter: str = "butterworth"
    averaged: bool = False
    torque_delay_s: float = 0.0
    rate_hz: float = 0.0
    velocity: str = "position"
    differentiator: str = "central-8"
    torque: tuple[str, ...] = ()
    presliding: tuple[float, ...] = ()
    friction_width: tuple[float, ...] = ()
    samples_train: int = 0
    samples_held_out: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> ResolvedConditioning:
        lists = {name: tuple(values.get(name, ())) for name in ("torque", "presliding", "friction_width")}
        return ResolvedConditioning(**{**values, **lists})


@dataclass(frozen=True, slots=True)
class Measured:
    """A number with its standard deviation; infinite where the motion does not determine it."""

    value: float
    standard_deviation: float

    def as_dict(self) -> dict[str, float]:
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Measured:
        s = values["standard_deviation"]
        return Measured(float(values["value"]), inf if s is None else float(s))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeWorth:
    """One joint's held-out error with shapes of friction beside that with linear friction.

    Args:
        name: of the joint.
        rmse, rmse_linear: [N m or N].
        pays, harms: whether it is smaller, or larger, beyond chance.
    """

    name: str
    rmse: float
    rmse_linear: float
    pays: bool
    harms: bool

    @property
    def word(self) -> str:
        return "pays" if self.pays else "harms" if self.harms else "no difference"


@dataclass(frozen=True, kw_only=True)
class FrictionShapes:
    """Friction beyond viscous, Coulomb and offset: what was found besides parameters, and whether it pays on held-out motion.

    Args:
        shapes: words for them.
        scales: velocity scale per joint [rad/s or m/s]; empty when the shapes have none.
        load: standard parameters of the rigid part whose torque loads the gears; None when friction does not depend on it.
        joints: friction quantities by joint, the unconstrained estimate's.
        held_out: worth per joint.
        relative_error_held_out_linear: of linear friction, all joints stacked; None without held-out motion.
    """

    shapes: tuple[str, ...]
    scales: Mapping[str, Measured]
    load: Mapping[str, float] | None
    joints: Mapping[str, Mapping[str, Measured]]
    held_out: tuple[ShapeWorth, ...]
    relative_error_held_out_linear: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "shapes": list(self.shapes),
            "scales": {name: scale.as_dict() for name, scale in self.scales.items()},
            "load": None if self.load is None else dict(self.load),
            "joints": [
                {"name": name, **{quantity: found.as_dict() for quantity, found in quantities.items()}}
                for name, quantities in self.joints.items()
            ],
            "held_out": [asdict(row) for row in self.held_out],
            "relative_error_held_out_linear": self.relative_error_held_out_linear,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> FrictionShapes:
        return FrictionShapes(
            shapes=tuple(values["shapes"]),
            scales={name: Measured.from_dict(item) for name, item in values["scales"].items()},
            load=values["load"],
            joints={
                joint["name"]: {key: Measured.from_dict(item) for key, item in joint.items() if key != "name"}
                for joint in values["joints"]
            },
            held_out=tuple(ShapeWorth(**row) for row in values["held_out"]),
            relative_error_held_out_linear=values["relative_error_held_out_linear"],
        )


@dataclass(frozen=True, kw_only=True)
class Shift:
    """How far base parameters move with one choice made differently, in their own standard deviations.

    Args:
        largest_shift: None when the other choice gave no estimate.
        parameter: whose it is.
        shifts: of all of them.
        cutoff_hz: the other cut-off; None when the choice was which motion to leave out.
        name: of the motion left out.
        relative_error: on the motion left out, per channel.
    """

    largest_shift: float | None = None
    parameter: str | None = None
    shifts: Mapping[str, float] = field(default_factory=dict)
    cutoff_hz: float | None = None
    name: str = ""
    relative_error: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        moved: dict[str, Any] = {"largest_shift": self.largest_shift, "parameter": self.parameter}
        moved |= {"shifts": dict(self.shifts)} if self.shifts else {}
        if not self.name:
            return {"cutoff_hz": self.cutoff_hz, **moved}
        return {"name": self.name, "relative_error": dict(self.relative_error), **moved}


@dataclass(frozen=True, kw_only=True)
class CrossValidated:
    """Every motion of the training logs predicted by the others.

    Args:
        motions: how many there are; dealt out to `k` folds.
        relative_error: over all of them, per channel.
        folds: what leaving out each group changed.
    """

    k: int
    motions: int
    relative_error: Mapping[str, float]
    folds: tuple[Shift, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "k": self.k,
            "motions": self.motions,
            "relative_error": dict(self.relative_error),
            "folds": [fold.as_dict() for fold in self.folds],
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> CrossValidated:
        return CrossValidated(**{**values, "folds": tuple(Shift(**fold) for fold in values["folds"])})


@dataclass(frozen=True, kw_only=True)
class EssentialChoice:
    """Base parameters that are left after elimination, and the price of the others.

    Args:
        rule: by which a parameter may go.
        kept: names.
        stopped: why it ended.
        removals: in order.
        values: of those kept.
        standard_deviations: of those kept; empty in results of earlier versions.
    """

    rule: str
    kept: tuple[str, ...]
    stopped: str
    removals: tuple[Removal, ...]
    values: Mapping[str, float]
    standard_deviations: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "kept": list(self.kept),
            "stopped": self.stopped,
            "removals": [asdict(step) for step in self.removals],
            "values": dict(self.values),
            "standard_deviations": dict(self.standard_deviations),
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> EssentialChoice:
        removals = tuple(
            Removal(name=step["name"], **{key: number_or_nan(value) for key, value in step.items() if key != "name"})
            for step in values["removals"]
        )
        return EssentialChoice(**{**values, "kept": tuple(values["kept"]), "removals": removals})


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """How far parameters move with choices that could have been others.

    Args:
        cutoff: with half and twice the cut-off.
        leave_one_out: without each log.
        cross_validation: over motions; None when the logs hold one.
        essential: which parameters are; None when nobody asked.
        left_out_failed: why leaving out a motion was not possible; empty when it was.
    """

    cutoff: tuple[Shift, ...] = ()
    leave_one_out: tuple[Shift, ...] = ()
    cross_validation: CrossValidated | None = None
    essential: EssentialChoice | None = None
    left_out_failed: str = ""

    def as_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {name: [s.as_dict() for s in getattr(self, name)] for name in ("cutoff", "leave_one_out")}
        out |= {} if self.cross_validation is None else {"cross_validation": self.cross_validation.as_dict()}
        out |= {} if self.essential is None else {"essential": self.essential.as_dict()}
        return out | ({"left_out_failed": self.left_out_failed} if self.left_out_failed else {})

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Sensitivity:
        folds, essential = values.get("cross_validation"), values.get("essential")
        return Sensitivity(
            cutoff=tuple(Shift(**item) for item in values["cutoff"]),
            leave_one_out=tuple(Shift(**item) for item in values["leave_one_out"]),
            cross_validation=None if folds is None else CrossValidated.from_dict(folds),
            essential=None if essential is None else EssentialChoice.from_dict(essential),
            left_out_failed=values.get("left_out_failed", ""),
        )

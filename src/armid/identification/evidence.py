"""The figures a verdict rests on beside the estimates themselves: stored with a result, so that it can be judged again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import inf, nan
from typing import Any

from armid.identification.comparison import Comparison
from armid.identification.motion import JointMotion
from armid.identification.torque_error import number_or_nan
from armid.notes import Note, Severity

_COMPARISONS = ("against_nominal", "against_constant")
_MOTIONS = ("train", "held_out")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLoad:
    """What a body on the flange that the model does not know would explain of the held-out error.

    Args:
        mass: change of it [kg]; zero when a known one was turned.
        explains: share of the squared held-out error.
        explains_train: share of the squared training error, where the same load is no explanation of a difference; zero when
            that motion is not at hand.
        lightest: change of mass below which the arm would lack more than its last bodies weigh [kg].
        instead: what one number of the sensors or of the controller explains best, in words such as `gain of joint2` or `weight`;
            empty when not looked at.
        instead_size: by which it is another in the held-out motion, a share.
        instead_explains: share of the squared held-out error.
    """

    mass: float
    explains: float
    explains_train: float
    lightest: float = -inf
    instead: str = ""
    instead_size: float = 0.0
    instead_explains: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> OtherLoad:
        """What `as_dict` gave; an infinite number is stored as null."""
        numbers = {key: number_or_nan(value) for key, value in values.items() if key not in ("instead", "lightest")}
        lightest = values.get("lightest")
        return OtherLoad(
            **numbers,
            lightest=-inf if lightest is None else float(lightest),
            instead=values.get("instead", ""),
        )


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What `judge` is told beside estimate, bodies and errors.

    Args:
        structural_rank: base parameters a perfect motion would determine.
        gravity_error: consistent error by hypothesis (`as described`, `reversed`).
        against_nominal: held-out error beside that of the description's own parameters, per joint; empty when it has none.
        against_constant: the same beside each joint's mean training torque.
        log_notes: what health checks said.
        torque_delay: taken out of the logs [s].
        train, held_out: what each joint did, and its errors in motion and at rest.
        noise: of the conditioned torque, by channel [N m or N]; what no model can predict.
        repeated: share of the held-out motion that repeats the training motion; NaN when not looked at.
        cross_predicted: where it repeats: relative error by channel of fifths of the training motion, each predicted from the
            rest.
        other_load: what another load on the flange would explain; None when not looked at.
    """

    structural_rank: int
    gravity_error: Mapping[str, float] = field(default_factory=dict)
    against_nominal: tuple[Comparison, ...] = ()
    against_constant: tuple[Comparison, ...] = ()
    log_notes: tuple[Note, ...] = ()
    torque_delay: float = 0.0
    train: tuple[JointMotion, ...] = ()
    held_out: tuple[JointMotion, ...] = ()
    noise: Mapping[str, float] = field(default_factory=dict)
    repeated: float = nan
    cross_predicted: Mapping[str, float] = field(default_factory=dict)
    other_load: OtherLoad | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "structural_rank": self.structural_rank,
            "gravity_error": dict(self.gravity_error),
            **{key: [asdict(item) for item in getattr(self, key)] for key in _COMPARISONS},
            "log_notes": [note.as_dict() for note in self.log_notes],
            "torque_delay": self.torque_delay,
            **{key: [item.as_dict() for item in getattr(self, key)] for key in _MOTIONS},
            "noise": dict(self.noise),
            "repeated": self.repeated,
            "cross_predicted": dict(self.cross_predicted),
            "other_load": None if self.other_load is None else self.other_load.as_dict(),
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Evidence:
        load = values["other_load"]
        return Evidence(
            structural_rank=int(values["structural_rank"]),
            gravity_error={key: number_or_nan(value) for key, value in values["gravity_error"].items()},
            log_notes=tuple(
                Note(n["code"], Severity(n["severity"]), n["message"], n["subject"]) for n in values["log_notes"]
            ),
            torque_delay=float(values["torque_delay"]),
            noise={key: number_or_nan(value) for key, value in values["noise"].items()},
            repeated=number_or_nan(values["repeated"]),
            cross_predicted={key: number_or_nan(value) for key, value in values["cross_predicted"].items()},
            other_load=None if load is None else OtherLoad.from_dict(load),
            against_nominal=tuple(map(_comparison, values["against_nominal"])),
            against_constant=tuple(map(_comparison, values["against_constant"])),
            train=tuple(map(JointMotion.from_dict, values["train"])),
            held_out=tuple(map(JointMotion.from_dict, values["held_out"])),
        )


def _comparison(values: Mapping[str, Any]) -> Comparison:
    """A stored comparison; an infinite uncertainty is stored as null."""
    uncertainty = values["uncertainty"]
    return Comparison(
        name=values["name"],
        rmse=number_or_nan(values["rmse"]),
        rmse_other=number_or_nan(values["rmse_other"]),
        excess=number_or_nan(values["excess"]),
        uncertainty=float("inf") if uncertainty is None else float(uncertainty),
    )

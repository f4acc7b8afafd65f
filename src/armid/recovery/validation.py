"""A recovered model along a motion: every reported element, and measured joint torque; [Gaz2014] figs. 3-6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.errors import InputError
from armid.kernels.evaluate import evaluate_rows
from armid.logs.conditioning import LowPass, low_pass
from armid.logs.log import Channel
from armid.logs.samples import Samples
from armid.parameters.effects import TorqueSide
from armid.recovery.elements import ElementError, errors_of
from armid.recovery.samples import ControllerSamples

if TYPE_CHECKING:
    from armid.recovery.recovery import Recovery

_STANDSTILL = 0.02
"""[rad/s or m/s] Slower than this a joint is at rest and static friction can hold any torque up to the Coulomb level."""

FILTER_ORDER = 4
"""Of the zero-phase low-pass on a motion, [Gaz2014] sec. VI."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Along:
    """Reported and recovered elements along a motion.

    Args:
        name: of the file.
        time: [s], or the number of the pose when the file has no clock; shape [n].
        timed: whether it is time.
        q: positions, shape [n, n_joints].
        channels: `joint2:gravity`, `M_1_1`, ...
        reported, recovered: shape [n, n_channels].
        errors: per channel.
    """

    name: str
    time: FloatArray
    timed: bool
    q: FloatArray
    channels: tuple[str, ...]
    reported: FloatArray
    recovered: FloatArray
    errors: tuple[ElementError, ...]

    def __post_init__(self) -> None:
        for field in ("time", "q", "reported", "recovered"):
            object.__setattr__(self, field, read_only(getattr(self, field)))


def along_motion(found: Recovery, data: ControllerSamples) -> Along:
    """Every reported element against the recovered model."""
    channels: list[str] = []
    reported, recovered = [], []
    errors: list[ElementError] = []
    for quantity, (source, y) in data.sources(found.robot, found.effects).items():
        predicted = evaluate_rows(source, data.q) @ found.joint.standard
        channels += source.channels
        reported.append(y)
        recovered.append(predicted)
        errors += errors_of(quantity, source, y, y - predicted)
    timed = data.time is not None
    time = data.time if data.time is not None else np.arange(1.0, len(data) + 1.0)
    return Along(
        name=data.name,
        time=time,
        timed=timed,
        q=data.q,
        channels=tuple(channels),
        reported=np.hstack(reported),
        recovered=np.hstack(recovered),
        errors=tuple(errors),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class TorqueTest:
    """Measured joint torque against the recovered model, eq. 26, along a motion.

    Args:
        joints: names.
        time: [s], shape [n].
        measured, predicted: [N m or N], shape [n, n_joints].
        friction: what of the difference viscous and Coulomb friction and an offset explain, same shape. A controller's model
            has no friction; a joint torque sensor sees what of it is on the links' side.
        cutoff: of the low-pass on everything [Hz].
    """

    joints: tuple[str, ...]
    time: FloatArray
    measured: FloatArray
    predicted: FloatArray
    friction: FloatArray
    cutoff: float

    def __post_init__(self) -> None:
        for field in ("time", "measured", "predicted", "friction"):
            object.__setattr__(self, field, read_only(getattr(self, field)))

    def rows(self) -> list[Mapping[str, float | str]]:
        """Per joint: mean square and largest error, as they are and without friction."""
        error = self.measured - self.predicted
        rest = error - self.friction
        return [
            {
                "joint": name,
                "mean_square": float(np.mean(error[:, k] ** 2)),
                "largest": float(np.abs(error[:, k]).max()),
                "mean_square_without_friction": float(np.mean(rest[:, k] ** 2)),
                "largest_without_friction": float(np.abs(rest[:, k]).max()),
                "size": float(np.sqrt(np.mean(self.measured[:, k] ** 2))),
            }
            for k, name in enumerate(self.joints)
        ]


def torque_test(found: Recovery, data: Samples) -> TorqueTest:
    """Joint torque along a motion, predicted by the recovered model.

    Raises:
        InputError: nothing moves, or nothing but motor torque was recorded.
    """
    if not (np.abs(data.qd) > _STANDSTILL).any():
        raise InputError(data.segments[0].log, "no joint moves", "a motion; poses at rest go to --validate")
    if Channel.LINK_TORQUE not in data.torques:
        there = ", ".join(c.value for c in data.torques)
        raise InputError(
            data.segments[0].log, f"holds {there}, no joint torque", "a controller's model has no drives in it"
        )
    measured = data.torque(TorqueSide.LINK)
    predicted = found.torque(data.q, data.qd, data.qdd)
    friction = np.empty_like(measured)
    for segment in data.segments:
        part = segment.slice
        # The corner of Coulomb friction passes the low-pass that the torque has passed.
        corner = low_pass(np.sign(data.qd[part]), LowPass(segment.rate, data.cutoff_hz or np.inf, FILTER_ORDER))
        for k, e in enumerate((measured - predicted)[part].T):
            friction[part, k] = _explained(data.qd[part, k], corner[:, k], e)
    cutoff = data.cutoff_hz or float("inf")
    return TorqueTest(
        joints=found.robot.joint_names,
        time=data.time,
        measured=measured,
        predicted=predicted,
        friction=friction,
        cutoff=cutoff,
    )


def _explained(qd: FloatArray, corner: FloatArray, error: FloatArray) -> FloatArray:
    """The part of a joint's error that viscous and Coulomb friction and an offset explain."""
    A = np.column_stack([qd, corner, np.ones_like(qd)])
    return np.asarray(A @ np.linalg.lstsq(A, error, rcond=None)[0])


def joint_tables(found: Recovery) -> list[dict[str, float | str | None]]:
    """Tables II and III of [Gaz2014], one row per joint: mean squares and largest errors.

    Of gravity at the training poses, at the validation poses and along a motion, and of torque in the torque test.
    """
    test: Sequence[Mapping[str, float | str]] = [] if found.torque_test is None else found.torque_test.rows()
    out: list[dict[str, float | str | None]] = []
    for k, joint in enumerate(found.robot.joint_names):
        row: dict[str, float | str | None] = {"joint": joint}
        sets = {
            "training": found.training,
            "validation": found.validation,
            "motion": () if found.along is None else found.along.errors,
        }
        for name, errors in sets.items():
            own = next((e for e in errors if e.channel == f"{joint}:gravity"), None)
            row[f"gravity_mean_square_{name}"] = None if own is None else own.mean_square
            row[f"gravity_largest_{name}"] = None if own is None else own.largest
        for key in ("mean_square", "largest"):
            row[f"torque_{key}"] = test[k][key] if test else None
        out.append(row)
    return out

"""A written file judged by what it says when it is read again: its own torque error on the motion held out.

Formats drop what they have no place for: offsets, shapes of friction, in a plain URDF also rotor inertia. The rigid bodies of a
file are compared with the model's by other programs (`reload_checks`); here the drives are read back as well, and the whole
is held against the held-out torque, beside the identified model and the description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import ArmidError
from armid.identification.combine import joint_errors, relative_error
from armid.identification.metrics import NOMINAL, RIGID, nominal_models
from armid.identification.result import Result
from armid.identification.thresholds import NEGLIGIBLE_ERROR, TOLERATED_RATIO
from armid.information.information import Information
from armid.parameters.effects import TorqueSide
from armid.robot.described import described_values
from armid.robot.robot import Drive, Robot


@dataclass(frozen=True, slots=True, kw_only=True)
class JointFileError:
    """Held-out torque error of one joint [N m or N].

    Args:
        name: of the joint's channel.
        file: of the file as read back.
        plain: of the file read by a program that knows no extensions of its format.
        model: of the identified model.
        description: of the description, at its best with or without its friction; nan when it has no masses.
        relative: of the file, over the torque.
    """

    name: str
    file: float
    plain: float
    model: float
    description: float
    relative: float

    @property
    def worse(self) -> bool:
        """Whether the file knows this joint less well than the description did, by what it lost, where it matters.

        A file as good as the model lost nothing: whether the model itself does worse than the description, beyond chance, is what
        the gate has judged.
        """
        lost = self.file > TOLERATED_RATIO.value * max(self.description, self.model)
        return bool(lost and self.relative > NEGLIGIBLE_ERROR.value)


@dataclass(frozen=True, kw_only=True)
class FileErrors:
    """Held-out torque error of a file.

    Args:
        joints: one by one.
        file, plain, model, description: all joints stacked, a fraction of the torque.
    """

    joints: tuple[JointFileError, ...]
    file: float
    plain: float
    model: float
    description: float

    @property
    def worse(self) -> tuple[JointFileError, ...]:
        """Joints that the description knows better than the file."""
        return tuple(joint for joint in self.joints if joint.worse)

    def beside(self, identified: FileErrors) -> FileErrors:
        """The same errors beside those of the model as it was identified, of which the file holds a changed one."""
        pairs = zip(self.joints, identified.joints, strict=True)
        return replace(
            self, joints=tuple(replace(mine, model=theirs.model) for mine, theirs in pairs), model=identified.model
        )

    def as_dict(self) -> dict[str, object]:
        """For machines; errors per joint in N m or N, totals as fractions of the torque."""
        return asdict(self) | {"worse_than_description": [joint.name for joint in self.worse]}

    def lines(self) -> tuple[str, ...]:
        """What the file and the command say about it."""
        beside = "" if np.isnan(self.description) else f", description {_percent(self.description)}"
        own = f"held-out torque error of this file, read back: {_percent(self.file)}"
        total = f"{own} (identified model {_percent(self.model)}{beside})"
        each = ", ".join(f"{joint.name} {joint.file:.3g}" for joint in self.joints)
        lines = [total, f"per joint [N m or N]: {each}"]
        if self.plain > 1.05 * self.file:
            lines.append(f"for programs that do not read the rotor inertia in it: {_percent(self.plain)}")
        return tuple(lines)


def _percent(fraction: float) -> str:
    return f"{100.0 * fraction:.3g} %"


class FileRefusedError(ArmidError):
    """A file that would know the arm less well than the description did is not written."""

    def __init__(
        self, form: str, worse: tuple[JointFileError, ...], lost: tuple[str, ...], *, offsets: bool = True
    ) -> None:
        self.joints = tuple(joint.name for joint in worse)
        shown = "; ".join(f"{j.name} {j.file:.3g} against {j.description:.3g}" for j in worse[:4])
        drops = f" It cannot hold {'; '.join(lost)}." if lost else ""
        again = "; or identify again with --friction viscous,coulomb, so that no offset is needed" if offsets else ""
        super().__init__(
            f"the {form} file is not written: read back, its held-out torque error is larger than the description's "
            f"({shown} N m or N).{drops} Export --to mjcf, python, c or json, which hold everything linear{again} "
            "(--force writes the file, marked UNVALIDATED)"
        )


def file_errors(result: Result, drives: Mapping[str, Drive], *, plain: Mapping[str, Drive]) -> FileErrors | None:
    """Held-out torque error of a file; None when there is no held-out motion, or it is about the drives alone.

    Args:
        result: of the identification.
        drives: of every joint as read back from the file.
        plain: the same by a program that knows no extensions of the format.
    """
    held_out = result.held_out_information
    if held_out is None or result.effects.torques is TorqueSide.DIFFERENCE:
        return None
    if result.effects.torques is TorqueSide.BOTH:
        # One friction per drive is what the motor feels; no file says which part of it a joint torque sensor feels.
        held_out = replace(held_out, channels=held_out.channels[result.robot.n_joints :])
    names = result.consistent.names
    models = {
        "file": _standard(result, drives),
        "plain": _standard(result, plain),
        "model": np.array(result.consistent.values),
    }
    known = nominal_models(result.described, names)
    has_masses = bool(np.any(result.described.inertial))
    if has_masses:
        models["description"] = known[min((NOMINAL, RIGID), key=lambda name: relative_error(held_out, known[name]))]
    return _compared(held_out, models)


def _compared(held_out: Information, models: Mapping[str, FloatArray]) -> FileErrors:
    errors = {name: joint_errors(held_out, None, values) for name, values in models.items()}
    stacked = {name: relative_error(held_out, values) for name, values in models.items()}
    joints = []
    for k, channel in enumerate(held_out.channels):
        rmse = {name: each[k].train.rmse for name, each in errors.items()}
        joints.append(
            JointFileError(
                name=channel.name,
                file=rmse["file"],
                plain=rmse["plain"],
                model=rmse["model"],
                description=rmse.get("description", float("nan")),
                relative=errors["file"][k].train.relative,
            )
        )
    return FileErrors(
        joints=tuple(joints),
        file=stacked["file"],
        plain=stacked["plain"],
        model=stacked["model"],
        description=stacked.get("description", float("nan")),
    )


def _standard(result: Result, drives: Mapping[str, Drive]) -> FloatArray:
    """The model's bodies (and what it carried) with these drives: standard parameters, shape [p]."""
    parameters = result.consistent.parameters
    arm = replace(result.robot, joints=tuple(replace(joint, drive=drives[joint.name]) for joint in result.robot.joints))
    read = described_values(arm, parameters)
    return np.where([parameter.of_joint for parameter in parameters], read, result.consistent.values)


def drives_of(robot: Robot, *quantities: str) -> dict[str, Drive]:
    """Of every joint these quantities of its drive, and nothing else: what a file holds of it."""
    return {
        joint.name: Drive(**{quantity: float(getattr(joint.drive, quantity)) for quantity in quantities})
        for joint in robot.joints
    }

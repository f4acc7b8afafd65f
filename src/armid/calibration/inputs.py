"""What a calibration starts from: an arm and its measurements, from files or as objects, one or many."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from armid.calibration.arm import load_arm
from armid.calibration.contradictions import told_by_joints
from armid.calibration.known_frames import with_known_frames
from armid.calibration.physics import beyond_range
from armid.calibration.poses_table import PosesMapping, column_names, read_mapping
from armid.calibration.read import read_poses
from armid.calibration.setups import combined, frame_test, renamed, sharing_note, unsure_note
from armid.calibration.validate import new_bodies, new_setups
from armid.calibration.words import SetupSharing
from armid.errors import InputError
from armid.kinematics.measurement import Measurements
from armid.notes import Note
from armid.outcome import InputFile
from armid.robot.robot import JointKind, Robot
from armid.words import several

VALIDATION = "validation"
"""Prefix of frames that the held-out rows have for themselves."""

PoseData = Measurements | str | Path
"""Measured poses: an object, or the path of a poses file (docs/formats.md)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationInputs:
    """An arm with what was measured on it.

    Args:
        robot: nominal arm.
        train: measurements to fit.
        held_out: measurements for the test; None without.
        files: what was read.
        notes: what was decided about frames.
    """

    robot: Robot
    train: Measurements
    held_out: Measurements | None
    files: tuple[InputFile, ...]
    notes: tuple[Note, ...] = ()


def calibration_inputs(
    robot: Robot | str | Path,
    poses: PoseData | Sequence[PoseData],
    validate: PoseData | Sequence[PoseData] | None,
    *,
    mapping: PosesMapping | None,
    setups: SetupSharing,
    base: str | None,
    tip: str | None,
) -> CalibrationInputs:
    """Everything read, with frames shared or named apart as `setups` says.

    Raises:
        InputError: a file that cannot be read, or nothing to read.
    """
    train, held_out = _several(poses), [] if validate is None else _several(validate)
    if not train:
        raise InputError("poses", "none given", "name at least one poses file")
    arm = _arm(robot, train, base=base, tip=tip)
    fitted, notes = combined(arm, _read(arm, train, mapping), setups)
    tested = None
    if held_out:
        tested, more = _validation(arm, fitted, _read(arm, held_out, mapping), setups)
        notes += more
    files = (
        InputFile(arm.source.path or arm.name, arm.source.sha256, "robot"),
        *(_input_file(data, "poses") for data in train),
        *(_input_file(data, "held-out") for data in held_out),
    )
    return CalibrationInputs(robot=arm, train=fitted, held_out=tested, files=files, notes=notes)


def poses_mapping(given: PosesMapping | str | Path | None, **words: object) -> PosesMapping | None:
    """How to read files: a mapping with single words on top; None when neither says anything.

    Args:
        given: a mapping, or the path of a mapping file.
        words: fields of `PosesMapping`; those that are None or zero say nothing.
    """
    said = {name: value for name, value in words.items() if value}
    if given is None and not said:
        return None
    known = PosesMapping() if given is None else given if isinstance(given, PosesMapping) else read_mapping(given)
    return replace(known, **said)  # type: ignore[arg-type]


def _several(data: PoseData | Sequence[PoseData]) -> list[PoseData]:
    expected = "paths of poses files (CSV), or Measurements, one or several"
    return several("poses", data, (Measurements, str, Path), expected)


def _arm(robot: Robot | str | Path, poses: Sequence[PoseData], *, base: str | None, tip: str | None) -> Robot:
    """The arm; of a branched description the chain whose joints the first file names."""
    if isinstance(robot, Robot):
        return robot
    columns = () if isinstance(poses[0], Measurements) else column_names(poses[0])
    return load_arm(str(robot), columns, base=base, tip=tip)


def _read(arm: Robot, data: Sequence[PoseData], mapping: PosesMapping | None) -> dict[str, Measurements]:
    """Measurements by name: the stem of a file, the place in the list of an object."""
    slides = [joint.kind is JointKind.PRISMATIC for joint in arm.joints]
    out: dict[str, Measurements] = {}
    for number, part in enumerate(data, start=1):
        if isinstance(part, Measurements):
            out[f"part{number}"] = part
        else:
            name = Path(part).stem
            name = name if name not in out else f"{name}{number}"  # Files of one name in several folders.
            out[name] = read_poses(part, arm.joint_names, prismatic=slides, mapping=mapping)
    return out


def _validation(
    arm: Robot, train: Measurements, parts: Mapping[str, Measurements], setups: SetupSharing
) -> tuple[Measurements, tuple[Note, ...]]:
    """Held-out measurements; frames get names of their own only where they are not those of the training files.

    Raises:
        InputError: frames are to be shared, and the training files do not have them.
    """
    held_out, notes = combined(arm, parts, setups)
    if setups is SetupSharing.PER_FILE:
        return (held_out if len(parts) > 1 else renamed(next(iter(parts.values())), VALIDATION)), notes
    lost = [*new_setups(train, held_out), *new_bodies(train, held_out)]
    if setups is SetupSharing.SHARED and lost:
        raise InputError(
            "--validate",
            f"{', '.join(lost)} is in no training file, so that --setups shared cannot be honoured",
            "use the training files' names of setups and targets, say where the target sits on a body they have, or leave "
            "--setups at auto: new frames are then fitted on part of the held-out rows and scored on the others",
        )
    if setups is SetupSharing.AUTO and lost:
        held_out, known = with_known_frames(arm, train, held_out)
        if known:
            return held_out, (*notes, *known)
    if len(lost) == len(held_out.setups) + len(new_bodies(Measurements(q=train.q, observations=()), held_out)):
        return held_out, notes
    found = frame_test(arm, [train, held_out])
    if setups is SetupSharing.AUTO and not found.shared and not found.plainly_apart and _elsewhere(train, held_out):
        return held_out, (*notes, unsure_note(found))
    note = sharing_note(("training", VALIDATION), found, setups)
    if setups is SetupSharing.AUTO and not found.shared:
        held_out = renamed(held_out, VALIDATION, sensor=not found.sensor, tool=not found.tool)
    return held_out, (*notes, note)


def _elsewhere(train: Measurements, held_out: Measurements) -> bool:
    """Whether held-out rows stand where no training row does: a model that errs there looks like a moved frame.

    Joint positions alone tell them from the training rows, or most of them leave the calibrated joint ranges.
    """
    side = np.repeat([False, True], [len(train.q), len(held_out.q)])
    outside = beyond_range(train.q, held_out.q).any(axis=1)
    return bool(outside.mean() > 0.5) or told_by_joints(np.vstack([train.q, held_out.q]), side)


def _input_file(data: PoseData, role: str) -> InputFile:
    if isinstance(data, Measurements):
        return InputFile(f"{len(data.q)} configurations in memory", "", role)
    return InputFile(str(data), hashlib.sha256(Path(data).read_bytes()).hexdigest(), role)

"""A result becomes a file, if it may."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from armid.consistency.positivity import with_standard
from armid.documents import json_text, write_text
from armid.errors import InputError
from armid.export.gate import ExportRefusedError, Reload, reload_checks
from armid.export.mjcf import mjcf_text, not_in_mjcf
from armid.export.source_code import Language, source_code
from armid.identification.result import Result
from armid.identification.stored import summary
from armid.parameters.effects import TorqueSide
from armid.robot.record import record
from armid.robot.robot import Robot
from armid.robot.urdf.update import updated_urdf
from armid.robot.urdf.write import new_urdf

UNVALIDATED = "UNVALIDATED"


class Format(StrEnum):
    """What can be written."""

    URDF = "urdf"
    MJCF = "mjcf"
    JSON = "json"
    PYTHON = "python"
    C = "c"
    MATLAB = "matlab"


SUFFIXES = {
    ".urdf": Format.URDF,
    ".xml": Format.MJCF,
    ".mjcf": Format.MJCF,
    ".json": Format.JSON,
    ".py": Format.PYTHON,
    ".c": Format.C,
    ".m": Format.MATLAB,
}


class Parameters(StrEnum):
    """Which values go into the file."""

    CONSISTENT = "consistent"
    """Standard parameters of possible bodies: for simulators, and for anything that inverts M."""
    BASE = "base"
    """The base parameters as estimated, in the leading columns: exactly what the data say. Only for generated code."""


@dataclass(frozen=True)
class Export:
    """What was written.

    Args:
        files: all of them; the first is the main one.
        verdict: of the result.
        missing: what the format cannot hold, in words.
        reloads: programs that read the file back, with the largest relative difference of torques.
    """

    files: tuple[Path, ...]
    verdict: str
    missing: tuple[str, ...]
    reloads: tuple[Reload, ...]


def export_result(
    result: Result,
    target: Format,
    folder: Path,
    *,
    force: bool = False,
    parameters: Parameters = Parameters.CONSISTENT,
    name: str | None = None,
) -> Export:
    """Writes an identified arm to a folder.

    Args:
        result: of an identification.
        target: the format.
        folder: where to write; created when missing.
        force: write an untrusted result too, with UNVALIDATED in its name and inside.
        parameters: which values, for generated code.
        name: of the file without suffix; the robot's by default.

    Raises:
        RefusedError: the result is untrusted and `force` was not given.
        InputError: the robot file it was identified with has changed since.
        ReloadError: another program reads the written file differently.
    """
    if result.verdict != "trusted" and not force:
        raise ExportRefusedError(result.reasons)
    if parameters is Parameters.BASE and target not in (Format.PYTHON, Format.C, Format.MATLAB):
        raise InputError(f"--to {target}", "base parameters are not bodies", "only generated code can use them")
    trusted = result.verdict == "trusted"
    stem = (name or _safe_name(result.described.name)) + ("" if trusted else f"_{UNVALIDATED}")
    robot = _base_robot(result) if parameters is Parameters.BASE else result.robot
    lost = (*_friction_lost(result, target), *_links_unknown(result))
    comments = [*_comments_for(result, parameters), *(f"Missing: {text}." for text in lost)]
    texts, reloads = _rendered(result, robot, target, stem, comments)
    files = tuple(write_text(folder / name, text) for name, text in texts.items())
    return Export(files, result.verdict, (*_not_in_format(robot, target), *lost), reloads)


def export_file(result: Result, path: Path, *, force: bool = False) -> Export:
    """Writes an identified arm to a file whose suffix tells the format.

    Args:
        result: of an identification.
        path: of the file.
        force: also an untrusted result, marked.

    Raises:
        InputError: a suffix that stands for no format.
    """
    target = SUFFIXES.get(path.suffix.lower())
    if target is None:
        raise InputError(path, f"suffix {path.suffix!r} stands for no format", f"use one of {', '.join(SUFFIXES)}")
    return export_result(result, target, path.parent, force=force, name=path.stem)


def _links_unknown(result: Result) -> tuple[str, ...]:
    """Said when the links' values in a file are not this result's: motor less joint torque is about the drives alone."""
    if result.effects.torques is not TorqueSide.DIFFERENCE:
        return ()
    return ("identified links: motor less joint torque says nothing of them, the description's own stand here",)


def _safe_name(name: str) -> str:
    """A file name, and an identifier for generated code."""
    text = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
    return text if text and not text[0].isdigit() else f"arm_{text}"


def _comments_for(result: Result, parameters: Parameters) -> list[str]:
    """What the file says about itself."""
    version = result.provenance.versions.get("armid", "")
    lines = [f"Identified by armid {version}".rstrip() + f"; {parameters} parameters; verdict: {result.verdict}."]
    if result.verdict != "trusted":
        lines += [f"{UNVALIDATED}: do not use on a robot.", *(f"{UNVALIDATED}: {reason}" for reason in result.reasons)]
    return lines


def _base_robot(result: Result) -> Robot:
    """The arm with the unconstrained base estimate in the leading standard parameters and zeros elsewhere."""
    return with_standard(
        result.described, dict(zip(result.estimate.base.parameters, result.estimate.standard, strict=True))
    )


def _rendered(
    result: Result, robot: Robot, target: Format, stem: str, comments: list[str]
) -> tuple[dict[str, str], tuple[Reload, ...]]:
    """Texts by file name, and what other programs made of them."""
    match target:
        case Format.URDF:
            text = _urdf_of(result, robot, comments)
            return {f"{stem}.urdf": text}, reload_checks(robot, text, mjcf=False)
        case Format.MJCF:
            text = mjcf_text(robot, comments=comments)
            return {f"{stem}.xml": text}, reload_checks(robot, text, mjcf=True)
        case Format.JSON:
            return {f"{stem}.json": json_text(everything(result, robot))}, ()
        case _:
            return source_code(robot, Language(target.value), name=_safe_name(stem), header=comments), ()


def _urdf_of(result: Result, robot: Robot, comments: list[str]) -> str:
    """The original file with new values, or a new one for an arm that did not come from a URDF."""
    path = Path(result.described.source.path)
    if path.suffix.lower() not in (".urdf", ".xml"):
        text = new_urdf(robot)
    else:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InputError(path, f"cannot be read: {error.strerror}", "the export changes this file's text") from None
        if hashlib.sha256(data).hexdigest() != result.described.source.sha256:
            raise InputError(path, "has changed since the identification", "identify again with the file as it is now")
        text = updated_urdf(data.decode("utf-8"), robot, where=path.name)
    return _with_comments(text, comments)


def _with_comments(text: str, comments: list[str]) -> str:
    """Comments just before the root element."""
    start = text.find("<robot")
    block = "".join(f"<!-- {line.replace('--', '- -')} -->\n" for line in comments)
    return text[:start] + block + text[start:]


def everything(result: Result, robot: Robot) -> dict[str, Any]:
    """The stored summary with the covariance and the identified arm in full."""
    return summary(result) | {
        "covariance": result.estimate.covariance,
        "identified_robot": record(robot),
        UNVALIDATED: result.verdict != "trusted",
    }


def _not_in_format(robot: Robot, target: Format) -> tuple[str, ...]:
    """What the format cannot hold of this robot, in words."""
    if target is Format.MJCF:
        return not_in_mjcf(robot)
    if target is not Format.URDF:
        return ()
    missing = []
    if np.any(robot.drive("rotor_inertia") != 0.0):
        missing.append("rotor inertia: URDF has no element for it (MJCF's armature has)")
    if np.any(robot.drive("offset") != 0.0):
        missing.append("torque offsets (a constant per joint)")
    if robot.coupling is not None:
        missing.append("joint coupling: positions in the URDF are those of the geometry, not of the drives")
    if not np.allclose(robot.gravity[:2], 0.0) or robot.gravity[2] > 0.0:
        missing.append("the mounting: URDF leaves the direction of gravity to the reader")
    return tuple(missing)


def _friction_lost(result: Result, target: Format) -> tuple[str, ...]:
    """That only our JSON holds friction beyond viscous, Coulomb and offset, when there is some."""
    if target is Format.JSON or not result.effects.shapes:
        return ()
    words = ", ".join(result.effects.shapes)
    return (f"friction beyond viscous and Coulomb ({words}): held-out errors are with it; armid's JSON has it all",)

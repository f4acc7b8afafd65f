"""A result becomes a file, if it may."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armid.documents import json_text, write_text
from armid.errors import InputError
from armid.export.essential import reduced_model
from armid.export.formats import CODE, SUFFIXES, CodeContent, Format, What
from armid.export.gate import ExportRefusedError, Reload, SealBrokenError, reload_checks
from armid.export.joint_properties import joint_properties
from armid.export.judged import FileErrors, FileRefusedError, drives_of, file_errors
from armid.export.losses import HELD, PLAIN_URDF, listed, losses, to_know
from armid.export.mjcf import mjcf_text
from armid.export.mjcf_drives import mjcf_drives
from armid.export.refit import without_offsets
from armid.export.source_code import Language, source_code
from armid.folders import answer_folder
from armid.identification.chosen import Parameters, chosen_robot
from armid.identification.result import Result, StandardRow
from armid.identification.stored import RESULT_FILES, summary
from armid.robot.record import record
from armid.robot.robot import Robot
from armid.robot.urdf.arm import parse_urdf
from armid.robot.urdf.read import read_urdf
from armid.robot.urdf.rotors import with_rotors
from armid.robot.urdf.text import xml_comment
from armid.robot.urdf.update import updated_urdf
from armid.robot.urdf.write import new_urdf
from armid.robot.urdf.xml_tree import decoded

__all__ = ["SUFFIXES", "UNVALIDATED", "Export", "Format", "Parameters", "export_file", "export_result"]

UNVALIDATED = "UNVALIDATED"


@dataclass(frozen=True, kw_only=True)
class Export:
    """What was written.

    Args:
        files: all of them; the first is the main one.
        verdict: of the result.
        missing: what the file does not have, in words.
        reloads: programs that read the file back, with the largest relative difference of torques.
        errors: held-out torque error of the file as read back; None without held-out motion, and for JSON, which holds the model.
        to_know: those of `missing` that are no loss of the format: no file of this result has them.
    """

    files: tuple[Path, ...]
    verdict: str
    missing: tuple[str, ...]
    reloads: tuple[Reload, ...]
    errors: FileErrors | None = None
    to_know: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """For people."""
        return (
            *(f"wrote {file}" for file in self.files),
            *(check.words() for check in self.reloads),
            *(() if self.errors is None else self.errors.lines()),
            *(f"{'to know' if line in self.to_know else 'not in this format'}: {line}" for line in self.missing),
        )

    def as_dict(self) -> dict[str, Any]:
        """The keys of the command contract and more."""
        return {
            "file": self.files[0],
            "files": self.files,
            "verdict": self.verdict,
            "missing": self.missing,
            "to_know": self.to_know,
            "held_out": None if self.errors is None else self.errors.as_dict(),
            "reloads": {check.program: check.difference for check in self.reloads},
        }


def export_result(
    result: Result,
    target: Format,
    folder: Path,
    *,
    force: bool = False,
    parameters: Parameters = Parameters.CONSISTENT,
    name: str | None = None,
    content: CodeContent | None = None,
) -> Export:
    """Writes an identified arm to a folder.

    Args:
        result: of an identification.
        target: the format.
        folder: where to write; created when missing.
        force: write an untrusted result too, with UNVALIDATED in its name and inside.
        parameters: which values; those without bodies for generated code and JSON alone.
        name: of the file without suffix; the robot's by default.
        content: what generated code computes; the model by default.

    Raises:
        ExportRefusedError: the result is untrusted and `force` was not given.
        SealBrokenError: the stored numbers are not those that were identified; `force` does not help.
        FileRefusedError: the file, read back, predicts a joint worse than the description, and `force` was not given.
        InputError: the robot file it was identified with has changed since.
        ReloadError: another program reads the written file differently.
    """
    content = (content or CodeContent()).for_format(target)
    if result.verdict != "trusted" and not force:
        raise ExportRefusedError(result.reasons)
    broken = [check.message for check in result.checks if check.code == "seal" and not check.passed]
    if broken:
        raise SealBrokenError(broken[0])
    if parameters is not Parameters.CONSISTENT and target not in (*CODE, Format.JSON):
        raise InputError(f"--to {target}", "base parameters are not bodies", "use --to json, python, c or matlab")
    reduced = reduced_model(result) if parameters is Parameters.ESSENTIAL else None
    if reduced is not None and reduced.reasons and not force:
        raise ExportRefusedError(reduced.reasons)
    robot = chosen_robot(result, parameters) if reduced is None else reduced.robot
    dropped = losses(result, robot, target)
    lost, known = dropped, (*to_know(result, target), *merely_described(result))
    written = _written(result, robot, target)
    # Holding torque alone says nothing about the torque of a motion.
    judged = parameters is Parameters.CONSISTENT and content.what is not What.GRAVITY
    errors = None if not judged else _errors_of(result, robot, target, written)
    worse = () if errors is None else errors.worse
    refitted = _refitted(result, target, errors) if errors is not None and worse and not force else None
    if refitted is not None:
        result, written, errors = refitted
        robot, worse, lost = result.robot, (), (*lost, _WITHOUT_OFFSETS)
    if worse and not force:
        raise FileRefusedError(target.value, worse, dropped, offsets=bool(robot.drive("offset").any()))
    marked = result.verdict != "trusted" or bool(worse) or (reduced is not None and bool(reduced.reasons))
    stem = (name or _safe_name(result.described.name)) + (f"_{UNVALIDATED}" if marked else "")
    known = (*known, *(() if target is not Format.URDF else _lightened(result, written)))
    comments = [
        *_comments_for(result, parameters, errors),
        *(() if reduced is None else (f"{reduced.words}.", *(f"{UNVALIDATED}: {r}" for r in reduced.reasons))),
        *(f"Missing: {text}." for text in lost),
        *(f"To know: {text}." for text in known),
    ]
    texts, reloads = _rendered(result, robot, target, stem, comments, written, content)
    for taken in set(texts) & set(RESULT_FILES):
        if (folder / taken).exists():  # an arm of that name
            raise InputError(folder / taken, "would be replaced by the export", "choose another --out")
    kind = f"export {target} {stem}" + ("" if content.what is What.MODEL else f" {content.what}")
    with answer_folder(folder, kind):
        files = tuple(write_text(folder / name, text) for name, text in texts.items())
    missing = (*lost, *known)
    return Export(files=files, verdict=result.verdict, missing=missing, reloads=reloads, errors=errors, to_know=known)


_WITHOUT_OFFSETS = (
    "the offsets' share of the torque: with them left out a joint would be known less well than by the description, so bodies "
    "and friction of this file were estimated anew without offsets"
)


def _refitted(result: Result, target: Format, before: FileErrors) -> tuple[Result, str, FileErrors] | None:
    """The model without the offsets that a description cannot hold, its text, and its errors; None unless that mends the file."""
    if target is not Format.URDF:
        return None
    other = without_offsets(result)
    if other is None:
        return None
    text = _written(other, other.robot, target)
    errors = _errors_of(other, other.robot, target, text)
    if errors is None or (errors := errors.beside(before)).worse:
        return None
    return other, text, errors


def _written(result: Result, robot: Robot, target: Format) -> str:
    """The text of a description, without comments; empty for formats that are no description."""
    match target:
        case Format.URDF:
            return _urdf_of(result, robot)
        case Format.MJCF:
            return mjcf_text(robot)
        case _:
            return ""


def _errors_of(result: Result, robot: Robot, target: Format, text: str) -> FileErrors | None:
    """What the file says about the held-out torque, its drives read back from the text where there is one."""
    match target:
        case Format.JSON:
            return None
        case Format.URDF:
            again = parse_urdf(text, "exported file", base=robot.base, tip=robot.tip.name)
            drives, plain = drives_of(again, *HELD[target]), drives_of(again, *PLAIN_URDF)
            return file_errors(result, drives, plain=plain)
        case Format.MJCF:
            drives = mjcf_drives(robot, text)
            return file_errors(result, drives, plain=drives)
        case _:
            drives = drives_of(robot, *HELD[target])
            return file_errors(result, drives, plain=drives)


def _original(result: Result) -> str:
    """The text of the description, when it is a URDF file; empty otherwise."""
    path = Path(result.described.source.path)
    if path.suffix.lower() not in (".urdf", ".xml") or not path.is_file():
        return ""
    return decoded(path.read_bytes(), path.name)


def _lightened(result: Result, text: str) -> tuple[str, ...]:
    """Says which parts off the arm had to be made lighter: the identified link weighs less than they did together."""
    original = _original(result)
    if not original:
        return ()
    before, after = read_urdf(original, "description"), read_urdf(text, "exported file")
    on_arm = set(result.described.link_names)
    lighter = [
        name
        for name, link in before.links.items()
        if name not in on_arm
        and link.inertial is not None
        and (now := after.links[name].inertial) is not None
        and now[0] < 0.999 * link.inertial[0]
    ]
    if not lighter:
        return ()
    return (f"parts off the arm made lighter, since the identified link is lighter than they were: {listed(lighter)}",)


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


_DRIVE_WORDS = {
    "rotor_inertia": "rotor inertia",
    "viscous": "viscous friction",
    "coulomb": "Coulomb friction",
    "offset": "torque offset",
}


def merely_described(result: Result) -> tuple[str, ...]:
    """What stands in an export although this result did not identify it, in words; the description says it."""
    out = []
    for quantity, words in _DRIVE_WORDS.items():
        values = result.robot.drive(quantity)
        identified = any(name.endswith(f".{quantity}") for name in result.consistent.names)
        if values.any() and not identified:
            listed = ", ".join(
                f"{joint} {value:.6g}" for joint, value in zip(result.robot.joint_names, values, strict=True)
            )
            out.append(f"no identified {words}: the description's own stands here ({listed})")
    by = zip(result.consistent.names, result.consistent.determined_by, strict=True)
    prior = [name for name, source in by if source == "prior"]
    if prior:
        out.append(f"no data for {len(prior)} parameters, which regularisation alone determines: {', '.join(prior)}")
    loose = [row.name for row in result.standard_parameters if _is_loose_mass(row)]
    if loose:
        out.append(f"masses: the data leave {', '.join(loose)} open by more than their own size, regularisation chose")
    return tuple(out)


def _is_loose_mass(row: StandardRow) -> bool:
    """Whether the interval of a mass that the data do see, though not alone, reaches down to nothing."""
    return row.name.endswith(".mass") and row.determined_by == "both" and row.low <= 0.0


def _safe_name(name: str) -> str:
    """A file name, and an identifier for generated code."""
    text = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
    return text if text and not text[0].isdigit() else f"arm_{text}"


def _comments_for(result: Result, parameters: Parameters, errors: FileErrors | None) -> list[str]:
    """What the file says about itself."""
    version = result.provenance.versions.get("armid", "")
    lines = [f"Identified by armid {version}".rstrip() + f"; {parameters} parameters; verdict: {result.verdict}."]
    if result.verdict != "trusted":
        lines += [f"{UNVALIDATED}: do not use on a robot.", *(f"{UNVALIDATED}: {reason}" for reason in result.reasons)]
    if errors is not None:
        lines += [f"{line[0].upper()}{line[1:]}." for line in errors.lines()]
        lines += [f"{UNVALIDATED}: {j.name} is predicted worse than by the description." for j in errors.worse]
    return lines


def _rendered(
    result: Result, robot: Robot, target: Format, stem: str, comments: list[str], written: str, content: CodeContent
) -> tuple[dict[str, str], tuple[Reload, ...]]:
    """Texts by file name, and what other programs made of them."""
    match target:
        case Format.URDF:
            text = _with_comments(written, comments)
            table = joint_properties(robot, comments=comments)
            return {f"{stem}.urdf": text, f"{stem}.joints.yaml": table}, reload_checks(
                robot, text, mjcf=False, original=_original(result)
            )
        case Format.MJCF:
            text = mjcf_text(robot, comments=comments)
            return {f"{stem}.xml": text}, reload_checks(robot, text, mjcf=True)
        case Format.JSON:
            return {f"{stem}.json": json_text(everything(result, robot) | {"comments": comments})}, ()
        case _:
            language = Language(target.value)
            return source_code(robot, language, name=_safe_name(stem), header=comments, content=content), ()


def _urdf_of(result: Result, robot: Robot) -> str:
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
        text = _in_utf8(updated_urdf(decoded(data, path.name), robot, where=path.name))
    return with_rotors(text, robot, path.name)


def _in_utf8(text: str) -> str:
    """The text with a declaration that is true of the file we write."""
    return re.sub(r"(<\?xml[^>]*?encoding=)([\"'])[^\"']*\2", r"\1\2utf-8\2", text, count=1)


_ROOT_OR_ASIDE = re.compile(r"<!--.*?-->|<\?.*?\?>|<![^>]*>|(?P<root><[A-Za-z_])", re.DOTALL)
"""The root element, or what may stand before it and look like it: comments, instructions, a document type."""


def _with_comments(text: str, comments: list[str]) -> str:
    """Comments just before the root element."""
    start = next((m.start() for m in _ROOT_OR_ASIDE.finditer(text) if m.group("root")), 0)
    return text[:start] + "".join(f"{xml_comment(line)}\n" for line in comments) + text[start:]


def everything(result: Result, robot: Robot) -> dict[str, Any]:
    """The stored summary with the covariance and the identified arm in full."""
    return summary(result) | {
        "covariance": result.estimate.covariance,
        "identified_robot": record(robot),
        "merely_described": merely_described(result),
        UNVALIDATED: result.verdict != "trusted",
    }

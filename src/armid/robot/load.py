"""One way in for every description: a URDF path, a YAML path, or a name from the catalogue."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy.typing as npt

from armid.errors import RobotError, UnknownNameError
from armid.robot.catalogue import catalogue_bytes, catalogue_names
from armid.robot.mesh_paths import with_found_meshes
from armid.robot.mesh_units import with_metre_meshes
from armid.robot.robot import Robot, Source
from armid.robot.urdf.xml_tree import decoded
from armid.robot.yaml_file import parse_yaml
from armid.words import path_of

_MAX_FILE_BYTES = 50_000_000
"""The largest published URDFs are below 2 MB; anything near this is not a robot description."""


def load_robot(
    source: str | Path | Robot, *, base: str | None = None, tip: str | None = None, gravity: npt.ArrayLike | None = None
) -> Robot:
    """Read a robot.

    Args:
        source: path of a `.urdf` or `.yaml` file, or a name of the catalogue; an arm itself stays as it is.
        base: link of a branched URDF that stands still; its root by default.
        tip: link of a branched URDF where the arm ends; the end of the longest chain by default.
        gravity: acceleration of gravity in the base frame [m/s^2], shape [3]; the description's by default.

    Raises:
        RobotError: the file is not a robot description we can use; the message names the element.
        UnknownNameError: neither a file nor in the catalogue; the message lists the catalogue.
    """
    robot = _ending_at(source, base, tip, source.name) if isinstance(source, Robot) else _read(source, base, tip)
    return robot if gravity is None else robot.with_gravity(gravity)


def _read(source: str | Path, base: str | None, tip: str | None) -> Robot:
    path_of("robot", source, "a path of a URDF or robot YAML, a catalogue name, or a Robot")
    text = str(source)
    in_catalogue = isinstance(source, str) and text in catalogue_names()
    if in_catalogue:
        data, where, path = catalogue_bytes(text), text, f"catalogue:{text}"
    else:
        # Absolute: a result must find its description again from any folder.
        data, where, path = _file(source), Path(source).name, str(Path(source).absolute())
    provenance = Source(path=path, sha256=hashlib.sha256(data).hexdigest())
    content = decoded(data, where)
    if content.lstrip().startswith("<") or Path(text).suffix.lower() in (".urdf", ".xml"):
        from armid.robot.urdf.arm import parse_urdf  # only descriptions in URDF need it

        robot = parse_urdf(content, where, base=base, tip=tip, source=provenance)
    else:
        robot = _ending_at(parse_yaml(content, where, source=provenance), base, tip, where)
    return robot if in_catalogue else with_metre_meshes(with_found_meshes(robot, Path(source).resolve().parent))


def _ending_at(robot: Robot, base: str | None, tip: str | None, where: str) -> Robot:
    """A robot with another of its frames as tip; only the reader of a URDF can choose another base."""
    if base is not None and base != robot.base:
        raise RobotError(where, f"base {base!r}", f"this robot starts at its own base, {robot.base!r}")
    if tip is None or tip == robot.tip.name:
        return robot
    chosen = robot.frame(tip)
    return replace(robot, frames=(*(frame for frame in robot.frames if frame.name != tip), chosen))


def _file(source: str | Path) -> bytes:
    path = Path(source)
    try:
        if not path.is_file():
            if path.exists():
                raise RobotError(path, "not a file")
            if path.suffix or path.parent != Path():
                raise RobotError(path, "no such file", f"or a catalogue name: {', '.join(catalogue_names())}")
            raise UnknownNameError("file, and no robot in the catalogue,", str(source), catalogue_names())
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise RobotError(path, f"larger than {_MAX_FILE_BYTES} bytes", "is this a robot description?")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise RobotError(path, f"cannot be read: {error}") from None

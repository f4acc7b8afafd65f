"""The cell around the arm: obstacles, a floor, and where frames may be. `docs/formats.md` describes the file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.documents import read_text
from armid.errors import InputError, UnknownNameError
from armid.robot.document import Field, document
from armid.robot.geometry import Geometry, Mesh
from armid.robot.shapes import POSE, SHAPES, read_pose, read_shape
from armid.words import path_of

_FORMAT = "armid-cell/1"

_DEFAULT_MARGIN = 0.02
"""[m] kept between any two bodies: tracking error and cable bundles are of this size."""


@dataclass(frozen=True, eq=False)
class Obstacle:
    """A solid no link may touch, placed in the base frame."""

    name: str
    geometry: Geometry


@dataclass(frozen=True, eq=False, kw_only=True)
class Region:
    """Where a frame may be, in the base frame.

    Args:
        frame: its name; the tip when None.
        axis_distance: least distance from the base z axis [m].
        lower, upper: bounds on x, y, z [m], infinite where free, shape [3].
        camera: T_base_camera for the two angles below, shape [4, 4].
        roll, pitch: lowest and highest fixed-axis angle of the frame seen from the camera [rad].
    """

    frame: str | None = None
    axis_distance: float | None = None
    lower: FloatArray = field(default_factory=lambda: np.full(3, -np.inf))
    upper: FloatArray = field(default_factory=lambda: np.full(3, np.inf))
    camera: FloatArray = field(default_factory=lambda: np.eye(4))
    roll: tuple[float, float] | None = None
    pitch: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Cell:
    """Everything around the arm.

    Args:
        obstacles: keep-out solids.
        regions: where frames may be.
        floor: height in the base frame no moving link goes below [m].
        margin: distance kept from obstacles, the floor and the arm itself [m].
        description: in words.
    """

    obstacles: tuple[Obstacle, ...] = ()
    regions: tuple[Region, ...] = ()
    floor: float | None = None
    margin: float = _DEFAULT_MARGIN
    description: str = ""


_CELLS = Path(__file__).parent / "cells"
"""Those that come along."""


def with_margin(cell: Cell | None, margin: float) -> Cell:
    """A cell, or empty space, in which another distance is kept between bodies [m]."""
    if not margin >= 0.0:
        raise InputError("clearance", f"{margin} m", "must not be negative")
    return replace(cell or Cell(), margin=margin)


def cell_of(cell: str | Path | Cell | None) -> Cell | None:
    """A cell from its file or its name; a cell, or none, stays as it is.

    Raises:
        UnknownNameError: neither a file nor one that comes along; lists those that do.
        InputError: the file cannot be used.
    """
    if cell is None or isinstance(cell, Cell):
        return cell
    path = path_of("cell", cell, "a cell file, the name of one that comes along, or a Cell")
    if path.suffix in (".yaml", ".yml") or path.exists():
        return load_cell(path)
    known = sorted(file.stem for file in _CELLS.glob("*.yaml"))
    if str(cell) not in known:
        raise UnknownNameError("cell", str(cell), known)
    return load_cell(_CELLS / f"{cell}.yaml")


def load_cell(path: Path) -> Cell:
    """Reads a cell from a YAML file.

    Raises:
        InputError: naming the field, what is wrong with it and what was expected.
    """
    text = read_text(path, "a cell file (docs/formats.md)")
    return parse_cell(text, str(path), folder=path.parent)


def parse_cell(text: str, where: str = "cell", *, folder: Path = Path()) -> Cell:
    """Reads a cell from the text of a YAML file; mesh paths are relative to `folder`."""
    known = ("format", "description", "margin", "floor", "obstacles", "regions")
    top = Field(document(text, where), f"{where}:").keys(known, required=("format",))
    top["format"].choice((_FORMAT,))
    margin = top["margin"].number() if "margin" in top else _DEFAULT_MARGIN
    if margin < 0.0:
        raise top["margin"].error(f"{margin:g} m", "a margin cannot be negative")
    return Cell(
        obstacles=tuple(_obstacle(entry, k, folder) for k, entry in enumerate(top["obstacles"].items()))
        if "obstacles" in top
        else (),
        regions=tuple(_region(entry) for entry in top["regions"].items()) if "regions" in top else (),
        floor=top["floor"].number() if "floor" in top else None,
        margin=margin,
        description=top["description"].text() if "description" in top else "",
    )


def _obstacle(entry: Field, index: int, folder: Path) -> Obstacle:
    """A named shape with a pose in the base frame."""
    fields = entry.keys(("name", *SHAPES, *POSE))
    shape, T_pose_shape = read_shape(entry, fields)
    name = fields["name"].name() if "name" in fields else f"obstacle{index + 1}"
    if isinstance(shape, Mesh):
        shape = replace(shape, path=str(folder / shape.path))
    return Obstacle(name, Geometry(shape, read_pose(fields) @ T_pose_shape))


_REGION_KEYS = ("frame", "axis_distance", "height", "inside", "camera", "roll_deg", "pitch_deg")


def _region(entry: Field) -> Region:
    """Bounds on one frame; `height` is short for a lower bound on z."""
    fields = entry.keys(_REGION_KEYS)
    if len(fields) == ("frame" in fields):
        raise entry.error("a region without a bound", f"give one of {', '.join(_REGION_KEYS[1:])}")
    lower, upper = np.full(3, -np.inf), np.full(3, np.inf)
    if "inside" in fields:
        inner = fields["inside"].keys(("min", "max"), required=("min", "max"))
        lower, upper = inner["min"].vector(3), inner["max"].vector(3)
        if not (lower < upper).all():
            raise fields["inside"].error("min is not below max in every coordinate")
    if "height" in fields:
        lower[2] = max(lower[2], fields["height"].number())
    camera = np.eye(4)
    if "camera" in fields:
        camera = read_pose(fields["camera"].keys(POSE))
    return Region(
        frame=fields["frame"].name() if "frame" in fields else None,
        axis_distance=fields["axis_distance"].number() if "axis_distance" in fields else None,
        lower=lower,
        upper=upper,
        camera=camera,
        roll=_angles(fields["roll_deg"]) if "roll_deg" in fields else None,
        pitch=_angles(fields["pitch_deg"]) if "pitch_deg" in fields else None,
    )


def _angles(entry: Field) -> tuple[float, float]:
    """Two angles in degrees, the lower first, as radians."""
    low, high = entry.vector(2)
    if not low < high:
        raise entry.error(f"[{low:g}, {high:g}]", "the lower angle comes first")
    return float(np.radians(low)), float(np.radians(high))

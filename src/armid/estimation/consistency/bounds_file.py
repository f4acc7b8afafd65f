"""Bounds on the bodies from a small YAML file.

mass: {link3: [1.0, 2.5], payload: [0, 5]}          # kg
total_mass: [28, 30]                                 # kg, links only
centre: {link2: [[-0.1, -0.1, 0], [0.1, 0.1, 0.4]]}  # m, box in the link frame
inside_collision_shapes: true
non_negative_drives: true
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from armid.errors import InputError, UnknownNameError
from armid.estimation.consistency.bounds import Bounds, CentreBox, Where, bounds_from_geometry
from armid.robot.robot import Robot

KEYS = ("mass", "total_mass", "centre", "inside_collision_shapes", "non_negative_drives")
MAX_BYTES = 1 << 20


def read_bounds(path: str | Path, robot: Robot) -> Bounds:
    """Bounds of a file.

    Raises:
        InputError: not YAML, unknown keys or values; names the key.
    """
    content = parsed(Path(path))
    for key in content:
        if key not in KEYS:
            raise UnknownNameError(f"key in {path}", str(key), KEYS)
    bounds = bounds_from_geometry(robot) if content.get("inside_collision_shapes") else Bounds()
    where: dict[str, tuple[Where, ...]] = dict(bounds.where)
    for owner, corners in table(content, "centre", path).items():
        box = np.array(
            [numbers(corner, 3, f"{path}: centre of {owner}") for corner in pair(corners, f"{path}: centre of {owner}")]
        )
        where[owner] = (*where.get(owner, ()), CentreBox(box[0], box[1]))
    masses = {
        owner: interval(value, f"{path}: mass of {owner}") for owner, value in table(content, "mass", path).items()
    }
    total = interval(content["total_mass"], f"{path}: total_mass") if "total_mass" in content else None
    drives = bool(content.get("non_negative_drives", True))
    return replace(bounds, mass=masses, where=where, total_mass=total, non_negative_drives=drives)


def parsed(path: Path) -> dict[str, Any]:
    """The file as a mapping."""
    import yaml

    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(path, "larger than a bounds file can be")
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(path, f"not a bounds file ({error})") from None
    if not isinstance(content, dict):
        raise InputError(path, "not a mapping", f"expected some of {', '.join(KEYS)}")
    return content


def table(content: dict[str, Any], key: str, path: str | Path) -> dict[str, Any]:
    """A mapping from owner to something."""
    value = content.get(key, {})
    if not isinstance(value, dict):
        raise InputError(f"{path}: {key}", repr(value), "expected a mapping from link3 or payload to its bounds")
    return {str(owner): item for owner, item in value.items()}


def pair(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(where, repr(value), "expected a lower and an upper corner")
    return value


def interval(value: Any, where: str) -> tuple[float, float]:
    low, high = numbers(value, 2, where)
    return low, high


def numbers(value: Any, count: int, where: str) -> list[float]:
    """So many numbers."""
    try:
        found = [float(item) for item in value]
    except (TypeError, ValueError):
        found = []
    if len(found) != count or not np.all(np.isfinite(found)):
        raise InputError(where, repr(value), f"expected {count} numbers")
    return found

"""Meshes in millimetres that a description names without saying so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from armid.notes import Note, Severity
from armid.robot.geometry import Geometry, Mesh
from armid.robot.meshes import MeshError, vertices
from armid.robot.robot import Robot

_LOOKED_AT = 3
"""Meshes, of the smallest files, that tell whether the others have to be read at all."""
_TOO_LARGE = 10.0
"""Times the arm's length that no link of it is across. In millimetres a link of a hundredth of that length is."""
_LEAST = 5.0
"""[m] Meshes that are smaller may be large on an arm that is small."""
_MILLIMETRES = (1e-3, 1e-3, 1e-3)
_WITHOUT_UNIT = (".stl", ".obj")


def with_metre_meshes(robot: Robot) -> Robot:
    """The same robot with meshes scaled to metres where they can only be millimetres, and a note that says so.

    STL and OBJ hold numbers without a unit, and a URDF that names no scale means metres. Shapes a hundred metres across would
    overlap in every pose, and no collision of the arm with itself would be seen.
    """
    length = _length(robot)
    bare = sorted({mesh.path for mesh in _bare_meshes(robot)}, key=lambda path: Path(path).stat().st_size)
    most = max(_TOO_LARGE * length, _LEAST)
    if not any(_across(path) > most for path in bare[:_LOOKED_AT]):
        return robot
    sizes = {path: _across(path) for path in bare}
    wrong = {path for path, size in sizes.items() if size > most}
    text = (
        f"{len(wrong)} meshes without a scale, {max(sizes.values()):.3g} m across on an arm of {length:.2g} m, are taken as "
        'millimetres (write scale="0.001 0.001 0.001" to say so)'
    )
    links = tuple(replace(link, geometry=_scaled(link.geometry, wrong)) for link in robot.links)
    note = Note("mesh-millimetres", Severity.WARNING, text)
    return replace(robot, links=links, geometry=_scaled(robot.geometry, wrong), notes=(*robot.notes, note))


def _length(robot: Robot) -> float:
    """From joint to joint [m], all joints at zero."""
    return float(sum(np.linalg.norm(joint.transform()[:3, 3]) for joint in robot.joints))


def _bare_meshes(robot: Robot) -> Iterator[Mesh]:
    """Meshes that are there and whose unit nothing states."""
    for geometry in (*robot.geometry, *(g for link in robot.links for g in link.geometry)):
        if isinstance(geometry.shape, Mesh) and _is_bare(geometry.shape):
            yield geometry.shape


def _is_bare(mesh: Mesh) -> bool:
    path = Path(mesh.path)
    return mesh.scale == (1.0, 1.0, 1.0) and path.suffix.lower() in _WITHOUT_UNIT and path.is_file()


def _across(path: str) -> float:
    """Largest extent along an axis of a mesh as it is written; zero for one that cannot be read."""
    try:
        return float(np.ptp(vertices(Mesh(path)), axis=0).max())
    except MeshError:
        return 0.0


def _scaled(shapes: tuple[Geometry, ...], wrong: set[str]) -> tuple[Geometry, ...]:
    return tuple(
        replace(g, shape=replace(g.shape, scale=_MILLIMETRES))
        if isinstance(g.shape, Mesh) and g.shape.path in wrong and _is_bare(g.shape)
        else g
        for g in shapes
    )

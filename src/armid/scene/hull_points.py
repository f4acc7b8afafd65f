"""The corners of a mesh's convex hull: all that capsules and distances need of its thousands of vertices."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.robot.geometry import Mesh
from armid.robot.meshes import MeshError, vertices


def corners(mesh: Mesh) -> FloatArray:
    """Corners of the convex hull in the mesh's own frame [m], shape [n, 3]; a flat mesh gets the thickness that rounding needs.

    Raises:
        MeshError: missing or not readable.
    """
    path = Path(mesh.path)
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    return _corners(mesh.path, mesh.scale, changed)


_FLAT = 1e-4
"""[m] given to a mesh that has no volume, to either side of its plane or line."""


@lru_cache(maxsize=256)
def _corners(path: str, scale: tuple[float, float, float], changed: int) -> FloatArray:
    """Kept per file and date, since capsules, hulls and every copy of a scene ask for the same ones."""
    from scipy.spatial import ConvexHull, QhullError

    points = vertices(Mesh(path, scale))
    try:
        found = points[ConvexHull(points).vertices]
    except QhullError:
        around = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * _FLAT
        thick = (points[:, np.newaxis] + around).reshape(-1, 3)
        try:
            found = thick[ConvexHull(thick).vertices]
        except QhullError as problem:
            raise MeshError(path, f"no convex hull: {str(problem).splitlines()[0]}") from None
    return read_only(found)

"""Where the mesh files a description names really are, when they can be found beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from armid.robot.geometry import Geometry, Mesh
from armid.robot.robot import Robot

_PACKAGE = "package://"
_FILE = "file://"
_ABOVE = 3
"""Folders above a description that are tried for meshes whose package has another name: urdf/, its package, what holds it."""


def with_found_meshes(robot: Robot, folder: Path) -> Robot:
    """The same robot with mesh names replaced by paths of existing files; names that lead nowhere stay as written.

    Relative names are looked up in the description's folder; `package://name/rest` in every folder above that is, or holds,
    a folder of that name. Where that finds nothing, names with a folder in them are looked up in the folders just above too:
    packages are renamed, and descriptions copied out of them. Nothing is downloaded.
    """
    links = tuple(replace(link, geometry=_found(link.geometry, folder)) for link in robot.links)
    return replace(robot, links=links, geometry=_found(robot.geometry, folder))


def _found(shapes: tuple[Geometry, ...], folder: Path) -> tuple[Geometry, ...]:
    return tuple(
        replace(g, shape=replace(g.shape, path=_path(g.shape.path, folder))) if isinstance(g.shape, Mesh) else g
        for g in shapes
    )


def _path(name: str, folder: Path) -> str:
    for candidate in _candidates(name, folder):
        try:
            if candidate.is_file():
                return str(candidate)
        except (OSError, ValueError):
            # A name too long or otherwise impossible for this file system is a name that leads nowhere.
            continue
    return name


def _candidates(name: str, folder: Path) -> Iterator[Path]:
    if name.startswith(_PACKAGE):
        package, _, rest = name.removeprefix(_PACKAGE).partition("/")
        for above in (folder, *folder.parents):
            yield above / rest if above.name == package else above / package / rest
    else:
        rest = name.removeprefix(_FILE)
        yield folder / rest
    if "/" in rest:  # a bare file name of another package could be anybody's
        yield from (above / rest for above in (folder, *folder.parents)[: 1 + _ABOVE])

"""Arms that come with armid: `catalogue_names()` lists them, `armid.robot.load.load_robot(name)` reads one.

Where each number comes from is told in docs/robots.md.
"""

from __future__ import annotations

from importlib.resources import files

from armid.errors import UnknownNameError

_SUFFIX = ".yaml"


def catalogue_names() -> tuple[str, ...]:
    """Names of the arms in the catalogue, sorted."""
    entries = files(__package__).iterdir()
    return tuple(sorted(entry.name.removesuffix(_SUFFIX) for entry in entries if entry.name.endswith(_SUFFIX)))


def catalogue_bytes(name: str) -> bytes:
    """The YAML file of one arm.

    Raises:
        UnknownNameError: listing the names that exist.
    """
    if name not in catalogue_names():
        raise UnknownNameError("robot in the catalogue", name, catalogue_names())
    return files(__package__).joinpath(name + _SUFFIX).read_bytes()

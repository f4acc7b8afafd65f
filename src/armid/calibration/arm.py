"""Which chain of a branched robot the rows are about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from armid.errors import ArmidError
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.robot.urdf.read import read_urdf
from armid.robot.urdf.tree import Urdf
from armid.robot.urdf.xml_tree import decoded


def load_arm(source: str, columns: Sequence[str], *, base: str | None = None, tip: str | None = None) -> Robot:
    """The robot, cut to the chain whose joints the file names when the description has several.

    Args:
        source: URDF path, YAML path or catalogue name.
        columns: names of the poses file's columns, lower case.
        base, tip: links chosen by hand.
    """
    path = Path(source)
    if base is not None or tip is not None or path.suffix.lower() not in (".urdf", ".xml") or not path.is_file():
        return load_robot(source, base=base, tip=tip)
    urdf = read_urdf(decoded(path.read_bytes(), path.name), path.name)
    named = [name for name, joint in urdf.joints.items() if joint.moves and name.lower() in columns]
    try:
        robot = load_robot(source)
        if not named or set(named) == set(robot.joint_names):
            return robot
    except ArmidError:
        if not named:
            raise
    first, last = _ends(urdf, named)
    return load_robot(source, base=urdf.joints[first].parent, tip=urdf.joints[last].child)


def _ends(urdf: Urdf, named: Sequence[str]) -> tuple[str, str]:
    """The named joints nearest to and furthest from the root."""
    parent_joint = {joint.child: joint for joint in urdf.joints.values()}

    def depth(name: str) -> int:
        link, count = urdf.joints[name].parent, 0
        while link in parent_joint:
            link, count = parent_joint[link].parent, count + 1
        return count

    return min(named, key=depth), max(named, key=depth)

"""What to write into a description whose way to a joint is too long, or too short."""

from __future__ import annotations

from pathlib import PurePath

from armid.robot.elementary import Elementary
from armid.robot.robot import Robot
from armid.rows.lengths import is_length

_URDF = (".urdf", ".xacro")

_FELT = 0.01
"""Of the longest translation of a way: shorter ones are not told, a hundredth of a way that is off by a share of itself."""


def way_words(robot: Robot, j: int, share: float) -> str:
    """Which numbers of the description to change, and into what.

    Args:
        robot: as described.
        j: joint to which the way is.
        share: by which the way is described too long.
    """
    joint, factor = robot.joints[j], 1.0 + share
    every = [e for e in joint.transforms if is_length(e) and e.value != 0.0]
    longest = max((abs(e.value) for e in every), default=0.0)
    told = [e for e in every if abs(e.value) > _FELT * longest]
    in_urdf = PurePath(robot.source.path).suffix.lower() in _URDF
    numbers = ", ".join(f"{_name(e, in_urdf=in_urdf)} {e.value:.4g} -> {e.value / factor:.4g}" for e in told)
    return f"way to {joint.name} from the joint before divided by {factor:.4g}: {_place(every, in_urdf=in_urdf)}{numbers} m"


def _place(every: list[Elementary], *, in_urdf: bool) -> str:
    """Where the numbers stand in a URDF; fixed joints are part of the way to the joint that moves."""
    if not in_urdf:
        return ""
    axes = [e.motion for e in every]
    fixed = " and those of the fixed joints before it" if len(set(axes)) < len(axes) else ""
    return f"xyz of the joint's <origin>{fixed}, "


def _name(element: Elementary, *, in_urdf: bool) -> str:
    """Of a length as the description has it: an axis of an origin, or a symbol of a table."""
    return element.motion.value[1] if in_urdf or element.symbol is None else element.symbol

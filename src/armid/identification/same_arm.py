"""Whether two results are about one arm: parameters of different arms have the same names and nothing else in common."""

from __future__ import annotations

import numpy as np

from armid.errors import InputError
from armid.robot.robot import Robot

_ELSEWHERE = 0.02
"""[m] A calibration moves frames by millimetres; frames this far apart are another arm's, or another choice of frames."""
_TURNED = 0.05
"""[rad] The same for directions: calibrations turn them by thousandths."""


def check_same_arm(name: str, first: Robot, other: Robot) -> None:
    """Refuses an arm that is not the first one; a calibrated version of it is.

    Args:
        name: of the other result, for the message.
        first, other: the arms as described.

    Raises:
        InputError: other joints, or links of another shape.
    """
    hint = f"compare identifications of {first.name}"
    if other.joint_names != first.joint_names:
        raise InputError(name, f"is about {other.name} with joints {', '.join(other.joint_names)}", hint)
    for mine, theirs in zip(first.joints, other.joints, strict=True):
        if mine.kind is not theirs.kind:
            raise InputError(
                name, f"joint {theirs.name} is {theirs.kind}, not {mine.kind}: another arm, {other.name}", hint
            )
        for q in (0.0, 0.5):
            A, B = mine.transform(q), theirs.transform(q)
            apart = float(np.abs(A[:3, 3] - B[:3, 3]).max())
            turned = float(np.abs(A[:3, :3] - B[:3, :3]).max())
            if apart > _ELSEWHERE or turned > _TURNED:
                off = f"lies {1e3 * apart:.0f} mm and {turned:.2f} rad off that of {first.name}"
                what = f"is about {other.name}, whose frame at joint {theirs.name} {off}"
                raise InputError(name, f"{what}: another arm, or described in other frames", hint)

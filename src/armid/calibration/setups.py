"""Several files: one setup, or each with its own sensor and tool?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from armid.calibration.diagnose import arm_reach, misfit, thinned
from armid.calibration.words import SetupSharing
from armid.kinematics.measurement import Measurements, joined
from armid.robot.robot import Robot

_MUCH_WORSE = 3.0
"""A shared frame that fits this much worse than separate ones was not shared."""


def _renamed(measurements: Measurements, prefix: str) -> Measurements:
    """The same measurements with setups and targets of their own."""
    return replace(
        measurements,
        observations=tuple(
            replace(o, setup=f"{prefix}.{o.setup}", target=f"{prefix}.{o.target}") for o in measurements.observations
        ),
        places={
            f"{prefix}.{name}": replace(place, body=f"{prefix}.{place.body}")
            for name, place in measurements.places.items()
        },
    )


def share_frames(robot: Robot, parts: Sequence[Measurements]) -> bool:
    """Whether the measurements fit about as well with common frames as with separate ones."""
    few = [thinned(part) for part in parts]
    together = misfit(robot, joined(few))
    apart = misfit(robot, joined([_renamed(part, str(i)) for i, part in enumerate(few)]))
    reach = arm_reach(robot)
    return together.score(reach) < _MUCH_WORSE * max(apart.score(reach), 1e-6)


def combined(robot: Robot, parts: Mapping[str, Measurements], setups: SetupSharing) -> Measurements:
    """All parts as one.

    Args:
        robot: nominal arm.
        parts: measurements by name.
        setups: whether they share frames.
    """
    if len(parts) == 1 and setups is not SetupSharing.PER_FILE:
        return next(iter(parts.values()))
    if setups is SetupSharing.SHARED or (setups is SetupSharing.AUTO and share_frames(robot, list(parts.values()))):
        return joined(parts.values())
    return joined([_renamed(part, name) for name, part in parts.items()])

"""The excitation problems of published works, as words of `design_motion`.

design_motion("iiwa14", **design_preset("halper2024", 7), starts=4)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from armid.errors import UnknownNameError


def _halper2024(n_joints: int) -> dict[str, Any]:
    """[Halper2024] eq. 3.55: ten harmonics of 20 s that begin at zero with zero velocity and acceleration (c), sums of amplitudes
    within position and velocity limits (d, e); the condition number is minimised (a).

    Eq. 3.55f without its division by the number of harmonics follows from d and e; as printed it excludes the work's own motion.
    Neither torque nor the arm itself is in the problem.
    """
    return {
        "period": "20",
        "harmonics": 10,
        "start": ",".join(["0"] * n_joints),
        "analytic_bounds": True,
        "limits": "position,velocity",
        "margin": 0.0,
        "self_collision": False,
        "criterion": "condition",
        "friction": "viscous,coulomb",
    }


def _kolyubin2017(n_joints: int) -> dict[str, Any]:
    """[Kolyubin2017] eq. 24: condition number 35 and a mean torque reserve of 0.9 on the last two joints as goals, at rest at the
    beginning, limits of position, velocity and torque, the tool 0.3 m off the first axis and above -0.2 m.

    Model 2 has friction and offsets on both sides of the gears and rotor inertias. The base period of its figures is 25 s. How
    many harmonics there are is not said, only that they stay below the joints' resonance; these reach 1.2 Hz.
    """
    last = f"joint{n_joints - 1}=0.9,joint{n_joints}=0.9"
    return {
        "period": "25",
        "harmonics": 30,
        "torques": "both",
        "rotor_inertia": True,
        "friction": "viscous,coulomb,offset",
        "limits": "position,velocity,torque",
        "margin": 0.0,
        "self_collision": False,
        "clearance_m": 0.0,
        "cell": "lwr4plus-excitation",
        "goal_condition": 35.0,
        "goal_reserve": last,
    }


DESIGN_PRESETS: Mapping[str, Callable[[int], dict[str, Any]]] = {
    "halper2024": _halper2024,
    "kolyubin2017": _kolyubin2017,
}
"""By name: from the number of joints to words."""


def design_preset(name: str, n_joints: int) -> dict[str, Any]:
    """Words of `design_motion` for a published problem.

    Args:
        name: of the work.
        n_joints: of the arm.

    Raises:
        UnknownNameError: no such work; lists those there are.
    """
    if name not in DESIGN_PRESETS:
        raise UnknownNameError("preset", name, DESIGN_PRESETS)
    return DESIGN_PRESETS[name](n_joints)

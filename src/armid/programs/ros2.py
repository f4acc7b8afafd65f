"""ROS 2: a FollowJointTrajectory goal with positions, velocities and accelerations, and the lines to send and record it."""

from __future__ import annotations

import json
from typing import Any

from armid.motions.trajectory import SampledTrajectory
from armid.programs.wanted import Wanted, commented, readme, template

_CONTROLLER = "/joint_trajectory_controller/follow_joint_trajectory"
_ACTION = "control_msgs/action/FollowJointTrajectory"

_MOST_ON_A_LINE = 120_000
"""[bytes] of one argument on a Linux command line (131,072), less some room."""


def files(wanted: Wanted) -> dict[str, str]:
    """Goals of both runs, a sender, and the exact lines."""
    names = wanted.robot.joint_names
    goals = {
        "dry_run.yaml": goal_text(wanted.knots, names, speed=wanted.dry_run),
        "goal.yaml": goal_text(wanted.knots, names, speed=1.0),
    }
    fits = max(len(text) for text in goals.values()) < _MOST_ON_A_LINE
    sends = [
        f'ros2 action send_goal {_CONTROLLER} {_ACTION} "$(cat {name})"' if fits else f"python3 send_goal.py {name}"
        for name in goals
    ]
    steps = {"joints": ", ".join(names), "action": _CONTROLLER, "send_dry": sends[0], "send": sends[1]}
    sender = template("send_goal.py.txt", facts=commented(wanted.facts(), "#"), action=_CONTROLLER)
    return {
        **goals,
        "send_goal.py": sender,
        "README.md": readme("README_ros2.md", wanted, log="motion/motion_0.mcap", **steps),
    }


def goal_message(knots: SampledTrajectory, names: tuple[str, ...], *, speed: float) -> dict[str, Any]:
    """A `control_msgs/action/FollowJointTrajectory` goal as plain values."""
    points = []
    for t, q, qd, qdd in zip(knots.time, knots.q, knots.qd, knots.qdd, strict=True):
        nanoseconds = round(t / speed * 1e9)
        points.append(
            {
                "positions": [round(float(x), 10) for x in q],
                "velocities": [round(float(x * speed), 10) for x in qd],
                "accelerations": [round(float(x * speed**2), 10) for x in qdd],
                "time_from_start": {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9},
            }
        )
    return {"trajectory": {"joint_names": list(names), "points": points}}


def goal_text(knots: SampledTrajectory, names: tuple[str, ...], *, speed: float) -> str:
    """The goal as one line of JSON, which is YAML: the command line of ROS takes it as it is."""
    return json.dumps(goal_message(knots, names, speed=speed), separators=(",", ":")) + "\n"

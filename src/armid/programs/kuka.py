"""KUKA: an FRI client for LBR iiwa and med with its Sunrise application, and a KRL spline program for KRC controllers."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.programs.wanted import Wanted, commented, knot_table, limit_values, numbers, readme, template

_TRACED = ("AXIS_ACT", "AXIS_SET_VELOCITY", "TORQUE_AXIS_ACT", "CURR_ACT")
_POINT_SPACING = 0.1
"""[s] between points of a KRL spline: ten a second describe what a large arm can follow."""

_LONGEST_BLOCK = 600
"""Points of one spline block; the interpreter's memory for one block is limited."""


def fri_files(wanted: Wanted) -> dict[str, str]:
    """`play.cpp` (FRI client), `motion.hpp`, `motion.txt`, `ArmidPlay.java` and how to use them."""
    milliseconds = 1000.0 / wanted.rate_hz
    shared = limit_values(wanted)
    if abs(milliseconds - round(milliseconds)) > 1e-9 or not 1 <= milliseconds <= 100:
        raise InputError(
            "rate", f"{wanted.rate_hz:g} Hz", "FRI sends every 1 to 100 whole milliseconds: 1000, 500, 200, 100 Hz"
        )
    return {
        "play.cpp": template("fri_play.cpp", facts=commented(wanted.facts(), "//"), **shared),
        "motion.hpp": template("motion.hpp", **shared),
        "motion.txt": knot_table(wanted.knots),
        "ArmidPlay.java": template(
            "ArmidPlay.java",
            facts=commented(wanted.facts(), " *"),
            start=numbers(wanted.start),
            period=f"{round(milliseconds)}",
            full=f"{int(np.ceil(wanted.motion.duration)) + 3}",
            dry=f"{int(np.ceil(wanted.motion.duration / wanted.dry_run)) + 3}",
        ),
        "README.md": readme("README_fri.md", wanted),
    }


def krl_files(wanted: Wanted) -> dict[str, str]:
    """`ARMID_PLAY.src`, `ARMID_PLAY.dat`, a trace configuration and how to use them."""
    count = max(int(np.ceil(wanted.motion.duration / _POINT_SPACING)), 2)
    instants = np.linspace(0.0, wanted.motion.duration, count + 1)
    points = np.degrees(wanted.motion.sample(instants)[0])
    if count > _LONGEST_BLOCK:
        raise InputError(
            "trajectory",
            f"{wanted.motion.duration:.0f} s need {count} points in one spline",
            f"a KRL spline block takes {_LONGEST_BLOCK}: run one period at a time ({_LONGEST_BLOCK * _POINT_SPACING:.0f} s)",
        )
    share = 100.0 / count
    body = []
    for k, point in enumerate(points[1:], start=1):
        body.append(f"    SPTP {_axes(point)}")
        body.append(
            f"    TIME_BLOCK PART = {share:.6f}" if k < count else f"    TIME_BLOCK END = {wanted.motion.duration:.6f}"
        )
    source = template(
        "ARMID_PLAY.src",
        facts=commented(wanted.facts(), ";"),
        start=_axes(points[0]),
        spline="\n".join(body),
        dry_percent=f"{100 * wanted.dry_run:.0f}",
        approach_percent=f"{max(1, int(100 * wanted.approach_speed / wanted.limits.velocity.max()))}",
        seconds=f"{int(np.ceil(wanted.motion.duration)) + 5}",
    )
    channels = "\n".join(
        f'  <Channel Name="${name}" Axis="{i + 1}"/>' for name in _TRACED for i in range(wanted.robot.n_joints)
    )
    return {
        "ARMID_PLAY.src": source,
        "ARMID_PLAY.dat": "DEFDAT ARMID_PLAY\nENDDAT\n",
        "ARMID.xml": f'<?xml version="1.0"?>\n<Channels Name="ARMID" Period="12 ms">\n{channels}\n</Channels>\n',
        "README.md": readme("README_krl.md", wanted, log="export.yaml", count=str(wanted.robot.n_joints)),
    }


def _axes(point: FloatArray) -> str:
    """An axis position of KRL: degrees."""
    return "{" + ", ".join(f"A{i + 1} {x:.8f}" for i, x in enumerate(point)) + "}"

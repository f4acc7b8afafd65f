"""Arms of papers and textbooks, for tests."""

from __future__ import annotations

from math import pi

import numpy as np

from armid.robot import Elementary, Frame, Joint, JointKind, Link, Move, Robot
from armid.robot.dh import Convention, Row, transforms

IIWA_LENGTHS = {"d1": 0.1575, "d2": 0.2025, "d3": 0.2045, "d4": 0.2155, "d5": 0.1845, "d6": 0.2155, "d7": 0.081}


def arm(name: str, joints: list[Joint], **more: object) -> Robot:
    links = tuple(Link(f"link_{i + 1}") for i in range(len(joints)))
    return Robot(name=name, joints=tuple(joints), links=links, **more)  # type: ignore[arg-type]


def seed_iiwa() -> Robot:
    """[Halper2024] table 3.1: Ty Tz Rz Rx Rz, hanging."""
    table = [
        (None, "d1", 0, 0),
        (None, "d2", -pi, pi / 2),
        ("d3", None, pi, pi / 2),
        (None, "d4", 0, pi / 2),
        ("d5", None, pi, pi / 2),
        (None, "d6", 0, pi / 2),
        ("d7", None, pi, pi / 2),
    ]
    joints = []
    for i, (dy, dz, phi, theta) in enumerate(table):
        chain = (
            Elementary(motion=Move.TY, value=IIWA_LENGTHS.get(dy or "", 0.0), symbol=dy),
            Elementary(motion=Move.TZ, value=IIWA_LENGTHS.get(dz or "", 0.0), symbol=dz),
            Elementary(motion=Move.RZ, value=phi),
            Elementary(motion=Move.RX, value=theta),
            Elementary(motion=Move.RZ, variable=True),
        )
        joints.append(Joint(name=f"j{i + 1}", kind=JointKind.REVOLUTE, transforms=chain))
    return arm("iiwa", joints, gravity=np.array([0, 0, 9.81]))


def rows_arm(name: str, rows: list[Row], convention: Convention, kinds: str) -> Robot:
    """An arm from a Denavit-Hartenberg table; `kinds` holds R or P per joint."""
    joints = []
    for i, (row, kind) in enumerate(zip(rows, kinds, strict=True)):
        which = JointKind.REVOLUTE if kind == "R" else JointKind.PRISMATIC
        joints.append(Joint(name=f"j{i + 1}", kind=which, transforms=transforms(row, convention, which)))
    return arm(name, joints)


def seed_lwr() -> Robot:
    """[Gaz2014] table I: standard rows, lengths d1 = 0.4 m and d2 = 0.39 m only."""
    alphas = (pi / 2, -pi / 2, -pi / 2, pi / 2, pi / 2, -pi / 2, 0.0)
    rows = [Row(alpha=a) for a in alphas]
    rows[2] = Row(alpha=alphas[2], d=0.4, d_symbol="d1")
    rows[4] = Row(alpha=alphas[4], d=0.39, d_symbol="d2")
    return rows_arm("lwr", rows, Convention.STANDARD, "R" * 7)


def scara() -> Robot:
    """Three vertical revolute axes and a vertical slide."""
    rows = [Row(), Row(a=0.4, a_symbol="L1"), Row(a=0.3, a_symbol="L2"), Row()]
    return rows_arm("scara", rows, Convention.MODIFIED, "RRRP")


def rx90() -> Robot:
    """Puma-like arm of Khalil and Dombre (Staubli RX-90): shoulder, elbow D3, forearm RL4, spherical wrist."""
    alphas = (0, pi / 2, 0, -pi / 2, pi / 2, -pi / 2)
    rows = [Row(alpha=a) for a in alphas]
    rows[2] = Row(alpha=0, a=0.45, a_symbol="D3")
    rows[3] = Row(alpha=-pi / 2, d=0.45, d_symbol="RL4")
    return rows_arm("rx90", rows, Convention.MODIFIED, "R" * 6)


def camera_lwr(tool_offset: float) -> Robot:
    """[Kolyubin2017] table 2, nominal: camera row, seven joints, tool row; nine rows of four numbers."""
    base = transforms(Row(alpha=0, a=0, theta=1.55, d=-4.3), Convention.MODIFIED, None)
    table = [
        Row(alpha=1.5, a=0.1, theta=-0.79, d=-0.14),
        Row(alpha=pi / 2),
        Row(alpha=-pi / 2, d=0.4),
        Row(alpha=-pi / 2),
        Row(alpha=pi / 2, d=0.39),
        Row(alpha=pi / 2),
        Row(alpha=-pi / 2),
    ]
    joints = []
    for i, row in enumerate(table):
        chain = transforms(row, Convention.MODIFIED, JointKind.REVOLUTE)
        joints.append(Joint(name=f"j{i + 1}", kind=JointKind.REVOLUTE, transforms=(*base, *chain) if i == 0 else chain))
    tool = Frame("tool", 7, transforms(Row(a=tool_offset, theta=0.79, d=0.093), Convention.MODIFIED, None))
    return arm("camera-lwr", joints, frames=(tool,))


def zyyxyx() -> Robot:
    """A 6R arm with axes z y y x y x, a shoulder offset and an elbow offset ([RWTH2021]'s structure)."""
    shape = [
        ((Move.TZ, 0.45),),
        ((Move.TX, 0.3), (Move.TZ, 0.25)),
        ((Move.TZ, 0.9),),
        ((Move.TZ, 0.15),),
        ((Move.TX, 0.95),),
        ((Move.TX, 0.1),),
    ]
    axes = (Move.RZ, Move.RY, Move.RY, Move.RX, Move.RY, Move.RX)
    joints = []
    for i, (offsets, axis) in enumerate(zip(shape, axes, strict=True)):
        constants = tuple(Elementary(motion=m, value=v, symbol=f"l{i + 1}{m.value[1]}") for m, v in offsets)
        joints.append(
            Joint(
                name=f"j{i + 1}",
                kind=JointKind.REVOLUTE,
                transforms=(*constants, Elementary(motion=axis, variable=True)),
            )
        )
    return arm("zyyxyx", joints)


def generic_6r() -> Robot:
    """Six revolute joints in general position."""
    rng = np.random.default_rng(1)
    rows = [Row(alpha=a, a=l, d=d) for a, l, d in rng.uniform(0.3, 1.0, size=(6, 3))]
    return rows_arm("generic", rows, Convention.MODIFIED, "R" * 6)

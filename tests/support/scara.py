"""A SCARA as a URDF: two vertical revolute axes, a vertical slide, a vertical wrist; metres and radians mix."""

from __future__ import annotations


def _link(name: str, mass: float, centre: str, inertia: tuple[float, float, float], shape: str) -> str:
    x, y, z = inertia
    return (
        f'  <link name="{name}"><inertial><origin xyz="{centre}"/><mass value="{mass}"/>'
        f'<inertia ixx="{x}" ixy="0" ixz="0" iyy="{y}" iyz="0" izz="{z}"/></inertial>'
        f"<collision>{shape}</collision></link>\n"
    )


def _joint(name: str, kind: str, ends: tuple[str, str], origin: str, limit: str) -> str:
    parent, child = ends
    return (
        f'  <joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{origin}"/><axis xyz="0 0 1"/><limit {limit}/></joint>\n'
    )


def _box(centre: str, size: str) -> str:
    return f'<origin xyz="{centre}"/><geometry><box size="{size}"/></geometry>'


SCARA_URDF = (
    '<robot name="scara">\n  <link name="base"/>\n'
    + _link("inner", 6.0, "0.2 0 0", (0.02, 0.12, 0.13), _box("0.18 0 0", "0.4 0.12 0.1"))
    + _link("outer", 4.0, "0.15 0 0.05", (0.02, 0.07, 0.06), _box("0.14 0 0.05", "0.3 0.1 0.1"))
    + _link("quill", 0.8, "0 0 0", (0.004, 0.004, 0.0002), _box("0 0 0", "0.02 0.02 0.3"))
    + _link("wrist", 1.2, "0.01 0 -0.03", (0.002, 0.002, 0.001), _box("0 0 -0.03", "0.06 0.06 0.06"))
    + _joint("shoulder", "revolute", ("base", "inner"), "0 0 0.4", 'lower="-2.2" upper="2.2" velocity="5" effort="120"')
    + _joint("elbow", "revolute", ("inner", "outer"), "0.35 0 0.1", 'lower="-2.4" upper="2.4" velocity="7" effort="60"')
    + _joint("slide", "prismatic", ("outer", "quill"), "0.28 0 0", 'lower="-0.2" upper="0" velocity="1" effort="150"')
    + _joint("roll", "revolute", ("quill", "wrist"), "0 0 -0.15", 'lower="-3.1" upper="3.1" velocity="15" effort="8"')
    + '  <link name="tool0"/>\n'
    + '  <joint name="flange" type="fixed"><parent link="wrist"/><child link="tool0"/><origin xyz="0 0 -0.06"/></joint>\n'
    + "</robot>\n"
)

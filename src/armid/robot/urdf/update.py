"""An existing URDF file with new values: the same text, only the changed fields touched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.errors import RobotError
from armid.parameters.inertial import inertial_problem, to_centre_of_mass, transformed
from armid.robot.elementary import Elementary, from_matrix, product, rotation_from_rpy, rpy
from armid.robot.robot import Frame, Joint, JointKind, Robot
from armid.robot.urdf.arm import origin_elements, parse_urdf, path_between
from armid.robot.urdf.attributes import exact_angle
from armid.robot.urdf.quoting import quoteattr
from armid.robot.urdf.read import read_urdf
from armid.robot.urdf.text import INERTIA_ATTRIBUTES, NO_LIMIT, centred, free_name, inertial_lines, numbers, origin_tag
from armid.robot.urdf.tree import MOVING, Urdf, UrdfJoint
from armid.robot.urdf.xml_edit import Edits
from armid.robot.urdf.xml_tree import XmlElement

_UNCHANGED = 1e-12
"""Relative change below which a field counts as the same: round-off of going through the ten-vector and back."""

_SMALLEST_SHARE = 1e-4
"""Of described parts that stays in any case: a simulator refuses moving parts without mass."""

_LEAST_ROOM = 1e-6
"""Of the largest moment of inertia: by how much the two smaller ones of what is left must add up to more. Readers of the file
allow no less than the largest, whatever their rounding."""


def updated_urdf(text: str, robot: Robot, *, where: str = "robot.urdf") -> str:
    """The text of a URDF file with the robot's inertial values, joint placements and friction.

    What did not change keeps its bytes, comments and order. A moving link that carries fixed links writes
    the robot's merged body minus what the fixed links say of themselves, so that reading the result merges to the
    robot's values again. If that difference is no possible body, the identified whole is lighter than its described parts:
    these are then scaled down together, by halves, until a body is left for the moving link. Links whose own values are
    impossible are set to zero. URDF wants link frames on
    the joint axes: a link frame that calibration moved off its axis is brought back, with everything it carries, and
    when the arm ended at that very link a new fixed link `<link>_tip` marks where the arm ends now.

    Args:
        text: the file the robot was read from.
        robot: the arm with new values; same joints, base and tip.
        where: the file's name, for messages.

    Raises:
        RobotError: the robot does not belong to this file.
    """
    original = parse_urdf(text, where, base=robot.base, tip=robot.tip.name)
    if original.joint_names != robot.joint_names or original.link_names != robot.link_names:
        raise RobotError(where, f"has the joints {', '.join(original.joint_names)}, not {', '.join(robot.joint_names)}")
    return _Update(text, robot, original, where).run()


class _Update:
    """One robot, one text, and the edits between them."""

    def __init__(self, text: str, robot: Robot, original: Robot, where: str) -> None:
        self.robot, self.original = robot, original
        # Frames the robot no longer names stay where the file has them.
        self.frames = {frame.name: frame for frame in (*original.frames, *robot.frames)}
        self.urdf: Urdf = read_urdf(text, where)
        self.path = path_between(self.urdf, robot.base, robot.tip.name, where)
        self.edits = Edits(text)
        self.shifts = self._shifts()

    def run(self) -> str:
        for name in self.urdf.implied:  # other programs do not know it
            self.edits.add(self.urdf.element, [f"<link name={quoteattr(name)}/>"])
        self._joints()
        self._frames()
        self._tip()
        for i in range(self.robot.n_joints):
            self._inertial(i)
            self._dynamics(i)
            self._shapes(i)
        for entry in self.urdf.joints.values():
            self._demanded_limits(entry)
        return self.edits.apply()

    # --- geometry

    def _shifts(self) -> list[FloatArray]:
        """Where each robot link frame lies in the URDF link frame: a translation that puts the latter on the axis."""
        return [np.zeros(3), *(_off_axis(joint) for joint in self.robot.joints)]

    def _joints(self) -> None:
        """Origins and axes of the moving joints: O Rot(axis, q) = C_before A V(q) B C^-1."""
        fixed: list[UrdfJoint] = []
        index = 0
        for entry in self.path:
            if not entry.moves:
                fixed.append(entry)
                continue
            joint, old = self.robot.joints[index], self.original.joints[index]
            before, here = self.shifts[index], self.shifts[index + 1]
            if joint.transforms != old.transforms or before.any() or here.any():
                T = _translation(before) @ joint.transform() @ _translation(-here)
                ahead = product([element for f in fixed for element in self._fixed_origin(f, index)])
                self._place(entry, np.linalg.inv(ahead) @ T)
                self._axis(entry, joint)
            fixed, index = [], index + 1

    def _fixed_origin(self, entry: UrdfJoint, link: int) -> tuple[Elementary, ...]:
        """A fixed joint's origin as it will stand in the result; its frame may have been given another place."""
        T = self._frame_pose(entry.child, link)
        parent = self._frame_pose(entry.parent, link)
        if T is None or parent is None:
            return origin_elements(entry)
        return from_matrix(np.linalg.inv(parent) @ T)

    def _frame_pose(self, name: str, link: int) -> FloatArray | None:
        """T_urdflink_frame of a link or merged fixed link carried by robot link `link`."""
        if name == (self.robot.base, *self.robot.link_names)[link]:
            return np.eye(4)
        found = self.frames.get(name)
        if found is None or found.link != link:
            return None
        return _translation(self.shifts[link]) @ found.T_link_frame

    def _frames(self) -> None:
        """Fixed joints whose frames moved, or whose carrier's frame did."""
        old = {frame.name: frame for frame in self.original.frames}
        for frame in self.frames.values():
            entry = self.urdf.joint_to(frame.name)
            if entry is None or entry.moves or frame.name not in old:
                continue
            if self._same_place(frame, old[frame.name], entry.parent):
                continue
            T, parent = self._frame_pose(frame.name, frame.link), self._frame_pose(entry.parent, frame.link)
            assert T is not None
            assert parent is not None
            self._place(entry, np.linalg.inv(parent) @ T)

    def _tip(self) -> None:
        """A new fixed link where the arm ends when that is no longer the frame of its last link."""
        tip = self.robot.tip
        if tip.name != self.robot.links[-1].name:
            return
        T = _translation(self.shifts[-1]) @ tip.T_link_frame
        if np.allclose(T, np.eye(4), rtol=0.0, atol=_UNCHANGED):
            return
        name = free_name(f"{tip.name}_tip", {*self.urdf.links, *self.urdf.joints})
        self.edits.append(
            self.urdf.element,
            [
                f"<link name={quoteattr(name)}/>",
                f'<joint name={quoteattr(name + "_fixed")} type="fixed">',
                f"  <parent link={quoteattr(tip.name)}/>",
                f"  <child link={quoteattr(name)}/>",
                f"  {origin_tag(T)}",
                "</joint>",
            ],
        )

    def _same_place(self, frame: Frame, old: Frame, parent: str) -> bool:
        above = self.frames.get(parent)
        above_old = next((f for f in self.original.frames if f.name == parent), None)
        unmoved = (above is None or above_old is None) or above.transforms == above_old.transforms
        carried = above is None and self.shifts[frame.link].any()
        return frame.transforms == old.transforms and unmoved and not carried

    def _shapes(self, i: int) -> None:
        """Shapes, and joints that are no frame of the arm, follow their link's frame when it moved onto the axis."""
        shift = self.shifts[i + 1]
        if not shift.any():
            return
        link = self.urdf.links[self.robot.links[i].name]
        for element in link.element.children:
            if element.tag in ("visual", "collision"):
                self._move(element, shift)
        on_path = {entry.name for entry in self.path}
        for entry in self.urdf.joints_from(link.name):
            if entry.moves and entry.name not in on_path:
                self._place(entry, _translation(shift) @ product(origin_elements(entry)))

    def _move(self, holder: XmlElement, shift: FloatArray) -> None:
        origin = holder.first("origin")
        if origin is None:
            self.edits.add(holder, [origin_tag(_translation(shift))])
            return
        xyz = np.array(_floats(origin, "xyz"))
        self._write(origin, "xyz", xyz, xyz + shift)

    def _place(self, entry: UrdfJoint, T: FloatArray) -> None:
        origin = entry.element.first("origin")
        if origin is None:
            if not np.allclose(T, np.eye(4), rtol=0.0, atol=_UNCHANGED):
                self.edits.add(entry.element, [origin_tag(T)])
            return
        self._write(origin, "xyz", entry.xyz, T[:3, 3])
        if not np.allclose(rotation_from_rpy(*entry.rpy), T[:3, :3], rtol=0.0, atol=_UNCHANGED):
            self.edits.set(origin, "rpy", numbers(rpy(T[:3, :3])))

    def _axis(self, entry: UrdfJoint, joint: Joint) -> None:
        axis = _axis_in_link(joint)
        element = entry.element.first("axis")
        if np.allclose(axis, entry.axis, rtol=0.0, atol=_UNCHANGED):
            return
        if element is None:
            self.edits.add(entry.element, [f'<axis xyz="{numbers(axis)}"/>'])
        else:
            self.edits.set(element, "xyz", numbers(axis))

    # --- inertia and friction

    def _inertial(self, i: int) -> None:
        new, old = self.robot.links[i].inertial, self.original.links[i].inertial
        if new is None:
            return
        same = old is not None and np.array_equal(new, old)
        if same and not self.shifts[i + 1].any() and not self._frames_moved(i + 1):
            return
        target = transformed(new, _translation(self.shifts[i + 1]))
        parts = self._carried_links(i)
        impossible = [name for name, (body, _) in parts.items() if inertial_problem(body) is not None]
        for name in impossible:
            self._zero(self.urdf.links[name].element)
            del parts[name]
        whole = sum((transformed(body, T) for body, T in parts.values()), np.zeros(10))
        share = _share(target, whole) if parts else 1.0
        if share < 1.0:
            for name, (body, _) in parts.items():
                self._write_inertial(self.urdf.links[name].element, share * body)
        self._write_inertial(self.urdf.links[self.robot.links[i].name].element, target - share * whole)

    def _frames_moved(self, link: int) -> bool:
        """Whether a fixed link carried by robot link `link` stands elsewhere than in the file."""
        old = {frame.name: frame.transforms for frame in self.original.frames}
        return any(f.transforms != old.get(f.name, f.transforms) for f in self.robot.frames if f.link == link)

    def _carried_links(self, i: int) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Own inertia and T_urdflink_part of the links other than the moving one that are merged into robot link i."""
        on_arm = {entry.name for entry in self.path if entry.moves}
        out = {}
        todo = [(self.robot.links[i].name, np.eye(4))]
        while todo:
            name, T = todo.pop()
            for entry in self.urdf.joints_from(name):
                if entry.name in on_arm:
                    continue
                moved = self._frame_pose(entry.child, i + 1)
                shift = _translation(self.shifts[i + 1]) if name == self.robot.links[i].name else np.eye(4)
                T_part = T @ shift @ product(origin_elements(entry)) if moved is None else moved
                todo.append((entry.child, T_part))
                body = self.urdf.links[entry.child].inertial
                if body is not None:
                    out[entry.child] = (body, T_part)
        return out

    def _zero(self, link: XmlElement) -> None:
        inertial = link.first("inertial")
        assert inertial is not None
        mass, inertia = inertial.first("mass"), inertial.first("inertia")
        if mass is not None:
            self.edits.set(mass, "value", "0")
        if inertia is not None:
            for key in INERTIA_ATTRIBUTES:
                self.edits.set(inertia, key, "0")

    def _write_inertial(self, link: XmlElement, values: FloatArray) -> None:
        holder = link.first("inertial")
        if holder is None:
            if values.any():
                self.edits.add(link, inertial_lines(values))
            return
        mass, centre, I = centred(values)
        origin, inertia = holder.first("origin"), holder.first("inertia")
        mass_element = holder.first("mass")
        assert mass_element is not None
        self._write(mass_element, "value", [float(mass_element.attributes["value"])], [mass])
        angles = [0.0] * 3
        if origin is None:
            if np.abs(centre).max() > _UNCHANGED:
                self.edits.add(holder, [origin_tag(_translation(centre))])
        else:
            angles = [exact_angle(angle) for angle in _floats(origin, "rpy")]
            self._write(origin, "xyz", _floats(origin, "xyz"), centre)
        # The inertia is written in the axes the file already uses, so that rpy stays.
        R = rotation_from_rpy(*angles)
        local = R.T @ I @ R
        if inertia is None:
            self.edits.add(holder, [f"<inertia {_six(local)}/>"])
            return
        scale = float(np.abs(local).max())
        for key, (j, k) in INERTIA_ATTRIBUTES.items():
            before = float(inertia.attributes.get(key, "0"))
            if abs(local[j, k] - before) > _UNCHANGED * scale:
                self.edits.set(inertia, key, repr(float(local[j, k])))

    def _dynamics(self, i: int) -> None:
        new, old = self.robot.joints[i].drive, self.original.joints[i].drive
        entry = self.urdf.joints[self.robot.joints[i].name]
        element = entry.element.first("dynamics")
        changed = {
            key: value
            for key, value, before in (
                ("damping", new.viscous, old.viscous),
                ("friction", new.coulomb, old.coulomb),
            )
            if value != before
        }
        if element is None and changed:
            pairs = " ".join(f'{key}="{value!r}"' for key, value in changed.items())
            self.edits.add(entry.element, [f"<dynamics {pairs}/>"])
        elif element is not None:
            for key, value in changed.items():
                self.edits.set(element, key, repr(float(value)))

    def _demanded_limits(self, entry: UrdfJoint) -> None:
        """Limits without which other readers refuse the file, as a number that says none: we had read the joint as unlimited."""
        element = entry.element.first("limit")
        if element is not None and entry.kind in MOVING:
            for key in ("effort", "velocity"):
                if key not in element.attributes:
                    self.edits.set(element, key, NO_LIMIT)
        elif element is None and entry.kind in ("revolute", "prismatic"):
            ends = f'lower="-{NO_LIMIT}" upper="{NO_LIMIT}"'
            self.edits.add(entry.element, [f'<limit {ends} effort="{NO_LIMIT}" velocity="{NO_LIMIT}"/>'])

    def _write(
        self, element: XmlElement, key: str, old: Sequence[float] | FloatArray, new: Sequence[float] | FloatArray
    ) -> None:
        """Set an attribute of numbers unless they are the ones already there."""
        scale = max(float(np.abs(np.asarray(new)).max()), 1e-3)
        if np.abs(np.asarray(new) - np.asarray(old)).max() > _UNCHANGED * scale:
            self.edits.set(element, key, numbers(new))


def _share(target: FloatArray, whole: FloatArray) -> float:
    """By how much described parts must be scaled for a possible body to be left of the target: 1, 1/2, 1/4, ..."""
    if inertial_problem(target) is not None:
        return 1.0
    share, least = 1.0, min(_LEAST_ROOM, _thinness(target) / 2.0)
    while _thinness(target - share * whole) < least and share > _SMALLEST_SHARE:
        share /= 2.0
    return share


def _thinness(body: FloatArray) -> float:
    """Smallest second moment about the centre of mass over the largest moment of inertia; negative where no body has them."""
    if not body[0] > 0.0:
        return -1.0
    moments = np.linalg.eigvalsh(to_centre_of_mass(body)[2])
    return float((moments[0] + moments[1] - moments[2]) / (2.0 * max(np.abs(moments).max(), np.finfo(float).tiny)))


def _floats(element: XmlElement, key: str) -> list[float]:
    return [float(word) for word in element.attributes.get(key, "0 0 0").split()]


def _six(I: FloatArray) -> str:
    return " ".join(f'{key}="{float(I[j, k])!r}"' for key, (j, k) in INERTIA_ATTRIBUTES.items())


def _translation(shift: FloatArray) -> FloatArray:
    T = np.eye(4)
    T[:3, 3] = shift
    return T


def _after(joint: Joint) -> FloatArray:
    return product(joint.transforms[joint.variable_index + 1 :])


def _axis_in_link(joint: Joint) -> FloatArray:
    """Direction of the joint's motion in its link's axes."""
    variable = joint.transforms[joint.variable_index]
    return variable.sign * _after(joint)[variable.motion.axis, :3]


def _off_axis(joint: Joint) -> FloatArray:
    """From the nearest point of a rotation axis to the link origin, in link axes; zero for a slide."""
    if joint.kind is JointKind.PRISMATIC:
        return np.zeros(3)
    B = _after(joint)
    p = B[:3, 3].copy()
    p[joint.transforms[joint.variable_index].motion.axis] = 0.0
    return B[:3, :3].T @ p if np.abs(p).max() > _UNCHANGED else np.zeros(3)

"""From a URDF tree to a serial arm: choice of base and tip, fixed links merged, branches lumped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import atan2, hypot

import numpy as np

from armid.arrays import FloatArray
from armid.errors import RobotError, UnknownNameError
from armid.notes import Note, Severity
from armid.parameters.inertial import inertial_problem, transformed
from armid.robot.elementary import Elementary, Move, product
from armid.robot.geometry import Geometry
from armid.robot.inertial_notes import inertial_notes
from armid.robot.robot import STANDARD_GRAVITY, Drive, Frame, Joint, JointKind, Link, Robot, Source
from armid.robot.symbols import Symbols
from armid.robot.urdf.read import read_urdf
from armid.robot.urdf.tree import MOVING, UNSUPPORTED, Urdf, UrdfJoint

_TIP_NAMES = ("tool0", "tcp", "tool", "flange", "ee_link", "ee")
"""What tips are usually called, most specific first; decides between frames fixed to the same last link."""

_TIP_WORDS = frozenset({*_TIP_NAMES, "eef", "effector", "endeffector", "grasp", "grasptarget"})
"""Words in the names of tips that are called something longer: `tool_frame`, `end_effector_link`."""

_SENSOR_WORDS = frozenset(
    {"camera", "cam", "optical", "depth", "color", "imu", "lidar", "laser", "sensor", "accelerometer"}
)
"""Words in the names of what an arm carries beside its tool."""

_GRIPPER_WORDS = (
    "gripper",
    "finger",
    "thumb",
    "jaw",
    "knuckle",
    "claw",
    "_index_",
    "_middle_",
    "_ring_",
    "_little_",
    "pinky",
)
"""What joints and links of grippers and hands are called."""

_ARM_WORDS = ("shoulder", "elbow", "forearm", "wrist", "_roll", "_pitch", "_yaw")
"""What joints of arms are called: such a one carries a gripper and is none of its own."""

_AXIS_SNAP = 1e-12
"""A joint axis this close to a coordinate axis is that axis: round-off of normalising it."""


def parse_urdf(
    text: str,
    where: str = "robot.urdf",
    *,
    base: str | None = None,
    tip: str | None = None,
    source: Source | None = None,
) -> Robot:
    """Read a serial arm from the text of a URDF file.

    The arm goes from `base` (default: the root link) to `tip` (default: the end of the longest chain of moving joints,
    if there is only one). Link frames are the file's. Fixed links are merged into the link that carries them and
    stay as frames. A branch with moving joints off the arm is lumped at its zero position, with a note. Gravity points along
    -z of the root link: a base that stands turned in the root sees it turned (moving joints before the base at zero).

    Args:
        text: the file's content.
        where: its name, for messages.
        base: name of the link that stands still.
        tip: name of the link where the arm ends.
        source: provenance to keep in the robot.

    Raises:
        RobotError: naming file, line, element and fix.
        UnknownNameError: no such base or tip; the message lists the links.
    """
    urdf = read_urdf(text, where)
    first = _known(urdf, base) if base is not None else urdf.root
    notes = list(urdf.notes)
    last = _known(urdf, tip) if tip is not None else _default_tip(urdf, first, where, notes)
    if base is None:
        first = _after_free_joints(urdf, first, last, notes)
    path = path_between(urdf, first, last, where)
    notes = _without_limits_elsewhere(notes, urdf, path)
    return _robot(urdf, path, first, last, notes, source or Source(path=where))


def _without_limits_elsewhere(notes: list[Note], urdf: Urdf, path: list[UrdfJoint]) -> list[Note]:
    """The notes less those on limits of joints off the arm, which nothing uses."""
    elsewhere = set(urdf.joints) - {joint.name for joint in path}
    return [note for note in notes if not (note.code.startswith("limits-") and note.subject in elsewhere)]


def _known(urdf: Urdf, name: str) -> str:
    if name not in urdf.links:
        raise UnknownNameError("link", name, urdf.links)
    return name


def _after_free_joints(urdf: Urdf, root: str, tip: str, notes: list[Note]) -> str:
    """Where an arm begins that stands on something free to move: behind the last such joint before its own; else the root."""
    link, base = tip, root
    while link != root and (joint := urdf.joint_to(link)) is not None:
        if joint.kind in UNSUPPORTED and base == root:
            base, free = link, joint
        elif joint.kind in MOVING and base != root:
            return root  # inside the arm, where `path_between` names it
        link = joint.parent
    if base != root:
        text = f"{free.kind} joint {free.name!r} is taken to stand still: the arm begins at {base!r} (--base names another link)"
        notes.append(Note("base-after-free-joint", Severity.WARNING, text, base))
    return base


def path_between(urdf: Urdf, base: str, tip: str, where: str) -> list[UrdfJoint]:
    """The joints from base to tip, all of a kind an arm can have."""
    path: list[UrdfJoint] = []
    link = tip
    while link != base:
        joint = urdf.joint_to(link)
        if joint is None:
            raise RobotError(where, f"tip {tip!r} does not hang from base {base!r}", "choose a base nearer to the root")
        path.append(joint)
        link = joint.parent
    for joint in path:
        element = f"{where}, line {joint.element.line}, <joint name={joint.name!r}>"
        if joint.moves and joint.kind not in MOVING:
            raise RobotError(
                element,
                f"a {joint.kind} joint inside the arm",
                "an arm has revolute and prismatic joints; choose another base",
            )
        if joint.moves and joint.mimic is not None:
            raise RobotError(element, f"a mimic joint (of {joint.mimic!r}) inside the arm", "choose a tip before it")
    return path[::-1]


def _default_tip(urdf: Urdf, base: str, where: str, notes: list[Note]) -> str:
    """The end of the longest chain of moving joints; joints that mimic or are mimicked (a gripper's) do not count."""
    gripper = {name for joint in urdf.joints.values() if joint.mimic for name in (joint.name, joint.mimic)}
    best, ends = _longest(urdf, base, gripper)
    if best == 0:
        raise RobotError(
            where,
            f"no moving joint from base {base!r} on" + _passed_over(urdf, gripper),
            "an arm needs at least one revolute or prismatic joint",
        )
    before = _before_grippers(urdf, base, ends)
    together = len(before) == len(ends) and len(set(before)) == 1 and before[0] != base
    if together and (len(ends) > 1 or _other_fingers(urdf, base, ends[0], gripper)):
        # Fingers of one hand, each a joint of its own: the arm is what carries them.
        names = ", ".join(repr(joint.name) for end in ends for joint in _finger_joints(urdf, base, end))
        tip = _preferred(_fixed_leaves(urdf, before[0]))
        message = f"left out, by name a gripper's: {names}; the arm ends at {tip!r} (--tip names another end)"
        notes.append(Note("gripper-joint", Severity.WARNING, message, tip))
        return tip
    tips = [_preferred(_fixed_leaves(urdf, end)) for end in ends]
    if len(tips) > 1:
        proposed = list(dict.fromkeys((*before, *tips)))
        listed = ", ".join(proposed[:12]) + (", ..." if len(proposed) > 12 else "")
        raise RobotError(
            where, f"{len(tips)} chains of {best} moving joints", f"name the tip of the arm (--tip), one of: {listed}"
        )
    leaves = _fixed_leaves(urdf, ends[0])
    if len(leaves) > 1:
        others = ", ".join(leaf for leaf in leaves if leaf != tips[0])
        message = f"the arm ends at {tips[0]!r}; also fixed to its last link: {others}"
        notes.append(Note("tip-chosen", Severity.INFO, message, tips[0]))
    fingers = _finger_joints(urdf, base, ends[0])
    if fingers:
        words = ", ".join(repr(joint.name) for joint in fingers)
        message = (
            f"by name a gripper's, yet taken as the arm's: {words}, at the end of its longest chain; "
            f"to leave it out: --tip {fingers[0].parent}"
        )
        notes.append(Note("gripper-joint", Severity.WARNING, message, fingers[0].name))
    return tips[0]


def _finger_joints(urdf: Urdf, base: str, end: str) -> list[UrdfJoint]:
    """The last moving joints of a chain that by their names, or their links', belong to a gripper or a hand."""
    fingers: list[UrdfJoint] = []
    link = end
    while link != base and (joint := urdf.joint_to(link)) is not None:
        if joint.moves:
            if not _is_finger(joint, last=not fingers):
                break
            fingers.append(joint)
        link = joint.parent
    return fingers[::-1]


def _other_fingers(urdf: Urdf, base: str, end: str, gripper: set[str]) -> bool:
    """Whether the body that carries a chain's fingers carries others too: shorter ones, or such as mimic."""
    first = _finger_joints(urdf, base, end)[0]
    link = first.parent
    while link != base and (joint := urdf.joint_to(link)) is not None and not joint.moves:
        link = joint.parent
    todo = [link]
    while todo:
        for joint in urdf.joints_from(todo.pop()):
            if not joint.moves:
                todo.append(joint.child)
            elif joint.name != first.name and (joint.name in gripper or _is_finger(joint, last=True)):
                return link != base
    return False


def _is_finger(joint: UrdfJoint, *, last: bool) -> bool:
    """Whether a joint moves part of a gripper, and not the gripper as a whole: that is what the arm's last joint does.

    Args:
        joint: a moving one.
        last: of the chain; where fingers follow, a joint that moves a link of the gripper carries all of it.
    """
    if _says_gripper(joint.name):
        return True
    of_the_arm = any(word in joint.name.lower() for word in _ARM_WORDS)
    return _says_gripper(joint.child) and not of_the_arm and (last or _says_gripper(joint.parent))


def _says_gripper(name: str) -> bool:
    return any(word in name.lower() for word in _GRIPPER_WORDS)


def _before_grippers(urdf: Urdf, base: str, ends: list[str]) -> list[str]:
    """Where each chain would end without its fingers; nothing for chains that have none."""
    return [fingers[0].parent for end in ends if (fingers := _finger_joints(urdf, base, end))]


def _passed_over(urdf: Urdf, gripper: set[str]) -> str:
    """Why joints that do move were not counted, by name."""
    mimics = [f"{name!r} mimics or is mimicked" for name in urdf.joints if name in gripper]
    free = [f"{joint.name!r} is {joint.kind}" for joint in urdf.joints.values() if joint.kind in UNSUPPORTED]
    found = mimics + free
    return ": " + ", ".join(found[:4]) + (", ..." if len(found) > 4 else "") if found else ""


def _longest(urdf: Urdf, base: str, gripper: set[str]) -> tuple[int, list[str]]:
    """The largest number of moving joints from base on, and the links moved by the last of them."""
    best = 0
    ends: list[str] = []
    todo = [(base, 0)]
    while todo:
        link, count = todo.pop(0)
        for joint in urdf.joints_from(link):
            if joint.name in gripper:
                continue  # what hangs from a gripper's joint is no part of the arm either
            counts = joint.kind in MOVING
            todo.append((joint.child, count + counts))
            if counts and count + 1 > best:
                best, ends = count + 1, []
            if counts and count + 1 == best:
                ends.append(joint.child)
    return best, ends


def _fixed_leaves(urdf: Urdf, link: str) -> list[str]:
    """Ends of the fixed links attached to one, or itself."""
    leaves, todo = [], [link]
    while todo:
        name = todo.pop(0)
        fixed = [joint.child for joint in urdf.joints_from(name) if not joint.moves]
        todo = fixed + todo
        leaves += [] if fixed else [name]
    return leaves


def _preferred(names: list[str]) -> str:
    """Of frames fixed to one link the one most like a tip by its name; the first of several as good."""
    return min(names, key=_rank_as_tip)


def _rank_as_tip(name: str) -> int:
    """0 for the most usual name of a tip; sensors come last."""
    for rank, usual in enumerate(_TIP_NAMES):
        if name == usual or name.endswith(("_" + usual, "-" + usual)):
            return rank
    words = set(re.split(r"[^a-z0-9]+", name.lower()))
    if words & _SENSOR_WORDS:
        return len(_TIP_NAMES) + 2
    return len(_TIP_NAMES) + (0 if words & _TIP_WORDS else 1)


@dataclass(kw_only=True)
class _Body:
    """What hangs together rigidly: one moving link with everything merged into it.

    Args:
        inertial: sum in the moving link's frame; None while nothing had inertial values.
        geometry: of all parts, in the moving link's frame.
        frames: names and chains of the merged fixed links.
        lumped: moving joints off the arm, taken at zero.
        suspect: whether some part had impossible inertial values.
    """

    inertial: FloatArray | None = None
    geometry: list[Geometry] = field(default_factory=list)
    frames: list[tuple[str, tuple[Elementary, ...]]] = field(default_factory=list)
    lumped: list[str] = field(default_factory=list)
    suspect: bool = False


def _body(urdf: Urdf, root: str, on_arm: set[str], notes: list[Note] | None) -> _Body:
    """Everything fixed to `root`, following joints that are not moving joints of the arm.

    Args:
        urdf: the tree.
        root: the moving link.
        on_arm: names of the arm's moving joints, where the body ends.
        notes: collects what was wrong with the parts; None for the base, whose inertia never matters.
    """
    body = _Body()
    todo: list[tuple[str, tuple[Elementary, ...], FloatArray, bool]] = [(root, (), np.eye(4), True)]
    while todo:
        name, chain, T, rigid = todo.pop(0)
        link = urdf.links[name]
        if link.inertial is not None:
            here = transformed(link.inertial, T)
            body.inertial = here if body.inertial is None else body.inertial + here
            body.suspect |= inertial_problem(link.inertial) is not None
            if notes is not None:
                notes += inertial_notes(name, link.inertial)
        body.geometry += [Geometry(g.shape, T @ g.T_link_shape, g.collision, name) for g in link.geometry]
        if rigid and name != root:
            body.frames.append((name, chain))
        for joint in urdf.joints_from(name):
            if joint.name not in on_arm:
                origin = origin_elements(joint)
                todo.append((joint.child, (*chain, *origin), T @ product(origin), rigid and not joint.moves))
                body.lumped += [joint.name] if joint.moves else []
    return body


def _robot(urdf: Urdf, path: list[UrdfJoint], base: str, tip: str, notes: list[Note], source: Source) -> Robot:
    on_arm = {joint.name for joint in path if joint.moves}
    if not on_arm:
        raise RobotError(
            source.path, f"no moving joint between {base!r} and {tip!r}", "choose base and tip further apart"
        )
    joints: list[Joint] = []
    links: list[Link] = []
    ground = _body(urdf, base, on_arm, None)
    bodies = [ground]
    symbols, pending = Symbols(), []
    for joint in path:
        pending.append(joint)
        if joint.moves:
            joints.append(_joint(pending, len(joints) + 1, symbols, urdf.rotors.get(joint.name, 0.0)))
            bodies.append(_body(urdf, joint.child, on_arm, notes))
            links.append(_link(joint.child, bodies[-1], notes))
            pending = []
    frames = [Frame(name, i, chain) for i, body in enumerate(bodies) for name, chain in body.frames]
    return Robot(
        name=urdf.name,
        joints=tuple(joints),
        links=tuple(links),
        frames=_tip_last(frames, tip, links),
        base=base,
        gravity=_gravity_in(urdf, base, notes),
        geometry=tuple(ground.geometry),
        source=source,
        notes=tuple(notes),
    )


def orientation_in_root(urdf: Urdf, link: str) -> FloatArray:
    """R_root_link, with the moving joints between them at zero."""
    R_root_link = np.eye(3)
    for joint in _joints_before(urdf, link):
        R_root_link = product(origin_elements(joint))[:3, :3] @ R_root_link
    return R_root_link


def _joints_before(urdf: Urdf, link: str) -> list[UrdfJoint]:
    """From the link back to the root."""
    joints: list[UrdfJoint] = []
    joint = urdf.joint_to(link)
    while joint is not None:
        joints.append(joint)
        joint = urdf.joint_to(joint.parent)
    return joints


def _gravity_in(urdf: Urdf, base: str, notes: list[Note]) -> FloatArray:
    """Gravity in the frame of a base that may stand turned in the root link, whose z axis points up [m/s^2]."""
    up = orientation_in_root(urdf, base)[2]
    moving = [joint.name for joint in _joints_before(urdf, base) if joint.moves]
    if moving:
        message = f"joints before the base are held at zero: {', '.join(moving[::-1])}"
        notes.append(Note("base-held", Severity.INFO, message, base))
    if 1.0 - up[2] > _AXIS_SNAP:
        message = f"the base stands turned in {urdf.root!r}, whose z axis points up: gravity is turned with it"
        notes.append(Note("base-turned", Severity.INFO, message, base))
    return -STANDARD_GRAVITY * np.where(np.abs(up) < _AXIS_SNAP, 0.0, up)


def _link(name: str, body: _Body, notes: list[Note]) -> Link:
    if body.inertial is None:
        notes += inertial_notes(name, None)
    if body.lumped:
        which = ", ".join(body.lumped[:8]) + (", ..." if len(body.lumped) > 8 else "")
        message = f"moving joints off the arm are held at zero and merged into link {name!r}: {which}"
        notes.append(Note("branch-lumped", Severity.WARNING, message, name))
    return Link(name, body.inertial, tuple(body.geometry), suspect=body.suspect)


def _tip_last(frames: list[Frame], tip: str, links: list[Link]) -> tuple[Frame, ...]:
    chosen = next((frame for frame in frames if frame.name == tip), Frame(tip, len(links)))
    others = tuple(frame for frame in frames if frame.name != tip)
    return (*others, chosen) if others or chosen.name != links[-1].name else ()


def _joint(chain: Iterable[UrdfJoint], number: int, symbols: Symbols, rotor: float) -> Joint:
    """The last joint of the chain moves; those before it are fixed and become part of its constant transforms."""
    *fixed, moving = chain
    constants = [element for joint in (*fixed, moving) for element in origin_elements(joint)]
    named = tuple(_named(element, number, symbols) for element in constants)
    kind = JointKind.PRISMATIC if moving.kind == "prismatic" else JointKind.REVOLUTE
    return Joint(
        name=moving.name,
        kind=kind,
        transforms=(*named, *_variable_elements(moving.axis, kind)),
        limits=moving.limits,
        drive=Drive(rotor_inertia=rotor, viscous=moving.damping, coulomb=moving.friction),
    )


def _named(element: Elementary, number: int, symbols: Symbols) -> Elementary:
    if element.motion.is_rotation:
        return element
    name = symbols.automatic(f"d{number}{element.motion.value[1]}", element.value)
    return Elementary(motion=element.motion, value=element.value, symbol=name)


def origin_elements(joint: UrdfJoint) -> tuple[Elementary, ...]:
    """Tx Ty Tz Rz Ry Rx of a joint's origin without the zeros."""
    (x, y, z), (roll, pitch, yaw) = joint.xyz, joint.rpy
    parts = (
        (Move.TX, x),
        (Move.TY, y),
        (Move.TZ, z),
        (Move.RZ, yaw),
        (Move.RY, pitch),
        (Move.RX, roll),
    )
    return tuple(Elementary(motion=motion, value=value) for motion, value in parts if value != 0.0)


def _variable_elements(axis: tuple[float, float, float], kind: JointKind) -> tuple[Elementary, ...]:
    """The joint's motion along `axis`, leaving its frame where it was at zero.

    A coordinate axis needs one element; any other is turned onto z and back: Rz(a) Ry(b) [Rz(q)] Ry(-b) Rz(-a).
    """
    letter = "T" if kind is JointKind.PRISMATIC else "R"
    for i, name in enumerate("xyz"):
        if abs(abs(axis[i]) - 1.0) < _AXIS_SNAP and hypot(*np.delete(axis, i)) < _AXIS_SNAP**0.5:
            return (Elementary(motion=Move(letter + name), variable=True, sign=1 if axis[i] > 0 else -1),)
    x, y, z = axis
    a, b = atan2(y, x), atan2(hypot(x, y), z)
    before = (Elementary(motion=Move.RZ, value=a), Elementary(motion=Move.RY, value=b))
    after = (Elementary(motion=Move.RY, value=-b), Elementary(motion=Move.RZ, value=-a))
    return (*before, Elementary(motion=Move(letter + "z"), variable=True), *after)

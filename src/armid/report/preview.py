"""A 3D preview in the browser: the arm, its cell, a motion or poses playing, limits and the closest distance live."""

from __future__ import annotations

import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.design.motion import Design
from armid.design.pose_design import PoseDesign, load_poses
from armid.errors import InputError, MissingDependencyError
from armid.kernels.evaluate import evaluate_rows
from armid.kernels.kinematics import forward_kinematics
from armid.motions.limits import motion_limits
from armid.motions.trajectory import Trajectory, grid
from armid.motions.trajectory_files import load_trajectory
from armid.motions.transition import quickest_transition
from armid.notes import Note, Severity
from armid.planning.motion import Plan
from armid.report.preview_guard import Guard, guarding
from armid.robot.geometry import Mesh
from armid.robot.load import load_robot
from armid.robot.quaternion import quaternion_from_matrix
from armid.robot.robot import Robot
from armid.rows.nominal_torque import NominalTorque
from armid.scene.capsules import LinkCapsule
from armid.scene.cell import Cell, cell_of
from armid.scene.scene import Scene, build_scene

LOOPBACK = "127.0.0.1"
"""The preview is for the person at this machine; nobody else can reach it."""

LINK_COLOURS = ((240, 132, 40), (70, 120, 200))
"""Links alternate, so that joints can be seen turning about their own axis."""

_OBSTACLE_COLOUR = (140, 150, 160)
_PATH_COLOUR = (20, 160, 90)
_FRAMES_PER_SECOND = 30.0
_PLOT_POINTS = 400


@dataclass(frozen=True, eq=False)
class Show:
    """What is shown.

    Args:
        robot: the arm.
        trajectory: playing; None for a still arm.
        scene: clearances shown live, and obstacles.
        pose: of a still arm, shape [n_joints].
    """

    robot: Robot
    trajectory: Trajectory | None
    scene: Scene
    pose: FloatArray

    @property
    def duration(self) -> float:
        return 0.0 if self.trajectory is None else self.trajectory.duration

    @property
    def extent(self) -> tuple[FloatArray, float]:
        """Centre and radius of a ball around the arm where it is first seen [m]; of its joints when it has no shapes."""
        points, radii = self._outline
        centre = (points.max(axis=0) + points.min(axis=0)) / 2
        far = float(np.linalg.norm(points - centre, axis=1).max()) + float(radii.max())
        return centre, max(far, 0.05)

    @property
    def first_view(self) -> tuple[FloatArray, FloatArray]:
        """Where the camera stands and where it looks, so that the arm as it is first seen fills the picture [m]."""
        points, radii = self._outline
        centre, radius = self.extent
        up = np.array([0.0, 0.0, 1.0]) - _VIEW_FROM[2] * _VIEW_FROM
        axes = np.array([up, np.cross(_VIEW_FROM, up)]) / np.linalg.norm(up)
        aside = (points - centre) @ axes.T
        low, high = (aside - radii[:, np.newaxis]).min(axis=0), (aside + radii[:, np.newaxis]).max(axis=0)
        look_at = centre + (low + high) / 2 @ axes
        offset = points - look_at
        # A point is seen when it is aside by less than the picture's half width at its depth.
        wide = np.abs(offset @ axes.T).max(axis=1) + radii
        distance = float((wide / _VIEW_WIDTH + offset @ _VIEW_FROM).max())
        return look_at + max(distance, 0.5 * radius) * _VIEW_FROM, look_at

    @property
    def _outline(self) -> tuple[FloatArray, FloatArray]:
        """Points of the arm where it is first seen, shape [n, 3], and how far it reaches around each [m], shape [n]."""
        q = self.at(0.0)[0][np.newaxis]
        T = [np.eye(4), *(forward_kinematics(self.robot, q, name)[0] for name in self.robot.link_names)]
        own = [c for c in self.scene.capsules if c.name in {self.robot.base, *self.robot.link_names}]
        ends = [(T[c.link] @ np.append(p, 1.0))[:3] for c in own for p in (c.start, c.end)]
        radii = [c.radius for c in own for _ in range(2)]
        return np.array([*ends, *(frame[:3, 3] for frame in T)]), np.array([*radii, *np.zeros(len(T))])

    def at(self, t: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Position, velocity and acceleration of every joint, shape [n_joints] each."""
        if self.trajectory is None:
            return self.pose, np.zeros_like(self.pose), np.zeros_like(self.pose)
        q, qd, qdd = self.trajectory.sample(t)
        return q[0], qd[0], qdd[0]


Shown = str | Path | Trajectory | Design | PoseDesign | Plan | npt.ArrayLike
"""What can be played: a motion, an answer that holds one, poses, or a file of either."""


_LAST_PORT = 65535


def show(
    robot: str | Path | Robot,
    trajectory: Shown | None = None,
    *,
    cell: str | Path | Cell | None = None,
    port: int = 8080,
    base: str | None = None,
    tip: str | None = None,
) -> Preview:
    """A 3D preview of the arm, its cell, and a motion or poses, in the browser of this machine only.

        with armid.show("iiwa14", motion) as viewer:
            print(viewer.url)
            viewer.play()       # until Ctrl-C

    Args:
        robot: URDF or YAML path, catalogue name, or a robot.
        trajectory: a trajectory, design, plan or choice of poses; poses [rad or m], shape [n_poses, n_joints]; or a file of
            `armid design`, `armid plan` or `armid poses`. A still arm when None.
        cell: file, name, or a cell; empty space when None.
        port: on this machine; 0 for any free one.
        base, tip: links of a URDF where the arm begins and ends.

    Returns:
        The running viewer: `url`, `play(seconds)`, `set_time(t)`, `stop()`.

    Raises:
        MissingDependencyError: viser is not installed.
        InputError: a file that is neither motion nor poses, or of another arm.
    """
    arm = robot if isinstance(robot, Robot) else load_robot(robot, base=base, tip=tip)
    motion = None if trajectory is None else _playable(arm, trajectory)
    if not 0 <= port <= _LAST_PORT:
        raise InputError("port", f"{port}", f"expected 0 (any free one) to {_LAST_PORT}")
    return Preview(Show(arm, motion, build_scene(arm, cell_of(cell)), motion_limits(arm)[0].middle), port=port)


def _playable(robot: Robot, shown: Shown) -> Trajectory:
    """The motion of an answer or a file; poses as the quickest motion through them."""
    if isinstance(shown, Design | Plan):
        return shown.trajectory
    if isinstance(shown, PoseDesign):
        return shown.transitions or _through(robot, shown.poses)
    if isinstance(shown, str | Path):
        if not Path(shown).is_file():
            raise InputError(shown, "no such file", "give a trajectory of `armid design` or poses of `armid poses`")
        poses = load_poses(Path(shown), robot)
        if poses is not None:
            return _through(robot, poses)
        shown = load_trajectory(Path(shown))
    if not hasattr(shown, "sample"):
        return _through(robot, samples("poses", np.asarray(shown, dtype=np.float64), robot.n_joints))
    motion: Trajectory = shown  # type: ignore[assignment]
    if len(motion.joint_names) != robot.n_joints:
        raise InputError("trajectory", f"of {len(motion.joint_names)} joints", f"{robot.name} has {robot.n_joints}")
    return motion


def _through(robot: Robot, poses: FloatArray) -> Trajectory:
    """The quickest motion through poses, at rest in each."""
    return quickest_transition(robot.joint_names, poses, motion_limits(robot)[0])


_VIEW_FROM = np.array([0.66, 0.66, 0.36]) / np.linalg.norm([0.66, 0.66, 0.36])
"""Direction from which the arm is seen at first: from the front left, slightly above."""

_VIEW_WIDTH = 0.65
"""Half width of the picture at unit depth that the arm may fill: viser's field of view of 75 degrees has 0.77, less a rim."""


class Preview:
    """A running viewer; `url` is where to look.

    Args:
        show: what.
        port: 0 for any free one.
    """

    def __init__(self, show: Show, *, port: int = 8080) -> None:
        try:
            import viser
        except ImportError:
            raise MissingDependencyError("viser", "the 3D preview", "view") from None
        self.show = show
        guard = Guard(LOOPBACK)
        # The library prints a banner of its own, with an address that lacks the token and is refused.
        with redirect_stdout(StringIO()), guarding(guard):
            self.server = viser.ViserServer(
                host=LOOPBACK, port=port or _free_port(), verbose=False, label=show.robot.name
            )
        self.url = guard.url(self.server.get_port())
        self.notes: list[Note] = []
        self.links = self._build_arm()
        self._build_cell()
        self._build_panel()
        self.set_time(0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _build_arm(self) -> list[Any]:
        """One frame per link, base first, with its shapes below it."""
        api, names = self.server.scene, (self.show.robot.base, *self.show.robot.link_names)
        api.set_up_direction("+z")
        radius = self.show.extent[1]
        api.add_grid("/ground", width=8 * radius, height=8 * radius, cell_size=0.25)
        position, look_at = self.show.first_view
        self.server.initial_camera.position = tuple(position)
        self.server.initial_camera.look_at = tuple(look_at)
        frames = [api.add_frame(f"/arm/{k}_{name}", show_axes=False) for k, name in enumerate(names)]
        bodies = (self.show.robot.geometry, *(link.geometry for link in self.show.robot.links))
        for k, geometry in enumerate(bodies):
            parent = f"/arm/{k}_{names[k]}"
            meshes = [g for g in geometry if isinstance(g.shape, Mesh)]
            # What a description draws, and not what it collides with, where it says both.
            meshes = [g for g in meshes if not g.collision] or meshes
            drawn = [self._draw_mesh(f"{parent}/mesh{i}", g, names[k]) for i, g in enumerate(meshes)]
            if not drawn or not all(drawn):
                self._draw_capsules(parent, [c for c in self.show.scene.capsules if c.name == names[k]], k)
        return frames

    def _draw_mesh(self, name: str, geometry: Any, link: str) -> bool:
        """A mesh file; one that cannot be drawn, for whatever reason, is a note and leaves its place to capsules."""
        try:
            import trimesh

            mesh: Any = trimesh.load(geometry.shape.path, force="mesh")
            mesh.apply_scale(geometry.shape.scale)
            mesh.apply_transform(geometry.T_link_shape)
            self.server.scene.add_mesh_trimesh(name, mesh)
        except Exception as problem:  # readers of meshes raise whatever they like
            self._complain(link, geometry.shape.path, problem)
            return False
        return True

    def _complain(self, link: str, path: str, problem: Exception) -> None:
        """Keeps a note about a mesh that is drawn as a capsule."""
        why = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        text = f"link {link}: {Path(path).name} cannot be drawn ({why}); a capsule stands in"
        if "collada" in why.lower():
            text += "; pip install 'armid[view]' brings the reader"
        self.notes.append(Note("mesh-not-drawn", Severity.WARNING, text, link))

    def _draw_capsules(self, parent: str, capsules: list[LinkCapsule], link: int) -> None:
        for i, capsule in enumerate(capsules):
            vertices, faces = capsule_mesh(capsule)
            colour = LINK_COLOURS[link % len(LINK_COLOURS)]
            self.server.scene.add_mesh_simple(f"{parent}/capsule{i}", vertices, faces, color=colour)

    def _build_cell(self) -> None:
        """Obstacles and the path of the tip."""
        own = {self.show.robot.base, *self.show.robot.link_names}
        for capsule in self.show.scene.capsules:
            if capsule.name not in own:
                vertices, faces = capsule_mesh(capsule)
                self.server.scene.add_mesh_simple(
                    f"/cell/{capsule.name}", vertices, faces, color=_OBSTACLE_COLOUR, opacity=0.6
                )
        for k, row in enumerate(self.show.scene.boxes):
            self.server.scene.add_box(
                f"/cell/box{k}",
                color=_OBSTACLE_COLOUR,
                dimensions=tuple(2.0 * row[12:15]),
                opacity=0.6,
                wxyz=quaternion_from_matrix(row[:9].reshape(3, 3)),
                position=row[9:12],
            )
        if self.show.trajectory is not None:
            q = self.show.trajectory.sample(np.linspace(0.0, self.show.duration, 4 * _PLOT_POINTS))[0]
            p = forward_kinematics(self.show.robot, q)[:, :3, 3]
            points = np.stack([p[:-1], p[1:]], axis=1)
            self.server.scene.add_line_segments("/path", points, _PATH_COLOUR, thickness=0.004)

    def _build_panel(self) -> None:
        """Time, play, and live figures; plots of the motion beside them."""
        gui = self.server.gui
        self.readout = gui.add_markdown("")
        if self.show.trajectory is None:
            return
        self.slider: Any = gui.add_slider(
            "time [s]", min=0.0, max=round(self.show.duration, 3), step=0.01, initial_value=0.0
        )
        self.playing = gui.add_checkbox("play", initial_value=True)
        self.speed = gui.add_slider("speed", min=0.1, max=3.0, step=0.1, initial_value=1.0)
        for title, figure in _motion_plots(self.show):
            with gui.add_folder(title, expand_by_default=False):
                gui.add_plotly(figure, aspect=0.8)

        @self.slider.on_update
        def _(_: Any) -> None:
            self.set_time(float(self.slider.value))

    def set_time(self, t: float) -> None:
        """Moves the arm to where it is at time t and refreshes the figures."""
        q, qd, qdd = self.show.at(t)
        for link, (name, handle) in enumerate(
            zip((self.show.robot.base, *self.show.robot.link_names), self.links, strict=True)
        ):
            T = np.eye(4) if link == 0 else forward_kinematics(self.show.robot, q, name)[0]
            handle.position, handle.wxyz = T[:3, 3], quaternion_from_matrix(T[:3, :3])
        self.readout.content = live_figures(self.show, t, q, qd, qdd)

    def play(self, seconds: float | None = None) -> None:
        """Plays until interrupted, or for some seconds."""
        end = float("inf") if seconds is None else time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(1.0 / _FRAMES_PER_SECOND)
            if self.show.trajectory is not None and self.playing.value:
                t = float(self.slider.value) + float(self.speed.value) / _FRAMES_PER_SECOND
                # The slider tells `set_time`.
                self.slider.value = round(t % self.show.duration, 3)

    def stop(self) -> None:
        """Ends the viewer; the page goes blank."""
        with redirect_stdout(sys.stderr):
            self.server.stop()


def _free_port() -> int:
    """A port nobody listens on."""
    import socket

    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def live_figures(show: Show, t: float, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> str:
    """Markdown: usage of every limit now, and what comes closest."""
    limits, _ = motion_limits(show.robot)
    torque = evaluate_rows(NominalTorque(show.robot), np.concatenate([q, qd, qdd]))[0, :, 0]
    rows = ["| joint | position | velocity | acceleration | torque |", "|---|---|---|---|---|"]
    for k, name in enumerate(show.robot.joint_names):
        usage = (
            abs(q[k] - limits.middle[k]) / limits.half_range[k],
            abs(qd[k]) / limits.velocity[k],
            abs(qdd[k]) / limits.acceleration[k],
            abs(torque[k]) / limits.torque[k],
        )
        cells = (f"**{100 * u:.0f} %**" if u > 1.0 else f"{100 * u:.0f} %" for u in usage)
        rows.append(f"| {name} | {' | '.join(cells)} |")
    clearance, pair = show.scene.worst(q)
    closest = f"closest: {pair}, {1000 * clearance:.0f} mm beyond the margin" if pair else ""
    return "\n".join([f"t = {t:.2f} s", "", *rows, "", closest])


def _motion_plots(show: Show) -> list[tuple[str, Any]]:
    """Joint positions and velocities over time."""
    import plotly.graph_objects as go

    assert show.trajectory is not None
    t = grid(show.duration, _PLOT_POINTS / show.duration)
    q, qd, _ = show.trajectory.sample(t)
    out = []
    for title, values in (("positions", q), ("velocities", qd)):
        figure = go.Figure(
            [go.Scatter(x=t, y=values[:, k], name=name) for k, name in enumerate(show.robot.joint_names)]
        )
        figure.update_layout(
            margin={"l": 30, "r": 5, "t": 10, "b": 30}, template="plotly_white", legend={"orientation": "h"}
        )
        out.append((title, figure))
    return out


RINGS, SEGMENTS = 6, 20


def capsule_mesh(capsule: LinkCapsule) -> tuple[FloatArray, np.ndarray[Any, np.dtype[np.uint32]]]:
    """Vertices and triangles of a capsule, in the link frame."""
    axis = capsule.end - capsule.start
    length = float(np.linalg.norm(axis))
    z = axis / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    y = np.cross(z, x)
    angles = np.linspace(0.0, 2 * np.pi, SEGMENTS, endpoint=False)
    circle = np.outer(np.cos(angles), x) + np.outer(np.sin(angles), y)
    rings = []
    for centre, tilts in (
        (capsule.start, np.linspace(-np.pi / 2, 0.0, RINGS)),
        (capsule.end, np.linspace(0.0, np.pi / 2, RINGS)),
    ):
        rings += [centre + capsule.radius * (np.cos(tilt) * circle + np.sin(tilt) * z) for tilt in tilts]
    faces = []
    for ring in range(len(rings) - 1):
        for k in range(SEGMENTS):
            a, b = ring * SEGMENTS + k, ring * SEGMENTS + (k + 1) % SEGMENTS
            faces += [[a, b, b + SEGMENTS], [a, b + SEGMENTS, a + SEGMENTS]]
    return np.vstack(rings), np.array(faces, dtype=np.uint32)

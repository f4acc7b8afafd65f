"""`armid show`: the preview in a headless browser; the arm is visible and moves; only this machine can reach it."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.cli import application
from armid.errors import InputError
from armid.motions.fourier import FourierTrajectory
from armid.motions.trajectory_files import save_trajectory
from armid.robot.elementary import Move, elementary_matrix
from armid.robot.load import load_robot
from armid.robot.quaternion import quaternion_from_matrix
from armid.scene.capsules import LinkCapsule
from armid.scene.scene import build_scene
from support.browser import Browser, executable

pytest.importorskip("viser", reason="viser is not installed")

from armid.kernels.kinematics import forward_kinematics
from armid.report.preview import LINK_COLOURS, LOOPBACK, Preview, Show, capsule_mesh, live_figures


def swing() -> FourierTrajectory:
    robot = load_robot("iiwa14")
    sine = np.zeros((7, 1))
    sine[1] = 1.2
    return FourierTrajectory(robot.joint_names, 8.0, np.zeros(7), sine, np.zeros((7, 1)))


def arm_pixels(png: bytes) -> np.ndarray:
    """Where the picture has the saturated colours of the links."""
    from PIL import Image

    pixels = np.asarray(Image.open(BytesIO(png)).convert("RGB"), dtype=float)
    scaled = pixels / np.maximum(pixels.max(axis=2, keepdims=True), 1.0)
    wanted = [np.array(colour) / max(colour) for colour in LINK_COLOURS]
    close = [np.abs(scaled - colour).max(axis=2) < 0.18 for colour in wanted]
    # The side panel has blue widgets of its own, and a warning about software rendering an orange bar.
    found = np.logical_or.reduce(close) & (pixels.max(axis=2) > 60)
    found[:, int(0.6 * found.shape[1]) :] = False
    found[: int(0.3 * found.shape[0]), : int(0.36 * found.shape[1])] = False
    return found


def settled_picture(browser: Browser, least: int = 400) -> np.ndarray:
    """The arm's pixels once the page has drawn it and two pictures in a row agree."""
    before, end = np.zeros((1, 1), dtype=bool), time.monotonic() + 60.0
    while time.monotonic() < end:
        now = arm_pixels(browser.screenshot())
        if now.sum() > least and before.shape == now.shape and (now ^ before).sum() < 0.02 * now.sum():
            return now
        before = now
        time.sleep(0.4)
    raise AssertionError(f"the arm did not appear: {before.sum()} pixels of its colours")


def test_the_arm_is_seen_and_moves(tmp_path: Path):
    executable()
    robot = load_robot("iiwa14")
    viewer = Preview(Show(robot, swing(), build_scene(robot), np.zeros(7)), port=0)
    try:
        with Browser(tmp_path / "profile") as browser:
            browser.open(viewer.url)
            upright = settled_picture(browser)
            viewer.set_time(2.0)
            bent = settled_picture(browser)
    finally:
        viewer.stop()
    changed = (upright ^ bent).sum()
    assert changed > 0.3 * upright.sum()
    assert np.flatnonzero(bent.any(axis=1))[0] > np.flatnonzero(upright.any(axis=1))[0], "a bent arm is lower"


def test_only_this_machine_can_reach_it():
    robot = load_robot("panda")
    viewer = Preview(Show(robot, None, build_scene(robot), np.zeros(7)), port=0)
    try:
        assert viewer.url.startswith(f"http://{LOOPBACK}:")
        port = urlsplit(viewer.url).port
        with socket.create_connection((LOOPBACK, port), timeout=5):
            pass
        listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        own = [address for address in listening if int(address.split(":")[1], 16) == port and address.startswith("0")]
        assert all(address.startswith("0100007F") for address in own)
    finally:
        viewer.stop()


def test_command_shows_a_trajectory_and_poses(tmp_path: Path):
    motion = save_trajectory(swing(), tmp_path / "t.json")
    outcome = CliRunner().invoke(
        application(), ["show", "iiwa14", str(motion), "--port", "0", "--seconds", "0.3", "--json"]
    )
    assert outcome.exit_code == 0, outcome.stderr
    result = json.loads(outcome.stdout)
    assert result["url"].startswith("http://127.0.0.1:")
    assert result["duration"] == 8.0
    # Every address that is printed can be opened: one without the token is refused.
    assert all("token=" in line for line in outcome.stderr.splitlines() if "127.0.0.1" in line)
    names = load_robot("iiwa14").joint_names
    table = tmp_path / "poses.csv"
    table.write_text(
        ",".join(names) + "\n" + "\n".join(",".join(["0.1"] * 7) if k else ",".join(["0"] * 7) for k in range(3))
    )
    outcome = CliRunner().invoke(
        application(), ["show", "iiwa14", str(table), "--port", "0", "--seconds", "0.1", "--json"]
    )
    assert outcome.exit_code == 0, outcome.stderr
    assert json.loads(outcome.stdout)["duration"] > 0.0


@pytest.mark.parametrize(
    ("name", "message"), [("none.json", "no such file"), ("bad.json", "not JSON"), ("short.json", "has 7")]
)
def test_bad_files_are_named(name, message, tmp_path: Path):
    (tmp_path / "bad.json").write_text("{")
    save_trajectory(
        FourierTrajectory(("a",), 1.0, np.zeros(1), np.ones((1, 1)), np.ones((1, 1))), tmp_path / "short.json"
    )
    outcome = CliRunner().invoke(
        application(), ["show", "iiwa14", str(tmp_path / name), "--port", "0", "--seconds", "0"]
    )
    assert outcome.exit_code == 1
    assert message in outcome.stderr


def test_the_library_shows_objects_too():
    poses = [[0.1 * k] * 7 for k in range(3)]
    with armid.show("iiwa14", swing(), port=0) as viewer:
        assert viewer.url.startswith("http://127.0.0.1:")
        assert viewer.show.duration == 8.0
        viewer.play(0.05)
    with armid.show(load_robot("iiwa14"), poses, port=0) as viewer:
        assert viewer.show.duration > 0.0
        np.testing.assert_allclose(viewer.show.at(viewer.show.duration)[0], poses[-1], atol=1e-9)
    chosen = armid.choose_poses("cylindrical", "gravity", pool=200, starts=1, count=8)
    with armid.show("cylindrical", chosen, port=0) as viewer:
        assert viewer.show.trajectory is chosen.transitions
    with pytest.raises(InputError, match="iiwa14 has 7"):
        armid.show("iiwa14", chosen.transitions, port=0)


def test_live_figures_tell_usage_and_distance():
    robot = load_robot("iiwa14")
    show = Show(robot, swing(), build_scene(robot), np.zeros(7))
    text = live_figures(show, 1.0, *show.at(1.0))
    assert "joint2" in text
    assert "closest:" in text


@pytest.mark.parametrize("seed", range(6))
def test_quaternions_turn_like_their_matrices(seed):
    rng = np.random.default_rng(seed)
    R = np.eye(3)
    for motion in (Move.RX, Move.RY, Move.RZ):
        R = R @ elementary_matrix(motion, np.pi if seed == 0 else rng.uniform(-np.pi, np.pi))[:3, :3]
    w, *v = quaternion_from_matrix(R)
    v, p = np.array(v), rng.normal(size=3)
    np.testing.assert_allclose(p + 2 * np.cross(v, np.cross(v, p) + w * p), R @ p, atol=1e-9)


def test_capsule_mesh_lies_on_the_capsule():
    capsule = LinkCapsule("x", 1, np.array([0.1, 0.2, 0.3]), np.array([0.4, -0.1, 0.5]), 0.07)
    vertices, faces = capsule_mesh(capsule)
    axis = capsule.end - capsule.start
    along = np.clip((vertices - capsule.start) @ axis / (axis @ axis), 0, 1)
    away = np.linalg.norm(vertices - capsule.start - along[:, np.newaxis] * axis, axis=1)
    np.testing.assert_allclose(away, 0.07, atol=1e-12)
    assert faces.max() == len(vertices) - 1


def test_a_mesh_that_cannot_be_drawn_becomes_a_capsule_and_a_note(tmp_path: Path):
    from armid.robot.geometry import Geometry, Mesh

    broken = tmp_path / "broken.dae"
    broken.write_text("<COLLADA>not a mesh")
    arm = load_robot("iiwa14")
    link = replace(arm.links[2], geometry=(*arm.links[2].geometry, Geometry(Mesh(str(broken)), collision=False)))
    dressed = replace(arm, links=(*arm.links[:2], link, *arm.links[3:]))
    with armid.show(dressed, port=0) as viewer:
        assert [note.code for note in viewer.notes] == ["mesh-not-drawn"]
        assert "broken.dae" in viewer.notes[0].message


@pytest.mark.parametrize("name", ["iiwa14", "cylindrical", "mabi-max100"])
def test_the_first_view_is_about_as_large_as_the_arm(name):
    from armid.report.preview import Show

    arm = load_robot(name)
    shown = Show(arm, None, build_scene(arm), np.zeros(arm.n_joints))
    centre, radius = shown.extent
    tip = forward_kinematics(arm, np.zeros((1, arm.n_joints)))[0, :3, 3]
    reach = float(np.linalg.norm(tip))
    assert np.linalg.norm(tip - centre) <= 1.3 * radius
    assert 0.3 * reach < radius < 1.5 * max(reach, 0.5)


@pytest.mark.parametrize("name", ["iiwa14", "cylindrical", "mabi-max100", "ur10e"])
def test_the_arm_fills_the_first_view(name):
    arm = load_robot(name)
    shown = Show(arm, None, build_scene(arm), np.zeros(arm.n_joints))
    camera, look_at = shown.first_view
    forward = (look_at - camera) / np.linalg.norm(look_at - camera)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    frames = [forward_kinematics(arm, np.zeros((1, arm.n_joints)), link)[0] for link in arm.link_names]
    T = [np.eye(4), *frames]
    seen = []
    for capsule in shown.scene.capsules:
        for end in (capsule.start, capsule.end):
            offset = (T[capsule.link] @ np.append(end, 1.0))[:3] - camera
            aside = np.array([offset @ right, offset @ np.cross(right, forward)])
            seen.append((np.abs(aside) + capsule.radius) / (offset @ forward))
    half_picture = np.tan(np.radians(75.0 / 2.0))
    assert 0.7 * half_picture < np.max(seen) < 0.95 * half_picture

"""Every kind of measurement, from files through `armid calibrate`: what is left on fresh data is the instrument's noise."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.correction import load_correction
from armid.kinematics.rotations import inverse, rotation_exp, rotation_log
from armid.robot.load import load_robot
from support.measured_arm import (
    ORIENTATION_NOISE,
    POSITION_NOISE,
    MeasuredArm,
    pose_columns,
    position_columns,
    some_frame,
    write_table,
)

MEAN_OF_3 = np.sqrt(8.0 / np.pi)
"""Mean length of a unit Gaussian vector in three dimensions."""
MEAN_OF_1 = np.sqrt(2.0 / np.pi)
PLACES = {"smr1": (0.12, 0.0, 0.02), "smr2": (-0.05, 0.09, 0.0), "smr3": (-0.06, -0.08, 0.05)}


@pytest.fixture
def arm():
    return MeasuredArm(load_robot("ur10e"), np.random.default_rng(21))


def run(*arguments):
    done = CliRunner().invoke(application(), ["calibrate", "ur10e", *map(str, arguments), "--json"])
    assert done.exit_code in (0, 3), done.stderr
    return json.loads(done.stdout)


def calibrated(tmp_path, fit, check, *options, mapping=None):
    """Fit one list of parts, test on another."""
    files = [write_table(tmp_path / f"{name}.csv", *parts) for name, parts in (("fit", fit), ("check", check))]
    if mapping is not None:
        (tmp_path / "how.yaml").write_text("format: armid-poses/1\n" + mapping)
        options = (*options, "--mapping", tmp_path / "how.yaml")
    return run(
        files[0],
        "--validate",
        files[1],
        "--setups",
        "shared",
        "--terms",
        "offset",
        "--folds",
        3,
        "--out",
        tmp_path / "out",
        *options,
    )


def noise_is_left(data, kind, expected, *, gain=2.0):
    """Held-out errors are what the instrument makes, up to a half, and were clearly larger with nominal links."""
    mean = data[f"{kind}_error_held_out"]["mean"]
    assert 0.5 * expected < mean < 1.5 * expected
    assert data[f"{kind}_error_held_out_before"]["mean"] > gain * mean
    assert data["verdict"] == "trusted"


def truth_is_met(arm, data, *, position=3 * POSITION_NOISE, orientation=3 * ORIENTATION_NOISE):
    """The corrected arm with the frames it found is the true one on fresh configurations, to a few times the noise."""
    model, values = load_correction(data["files"]["correction"], load_robot("ur10e"))
    q = arm.configurations(50)
    setup, target = next(iter(model.setups)), next(iter(model.targets))
    T = predicted_poses(model, values, q, setup=setup, target=target)
    true = predicted_poses(arm.model, arm.values, q, setup="sensor", target="tool")
    if position is not None:
        assert np.linalg.norm((T - true)[:, :3, 3], axis=1).mean() < position
    if orientation is not None:
        turned = rotation_log(true[:, :3, :3] @ np.swapaxes(T[:, :3, :3], 1, 2))
        assert np.linalg.norm(turned, axis=1).mean() < orientation


def sensor_poses(arm, q):
    return arm.Z @ arm.tool_in_base(q)


def both(arm, make, counts=(40, 40)):
    return [make(arm.configurations(n)) for n in counts]


def test_poses(arm, tmp_path):
    fit, check = both(arm, lambda q: [arm.joints(q) | pose_columns(arm.noisy(sensor_poses(arm, q)))], (30, 40))
    data = calibrated(tmp_path, fit, check)
    noise_is_left(data, "position", MEAN_OF_3 * POSITION_NOISE)
    noise_is_left(data, "orientation", MEAN_OF_3 * ORIENTATION_NOISE)
    truth_is_met(arm, data)


def test_positions(arm, tmp_path):
    fit, check = both(
        arm, lambda q: [arm.joints(q) | position_columns(arm.noisy(sensor_poses(arm, q))[:, :3, 3])], (50, 40)
    )
    data = calibrated(tmp_path, fit, check)
    noise_is_left(data, "position", MEAN_OF_3 * POSITION_NOISE)
    truth_is_met(arm, data, orientation=None)


def test_orientations_alone(arm, tmp_path):
    def make(q):
        columns = pose_columns(arm.noisy(sensor_poses(arm, q)))
        return [arm.joints(q) | {name: x for name, x in columns.items() if name.startswith("q")}]

    fit, check = both(arm, make, (40, 40))
    data = calibrated(tmp_path, fit, check)
    assert data["position_error_held_out"]["count"] == 0
    noise_is_left(data, "orientation", MEAN_OF_3 * ORIENTATION_NOISE)
    truth_is_met(arm, data, position=None)


def test_rotation_matrices_and_rows_of_either_kind(arm, tmp_path):
    """Some rows with a full pose, some where only the position was seen, some with the orientation alone."""

    def make(q):
        T = arm.noisy(sensor_poses(arm, q))
        entries = {f"r{i + 1}{j + 1}": T[:, i, j] for i in range(3) for j in range(3)}
        whole = arm.joints(q) | position_columns(T[:, :3, 3]) | entries
        third = len(q) // 3
        parts = [{n: x[k * third : (k + 1) * third] for n, x in whole.items()} for k in range(3)]
        return [
            parts[0],
            {n: x for n, x in parts[1].items() if not n.startswith("r")},
            {n: x for n, x in parts[2].items() if n not in "xyz"},
        ]

    fit, check = both(arm, make, (60, 60))
    data = calibrated(tmp_path, fit, check)
    assert data["position_error_held_out"]["count"] == data["orientation_error_held_out"]["count"] == 40
    noise_is_left(data, "position", MEAN_OF_3 * POSITION_NOISE)
    truth_is_met(arm, data)


def seen_points(arm, q, places=PLACES):
    """Noisy positions of points on the tool, by name."""
    T = sensor_poses(arm, q)
    return {
        name: (T @ np.array([*at, 1.0]))[:, :3] + POSITION_NOISE * arm.rng.normal(size=(len(q), 3))
        for name, at in places.items()
    }


def test_several_targets_of_unknown_place(arm, tmp_path):
    def make(q):
        columns = {}
        for k, p in enumerate(seen_points(arm, q).values()):
            columns |= position_columns(p, str(k + 1))
        return [arm.joints(q) | columns]

    fit, check = both(arm, make, (20, 20))
    data = calibrated(tmp_path, fit, check)
    assert set(data["T_link_target"]) == {"tool1", "tool2", "tool3"}
    noise_is_left(data, "position", MEAN_OF_3 * POSITION_NOISE)


def bodies(names):
    return (
        "bodies: {plate: {"
        + ", ".join(f"{n}: {list(at)}" for n, at in zip(names, PLACES.values(), strict=True))
        + "}}\n"
    )


def test_known_cluster_by_mapping(arm, tmp_path):
    def make(q):
        columns = {}
        for k, p in enumerate(seen_points(arm, q).values()):
            columns |= position_columns(p, str(k + 1))
        return [arm.joints(q) | columns]

    fit, check = both(arm, make, (20, 20))
    data = calibrated(tmp_path, fit, check, mapping=bodies(["tool1", "tool2", "tool3"]))
    noise_is_left(data, "position", MEAN_OF_3 * POSITION_NOISE)
    tool = [name for name in data["identified_names"] if name.startswith("plate.")]
    assert len(tool) == 6
    assert data["identified"] == 30


def test_known_cluster_by_columns(arm, tmp_path):
    def make(q):
        parts = []
        for name, p in seen_points(arm, q).items():
            place = {f"body_{c}": np.full(len(q), PLACES[name][i]) for i, c in enumerate("xyz")}
            parts.append(
                arm.joints(q) | position_columns(p) | {"target": [name] * len(q), "body": ["plate"] * len(q)} | place
            )
        return parts

    fit, check = both(arm, make, (20, 20))
    data = calibrated(tmp_path, fit, check)
    noise_is_left(data, "position", MEAN_OF_3 * POSITION_NOISE)
    assert data["identified"] == 30
    body = np.array(data["T_link_target"]["smr1"])  # body axes, so its rotation is the tool's
    assert np.abs(rotation_log((body[:3, :3] @ arm.X[:3, :3].T)[np.newaxis])).max() < 5e-3


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ("bodies: {plate: {smr9: [0, 0, 0]}}\n", "no target smr9 for body plate"),
        ("bodies: {plate: {tool: [0, 0]}}\n", "expected 3"),
    ],
)
def test_clusters_that_do_not_fit_the_file(arm, tmp_path, how, match):
    q = arm.configurations(5)
    path = write_table(tmp_path / "p.csv", arm.joints(q) | position_columns(sensor_poses(arm, q)[:, :3, 3]))
    (tmp_path / "p.map.yaml").write_text("format: armid-poses/1\n" + how)
    done = CliRunner().invoke(application(), ["calibrate", "ur10e", str(path), "--out", str(tmp_path / "o")])
    assert done.exit_code == 1
    assert match in " ".join(done.stderr.replace("│", " ").split())


def distances(arm, q, anchors):
    p = arm.tool_in_base(q)[:, :3, 3]
    which = np.arange(len(q)) % len(anchors)
    d = np.linalg.norm(p - np.array(list(anchors.values()))[which], axis=1)
    names = [list(anchors)[k] for k in which]
    return arm.joints(q) | {"distance": d + POSITION_NOISE * arm.rng.normal(size=len(q)), "anchor": names}


def test_draw_wires_from_two_anchors(arm, tmp_path):
    anchors = {"left": (1.2, 0.8, 0.1), "right": (1.1, -0.9, 0.5)}
    fit, check = both(arm, lambda q: [distances(arm, q, anchors)], (160, 60))
    data = calibrated(tmp_path, fit, check)
    noise_is_left(data, "position", MEAN_OF_1 * POSITION_NOISE)


def bars(arm, q):
    p = arm.tool_in_base(q)[:, :3, 3]
    first, second = np.arange(0, len(q), 2), np.arange(1, len(q), 2)
    d = np.linalg.norm(p[first] - p[second], axis=1) + POSITION_NOISE * arm.rng.normal(size=len(first))
    cells = np.full((2, len(q)), "", dtype=object)
    cells[0, first], cells[1, first] = d, second + 1
    return arm.joints(q) | {"length": cells[0], "other": cells[1]}


def test_lengths_between_two_configurations(arm, tmp_path):
    fit, check = both(arm, lambda q: [bars(arm, q)], (320, 120))
    data = calibrated(tmp_path, fit, check)
    assert data["T_sensor_base"] == {}
    noise_is_left(data, "position", MEAN_OF_1 * POSITION_NOISE)


CUPS = {"cup1": (0.5, 0.3, 0.4), "cup2": (-0.4, 0.5, 0.3)}
PLATES = {
    "floor": ((0.0, 0.0, 0.1), (0.05, -0.1, 0.99)),
    "wall": ((0.7, 0.0, 0.0), (0.98, 0.1, 0.05)),
    "side": ((0.0, 0.6, 0.0), (0.1, 0.97, 0.1)),
}


def contact(arm, count, kind):
    """Configurations at which the tool touches each place; the joints' own repeatability is the noise."""
    parts = []
    places = CUPS.items() if kind == "socket" else PLATES.items()
    for name, at in places:
        if kind == "socket":
            q = arm.touching(arm.configurations(count), lambda p, at=at: p - np.array(at))
        else:
            normal = np.array(at[1]) / np.linalg.norm(at[1])
            q = arm.touching(arm.configurations(count), lambda p, at=at, n=normal: (p - np.array(at[0])) @ n[:, None])
        q = q + 2e-5 * arm.rng.normal(size=q.shape)
        parts.append(arm.joints(q) | {kind: [name] * len(q), "std": np.full(len(q), 2e-5)})
    return parts


@pytest.mark.parametrize("kind", ["socket", "plane"])
def test_contacts(arm, tmp_path, kind):
    fit, check = contact(arm, 60, kind), contact(arm, 30, kind)
    data = calibrated(tmp_path, fit, check)
    noise = 2e-5 * 0.6  # a few joints' noise over levers of some decimetres
    assert data["position_error_held_out"]["mean"] < 4 * noise
    assert data["position_error_held_out_before"]["mean"] > 3 * data["position_error_held_out"]["mean"]
    assert set(data["T_sensor_base"]) == set(CUPS if kind == "socket" else PLATES)


def test_two_stations_in_one_file(arm, tmp_path):
    second = some_frame(arm.rng, 1.0)

    def make(q):
        half = len(q) // 2
        near = arm.noisy(sensor_poses(arm, q[:half]))
        far = arm.noisy(second @ arm.tool_in_base(q[half:]))
        return [
            arm.joints(q[:half]) | pose_columns(near) | {"station": ["near"] * half},
            arm.joints(q[half:]) | pose_columns(far) | {"station": ["far"] * (len(q) - half)},
        ]

    fit, check = both(arm, make, (40, 40))
    data = calibrated(tmp_path, fit, check)
    assert set(data["T_sensor_base"]) == {"near", "far"}
    noise_is_left(data, "position", MEAN_OF_3 * POSITION_NOISE)
    truth_is_met(arm, data)


def test_deviations_of_single_measurements_are_used(arm, tmp_path):
    """Half the rows are forty times worse, and say so; ignoring that costs accuracy on the good ones."""

    def make(q, worse=40.0):
        sigma = np.where(np.arange(len(q)) % 2, POSITION_NOISE, worse * POSITION_NOISE)[:, np.newaxis] * np.ones(3)
        p = sensor_poses(arm, q)[:, :3, 3] + sigma * arm.rng.normal(size=sigma.shape)
        return [arm.joints(q) | position_columns(p) | {f"std_{c}": sigma[:, i] for i, c in enumerate("xyz")}]

    fit, check = make(arm.configurations(90)), make(arm.configurations(40), worse=1.0)
    told = calibrated(tmp_path, fit, check)
    noise_is_left(told, "position", MEAN_OF_3 * POSITION_NOISE)
    silent = [{n: x for n, x in fit[0].items() if not n.startswith("std")}]
    untold = calibrated(tmp_path, silent, check)
    assert untold["position_error_held_out"]["mean"] > 1.3 * told["position_error_held_out"]["mean"]


def test_covariances_of_single_measurements_are_used(arm, tmp_path):
    """A sensor that is poor along its line of sight, which turns from pose to pose."""
    poor = 40.0

    def make(q, poor=poor):
        p = sensor_poses(arm, q)[:, :3, 3]
        sight = rotation_exp(arm.rng.normal(size=(len(q), 3)))[:, :, 0]
        noise = arm.rng.normal(size=p.shape) + (poor - 1.0) * sight * arm.rng.normal(size=(len(q), 1))
        C = POSITION_NOISE**2 * (np.eye(3) + (poor - 1.0) ** 2 * sight[:, :, None] * sight[:, None, :])
        pairs = {f"cov_{'xyz'[i]}{'xyz'[j]}": C[:, i, j] for i in range(3) for j in range(i, 3)}
        return [arm.joints(q) | position_columns(p + POSITION_NOISE * noise) | pairs]

    fit, check = make(arm.configurations(60)), make(arm.configurations(40), poor=1.0)
    told = calibrated(tmp_path, fit, check)
    noise_is_left(told, "position", MEAN_OF_3 * POSITION_NOISE, gain=1.5)
    silent = [{n: x for n, x in fit[0].items() if not n.startswith("cov")}]
    untold = calibrated(tmp_path, silent, check)
    assert untold["position_error_held_out"]["mean"] > 1.3 * told["position_error_held_out"]["mean"]


@pytest.mark.parametrize("kind", ["pose", "position"])
def test_camera_on_the_hand(arm, tmp_path, kind):
    """It sees a fixed board, or only one fixed point."""

    def make(q):
        T = arm.noisy(inverse(sensor_poses(arm, q)))
        return [arm.joints(q) | (pose_columns(T) if kind == "pose" else position_columns(T[:, :3, 3]))]

    fit, check = both(arm, make, (60, 40))
    data = calibrated(tmp_path, fit, check, "--sensor", "hand")
    noise_is_left(data, "position", MEAN_OF_3 * POSITION_NOISE)
    assert data["identified"] == (30 if kind == "pose" else 27)


def test_everything_in_one_calibration(arm, tmp_path):
    """A tracker's poses, a wire, a bar, sockets, planes and a cluster's points, each in its own file, one arm."""
    wire = {"post": (1.2, 0.8, 0.1)}
    q = arm.configurations(25)
    parts = {
        "tracker": [arm.joints(q) | pose_columns(arm.noisy(sensor_poses(arm, q)))],
        "wire": [distances(arm, arm.configurations(30), wire)],
        "bar": [bars(arm, arm.configurations(30))],
        "cups": contact(arm, 12, "socket"),
        "planes": contact(arm, 12, "plane"),
    }
    files = [write_table(tmp_path / f"{name}.csv", *rows) for name, rows in parts.items()]
    data = run(*files, "--setups", "shared", "--terms", "offset", "--folds", 4, "--out", tmp_path / "out")
    assert set(data["T_sensor_base"]) == {"sensor", "post", *CUPS, *PLATES}
    assert set(data["T_link_target"]) == {"tool"}
    assert data["noise"]["sensor.position"] < 2 * POSITION_NOISE
    assert data["verdict"] == "trusted"
    truth_is_met(arm, data)


@pytest.mark.parametrize("kind", ["pose", "orientation", "distance"])
def test_how_many_configurations_are_enough(arm, tmp_path, kind):
    """Observed errors follow the prediction down, in the JSON, in the table for people and in the report."""
    q = arm.configurations(120)
    columns = pose_columns(arm.noisy(sensor_poses(arm, q)))
    if kind == "orientation":
        columns = {name: x for name, x in columns.items() if name.startswith("q")}
    rows = distances(arm, q, {"post": (1.2, 0.8, 0.1)}) if kind == "distance" else arm.joints(q) | columns
    path = write_table(tmp_path / "p.csv", rows)
    options = f"--terms offset --folds 2 --enough --json --out {tmp_path / 'o'}".split()
    done = CliRunner().invoke(application(), ["calibrate", "ur10e", str(path), *options])
    data = json.loads(done.stdout)
    assert "how many configurations are enough" in " ".join(done.stderr.split())
    assert "How many configurations are enough" in (tmp_path / "o" / "report.html").read_text()
    study = data["enough"]
    assert study[-1]["observed"] < study[0]["observed"]
    assert study[-1]["predicted"] < 0.6 * study[1]["predicted"]
    for row in study[-2:]:
        assert row["observed"] == pytest.approx(row["predicted_total"], rel=0.35)

"""Poses files as people write them, and the mistakes in them: each is named with its likely cause."""

from __future__ import annotations

import numpy as np
import pytest

from armid.calibration.calibrate import calibrate
from armid.calibration.poses_table import PosesMapping
from armid.calibration.read import read_poses
from armid.errors import InputError
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.measurement import MeasurementError, Observed
from armid.kinematics.model import ErrorModel
from armid.kinematics.rotations import inverse, quaternion_from_matrix, rigid, rotation_exp, rotation_log
from armid.robot.elementary import rpy
from armid.robot.load import load_robot

Q = [f"q{i + 1}" for i in range(6)]
QUICK = {"candidates": (ErrorModel(),), "folds": 2}


@pytest.fixture(scope="module")
def arm():
    return load_robot("ur10e")


@pytest.fixture(scope="module")
def data(arm):
    """Joint positions and measured poses of an arm that is as described, but for a millimetre of noise."""
    rng = np.random.default_rng(5)
    q = rng.uniform(-2, 2, (40, 6))
    Z = rigid(rotation_exp([0.3, 0.2, -1.0]), np.array([2.0, 0.5, -0.3]))
    T = Z @ forward_kinematics(arm, q) @ rigid(rotation_exp([0.1, 0.4, 0.2]), np.array([0.05, 0.02, 0.1]))
    T[:, :3, 3] += 1e-3 * rng.normal(size=(40, 3))
    return q, T


def write(path, header, *columns):
    rows = np.column_stack(columns)
    text = ",".join(header) + "\n" + "\n".join(",".join(repr(float(x)) for x in row) for row in rows) + "\n"
    path.write_text(text)
    return path


def pose_file(path, q, T, *, quaternion=None, header=None):
    quaternion = quaternion_from_matrix(T[:, :3, :3]) if quaternion is None else quaternion
    return write(path, header or [*Q, "x", "y", "z", "qw", "qx", "qy", "qz"], q, T[:, :3, 3], quaternion)


def rpys(T):
    return np.array([rpy(R) for R in T[:, :3, :3]])


def read(arm, path, **mapping):
    return read_poses(path, arm.joint_names, mapping=PosesMapping(**mapping) if mapping else None)


def fails(arm, path, match, **mapping):
    with pytest.raises((MeasurementError, InputError), match=match):
        calibrate(arm, read(arm, path, **mapping), **QUICK)


def test_a_good_file_passes(arm, data, tmp_path):
    result = calibrate(arm, read(arm, pose_file(tmp_path / "p.csv", *data)), **QUICK)
    assert result.errors_before.position.mean() < 3e-3


@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
def test_separators_units_in_headers_and_names_of_joints(arm, data, tmp_path, separator):
    q, T = data
    path = tmp_path / "p.csv"
    header = [*(f"{name}_deg" for name in arm.joint_names), "X[mm]", "Y[mm]", "Z[mm]"]
    rows = np.column_stack([np.degrees(q), 1e3 * T[:, :3, 3]])
    path.write_text("\n".join([separator.join(header), *(separator.join(f"{x:.12g}" for x in row) for row in rows)]))
    found = read(arm, path)
    np.testing.assert_allclose(found.q, q, atol=1e-10)
    np.testing.assert_allclose(found.observations[0].position, T[:, :3, 3], atol=1e-10)


@pytest.mark.parametrize(
    ("columns", "angles"),
    [
        (["roll", "pitch", "yaw"], lambda T: rpys(T)),
        (["w[deg]", "p[deg]", "r[deg]"], lambda T: np.degrees(rpys(T))),
        (["a_deg", "b_deg", "c_deg"], lambda T: np.degrees(rpys(T)[:, ::-1])),
        (["rx", "ry", "rz"], lambda T: rotation_log(T[:, :3, :3])),
        (["phix1", "phiy1", "phiz1"], lambda T: rpys(T)),
    ],
)
def test_orientation_conventions_by_column_name(arm, data, tmp_path, columns, angles):
    q, T = data
    position = ["x1", "y1", "z1"] if columns[0].endswith("1") else ["x", "y", "z"]
    found = read(arm, write(tmp_path / "p.csv", [*Q, *position, *columns], q, T[:, :3, 3], angles(T)))
    assert found.observations[0].quantity is Observed.POSE
    np.testing.assert_allclose(found.observations[0].rotation, T[:, :3, :3], atol=1e-12)


def test_several_targets_by_suffix_and_by_column(arm, data, tmp_path):
    q, T = data
    p = T[:, :3, 3]
    wide = write(tmp_path / "wide.csv", [*Q, "x1", "y1", "z1", "x2", "y2", "z2"], q, p, p + 0.1)
    tall = write(
        tmp_path / "tall.csv",
        [*Q, "x", "y", "z", "point", "config"],
        np.repeat(q, 2, axis=0),
        np.repeat(p, 2, axis=0),
        np.tile([1, 2], 40),
        np.repeat(np.arange(40), 2),
    )
    for path in (wide, tall):
        found = read(arm, path)
        assert len(found.observations) == 2
        assert len(np.unique(found.group)) == 40


def test_a_target_that_was_not_seen_leaves_a_gap(arm, data, tmp_path):
    q, T = data
    path = write(tmp_path / "p.csv", [*Q, "x", "y", "z"], q, T[:, :3, 3])
    lines = path.read_text().splitlines()
    lines[3] = ",".join([*lines[3].split(",")[:6], "", "", ""])
    path.write_text("\n".join(lines))
    found = read(arm, path)
    assert len(found.observations[0]) == 39
    assert 2 not in found.observations[0].rows


def test_planes_sockets_distances_and_lengths_are_read(arm, data, tmp_path):
    q, _ = data
    path = tmp_path / "p.csv"
    rows = [",".join([*Q, "plane", "socket", "distance", "anchor"])]
    for i, row in enumerate(q):
        kind = [["table", "", "", ""], ["", "cup", "", ""], ["", "", "0.75", "post"]][i % 3]
        rows.append(",".join([*(repr(float(x)) for x in row), *kind]))
    path.write_text("\n".join(rows))
    kinds = {o.quantity: (o.setup, len(o)) for o in read(arm, path).observations}
    assert kinds == {Observed.PLANE: ("table", 14), Observed.POINT: ("cup", 13), Observed.DISTANCE: ("post", 13)}
    path = write(tmp_path / "bar.csv", [*Q, "length", "other"], q[:10], np.full(10, 0.5), np.roll(np.arange(1, 11), 1))
    bar = read(arm, path).observations[0]
    assert bar.quantity is Observed.LENGTH
    assert bar.other_rows[0] == 9


def test_mapping_file_beside_the_data(arm, data, tmp_path):
    q, T = data
    quaternion = np.roll(quaternion_from_matrix(T[:, :3, :3]), -1, axis=1)
    header = [*(f"axis_{i}" for i in range(6)), "x", "y", "z", "qw", "qx", "qy", "qz"]
    write(tmp_path / "p.csv", header, np.degrees(q[:, ::-1]), 1e3 * T[:, :3, 3], quaternion)
    (tmp_path / "p.map.yaml").write_text(
        "format: armid-poses/1\njoints: [axis_5, axis_4, axis_3, axis_2, axis_1, axis_0]\nlengths: mm\nangles: deg\n"
        "orientation: quaternion-xyzw\nsigma: {position: 1e-3}\n"
    )
    found = read(arm, tmp_path / "p.csv")
    np.testing.assert_allclose(found.q, q, atol=1e-12)
    np.testing.assert_allclose(found.observations[0].rotation, T[:, :3, :3], atol=1e-12)
    assert found.observations[0].noise[0, 0] == 1e-3


def test_columns_under_names_of_their_own(arm, data, tmp_path):
    q, T = data
    header = [*Q, "TCP X [mm]", "TCP Y [mm]", "TCP Z [mm]", "x"]
    path = write(tmp_path / "p.csv", header, q, 1e3 * T[:, :3, 3], np.zeros(40))
    (tmp_path / "p.map.yaml").write_text("format: armid-poses/1\ncolumns: {x: TCP X, y: TCP Y, z: TCP Z}\n")
    np.testing.assert_allclose(read(arm, path).observations[0].position, T[:, :3, 3], atol=1e-12)
    (tmp_path / "p.map.yaml").write_text("format: armid-poses/1\ncolumns: {x: TCP A}\n")
    with pytest.raises(InputError, match="'TCP A' is not in the file"):
        read(arm, path)


def test_degrees(arm, data, tmp_path):
    q, T = data
    fails(arm, pose_file(tmp_path / "p.csv", np.degrees(q), T), match="these are degrees .use --angles deg")


def test_one_joint_in_degrees_is_told_from_all_of_them(arm, data, tmp_path):
    """Read with --angles deg the others would hardly move, and nothing would explain the rest."""
    q, T = np.array(data[0]), data[1]
    q[:, 5] = np.degrees(q[:, 5])
    fails(
        arm,
        pose_file(tmp_path / "p.csv", q, T),
        match=r"while .* stay below 12.6 as radians would .write the unit into",
    )


def test_mixed_degrees(arm, data, tmp_path):
    q, T = data
    mixed = np.array(q)
    mixed[30:] = np.degrees(mixed[30:])
    fails(arm, pose_file(tmp_path / "p.csv", mixed, T), match=r"p\.csv:32.*units are mixed within the file")


def test_millimetres(arm, data, tmp_path):
    q, T = data
    S = np.array(T)
    S[:, :3, 3] *= 1e3
    fails(arm, pose_file(tmp_path / "p.csv", q, S), match="these are millimetres .use --lengths mm")


@pytest.mark.parametrize(("metre", "unit"), [(1.0 / 0.0254, "inches"), (100.0, "centimetres")])
def test_other_units_of_length_are_not_called_millimetres(arm, data, tmp_path, metre, unit):
    S = np.array(data[1])
    S[:, :3, 3] *= metre
    fails(
        arm, pose_file(tmp_path / "p.csv", data[0], S), match=f"these are {unit} .write them in metres or millimetres"
    )


def test_mixed_millimetres(arm, data, tmp_path):
    q, T = data
    S = np.array(T)
    S[35:, :3, 3] *= 1e3
    fails(arm, pose_file(tmp_path / "p.csv", q, S), match=r"5 positions.*p\.csv:37.*units are mixed")


def test_quaternions_not_normalised(arm, data, tmp_path):
    q, T = data
    quaternion = quaternion_from_matrix(T[:, :3, :3])
    quaternion[4] *= 1.3
    fails(arm, pose_file(tmp_path / "p.csv", q, T, quaternion=quaternion), match=r"line 6: quaternion of length 1\.3")


def test_quaternions_in_another_order(arm, data, tmp_path):
    q, T = data
    quaternion = np.roll(quaternion_from_matrix(T[:, :3, :3]), -1, axis=1)
    path = pose_file(tmp_path / "p.csv", q, T, quaternion=quaternion)
    fails(arm, path, match="order x y z w .use --orientation quaternion-xyzw")
    calibrate(arm, read(arm, path, orientation="quaternion-xyzw"), **QUICK)


@pytest.mark.parametrize("order", ["zyx", "yxz"])
def test_wrong_euler_convention_is_detected_by_its_residual_pattern(arm, data, tmp_path, order):
    from scipy.spatial.transform import Rotation

    q, T = data
    angles = Rotation.from_matrix(T[:, :3, :3]).as_euler(order)
    path = write(tmp_path / "p.csv", [*Q, "x", "y", "z", "phix", "phiy", "phiz"], q, T[:, :3, 3], angles)
    fails(arm, path, match=f"--orientation euler-{order}")
    calibrate(arm, read(arm, path, orientation=f"euler-{order}"), **QUICK)


def test_euler_angles_under_the_name_of_a_rotation_vector(arm, data, tmp_path):
    q, T = data
    path = write(tmp_path / "p.csv", [*Q, "x", "y", "z", "rx", "ry", "rz"], q, T[:, :3, 3], rpys(T))
    fails(arm, path, match="--orientation euler-xyz")


def test_swapped_joints(arm, data, tmp_path):
    q, T = data
    swapped = np.array(q)
    swapped[:, [1, 2]] = q[:, [2, 1]]
    fails(
        arm,
        pose_file(tmp_path / "p.csv", swapped, T),
        match=f"{arm.joint_names[1]} and {arm.joint_names[2]} are swapped",
    )


def test_joint_with_the_wrong_sign(arm, data, tmp_path):
    q, T = data
    flipped = np.array(q)
    flipped[:, 4] *= -1
    fails(arm, pose_file(tmp_path / "p.csv", flipped, T), match=f"joint {arm.joint_names[4]} has the opposite sign")


def test_camera_on_the_hand(arm, data, tmp_path):
    q, T = data
    path = pose_file(tmp_path / "p.csv", q, inverse(T))
    fails(arm, path, match="--sensor hand")
    calibrate(arm, read(arm, path, sensor="hand"), **QUICK)


def test_missing_coupling(data, tmp_path):
    from pathlib import Path

    fanuc = load_robot(Path(__file__).parents[1] / "docs" / "robots" / "fanuc-r2000ic-165f.yaml")
    from dataclasses import replace

    q, _ = data
    T = forward_kinematics(fanuc, q)
    path = write(tmp_path / "p.csv", [*Q, "x", "y", "z"], q, T[:, :3, 3])
    fails(replace(fanuc, coupling=None), path, match="J3 = J3 [+] J2")


def test_another_robot(data, tmp_path):
    q, T = data
    rng = np.random.default_rng(0)
    path = pose_file(tmp_path / "p.csv", rng.permutation(q), T)
    fails(load_robot("ur10e"), path, match="no common mistake explains it")


def test_duplicated_targets_are_named(arm, data, tmp_path):
    q, T = data
    S = np.array(T)
    S[10] = S[9]
    S[20] = S[9]
    result = calibrate(arm, read(arm, pose_file(tmp_path / "p.csv", q, S)), **QUICK)
    note = next(n for n in result.notes if n.code == "duplicated-target")
    assert "p.csv:12" in note.message
    assert "p.csv:22" in note.message
    assert result.advice != "untrusted"
    S[25:35] = S[9]
    assert calibrate(arm, read(arm, pose_file(tmp_path / "p.csv", q, S)), **QUICK).advice == "untrusted"


def test_fewer_equations_than_parameters(arm, data, tmp_path):
    q, T = data
    path = write(tmp_path / "p.csv", [*Q, "x", "y", "z"], q[:2], T[:2, :3, 3])
    fails(arm, path, match="6 equations from 2 configurations cannot even place sensor and tool")
    path = write(tmp_path / "p.csv", [*Q, "x", "y", "z"], q[:8], T[:8, :3, 3])
    result = calibrate(arm, read(arm, path), **QUICK)
    assert any(n.code == "few-equations" for n in result.notes)


def test_frozen_joint_is_named(arm, data, tmp_path):
    q, _ = data
    still = np.array(q)
    still[:, 3] = 0.5
    T = forward_kinematics(arm, still)
    result = calibrate(arm, read(arm, pose_file(tmp_path / "p.csv", still, T)), **QUICK)
    assert any(n.code == "frozen-joints" and arm.joint_names[3] in n.message for n in result.notes)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "no rows"),
        ("q1,q2,q3,q4,q5,q6,x,y,z\n", "no rows"),
        ("1,2,3,4,5,6,7,8,9\n1,2,3,4,5,6,7,8,9\n", "first line is numbers"),
        ("q1,q2,q3,q4,q5,q6,x,y,z\n0,0,0,0,0,0,1,2\n", "line 2: 8 cells"),
        ("q1,q2,q3,q4,q5,q6,x,y,z\n0,0,0,0,0,zero,1,2,3\n", "'zero' in column 'q6'"),
        ("q1;q2;q3;q4;q5;q6;x;y;z\n0;0;0;0;0;0;1,5;2.5;3\n", "decimal commas"),
        ("q1,q2,q3,q4,q5,x,y,z\n0,0,0,0,0,1,2,3\n", "found 5 numbered joint columns"),
        ("q1,q2,q3,q4,q5,q6\n0,0,0,0,0,0\n", "no measurement columns"),
        ("q1,q2,q3,q4,q5,q6,x,y,z\n0,0,0,0,0,,1,2,3\n", "joint position q6 is missing"),
        ("q1,q1,q3,q4,q5,q6,x,y,z\n0,0,0,0,0,0,1,2,3\n", "appears twice"),
    ],
)
def test_unreadable_files(arm, tmp_path, text, match):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(InputError, match=match):
        read(arm, tmp_path / "p.csv")

"""Files as instruments and spreadsheets write them: read, or refused with the line to write."""

import numpy as np
import pytest

from armid.calibration.calibrate import calibrate
from armid.calibration.diagnose import twins
from armid.calibration.poses_table import read_mapping
from armid.calibration.read import read_poses
from armid.errors import InputError
from armid.kinematics.rotations import matrix_from_euler, matrix_from_quaternion
from tests.support.calibration_cells import Cell

JOINTS = tuple("ABCDEF")
ROW = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "cp1252"])
def test_encodings_of_instrument_programs(tmp_path, encoding):
    text = "q1;q2;q3;q4;q5;q6;x [mm];y [mm];z [mm];Bemerkung für °\n" + "0,1;0,2;0,3;0,4;0,5;0,6;1000,5;2;-3,25;gut\n"
    found = read_poses(write(tmp_path / "p.csv", text, encoding), JOINTS)
    np.testing.assert_allclose(found.q, [ROW])
    np.testing.assert_allclose(found.observations[0].position, [[1.0005, 0.002, -0.00325]])
    assert any("columns not read" in remark and "Bemerkung" in remark for remark in found.remarks)


def test_commas_and_points_in_one_file_are_refused(tmp_path):
    text = "q1;q2;q3;q4;q5;q6;x;y;z\n0,1;0,2;0,3;0,4;0,5;0,6;1.5;2;3\n"
    with pytest.raises(InputError, match=r"line 2.*decimal commas.*decimal points"):
        read_poses(write(tmp_path / "p.csv", text), JOINTS)


def test_decimal_commas_between_commas_are_refused_with_the_way_out(tmp_path):
    text = "q1,q2,q3,q4,q5,q6,x,y,z\n0,1,0,2,0,3,0,4,0,5,0,6,1,5,2,3,3,1\n"
    with pytest.raises(InputError, match=r"line 2.*decimal commas.*semicolons"):
        read_poses(write(tmp_path / "p.csv", text), JOINTS)


@pytest.mark.parametrize("above", ["Tracker AT960\nDate;2026-01-01\n", "Report of cell 4, hall 2\n\nunits: m, rad\n"])
def test_what_a_program_writes_above_the_header_is_left_out_and_told(tmp_path, above):
    text = "q1;q2;q3;q4;q5;q6;x;y;z\n0,1;0,2;0,3;0,4;0,5;0,6;1,5;2;3\n"
    found = read_poses(write(tmp_path / "p.csv", above + text), JOINTS)
    np.testing.assert_allclose(found.q, [ROW])
    assert found.labels == (f"p.csv:{above.count(chr(10)) + 2}",)
    assert any("2 lines above the header not read" in remark for remark in found.remarks)


def test_half_of_a_position_is_told(tmp_path):
    text = "q1,q2,q3,q4,q5,q6,x,y,z\n0.1,0.2,0.3,0.4,0.5,0.6,1,2,3\n0.1,0.2,0.3,0.4,0.5,0.7,1,,3\n"
    found = read_poses(write(tmp_path / "p.csv", text), JOINTS)
    assert len(found.observations[0]) == 1
    assert any("1 rows have only part of x, y, z" in remark and "line 3" in remark for remark in found.remarks)


def test_a_mapping_without_a_format_gets_the_line_to_write(tmp_path):
    with pytest.raises(InputError, match=r"write `format: armid-poses/1` as the first line"):
        read_mapping(write(tmp_path / "p.map.yaml", "angles: deg\n"))


def test_a_tracker_s_quaternion_beside_joints_of_the_same_letters(tmp_path):
    text = "q1,q2,q3,q4,q5,q6,X,Y,Z,Q0,Q1,Q2,Q3\n0.1,0.2,0.3,0.4,0.5,0.6,1,2,3,0.5,0.5,0.5,0.5\n"
    found = read_poses(write(tmp_path / "p.csv", text), JOINTS)
    np.testing.assert_allclose(found.q, [ROW])
    np.testing.assert_allclose(found.observations[0].rotation, matrix_from_quaternion(np.full((1, 4), 0.5)))


SIX = "0.1,0.2,0.3,0.4,0.5,0.6"


def test_a_quaternion_in_small_letters_beside_joints_of_another_name(tmp_path):
    text = f"J1,J2,J3,J4,J5,J6,x,y,z,q0,q1,q2,q3\n{SIX},1,2,3,0.6,0.8,0,0\n"
    found = read_poses(write(tmp_path / "p.csv", text), JOINTS)
    np.testing.assert_allclose(found.q, [ROW])
    np.testing.assert_allclose(found.observations[0].rotation, matrix_from_quaternion(np.array([[0.6, 0.8, 0.0, 0.0]])))


@pytest.mark.parametrize("letter", ["q", "J"])
def test_a_quaternion_counted_from_one_is_never_taken_for_joints(tmp_path, letter):
    """Q1..Q4 beside J1..J6 took the place of the first four joints; where the scalar stands nothing says."""
    head = ",".join(f"{letter}{k}" for k in range(1, 7))
    path = write(tmp_path / "p.csv", f"{head},x,y,z,Q1,Q2,Q3,Q4\n{SIX},1,2,3,0.6,0.8,0,0\n")
    with pytest.raises(InputError, match=r"a quaternion\?.*`columns: \{qw: Q1, qx: Q2, qy: Q3, qz: Q4\}`") as refused:
        read_poses(path, JOINTS)
    line = str(refused.value).split("`")[3]  # The second way out: the scalar is last.
    write(tmp_path / "p.map.yaml", f"format: armid-poses/1\n{line}\n")
    found = read_poses(path, JOINTS)
    np.testing.assert_allclose(found.q, [ROW])
    np.testing.assert_allclose(found.observations[0].rotation, matrix_from_quaternion(np.array([[0.0, 0.6, 0.8, 0.0]])))


def test_two_sets_of_joints_are_refused_with_the_line_to_write(tmp_path):
    head = ",".join(f"{letter}{k}" for letter in ("q", "theta") for k in range(1, 7))
    with pytest.raises(InputError, match=r"several sets.*`joints: \.\.\.`.*\[q1, .*\[theta1, "):
        read_poses(write(tmp_path / "p.csv", f"{head},x,y,z\n{SIX},{SIX},1,2,3\n"), JOINTS)


def test_a_joint_called_t_stands_beside_the_time_t(tmp_path):
    path = write(tmp_path / "p.csv", f"t,S,L,U,R,B,T,x,y,z\n7,{SIX},1,2,3\n")
    found = read_poses(path, tuple("SLURBT"))
    np.testing.assert_allclose(found.q, [ROW])
    np.testing.assert_allclose(found.conditions["time"], [7.0])
    with pytest.raises(InputError, match=r"'x' and 'X' differ by their case alone.*columns: \{x: x\}"):
        read_poses(write(tmp_path / "r.csv", f"q1,q2,q3,q4,q5,q6,x,y,z,X\n{SIX},1,2,3,4\n"), JOINTS)


@pytest.mark.parametrize("marks", ["deg,mm", "[°],[mm]", "(º),(mm)"])
def test_units_in_a_line_below_the_titles(tmp_path, marks):
    angle, length = marks.split(",")
    units = ";".join([angle] * 6 + [length] * 3)
    text = f"Tracker 7\nq1;q2;q3;q4;q5;q6;x;y;z\n{units}\n10,5;20;30;40;50;60;1000,5;2;3\n"
    found = read_poses(write(tmp_path / "p.csv", text), JOINTS)
    np.testing.assert_allclose(found.q, np.radians([[10.5, 20.0, 30.0, 40.0, 50.0, 60.0]]))
    np.testing.assert_allclose(found.observations[0].position, [[1.0005, 0.002, 0.003]])
    assert found.labels == ("p.csv:4",)


@pytest.mark.parametrize("number", ["1.234,5", "1 234,5", "1'234,5"])
def test_signs_between_thousands_are_named(tmp_path, number):
    text = f"q1;q2;q3;q4;q5;q6;x;y;z\n0,1;0,2;0,3;0,4;0,5;0,6;{number};2,5;3\n"
    with pytest.raises(InputError, match=r"line 2.*without signs between thousands"):
        read_poses(write(tmp_path / "p.csv", text), JOINTS)


def test_a_spreadsheet_s_minus_and_lines_that_end_in_their_delimiter(tmp_path):
    text = "q1;q2;q3;q4;q5;q6;x;y;z;\n\u22120,1;0,2;0,3;0,4;0,5;0,6;1,5;2;3;\n"
    found = read_poses(write(tmp_path / "p.csv", text), JOINTS)
    np.testing.assert_allclose(found.q, [(-0.1, *ROW[1:])])
    assert found.remarks == ()


def test_a_joint_called_t_is_no_time(tmp_path):
    text = "S,L,U,R,B,T,x,y,z\n0.1,0.2,0.3,0.4,0.5,0.6,1,2,3\n"
    found = read_poses(write(tmp_path / "p.csv", text), tuple("SLURBT"))
    np.testing.assert_allclose(found.q, [ROW])
    assert dict(found.conditions) == {}


def test_joints_in_rad_beside_euler_angles_and_deviations_in_degrees(tmp_path):
    text = "q1,q2,q3,q4,q5,q6,x,y,z,roll,pitch,yaw,std_rx,std_ry,std_rz\n0.1,0.2,0.3,0.4,0.5,0.6,1,2,3,10,20,30,0.1,0.1,0.2\n"
    write(tmp_path / "p.map.yaml", "format: armid-poses/1\nangles: rad\norientation_angles: deg\n")
    found = read_poses(write(tmp_path / "p.csv", text), JOINTS)
    np.testing.assert_allclose(found.q, [ROW])
    o = found.observations[0]
    np.testing.assert_allclose(o.rotation, matrix_from_euler(np.radians([[10.0, 20.0, 30.0]]), "xyz"))
    np.testing.assert_allclose(o.noise[0, 3:], np.radians([0.1, 0.1, 0.2]))


def test_one_mapping_for_several_files(tmp_path):
    mapping = write(
        tmp_path / "m.yaml",
        "format: armid-poses/1\nlengths: mm\nbodies: {plate: {smr1: [100, 0, 0], smr2: [0, 100, 0]}}\n",
    )
    head = "target,q1,q2,q3,q4,q5,q6,x,y,z\n"
    for name in ("smr1", "smr2"):
        write(tmp_path / f"{name}.csv", head + f"{name},0.1,0.2,0.3,0.4,0.5,0.6,1,2,3\n")
        found = read_poses(tmp_path / f"{name}.csv", JOINTS, mapping=read_mapping(mapping))
        assert list(found.places) == [name]
        assert max(found.places[name].position) == pytest.approx(0.1)


def test_bodies_in_millimetres_get_the_line_to_write(tmp_path):
    text = "format: armid-poses/1\nbodies: {plate: {smr1: [100, 0, 0]}}\n"
    with pytest.raises(InputError, match=r"100 m from its body.*lengths: mm"):
        read_mapping(write(tmp_path / "m.yaml", text))


def test_rows_without_a_measurement_are_told(tmp_path):
    text = "q1,q2,q3,q4,q5,q6,x,y,z\n0.1,0.2,0.3,0.4,0.5,0.6,1,2,3\n0.1,0.2,0.3,0.4,0.5,0.7,,,\n"
    found = read_poses(write(tmp_path / "p.csv", text), JOINTS)
    assert any("1 rows without a measurement, the first line 3" in remark for remark in found.remarks)


def test_a_marker_written_twice_is_an_error():
    cell, rng = Cell.drawn("ur10e", seed=1), np.random.default_rng(1)
    m = cell.measured(30, rng)
    from dataclasses import replace

    doubled = replace(m, observations=(*m.observations, replace(m.observations[0], target="again")))
    (note,) = twins(doubled)
    assert "one marker written twice" in note.message
    # The same in a file of micrometres: either copy is rounded by itself.
    (o,) = m.observations
    rounded = replace(o, target="again", position=np.round(np.asarray(o.position), 6))
    assert len(twins(replace(m, observations=(o, rounded)))) == 1
    near = replace(o, target="again", position=np.add(o.position, [1e-5, 0.0, 0.0]))
    assert twins(replace(m, observations=(o, near))) == []
    assert calibrate(cell.robot, doubled, terms="offset", folds=2).verdict == "untrusted"


HEAD = "q1,q2,q3,q4,q5,q6"
CELLS = "0.1,0.2,0.3,0.4,0.5,0.6"


def turned():
    """A pose: rotation matrix and position."""
    return matrix_from_euler(np.array([[0.3, -0.4, 0.5]]), "xyz")[0], np.array([1.0, -2.0, 0.5])


def matrix_file(path, titles, M):
    return write(path, f"{HEAD},{','.join(titles)}\n{CELLS},{','.join(repr(float(x)) for x in np.ravel(M))}\n")


@pytest.mark.parametrize("rows", [3, 4])
@pytest.mark.parametrize(
    "title", [lambda i, j: f"m{i}{j}", lambda i, j: f"T{i + 1}{j + 1}", lambda i, j: f"t_{i + 1}_{j + 1}"]
)
def test_homogeneous_matrices_row_by_row(tmp_path, title, rows):
    R, p = turned()
    M = np.vstack([np.column_stack([R, p]), [0.0, 0.0, 0.0, 1.0]])[:rows]
    found = read_poses(matrix_file(tmp_path / "p.csv", [title(i, j) for i in range(rows) for j in range(4)], M), JOINTS)
    np.testing.assert_allclose(found.observations[0].rotation[0], R, atol=1e-12)
    np.testing.assert_allclose(found.observations[0].position[0], p)
    assert found.remarks == ()


def test_a_matrix_written_column_by_column_is_refused(tmp_path):
    R, p = turned()
    M = np.vstack([np.column_stack([R, p]), [0.0, 0.0, 0.0, 1.0]]).T
    with pytest.raises(InputError, match=r"line 2: 1.0 in column 'm30'.*0 0 0 1.*column by column"):
        read_poses(matrix_file(tmp_path / "p.csv", [f"m{i}{j}" for i in range(4) for j in range(4)], M), JOINTS)


def test_rotation_matrices_counted_from_zero_and_as_n_o_a(tmp_path):
    R, p = turned()
    zero = [f"r{i}{j}" for i in range(3) for j in range(3)]
    columns = ["nx", "ny", "nz", "ox", "oy", "oz", "ax", "ay", "az", "px", "py", "pz"]
    for titles, values in ((["x", "y", "z", *zero], [*p, *R.ravel()]), (columns, [*R.T.ravel(), *p])):
        found = read_poses(matrix_file(tmp_path / "p.csv", titles, values), JOINTS)
        np.testing.assert_allclose(found.observations[0].rotation[0], R, atol=1e-12)
        np.testing.assert_allclose(found.observations[0].position[0], p)
        assert found.remarks == ()


@pytest.mark.parametrize(
    ("title", "factor"),
    [
        ("{}_cm", 1e-2),
        ("{} [in]", 0.0254),
        ("{} (µm)", 1e-6),
        ("{}_um", 1e-6),
        ("{} / mm", 1e-3),
        ("{} in mm", 1e-3),
        ("{} mm", 1e-3),
    ],
)
def test_units_in_titles(tmp_path, title, factor):
    head = ";".join([*(f"A{k} / °" for k in range(1, 7)), *(title.format(axis) for axis in "XYZ")])
    found = read_poses(write(tmp_path / "p.csv", f"{head}\n{';'.join(['90'] * 6)};1;2;3\n"), JOINTS)
    np.testing.assert_allclose(found.q, np.full((1, 6), np.pi / 2))
    np.testing.assert_allclose(found.observations[0].position, factor * np.array([[1.0, 2.0, 3.0]]))


def test_an_angle_in_millimetres_is_refused(tmp_path):
    text = f"q1_mm,q2,q3,q4,q5,q6,x,y,z\n{CELLS},1,2,3\n"
    with pytest.raises(InputError, match="'q1_mm' is an angle, its unit mm that of a length"):
        read_poses(write(tmp_path / "p.csv", text), JOINTS)


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        (("2024-05-01T23:59:30.5", "2024-05-02T00:00:30.5"), 60.0),
        (("01.05.2024 23:59:30", "02.05.2024 00:00:30"), 60.0),
        (("23:59:30", "0:00:30"), 60.0),
        (("10:00", "10:01"), 60.0),
        (("3.5", "63.5"), 60.0),
    ],
)
def test_dates_and_times_of_day(tmp_path, cells, seconds):
    rows = "\n".join(f"{cell},{CELLS},1,2,{k}" for k, cell in enumerate(cells))
    found = read_poses(write(tmp_path / "p.csv", f"timestamp,{HEAD},x,y,z\n{rows}\n"), JOINTS)
    np.testing.assert_allclose(np.diff(found.conditions["time"]), [seconds])
    assert found.remarks == ()


def test_a_date_that_nobody_understands_costs_nothing_but_the_time(tmp_path):
    found = read_poses(write(tmp_path / "p.csv", f"Time,{HEAD},x,y,z\nlast Monday,{CELLS},1,2,3\n"), JOINTS)
    assert "time" not in found.conditions
    assert any("columns not read: Time" in remark for remark in found.remarks)


def test_quoted_decimal_commas_between_commas(tmp_path):
    cells = ",".join(f'"{x}"'.replace(".", ",") for x in (*ROW, 1.5, 2.5, 3.5))
    found = read_poses(write(tmp_path / "p.csv", f"{HEAD},x,y,z\n{cells}\n"), JOINTS)
    np.testing.assert_allclose(found.q, [ROW])
    np.testing.assert_allclose(found.observations[0].position, [[1.5, 2.5, 3.5]])


def test_joints_as_a_recorder_of_a_controller_titles_them(tmp_path):
    head = ",".join(f"actual_q_{k}" for k in range(6))
    found = read_poses(write(tmp_path / "p.csv", f"{head},x,y,z\n{CELLS},1,2,3\n"), JOINTS)
    np.testing.assert_allclose(found.q, [ROW])

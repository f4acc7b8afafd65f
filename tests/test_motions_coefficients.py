"""Tables of Fourier coefficients as papers print them, read by every verb that takes a motion."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.cli import application
from armid.errors import InputError
from armid.inspection.inspect import inspect
from armid.motions.fourier import FourierTrajectory, from_velocity_form
from armid.motions.trajectory_files import load_trajectory, save_trajectory
from support.iiwa_motions import EXCITATION_A, EXCITATION_B, FEASIBILITY_A, FEASIBILITY_B

HEAD = "form: velocity\nperiod: 20\n"


def printed(a: np.ndarray, b: np.ndarray, *, separator: str = "\t") -> str:
    """Two halves with a row of joints above each, as in tables A.1 and A.2 of [Halper2024]."""
    joints = separator.join(["", *(f"q_{k + 1}" for k in range(a.shape[1]))])
    lines = []
    for letter, rows in (("a", a), ("b", b)):
        lines.append(joints)
        for k, row in enumerate(rows, start=1):
            label = f"{letter}_{{{k}}}" if k > 9 else f"{letter}_{k}"
            lines.append(separator.join([label, *(f"{x:.5f}" for x in row)]))
    return "\n".join(lines) + "\n"


def written(folder: Path, text: str, name: str = "table.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(("name", "separator"), [("a.txt", "\t"), ("a.csv", ","), ("a.tsv", "\t"), ("b.txt", " & ")])
def test_a_printed_table_is_the_motion(tmp_path: Path, name: str, separator: str) -> None:
    found = load_trajectory(written(tmp_path, HEAD + printed(FEASIBILITY_A, FEASIBILITY_B, separator=separator), name))
    names = tuple(f"joint{k + 1}" for k in range(7))
    wanted = from_velocity_form(names, 20.0, FEASIBILITY_A.T, FEASIBILITY_B.T)
    t = np.linspace(0.0, 20.0, 50)
    assert found.joint_names == names
    for mine, theirs in zip(found.sample(t), wanted.sample(t), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0.0, atol=1e-12)


def test_position_form_with_bias_and_names_of_the_arm(tmp_path: Path) -> None:
    text = (
        "# of a paper\nform = position\nperiod, 8\nrepetitions, 3\nshoulder,elbow\na1,0.5,0.1\nb1,0,-0.2\nbias,0.3,-1\n"
    )
    found = load_trajectory(written(tmp_path, text, "t.csv"))
    assert isinstance(found, FourierTrajectory)
    assert (found.joint_names, found.period, found.repetitions) == (("shoulder", "elbow"), 8.0, 3)
    q, _, _ = found.sample([0.0, 2.0])
    np.testing.assert_allclose(q, [[0.3, -1.2], [0.8, -0.9]], atol=1e-12)


@pytest.mark.parametrize(("seconds", "condition"), [(20, 63.2), (27, 113.6)])
def test_inspect_prints_the_condition_number_of_table_1(tmp_path: Path, seconds: int, condition: float) -> None:
    path = written(tmp_path, HEAD + f"duration: {seconds}\n" + printed(EXCITATION_A, EXCITATION_B))
    words = ["inspect", "iiwa14", "--friction", "viscous,coulomb", "--trajectory", str(path)]
    done = CliRunner().invoke(application(), [*words, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["excitation"]["condition_number"] == pytest.approx(condition, abs=0.1)
    found = inspect("iiwa14", friction="viscous,coulomb", trajectory=path)
    assert found.motion is not None
    assert f"condition number {found.motion.condition_number:.4g}" in " ".join(found.summary().split())


def test_show_reads_it(tmp_path: Path) -> None:
    pytest.importorskip("viser")
    path = written(tmp_path, HEAD + printed(FEASIBILITY_A, FEASIBILITY_B))
    with armid.show("iiwa14", path, port=0) as viewer:
        assert viewer.url


def test_a_folder_of_design_is_its_motion(tmp_path: Path) -> None:
    motion = load_trajectory(written(tmp_path, HEAD + printed(FEASIBILITY_A, FEASIBILITY_B)))
    with pytest.raises(InputError, match="no such file"):
        load_trajectory(tmp_path)
    save_trajectory(motion, tmp_path / "trajectory.json")
    t = np.linspace(0.0, motion.duration, 7)
    np.testing.assert_array_equal(load_trajectory(tmp_path).sample(t)[0], motion.sample(t)[0])


def test_simulate_reads_it(tmp_path: Path) -> None:
    """The same run as from our own JSON."""
    rng = np.random.default_rng(2)
    a, b = 0.1 * rng.normal(size=(2, 3, 3))
    path = written(tmp_path, "form: velocity\nperiod: 2\n" + printed(a, b))
    stored = save_trajectory(load_trajectory(path), tmp_path / "table.json")
    logs = []
    for k, motion in enumerate((path, stored)):
        out = tmp_path / f"run{k}"
        words = ["simulate", "cmu-dd-arm2", str(motion), "--sensors", "perfect", "--out", str(out)]
        done = CliRunner().invoke(application(), words)
        assert done.exit_code == 0, done.output
        logs.append(next(out.glob("*.csv")).read_bytes())
    assert logs[0] == logs[1]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("period: 20\nq_1\na_1 1\nb_1 1\n", "form is missing"),
        ("form: velocity\nq_1\na_1 1\nb_1 1\n", "period is missing"),
        (HEAD + "a_1 1\nb_1 1\na_2 1\n", "no row b_2"),
        (HEAD + "a_1 1\na_1 1\nb_1 2\n", "line 4.*second row a_1"),
        (HEAD + "a_1 1 2\nb_1 1\n", "rows of 1, 2 values"),
        (HEAD + "q_1 q_2\na_1 1\nb_1 1\n", "rows of 1, 2 values"),
        (HEAD + "a_1 1 x\nb_1 1 2\n", "line 3.*'x'"),
        (HEAD + "a_1 nan\nb_1 1\n", "not finite"),
        (HEAD + "a_0 1\nb_0 1\na_1 1\nb_1 1\n", "do not start at 1"),
        (HEAD + "0.1 0.2\n", "without a label"),
        (HEAD, "no rows of coefficients"),
        ("form: speed\nperiod: 20\na_1 1\nb_1 1\n", "speed"),
        ("form: velocity\nperiod: -3\na_1 1\nb_1 1\n", "period -3"),
        ("form: velocity\nperiod: long\na_1 1\nb_1 1\n", "period.*long"),
        ("form: velocity\nperiod: 3 4\na_1 1\nb_1 1\n", "period with 2 values"),
        (HEAD + "q_1 q_2\na_1 1 2\nq_2 q_1\nb_1 1 2\n", "the same joints"),
    ],
)
def test_what_is_no_such_table_is_said(tmp_path: Path, text: str, match: str) -> None:
    with pytest.raises(InputError, match=match):
        load_trajectory(written(tmp_path, text))

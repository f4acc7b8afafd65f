"""Generated regressors (func_Y, func_Y_b, func_pi_b of [Halper2024]) against the library's rows."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.errors import InputError
from armid.export.formats import RegressorKind
from armid.export.regressor_code import regressor_code
from armid.export.source_code import Language
from armid.identifiability.structure import structural_base
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import effects_of
from armid.robot import Robot
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from support.chains import random_robot

ARMS = {
    "iiwa14": lambda: load_robot("iiwa14"),
    "cylindrical": lambda: load_robot("cylindrical"),
    "coupled": lambda: random_robot(np.random.default_rng(0), 4, coupled=True),
}
EFFECTS = effects_of("viscous,coulomb,offset", rotor_inertia=True)


@pytest.fixture(params=list(ARMS))
def arm(request: pytest.FixtureRequest) -> Robot:
    return ARMS[request.param]()


def loaded(text: str, path: Path):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_python_gives_the_rows_of_the_library(arm: Robot, tmp_path: Path) -> None:
    rows, n = TorqueRows(arm, EFFECTS), arm.n_joints
    x = np.random.default_rng(1).normal(size=3 * n)
    expected = evaluate_rows(rows, x[np.newaxis])[0]
    whole = loaded(regressor_code(arm, EFFECTS, Language.PYTHON, RegressorKind.STANDARD)["arm.py"], tmp_path / "y.py")
    np.testing.assert_allclose(whole.regressor(*x.reshape(3, n)), expected, atol=1e-11)
    reduced = loaded(regressor_code(arm, EFFECTS, Language.PYTHON, RegressorKind.BASE)["arm.py"], tmp_path / "y_b.py")
    base, pi = structural_base(rows), np.random.default_rng(2).normal(size=len(rows.columns))
    Y_b, pi_b = np.array(reduced.base_regressor(*x.reshape(3, n))), np.array(reduced.base_parameters(pi))
    assert Y_b.shape == (n, len(base))
    np.testing.assert_allclose(pi_b, base.projection @ pi, atol=1e-11)
    np.testing.assert_allclose(Y_b @ pi_b, expected @ pi, atol=1e-8 * np.abs(expected @ pi).max())


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on this machine")
def test_compiled_c_gives_the_rows_of_the_library(arm: Robot, tmp_path: Path) -> None:
    for name, text in regressor_code(arm, EFFECTS, Language.C, RegressorKind.BASE).items():
        (tmp_path / name).write_text(text)
    library = tmp_path / "arm.so"
    flags = ["-O1", "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", library, tmp_path / "arm.c", "-lm"], check=True)
    rows, n = TorqueRows(arm, EFFECTS), arm.n_joints
    base, x = structural_base(rows), np.random.default_rng(1).normal(size=(3, n))
    out = np.zeros((n, len(base)))
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*(np.ascontiguousarray(v) for v in x), out)]
    ctypes.CDLL(str(library)).arm_base_regressor(*pointers)
    expected = evaluate_rows(rows, x.reshape(1, -1))[0][:, base.independent]
    np.testing.assert_allclose(out, expected, atol=1e-11)


def test_matlab_has_a_function_per_file() -> None:
    files = regressor_code(load_robot("iiwa14"), effects_of("viscous,coulomb"), Language.MATLAB, RegressorKind.BASE)
    assert set(files) == {"arm_base_regressor.m", "arm_base_parameters.m"}
    assert "out = [" in files["arm_base_regressor.m"]
    # 7 rows of 57 columns, as the work has them.
    matrix = files["arm_base_regressor.m"].split("out = [")[1].split("];")[0]
    assert [row.count(",") + 1 for row in matrix.split(";")] == [57] * 7


def test_the_verb_writes_a_regressor_of_a_robot(tmp_path: Path) -> None:
    words = ["export", "cylindrical", "--to", "python", "--what", "base-regressor", "--friction", "none", "--json"]
    done = CliRunner().invoke(application(), [*words, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    file = Path(json.loads(done.stdout)["file"])
    assert "Columns in order" in file.read_text()
    refused = CliRunner().invoke(application(), ["export", "cylindrical", "--to", "urdf", "--what", "regressor"])
    assert refused.exit_code == 1


def test_friction_that_the_motion_alone_does_not_decide_is_refused() -> None:
    effects = effects_of("viscous,coulomb,stribeck", shapes=True)
    with pytest.raises(InputError, match="stribeck"):
        regressor_code(load_robot("iiwa14"), effects, Language.C, RegressorKind.STANDARD)

"""Compiled code against the recursion on NumPy and on plain floats, on random chains and on awkward sizes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from armid.errors import ShapeError
from armid.kernels import dynamics, kinematics
from armid.kernels.cache import CacheWarning, read_object
from armid.kernels.compiled import compile_plan
from armid.kernels.evaluate import SMALL, CompiledRows, Restricted, evaluate_rows, reference_rows, residuals
from armid.kernels.gradients import rows_vjp
from armid.kernels.ir import Finish, KernelPlan
from armid.kernels.lanes import BLOCK
from armid.parameters.effects import Effects
from armid.recursion import dynamics as recursion
from armid.recursion.scalars import FLOATS
from armid.recursion.tape import Tape, vector_jacobian
from armid.robot import Robot
from armid.rows.torque import TorqueRows
from support.chains import random_robot

EVERYTHING = Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True)
TOLERANCE = 1e-10


def relative(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(actual - expected).max() / max(1.0, np.abs(expected).max()))


def inputs_for(robot: Robot, rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.normal(size=(count, 3 * robot.n_joints))


@pytest.mark.parametrize("seed", range(30))
def test_random_chain_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 1 + seed % 10, coupled=seed % 3 == 0)
    source = TorqueRows(robot, EVERYTHING)
    x = inputs_for(robot, rng, 37)
    code = CompiledRows(source)
    assert relative(code.dense(x), reference_rows(source, x)) < TOLERANCE


@pytest.mark.parametrize("count", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 7, 40 * BLOCK + 3])
@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_any_number_of_samples_and_threads(count: int, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMID_THREADS", threads)
    rng = np.random.default_rng(count)
    robot = random_robot(np.random.default_rng(3), 3)
    source = TorqueRows(robot, EVERYTHING)
    x, y = inputs_for(robot, rng, count), rng.normal(size=(count, 3))
    code = CompiledRows(source)
    A = reference_rows(source, x)
    assert relative(code.dense(x), A) < TOLERANCE
    columns = [*np.asfortranarray(x).T, *np.asfortranarray(y).T]
    for k, (G, seen) in enumerate(zip(code.gram_kernel.gram(columns), code.channel_columns, strict=True)):
        W = np.column_stack([A[:, k, seen], y[:, k]])
        assert relative(G, W.T @ W) < TOLERANCE
    b = rng.normal(size=len(source.columns))
    r = y - A @ b
    totals = code.correction_kernel.total(columns, b)
    expected = np.concatenate(
        [[*(A[:, k, seen].T @ r[:, k]), r[:, k] @ r[:, k]] for k, seen in enumerate(code.channel_columns)]
    )
    assert relative(totals, expected) < TOLERANCE


def test_residuals_equal_rows_times_parameters() -> None:
    rng = np.random.default_rng(0)
    robot = random_robot(rng, 4, coupled=True)
    source = TorqueRows(robot, EVERYTHING)
    for count in (SMALL, SMALL + 1):
        x, y, pi = inputs_for(robot, rng, count), rng.normal(size=(count, 4)), rng.normal(size=len(source.columns))
        assert relative(residuals(source, x, y, pi), y - reference_rows(source, x) @ pi) < TOLERANCE


def test_floats_are_the_reference_of_the_reference() -> None:
    rng = np.random.default_rng(1)
    robot = random_robot(rng, 5)
    q, qd, qdd = rng.normal(size=(3, 1, 5))
    Y = dynamics.regressor(robot, q, qd, qdd)[0]
    rows = recursion.regressor(robot, list(q[0]), list(qd[0]), list(qdd[0]), FLOATS)
    for k in range(5):
        for i in range(5):
            expected = np.zeros(10) if rows[k][i] is None else np.array(rows[k][i])
            assert relative(Y[k, 10 * i : 10 * i + 10], expected) < TOLERANCE


@pytest.mark.parametrize("coupled", [False, True])
def test_batch_functions_small_and_large_agree(coupled: bool) -> None:
    rng = np.random.default_rng(2)
    robot = random_robot(rng, 6, coupled=coupled)
    q, qd, qdd = rng.normal(size=(3, SMALL + 50, 6))
    cases = (
        lambda s: dynamics.inverse_dynamics(robot, q[s], qd[s], qdd[s], drives=True),
        lambda s: dynamics.regressor(robot, q[s], qd[s], qdd[s]),
        lambda s: dynamics.regressor(robot, q[s], qd[s], qdd[s], columns=[59, 3, 40], joints=["j2"]),
        lambda s: dynamics.mass_matrix(robot, q[s]),
        lambda s: dynamics.coriolis(robot, q[s], qd[s]),
        lambda s: dynamics.gravity(robot, q[s]),
        lambda s: dynamics.kinetic_energy(robot, q[s], qd[s]),
        lambda s: dynamics.potential_energy(robot, q[s]),
        lambda s: kinematics.forward_kinematics(robot, q[s]),
        lambda s: kinematics.jacobian(robot, q[s]),
        lambda s: dynamics.forward_dynamics(robot, q[s], qd[s], qdd[s], drives=True),
    )
    for function in cases:
        assert relative(function(slice(None))[:40], function(slice(0, 40))) < TOLERANCE


def test_chosen_columns_and_joints_are_those_of_the_whole() -> None:
    rng = np.random.default_rng(4)
    robot = random_robot(rng, 4)
    q, qd, qdd = rng.normal(size=(3, 9, 4))
    Y = dynamics.regressor(robot, q, qd, qdd)
    assert np.array_equal(
        dynamics.regressor(robot, q, qd, qdd, columns=[31, 2], joints=["j3", "j1"]), Y[:, [2, 0]][:, :, [31, 2]]
    )


def test_coupling_preserves_power() -> None:
    rng = np.random.default_rng(5)
    robot = random_robot(rng, 4, coupled=True)
    q, qd, qdd = rng.normal(size=(3, 20, 4))
    free = Robot(name=robot.name, joints=robot.joints, links=robot.links, frames=robot.frames, gravity=robot.gravity)
    C = robot.coupling
    assert C is not None
    tau = dynamics.inverse_dynamics(robot, q, qd, qdd)
    tau_geometric = dynamics.inverse_dynamics(free, q @ C.T, qd @ C.T, qdd @ C.T)
    assert relative((tau * qd).sum(1), (tau_geometric * (qd @ C.T)).sum(1)) < TOLERANCE
    M = dynamics.mass_matrix(robot, q)
    assert relative(0.5 * np.einsum("si,sij,sj->s", qd, M, qd), dynamics.kinetic_energy(robot, q, qd)) < TOLERANCE


def test_mass_rate_minus_twice_coriolis_is_skew() -> None:
    rng = np.random.default_rng(6)
    robot = random_robot(rng, 6, coupled=True)
    q, qd = rng.normal(size=(2, 10, 6))
    step = 1e-6
    rate = (dynamics.mass_matrix(robot, q + step * qd) - dynamics.mass_matrix(robot, q - step * qd)) / (2 * step)
    S = rate - 2 * dynamics.coriolis(robot, q, qd)
    assert relative(S + S.transpose(0, 2, 1), np.zeros_like(S)) < 1e-6  # central difference of a unit-scale function


def test_energies_and_torque_balance_along_a_motion() -> None:
    rng = np.random.default_rng(7)
    robot = random_robot(rng, 5)
    a, b = rng.normal(size=(2, 5))

    def motion(t: np.ndarray) -> tuple[np.ndarray, ...]:
        t = t[:, np.newaxis]
        return a * np.sin(b * t), a * b * np.cos(b * t), -a * b * b * np.sin(b * t)

    t, step = np.linspace(0.0, 3.0, 40), 1e-5

    def energy(time: np.ndarray) -> np.ndarray:
        q, qd, _ = motion(time)
        return dynamics.kinetic_energy(robot, q, qd) + dynamics.potential_energy(robot, q)

    q, qd, qdd = motion(t)
    power = (dynamics.inverse_dynamics(robot, q, qd, qdd) * qd).sum(1)
    assert relative((energy(t + step) - energy(t - step)) / (2 * step), power) < 1e-7  # step^2 truncation


@pytest.mark.parametrize("seed", range(8))
def test_gradient_of_rows_by_finite_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 2 + seed % 5, coupled=seed % 2 == 0)
    source = TorqueRows(robot, EVERYTHING)
    x = inputs_for(robot, rng, 6)
    bar = rng.normal(size=(6, len(source.channels), len(source.columns)))
    gradient = rows_vjp(source, x, bar)
    step = 1e-6
    for k in range(x.shape[1]):
        d = np.zeros(x.shape[1])
        d[k] = step
        slope = ((reference_rows(source, x + d) - reference_rows(source, x - d)) * bar).sum((1, 2)) / (2 * step)
        assert relative(gradient[:, k], slope) < 1e-6  # truncation and cancellation of the difference


def test_restricted_source_keeps_names_and_order() -> None:
    robot = random_robot(np.random.default_rng(8), 3)
    source = TorqueRows(robot, EVERYTHING)
    part = Restricted(source, (5, 1, 17))
    assert part.columns == tuple(source.columns[k] for k in (5, 1, 17))
    x = inputs_for(robot, np.random.default_rng(9), 4)
    assert np.array_equal(evaluate_rows(part, x), evaluate_rows(source, x)[:, :, [5, 1, 17]])


def test_sine_and_cosine_to_the_last_bits() -> None:
    tape = Tape()
    x = tape.input(0)
    kernel = compile_plan(KernelPlan(tape, ((tape.sin(x), tape.cos(x), tape.sign(x)),), Finish.STORE))
    rng = np.random.default_rng(0)
    special = [0.0, -0.0, np.pi / 4, np.pi / 2, -np.pi / 2, np.pi, 1e-300, -1e-9]
    values = np.concatenate([special, rng.uniform(-4, 4, 5000), rng.uniform(-1e4, 1e4, 5000)])
    sine, cosine, sign = kernel.store([values])
    assert np.abs(sine - np.sin(values)).max() < 3e-16
    assert np.abs(cosine - np.cos(values)).max() < 3e-16
    assert np.array_equal(sign, np.sign(values))


def test_tape_folds_constants_and_signs() -> None:
    tape = Tape()
    x, y = tape.input(0), tape.input(1)
    zero, one = tape.constant(0.0), tape.constant(1.0)
    assert (x * zero).is_zero
    assert (x * one).index == x.index
    assert (x + zero).index == x.index
    assert (x - x).is_zero
    assert ((-x) * (-y)).index == (x * y).index
    assert (x - (-y)).index == (x + y).index
    assert (-(x - y)).index == (y - x).index
    assert (2.0 * (3.0 * x)).index == (6.0 * x).index
    assert tape.cos(-x).index == tape.cos(x).index


def test_adjoint_of_a_product_is_exact() -> None:
    tape = Tape()
    x, y, w = tape.input(0), tape.input(1), tape.input(2)
    (dx, dy) = vector_jacobian(tape, [x * tape.sin(y)], [w], [x, y])
    kernel = compile_plan(KernelPlan(tape, ((dx, dy),), Finish.STORE))
    a, b, c = np.random.default_rng(0).normal(size=(3, 50))
    out = kernel.store([a, b, c])
    assert relative(out[0], c * np.sin(b)) < 1e-15
    assert relative(out[1], c * a * np.cos(b)) < 1e-15


COMPILE = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from support.chains import random_robot
from armid.rows.torque import TorqueRows
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects
effects = Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True)
x = np.random.default_rng(12).normal(size=(700, 12))
print(evaluate_rows(TorqueRows(random_robot(np.random.default_rng(11), 4), effects), x).sum())
"""


def test_cache_is_shared_by_processes_and_survives_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = COMPILE.format(tests=str(Path(__file__).parent))
    environment = {**os.environ, "ARMID_CACHE": str(tmp_path)}
    running = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE) for _ in range(3)
    ]
    results = [process.communicate(timeout=60)[0] for process in running]
    assert results[0]
    assert len(set(results)) == 1
    files = list(tmp_path.glob("*.o"))
    assert files
    assert not list(tmp_path.glob("*.tmp"))
    for file in files:
        file.write_bytes(file.read_bytes()[:-20])
        assert read_object(file) is None
    monkeypatch.setenv("ARMID_CACHE", str(tmp_path))
    source = TorqueRows(random_robot(np.random.default_rng(11), 4), EVERYTHING)
    assert not CompiledRows(source).store_kernel.loaded.from_cache
    assert CompiledRows(source).store_kernel.loaded.from_cache


def test_cache_that_cannot_be_written_is_not_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("ARMID_CACHE", str(blocked))
    source = TorqueRows(random_robot(np.random.default_rng(13), 2))
    x = np.random.default_rng(0).normal(size=(5, 6))
    with pytest.warns(CacheWarning, match="compiled again in every run"):
        rows = CompiledRows(source).dense(x)
    assert relative(rows, reference_rows(source, x)) < TOLERANCE


def test_wrong_shapes_are_named() -> None:
    robot = random_robot(np.random.default_rng(0), 3)
    with pytest.raises(ShapeError, match=r"qd has shape \[4, 3\], expected \[5, 3\]"):
        dynamics.inverse_dynamics(robot, np.zeros((5, 3)), np.zeros((4, 3)), np.zeros((5, 3)))
    with pytest.raises(ShapeError, match="inertial has shape"):
        dynamics.gravity(robot, np.zeros((1, 3)), inertial=np.zeros(7))
    with pytest.raises(ShapeError, match="cotangent"):
        rows_vjp(TorqueRows(robot), np.zeros((2, 9)), np.zeros((2, 3, 2)))

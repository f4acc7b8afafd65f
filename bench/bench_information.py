"""216 000 samples of a 7-joint arm to 57 base parameters with per-joint variances, beside what people do."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import scipy.linalg

from armid.information.accumulate import accumulate
from armid.kernels.evaluate import Restricted, compiled_rows, residuals
from armid.parameters.effects import Effects
from armid.robot import Robot
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from bench.bench_kernels import base_columns
from bench.measure import best, extra_memory_mb, once, table, threads
from support.chains import pinocchio_model

SAMPLES = 216_000
EFFECTS = Effects(viscous=True, coulomb=True)


def motion(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """A Fourier motion, stored column by column."""
    t = np.linspace(0.0, 27.0, count)[:, np.newaxis]
    x = np.zeros((count, 3 * n), order="F")
    for harmonic in range(1, 6):
        w = 2 * np.pi * harmonic / 27.0
        a, b = rng.normal(size=(2, n)) / harmonic
        x[:, :n] += a * np.sin(w * t) - b * np.cos(w * t)
        x[:, n : 2 * n] += w * (a * np.cos(w * t) + b * np.sin(w * t))
        x[:, 2 * n :] += w * w * (-a * np.sin(w * t) + b * np.cos(w * t))
    return x


def ours(source: Restricted, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Base parameters and the standard deviation of each joint's residual."""
    information = accumulate(source, x, y)
    F = information.stacked()
    b = scipy.linalg.solve_triangular(F[:-1, :-1], F[:-1, -1])
    return b, [(c.error_energy(b) / c.count) ** 0.5 for c in information.channels]


def pinocchio_lstsq(robot: Robot, columns: tuple[int, ...], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    model = pinocchio_model(robot)
    data = model.createData()
    n = robot.n_joints
    q, v, a = (np.ascontiguousarray(x[:, k * n : (k + 1) * n]) for k in range(3))
    order = standard_order(columns, n)
    W = np.zeros((len(x), n, len(columns)))
    rigid = [k for k, source in enumerate(order) if source[0] == "rigid"]
    picked = np.array([order[k][1] for k in rigid])
    for s in range(len(x)):
        W[s][:, rigid] = pin.computeJointTorqueRegressor(model, data, q[s], v[s], a[s])[:, picked]
    for k, (kind, joint) in enumerate(order):
        if kind == "viscous":
            W[:, joint, k] = v[:, joint]
        elif kind == "coulomb":
            W[:, joint, k] = np.sign(v[:, joint])
    W = W.reshape(-1, len(columns))
    b = np.linalg.lstsq(W, y.reshape(-1), rcond=None)[0]
    r = (y.reshape(-1) - W @ b).reshape(-1, n)
    return np.concatenate([b, r.std(axis=0)])


def standard_order(columns: tuple[int, ...], n: int) -> list[tuple[str, int]]:
    """Where each column comes from: Pinocchio's regressor (its own order of the ten), or friction."""
    place = (0, 1, 2, 3, 4, 5, 7, 6, 8, 9)
    out: list[tuple[str, int]] = []
    for column in columns:
        joint, k = divmod(column, 12)
        out.append(("rigid", 10 * joint + place[k]) if k < 10 else (("viscous", "coulomb")[k - 10], joint))
    return out


def figaroh_reduction(robot: Robot, x: np.ndarray, y: np.ndarray) -> None:
    from figaroh.tools.qrdecomposition import double_QR
    from figaroh.tools.regressor import RegressorBuilder, RegressorConfig

    n = robot.n_joints
    model = pinocchio_model(robot)
    builder = RegressorBuilder(
        SimpleNamespace(model=model, data=model.createData()), RegressorConfig(has_friction=True)
    )
    W = builder.build_basic_regressor(*(x[:, k * n : (k + 1) * n] for k in range(3)), {"act_idxv": range(n)})
    names = [f"p{k}" for k in range(W.shape[1])]
    kept = np.linalg.norm(W, axis=0) > 1e-6
    double_QR(y.T.reshape(-1), W[:, kept], [name for name, keep in zip(names, kept, strict=True) if keep])


def main() -> None:
    rng = np.random.default_rng(0)
    robot = load_robot("iiwa14")
    columns = base_columns(robot, EFFECTS)
    source = Restricted(TorqueRows(robot, EFFECTS), columns)
    x = motion(7, SAMPLES, rng)
    truth = rng.normal(size=len(columns))
    y = np.asfortranarray(-residuals(source, x, np.zeros((SAMPLES, 7)), truth) + 0.1 * rng.normal(size=(SAMPLES, 7)))
    results: dict[str, tuple[float, float]] = {}
    for count in (1, 2):
        with threads(count):
            results[f"armid, {count} thread(s)"] = (
                best(lambda: ours(source, x, y)),
                extra_memory_mb(lambda: ours(source, x, y)),
            )
    results |= ready_matrix(compiled_rows(source).dense(x).reshape(-1, len(columns)), y.reshape(-1))
    difference = np.abs(ours(source, x, y)[0] - truth).max()
    results["(c) Pinocchio loop + numpy lstsq"] = measured(lambda: pinocchio_lstsq(robot, columns, x, y))
    with suppress(ImportError):
        results["(d) figaroh builder + reduction"] = measured(lambda: figaroh_reduction(robot, x, y))
    reference = results["(c) Pinocchio loop + numpy lstsq"][0]
    table(
        f"{SAMPLES} samples x 7 joints -> {len(columns)} base parameters with variances",
        ("", "s", "(c) / this", "extra MB"),
        [(name, seconds, reference / seconds, memory) for name, (seconds, memory) in results.items()],
    )
    print(f"largest error of a parameter: {difference:.2g} (torque noise 0.1 N m)")
    table("Cost against length, one thread", ("samples", "s", "us/sample", "extra MB"), list(lengths(source, rng)))


def ready_matrix(W: np.ndarray, y: np.ndarray) -> dict[str, tuple[float, float]]:
    """What a solver costs that is given the dense matrix for free."""
    return {
        "(a) LAPACK QR of the ready matrix": measured(
            lambda: scipy.linalg.qr(np.column_stack([W, y]), mode="r", check_finite=False)
        ),
        "(b) numpy lstsq of the ready matrix": measured(lambda: np.linalg.lstsq(W, y, rcond=None)),
    }


def measured(function) -> tuple[float, float]:
    seconds: list[float] = []
    memory = extra_memory_mb(lambda: seconds.append(once(function)))
    return seconds[0], memory


def lengths(source: Restricted, rng: np.random.Generator):
    for count in (100_000, 1_000_000, 10_000_000):
        x = motion(7, count, rng)
        y = np.asfortranarray(rng.normal(size=(count, 7)))
        with threads(1):
            seconds, memory = measured(lambda x=x, y=y: ours(source, x, y))
        yield count, seconds, seconds / count * 1e6, memory


if __name__ == "__main__":
    main()

"""Regressor of the 7-joint arm: microseconds per sample beside Pinocchio, CasADi and figaroh; scaling."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pinocchio as pin

from armid.kernels.compiled import Kernel, contiguous_columns
from armid.kernels.evaluate import CompiledRows, Restricted
from armid.kernels.ir import Finish, KernelPlan, module_text
from armid.kernels.machine import load, machine
from armid.parameters.effects import Effects
from armid.robot import Robot
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from bench.measure import best, table, threads
from support.chains import pinocchio_model, random_robot


@dataclass(frozen=True)
class Case:
    robot: Robot
    columns: tuple[int, ...]

    @property
    def source(self) -> Restricted:
        return Restricted(TorqueRows(self.robot, Effects()), self.columns)


def base_columns(robot: Robot, effects: Effects) -> tuple[int, ...]:
    from armid.identifiability.structure import structural_base

    return tuple(int(k) for k in structural_base(TorqueRows(robot, effects)).independent)


def in_cache(code: CompiledRows, inputs: np.ndarray) -> float:
    """Microseconds per sample of the rows alone: computed block by block and left in cache, nothing copied out."""
    tape, rows = code.recorded
    plan = KernelPlan(tape, (tuple(node for row in rows for node in row.values()),), Finish.STORE)
    text = "\n".join(
        line for line in module_text(plan, machine().lanes).split("\n") if "ptr %target, ptr %source" not in line
    )
    kernel = Kernel((plan.slots,), plan.widths, Finish.STORE, load(text))
    columns = contiguous_columns(inputs)
    return best(lambda: kernel.store(columns), 20) / len(inputs) * 1e6


def pinocchio_loop(robot: Robot, inputs: np.ndarray, keep: bool) -> None:
    model = pinocchio_model(robot)
    data = model.createData()
    n = robot.n_joints
    q, v, a = (np.ascontiguousarray(inputs[:, k * n : (k + 1) * n]) for k in range(3))
    W = np.empty((len(inputs), n, 10 * n)) if keep else None
    for s in range(len(inputs)):
        Y = pin.computeJointTorqueRegressor(model, data, q[s], v[s], a[s])
        if W is not None:
            W[s] = Y


class CasadiScalars:
    """The recursion on CasADi's symbols."""

    def __init__(self) -> None:
        import casadi

        self.casadi = casadi

    def constant(self, value: float, symbol: str | None = None):
        from armid.robot.elementary import snapped

        return self.casadi.SX(snapped(value))

    def sin(self, x):
        return self.casadi.sin(x)

    def cos(self, x):
        return self.casadi.cos(x)

    def sign(self, x):
        return self.casadi.sign(x)


def casadi_map(case: Case, inputs: np.ndarray) -> float:
    import casadi

    x = casadi.SX.sym("x", inputs.shape[1])
    rows = case.source.rows([x[k] for k in range(inputs.shape[1])], CasadiScalars())
    entries = casadi.vertcat(*[value for row in rows for value in row.values()])
    mapped = casadi.Function("rows", [x], [entries]).map(len(inputs))
    data = casadi.DM(np.ascontiguousarray(inputs.T))
    return best(lambda: mapped(data), 3) / len(inputs) * 1e6


def figaroh_builder(robot: Robot, inputs: np.ndarray) -> float:
    from figaroh.tools.regressor import RegressorBuilder, RegressorConfig

    model = pinocchio_model(robot)
    wrapper = SimpleNamespace(model=model, data=model.createData())
    builder = RegressorBuilder(wrapper, RegressorConfig())
    n = robot.n_joints
    return (
        best(
            lambda: builder.build_basic_regressor(
                *(inputs[:, k * n : (k + 1) * n] for k in range(3)), {"act_idxv": range(n)}
            ),
            2,
        )
        / len(inputs)
        * 1e6
    )


def start_up() -> tuple[float, float]:
    """Seconds from nothing, and from a warm disk cache, to the first thousand rows, each in its own process."""
    program = (
        "import time; t = time.perf_counter()\n"
        "import numpy as np\n"
        "from armid.robot.load import load_robot\n"
        "from armid.rows.torque import TorqueRows\n"
        "from armid.kernels.evaluate import CompiledRows\n"
        "CompiledRows(TorqueRows(load_robot('iiwa14'))).packed(np.zeros((1000, 21)))\n"
        "print(time.perf_counter() - t)"
    )
    with tempfile.TemporaryDirectory() as directory:
        import os

        environment = {**os.environ, "ARMID_CACHE": directory}
        runs = [
            float(
                subprocess.run(
                    [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
                ).stdout
            )
            for _ in range(2)
        ]
    return runs[0], runs[1]


def main() -> None:
    rng = np.random.default_rng(0)
    iiwa = load_robot("iiwa14")
    case = Case(iiwa, base_columns(iiwa, Effects()))
    inputs = np.asfortranarray(rng.uniform(-2, 2, size=(65536, 21)))
    few = inputs[:4096]
    with threads(1):
        code = CompiledRows(case.source)
        ours = in_cache(code, inputs)
        stored = best(lambda: code.packed(inputs)) / len(inputs) * 1e6
        adjoint_seed = np.ones((len(code.entries), len(few)))
        adjoint = best(lambda: code.packed_vjp(few, adjoint_seed)) / len(few) * 1e6
    loop = best(lambda: pinocchio_loop(iiwa, few, keep=True), 3) / len(few) * 1e6
    rows: list[tuple[object, ...]] = [
        (f"armid, {len(case.columns)} base columns, left in cache", ours, loop / ours),
        ("armid, the same stored to memory", stored, loop / stored),
        ("armid, adjoint of the rows (vector-Jacobian product)", adjoint, loop / adjoint),
        ("Pinocchio computeJointTorqueRegressor, Python loop + store", loop, 1.0),
    ]
    for name, function in (
        ("CasADi map, base columns", lambda: casadi_map(case, few)),
        ("figaroh RegressorBuilder", lambda: figaroh_builder(iiwa, few)),
    ):
        try:
            value = function()
            rows.append((name, value, loop / value))
        except ImportError as error:
            rows.append((f"{name}: not installed ({error.name})", "-", "-"))
    table("Regressor, iiwa14, one core", ("", "us/sample", "times the Pinocchio loop"), rows)
    cold, warm = start_up()
    table(
        "From import to the first rows, iiwa14, all columns",
        ("", "s"),
        [("compiled", cold), ("from the disk cache", warm)],
    )
    table(
        "Scaling: all standard columns stored to memory",
        ("", "1 thread us", "2 threads us", "ratio"),
        list(scaling(rng)),
    )


def scaling(rng: np.random.Generator):
    for name, robot in (
        ("3 joints, cmu-dd-arm2", load_robot("cmu-dd-arm2")),
        ("6 joints, ur10e", load_robot("ur10e")),
        ("7 joints, iiwa14", load_robot("iiwa14")),
        ("12 joints, random", random_robot(rng, 12)),
    ):
        code = CompiledRows(TorqueRows(robot, Effects()))
        inputs = np.asfortranarray(rng.normal(size=(32768, 3 * robot.n_joints)))
        times = []
        for count in (1, 2):
            with threads(count):
                times.append(best(lambda code=code, inputs=inputs: code.packed(inputs)) / len(inputs) * 1e6)
        yield name, times[0], times[1], times[0] / times[1]


if __name__ == "__main__":
    main()

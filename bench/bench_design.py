"""Excitation of the iiwa: ours, SLSQP with finite differences, and CasADi + IPOPT, on the same problem, cores and time.

Problem: iiwa14, 57 base parameters (viscous and Coulomb friction), Fourier series with 10 harmonics over 20 s, bias free, at
rest at the start; position and velocity limits. All three minimise over the same coefficients and are judged by the same
certificate: condition number at 100 Hz with the true sign of velocity, motion shrunk until every instant is within limits.

    python bench/bench_design.py [--seconds 60] [--workers 2] [--harmonics 10] [--only ours,slsqp,casadi] [--json]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time

import numpy as np

from armid.design.candidate import shrunk
from armid.design.certificate import certify
from armid.design.excitation import ExcitationGrid
from armid.design.search import Budget, search
from armid.design.statement import DesignSettings, excitation_problem
from armid.identifiability.criteria import condition_numbers
from armid.identifiability.expectation import excitation_information
from armid.identifiability.structure import structural_base
from armid.motions.basis import FourierBasis
from armid.parameters.effects import effects_of
from armid.robot.load import load_robot

PERIOD = 20.0
COUNT = 128


def the_problem(margin=0.0, everything=False):
    kinds = {"position", "velocity"} | ({"acceleration", "jerk", "torque"} if everything else set())
    effects = effects_of("viscous,coulomb")
    settings = DesignSettings(effects=effects, margin=margin, limits=frozenset(kinds), self_collision=everything)
    return excitation_problem(load_robot("iiwa14"), settings, None)[0]


def judged(problem, basis, coefficients):
    """Condition number of the motion after shrinking it into its limits; infinite when that does not help."""
    names = problem.robot.joint_names
    proof = certify(basis.trajectory(coefficients, names), problem.robot, problem.limits, problem.scene)
    if proof.kinematic_worst > 1.0:
        coefficients = shrunk(basis, coefficients, problem, (1.0 - 1e-6) / proof.kinematic_worst)
    trajectory = basis.trajectory(coefficients, names)
    if not certify(trajectory, problem.robot, problem.limits, problem.scene).feasible:
        return float("inf")
    return condition_numbers(excitation_information(problem.rows, trajectory), structural_base(problem.rows))[0]


def best_time(function, repeats=20):
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def gradient_cost(problem, basis):
    """Seconds of a value with gradient, and of the same gradient by finite differences of the value, and their agreement."""
    grid = ExcitationGrid(problem, basis, COUNT)
    y = grid.variables(basis.random(problem.limits, np.random.default_rng(0)))
    prices = grid.multipliers(10.0)
    ours = best_time(lambda: grid.evaluate(y, prices))
    value = best_time(lambda: value_only(problem, basis, y, grid))
    return ours, value * (grid.size + 1), grid.size


def value_only(problem, basis, y, grid):
    """What a peer evaluates: the dense regressor of the motion by NumPy, its singular values, and the constraints."""
    motion = grid.motion(y)
    A = dense_rows(problem, motion)
    s = np.linalg.svd(A.reshape(-1, A.shape[2]), compute_uv=False)
    return s[0] / s[-1], np.abs(grid.usage(motion))


def dense_rows(problem, motion):
    from armid.kernels.evaluate import compiled_rows

    return compiled_rows(problem.source).dense(np.ascontiguousarray(motion[:3].reshape(21, -1).T))


def run_slsqp(seed, seconds, harmonics, out):
    """Multi-start SLSQP, gradients by finite differences, condition number as objective: what published tools do."""
    from scipy.optimize import minimize

    problem, basis = the_problem(), FourierBasis(PERIOD, harmonics)
    grid = ExcitationGrid(problem, basis, COUNT)
    deadline, best, count = time.monotonic() + seconds, (float("inf"), None), 0
    bounds = problem.limits

    class OverError(Exception):
        pass

    def accepted(y):
        latest[0] = y.copy()

    def objective(y):
        nonlocal count
        if time.monotonic() > deadline:
            raise OverError
        count += 1
        A = dense_rows(problem, grid.motion(y))
        s = np.linalg.svd(A.reshape(-1, A.shape[2]), compute_uv=False)
        return float(np.log(s[0] / s[-1]))

    def constraint(y):
        usage = np.abs(grid.usage(grid.motion(y))[:14])
        # The worst instant of every joint: SLSQP's own work grows with the cube of the number of constraints.
        return 1.0 - usage.max(axis=1)

    start = 0
    latest = [None]
    while time.monotonic() < deadline:
        rng = np.random.default_rng([seed, start])
        start += 1
        y = latest[0] = grid.variables(basis.random(bounds, rng))
        try:
            y = minimize(
                objective,
                y,
                method="SLSQP",
                callback=accepted,
                constraints={"type": "ineq", "fun": constraint},
                options={"maxiter": 200},
            ).x
        except OverError:
            y = latest[0]
        reached = judged(problem, basis, grid.coefficients(y))
        if reached < best[0]:
            best = (reached, start)
    out.put((best[0], count))


def run_casadi(seed, seconds, harmonics, out):
    """IPOPT on CasADi's expression graph of the same rows: log-det (it diverges on condition numbers), exact derivatives."""
    import casadi as ca

    problem, basis = the_problem(), FourierBasis(PERIOD, harmonics)
    count = COUNT // 2
    deadline = time.monotonic() + seconds
    grid = ExcitationGrid(problem, basis, COUNT)
    P = basis.matrices(np.linspace(0, PERIOD, count, endpoint=False))
    n, size, r = 7, basis.size, len(problem.columns)
    x = ca.SX.sym("x", 3 * n)
    A = casadi_rows(ca, problem, x)
    row = ca.Function("rows", [x], [A])
    C = ca.MX.sym("C", size, n)
    scaled = C @ ca.DM(np.diag(grid.stretch))
    motion = [ca.DM(P[k]) @ scaled for k in range(3)]
    many = row.map(count)(ca.horzcat(*motion).T)
    W = ca.reshape(many, n * r, count)
    gram = ca.MX.zeros(r, r)
    for k in range(count):
        block = ca.reshape(W[:, k], n, r)
        gram += block.T @ block / count
    G = ca.SX.sym("G", r, r)
    log_det = ca.Function("log_det", [G], [-ca.sum1(ca.log(ca.diag(ca.chol(G)))) / r])
    objective = log_det(gram)
    limits = problem.limits
    usage = ca.vertcat(
        ca.vec(
            (motion[0] - ca.repmat(ca.DM(limits.middle).T, count, 1)) / ca.repmat(ca.DM(limits.half_range).T, count, 1)
        ),
        ca.vec(motion[1] / ca.repmat(ca.DM(limits.velocity).T, count, 1)),
    )
    nlp = {"x": ca.vec(C), "f": objective, "g": usage}
    options = {
        "ipopt.print_level": 0,
        "print_time": False,
        "ipopt.hessian_approximation": "limited-memory",
        "ipopt.max_wall_time": 1.0,
    }
    value_gradient = ca.Function("vg", [nlp["x"]], [objective, ca.gradient(objective, nlp["x"])])
    best, start, cost = float("inf"), 0, None
    while time.monotonic() < deadline - 1.0:
        rng = np.random.default_rng([seed, start])
        start += 1
        y = basis.random(limits, rng) / grid.stretch
        if cost is None:
            cost = best_time(lambda y=y: value_gradient(y.reshape(-1, order="F")), 3)
        options["ipopt.max_wall_time"] = max(deadline - time.monotonic(), 1.0)
        solver = ca.nlpsol("s", "ipopt", nlp, options)
        solution = solver(x0=y.reshape(-1, order="F"), lbg=-1.0, ubg=1.0)
        coefficients = np.array(solution["x"]).reshape(size, n, order="F") * grid.stretch
        best = min(best, judged(problem, basis, coefficients))
    out.put((best, cost))


def casadi_rows(ca, problem, x):
    """The base rows as a CasADi graph, by running the recursion on its scalars."""

    class Scalars:
        def constant(self, value, symbol=None):
            nearest = float(round(value))
            return ca.SX(nearest if abs(value - nearest) < 1e-15 else value)

        sin, cos, sign = staticmethod(ca.sin), staticmethod(ca.cos), staticmethod(ca.sign)

    rows = problem.source.rows([x[k] for k in range(x.numel())], Scalars())
    A = ca.SX.zeros(len(rows), len(problem.columns))
    for k, row in enumerate(rows):
        for column, value in row.items():
            A[k, column] = value
    return A


def in_processes(target, seconds, harmonics, workers):
    context = multiprocessing.get_context("spawn")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARMID_THREADS"):
        os.environ[name] = "1"
    out = context.Queue()
    began = time.time()
    processes = [context.Process(target=target, args=(k, seconds, harmonics, out)) for k in range(workers)]
    for process in processes:
        process.start()
    results = [out.get() for _ in processes]
    for process in processes:
        process.join()
    return results, time.time() - began


def main(arguments=()):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--harmonics", type=int, default=10)
    parser.add_argument("--only", default="ours,ours-all,slsqp,casadi")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(list(arguments))
    wanted = chosen.only.split(",")
    problem, basis = the_problem(), FourierBasis(PERIOD, chosen.harmonics)
    result = {"seconds": chosen.seconds, "workers": chosen.workers, "harmonics": chosen.harmonics}
    exact, differences, variables = gradient_cost(problem, basis)
    result |= {
        "variables": variables,
        "gradient_ms": 1e3 * exact,
        "finite_difference_ms": 1e3 * differences,
        "gradient_ratio": differences / exact,
    }
    print(
        f"value and gradient, {variables} variables: ours {1e3 * exact:.2f} ms, finite differences {1e3 * differences:.0f} ms "
        f"({differences / exact:.0f} times as long)",
        flush=True,
    )
    for name, everything, margin in (("ours", False, 0.0), ("ours-all", True, 0.05)):
        if name in wanted:
            own = the_problem(margin, everything)
            found = search(own, (basis,), Budget(chosen.seconds, workers=chosen.workers))
            reached = judged(own, basis, found.best.coefficients)
            result[name] = reached
            what = "all limits and self-collision, 5 % margin" if everything else "position and velocity limits"
            print(
                f"ours, {what}: condition number {reached:.2f} after {found.seconds:.0f} s, {found.evaluations} evaluations, "
                f"history {[(round(t), round(c, 2)) for t, c in found.history]}",
                flush=True,
            )
    if "slsqp" in wanted:
        found, took = in_processes(run_slsqp, chosen.seconds, chosen.harmonics, chosen.workers)
        result["slsqp"] = min(c for c, _ in found)
        print(
            f"SLSQP with finite differences: condition number {result['slsqp']:.2f} after {took:.0f} s, "
            f"{sum(k for _, k in found)} values",
            flush=True,
        )
    if "casadi" in wanted:
        found, took = in_processes(run_casadi, chosen.seconds, chosen.harmonics, chosen.workers)
        result["casadi"] = min(c for c, _ in found)
        costs = [c for _, c in found if c is not None]
        result["casadi_gradient_ms"] = 1e3 * min(costs) if costs else None
        print(
            f"CasADi + IPOPT on log-det: condition number {result['casadi']:.2f} after {took:.0f} s"
            + (f", {1e3 * min(costs):.0f} ms per value and gradient" if costs else ""),
            flush=True,
        )
    if chosen.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])

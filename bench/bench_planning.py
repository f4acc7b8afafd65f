"""Time-optimal motion along a path: how long planning takes, beside toppra on the same path and grid."""

from __future__ import annotations

import numpy as np

from armid.parameters.effects import Effects
from armid.planning.constraints import constraints_of, planning_limits
from armid.planning.fastest import fastest_motion
from armid.planning.model import model_of_robot
from armid.planning.motion import PlanSettings
from armid.planning.path import SplinePath
from armid.planning.reduced import reduced_dynamics
from armid.planning.timing import fastest
from armid.robot import load_robot
from bench.measure import best, table

POINTS = 1000


def main() -> None:
    rows = []
    for name in ("iiwa14", "panda"):
        robot = load_robot(name)
        limits = planning_limits(robot)[0]
        middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
        waypoints = middle + half * np.random.default_rng(0).uniform(-0.5, 0.5, (6, 7))
        path = SplinePath(robot.joint_names, waypoints)
        model = model_of_robot(robot)
        doubt = np.diag((0.03 * model.values) ** 2)
        rigid = model_of_robot(robot, effects=Effects(rotor_inertia=True))
        theta = np.linspace(0.0, path.length, POINTS)
        free = limits.but(jerk=np.inf)

        prepared = constraints_of(reduced_dynamics(path, rigid, theta), free, 0.0)
        terms = best(lambda path=path, model=model, theta=theta: reduced_dynamics(path, model, theta).A)
        rows.append((f"{name}: reduced dynamics of {POINTS} points", terms, "-"))
        passes = best(lambda prepared=prepared: fastest(prepared))
        rows.append((f"{name}: no friction, no jerk: the two passes alone", passes, fastest(prepared).duration))
        reference = toppra_passes(path, rigid, free, theta)
        if reference is not None:
            rows.append((f"{name}: the same by toppra (seidel), its passes alone", best(reference, 3), reference()))
        for label, chosen, settings in (
            ("with friction, checked", model, PlanSettings(points=POINTS, limits=free)),
            ("with friction and jerk, checked", model, PlanSettings(points=POINTS)),
            (
                "with friction, jerk and doubt (two plans)",
                doubtful(model, doubt),
                PlanSettings(points=POINTS, confidence=0.99),
            ),
        ):
            plan = fastest_motion(path, chosen, settings)
            seconds = best(
                lambda path=path, chosen=chosen, settings=settings: fastest_motion(path, chosen, settings), 3
            )
            rows.append((f"{name}: {label}", seconds, plan.duration))
    table(f"Motion along a path of 7 joints, {POINTS} points", ("", "s to plan", "s of motion"), rows)


def doubtful(model, covariance):
    from dataclasses import replace

    return replace(model, covariance=covariance)


def toppra_passes(path, model, limits, theta):
    """The same problem in toppra, with the terms already evaluated (it asks for torque one point at a time)."""
    try:
        import toppra as ta
    except ImportError:
        return None
    n = len(path.joint_names)

    class Curve(ta.interpolator.AbstractGeometricPath):
        dof, path_interval, waypoints = n, np.array([0.0, path.length]), None

        def __call__(self, s, order=0):
            values = path.derivatives(np.atleast_1d(s))[order]
            return values[0] if np.isscalar(s) else values

    def pair(x):
        return np.stack([-x, x], axis=1)

    scheme = ta.constraint.DiscretizationType.Interpolation
    constraints = [
        ta.constraint.JointVelocityConstraint(pair(limits.velocity)),
        ta.constraint.JointAccelerationConstraint(pair(limits.acceleration), discretization_scheme=scheme),
        ta.constraint.JointTorqueConstraint(
            lambda q, qd, qdd: model.torque(q, qd, qdd)[0],
            pair(limits.torque),
            np.zeros(n),
            discretization_scheme=scheme,
        ),
    ]
    method = ta.algorithm.TOPPRA(constraints, Curve(), gridpoints=theta, solver_wrapper="seidel")

    def run() -> float:
        _, speed, _ = method.compute_parameterization(0.0, 0.0)
        return float((2.0 * np.diff(theta) / (speed[1:] + speed[:-1])).sum())

    return run


if __name__ == "__main__":
    main()

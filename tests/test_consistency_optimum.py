"""The conic program against other routes: cvxpy with a first-order solver, optimality over random feasible points, limits."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from armid.consistency.bodies import BASIS, bodies_of
from armid.consistency.bounds import Bounds, CentreBox, CentreEllipsoid, CentreHull
from armid.consistency.consistent import Consistency
from armid.consistency.places import support_of_ellipsoid, support_of_slab
from armid.consistency.prior import Prior
from armid.consistency.regularisers import Entropic, Euclidean, PullBack
from armid.information.information import ChannelInformation, Information, triangular
from armid.information.status import EstimationError, Status
from armid.parameters.inertial import INERTIAL_NAMES, from_centre_of_mass, pseudo_inertia, to_centre_of_mass

NAMES = (*(f"link{i}.{name}" for i in (1, 2) for name in INERTIAL_NAMES), "joint1.viscous", "joint2.coulomb")
P0 = (
    from_centre_of_mass(2.0, [0.1, 0.0, 0.2], np.diag([0.03, 0.04, 0.02])),
    from_centre_of_mass(1.5, [0.0, 0.1, 0.1], np.diag([0.02, 0.015, 0.02])),
)
PRIOR = Prior(names=NAMES, values=np.concatenate([*P0, [0.5, 0.5]]), scale=np.ones(22), origin={})
UNITS = ("",) * 22
RADIUS = 0.16
"""[m], of the ball and ellipsoid below."""
TETRAHEDRON = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3.0)


def rows(seed=0, count=14):
    """Rows that leave eight directions open, measured on bodies that are not quite possible."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(count, 22)) * 10.0
    truth = np.array(PRIOR.values)
    truth[[4, 7, 9]] = 0.01, 0.12, 0.01
    truth[20] = -0.2
    return A, A @ truth + rng.normal(size=count) * 0.1


def information(A, b):
    factor = triangular(np.column_stack([A, b]))
    return Information(NAMES, (ChannelInformation("all", np.arange(22), factor, float(len(b))),))


CASES = {
    "cone alone": Bounds(),
    "mass": Bounds(mass={"link1": (2.5, 3.0), "link2": (0.5, 1.0)}),
    "mass known": Bounds(mass={"link1": (2.5, 2.5)}),
    "total mass known": Bounds(total_mass=(5.0, 5.0)),
    "total mass": Bounds(total_mass=(0.0, 2.0)),
    "centre in a box": Bounds(where={"link1": (CentreBox(np.array([-0.02, 0.05, 0.0]), np.array([0.02, 0.1, 0.1])),)}),
    "centre in an ellipsoid": Bounds(
        where={"link2": (CentreEllipsoid(np.array([0.0, 0.0, 0.1]), np.diag([1 / 0.02, 1 / 0.05, 1 / 0.04])),)}
    ),
    "centre in a hull": Bounds(where={"link1": (CentreHull(TETRAHEDRON, np.full(4, 0.03)),)}),
    "mass in an ellipsoid": Bounds(where={"link1": (support_of_ellipsoid(np.zeros(3), np.eye(3) / RADIUS),)}),
    "mass between planes": Bounds(where={"link2": (support_of_slab(np.array([0.0, 1.0, 0.0]), 0.0, 0.08),)}),
}


def expressed(x, body):
    """Pseudo-inertia, mass and first moment of a body as cvxpy expressions of the parameters."""
    ten = [x[c] for c in body.columns]
    P = sum(ten[k] * BASIS[k] for k in range(10))
    return P, ten[0], cp.hstack(ten[1:4])


def stated(bounds, x, bodies):
    """The bounds written down once more, by hand."""
    out = [x[20] >= 0, x[21] >= 0]
    parts = {body.owner: expressed(x, body) for body in bodies}
    for body in bodies:
        out.append(parts[body.owner][0] >> bounds.margin * pseudo_inertia(body.of(PRIOR.values)))
    for owner, (low, high) in bounds.mass.items():
        out += [parts[owner][1] >= low, parts[owner][1] <= high]
    if bounds.total_mass is not None:
        total = sum(m for _, m, _ in parts.values())
        out += [total >= bounds.total_mass[0], total <= bounds.total_mass[1]]
    for owner, places in bounds.where.items():
        P, m, h = parts[owner]
        for place in places:
            match place:
                case CentreBox():
                    out += [h >= place.lower * m, h <= place.upper * m]
                case CentreHull():
                    out.append(place.normals @ h <= place.offsets * m)
                case CentreEllipsoid():
                    out.append(cp.norm(place.A @ (h - place.centre * m)) <= m)
                case _:
                    out.append(cp.trace(place.Q @ P) >= 0)
    return out


def divergence(name, x, bodies):
    if name == "euclidean":
        return cp.sum_squares(x - PRIOR.values)
    total = cp.sum_squares(x[20:] - PRIOR.values[20:])
    for body in bodies:
        W = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(body.of(PRIOR.values))))
        P = W @ expressed(x, body)[0] @ W.T
        if name == "pull-back":
            total += 0.5 * cp.sum_squares(P - np.eye(4))
        else:
            total += cp.trace(P) - cp.log_det(P) - 4.0
    return total


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("regulariser", [PullBack(1.0), Entropic(1.0), Euclidean(1.0)], ids=lambda r: r.name)
def test_the_optimum_is_that_of_another_modeller_and_solver(case, regulariser):
    A, b = rows()
    bounds = CASES[case]
    estimate = Consistency(regulariser, bounds).fit(information(A, b), UNITS, PRIOR)
    x = cp.Variable(22)
    bodies = bodies_of(NAMES)
    objective = cp.sum_squares(A @ x - b) + regulariser.weight * divergence(regulariser.name, x, bodies)
    problem = cp.Problem(cp.Minimize(objective), stated(bounds, x, bodies))
    problem.solve(solver=cp.SCS, eps_abs=1e-7, eps_rel=1e-7, max_iters=60_000)
    ours = estimate.chi_square + regulariser.weight * regulariser.value(estimate.values, PRIOR)
    assert ours == pytest.approx(problem.value, rel=2e-4, abs=2e-4)
    assert np.allclose(estimate.values, x.value, atol=5e-3 * np.abs(x.value).max())
    assert not bounds.broken(NAMES, bodies, estimate.values, np.ones(22), tolerance=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_no_feasible_direction_descends(case):
    """A convex optimum: the gradient makes no obtuse angle with the way to any feasible point."""
    A, b = rows()
    bounds = CASES[case]
    weight = 1.0
    settings = Consistency(PullBack(weight), bounds)
    x = settings.fit(information(A, b), UNITS, PRIOR).values
    F = PullBack().root(PRIOR)
    gradient = 2.0 * (A.T @ (A @ x - b) + weight * F.T @ F @ (x - PRIOR.values))
    rng = np.random.default_rng(1)
    scale = np.linalg.norm(gradient)
    for _ in range(30):
        # Other feasible points: optima of other, random problems under the same constraints.
        other = settings.fit(information(rng.normal(size=(22, 22)), rng.normal(size=22)), UNITS, PRIOR).values
        way = other - x
        assert gradient @ way >= -1e-5 * scale * np.linalg.norm(way)


@pytest.mark.parametrize("case", [name for name in CASES if name != "cone alone"])
def test_each_bound_matters_and_holds(case):
    A, b = rows()
    free, bound = (Consistency(PullBack(1.0), k).fit(information(A, b), UNITS, PRIOR) for k in (Bounds(), CASES[case]))
    bodies = bodies_of(NAMES)
    assert CASES[case].broken(NAMES, bodies, free.values, np.ones(22)), "without the bound it would not hold"
    assert not CASES[case].broken(NAMES, bodies, bound.values, np.ones(22))
    assert any(note.code == "bounds-active" for note in bound.notes)
    assert bound.chi_square + PullBack().value(bound.values, PRIOR) > free.chi_square + PullBack().value(
        free.values, PRIOR
    )


def test_known_masses_are_met_exactly():
    A, b = rows()
    estimate = Consistency(PullBack(1.0), Bounds(mass={"link1": (2.5, 2.5)}, total_mass=(4.0, 4.0))).fit(
        information(A, b), UNITS, PRIOR
    )
    masses = [to_centre_of_mass(body.of(estimate.values))[0] for body in estimate.bodies]
    assert masses == pytest.approx([2.5, 1.5], abs=1e-7)


def test_a_weak_prior_decides_to_the_last_digit_where_strong_data_leave_directions_open():
    """Rows a thousand and a million times as precise as they need be: the same answer where they are silent."""
    A = rows(count=10)[0]
    b = A @ np.array(PRIOR.values)
    shifted = Prior(names=NAMES, values=PRIOR.values * 1.1, scale=PRIOR.scale, origin={})
    answers = [
        Consistency(PullBack(1e-2)).fit(information(precision * A, precision * b), UNITS, shifted).values
        for precision in (1e3, 1e6)
    ]
    assert np.allclose(answers[0], answers[1], atol=1e-4 * np.abs(answers[0]).max())


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (Bounds(mass={"link1": (-2.0, -1.0)}), "mass of link1 at most -1 kg"),
        (
            Bounds(mass={"link1": (3.0, 4.0)}, total_mass=(1.0, 2.0)),
            "mass of link1 at least 3 kg; total mass of the links at most 2",
        ),
        (
            Bounds(
                where={
                    "link1": (
                        CentreBox(np.full(3, 0.2), np.full(3, 0.3)),
                        CentreEllipsoid(np.zeros(3), np.eye(3) / 0.1),
                    )
                }
            ),
            "centre of mass of link1 in its box; centre of mass of link1 in its ellipsoid",
        ),
        (
            Bounds(
                where={
                    "link2": (
                        CentreBox(np.full(3, 0.5), np.full(3, 0.6)),
                        support_of_ellipsoid(np.zeros(3), np.eye(3) / 0.1),
                    )
                }
            ),
            "centre of mass of link2 in its box; mass of link2 spread no wider",
        ),
    ],
)
def test_contradictions_name_a_smallest_set_of_bounds(bounds, message):
    with pytest.raises(EstimationError, match=f"exclude each other: {message}") as caught:
        Consistency(PullBack(1.0), bounds).fit(information(*rows()), UNITS, PRIOR)
    assert caught.value.status is Status.INFEASIBLE

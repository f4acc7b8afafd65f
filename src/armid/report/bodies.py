"""Whether the bodies can exist: margins, mass matrices, and the links as ellipsoids."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from armid.consistency.positivity import positivity_along, positivity_over, with_standard
from armid.identification.gate import margins
from armid.identification.residuals import run_names
from armid.identification.result import Result
from armid.kernels.kinematics import forward_kinematics
from armid.page import Block, Figure, Paragraph, Section, Table
from armid.parameters.inertial import to_centre_of_mass
from armid.report import plots
from armid.robot.robot import Robot

_PALETTE = (plots.BLUE, plots.ORANGE, plots.GREEN, plots.PINK, plots.SKY, plots.YELLOW, plots.GREY)


def consistency_section(result: Result) -> Section:
    blocks: tuple[Block, ...] = (
        Paragraph(_how_found(result)),
        Paragraph(_in_words(result)),
        _margin_table(result),
        _mass_matrix_table(result),
        _cost_table(result),
        _ellipsoid_figure(result.robot),
    )
    return Section("consistency", "Physical consistency", blocks)


_WAYS = {
    "lmi": "the convex program over positive definite pseudo-inertias (lmi), whose optimum is global",
    "successive-lmi": "convex programs in a row (successive-lmi), which take in what is known about centres of mass",
    "log-cholesky": "smooth refinement of the convex program in log-cholesky coordinates",
    "eq3.53": "the inequalities of [Halper2024] (eq3.53), which do not by themselves make bodies possible",
}


def _how_found(result: Result) -> str:
    """Method, pull, and what the parameters rest on."""
    c = result.consistent
    count = Counter(c.determined_by)
    notes = "".join(
        f" {note.message[0].upper()}{note.message[1:]}." for note in c.notes if note.code.startswith("bound")
    )
    return (
        f"Found by {_WAYS.get(c.method, c.method)}, pulled towards the prior ({c.regulariser}). {count['data']} parameters rest "
        f"on the data, {count['both']} on data and prior, {count['prior']} on the prior alone; see the table of parameters."
        + notes
    )


def _in_words(result: Result) -> str:
    k = result.certificates
    return (
        f"Smallest eigenvalue of the mass matrix of the consistent estimate over {k.configurations} configurations: "
        f"{k.mass_matrix:.3g}"
        + (f"; at every configuration it is proven to be at least {k.mass_matrix_bound:.3g}." if k.proven else ".")
        + f" The unconstrained estimate lies {k.distance:.3g} squared standard deviations from the nearest possible bodies; "
        f"noise alone allows {k.distance_limit:.3g} whatever the true bodies are. {k.freedom} constraints bind, which makes the "
        f"p-value of that distance {k.p_value:.2g}."
    )


def _cost_table(result: Result) -> Table:
    return Table(
        ("joint", "torque cost of consistency"),
        tuple((name, plots.percent(float(cost), 2)) for name, cost in result.certificates.torque_cost.items()),
        caption="How much larger the training error of possible bodies is than that of the unconstrained estimate.",
        folded=True,
    )


def _margin_table(result: Result) -> Table:
    margin = margins(result.consistent)
    return Table(
        ("body", "smallest pseudo-inertia eigenvalue", "over the largest"),
        tuple((name, float(value), margin.get(name)) for name, value in result.certificates.pseudo_inertia.items()),
        caption="Positive means that a body with these parameters exists.",
        digits=3,
    )


def _mass_matrix_table(result: Result) -> Table:
    """[Halper2024]'s check: positive definite along a motion and over the joint range, also for the unconstrained estimate."""
    free = with_standard(
        result.described, dict(zip(result.estimate.base.parameters, result.estimate.standard, strict=True))
    )
    rows: list[tuple[str | float, ...]] = []
    k = result.certificates
    bounds = {"consistent": k.mass_matrix_bound, "unconstrained": k.free_mass_matrix_bound}
    for name, robot in (("consistent", result.robot), ("unconstrained", free)):
        row: list[str | float] = [name]
        paths = [result.traces[f"{run}.inputs"] for run in run_names(result.traces) if f"{run}.inputs" in result.traces]
        along = [positivity_along(robot, inputs[:, : robot.n_joints]).smallest for inputs in paths]
        row += [min(along) if along else float("nan"), positivity_over(robot).smallest, bounds[name] or "no proof"]
        rows.append(tuple(row))
    return Table(
        ("estimate", "along held-out motion", "smallest found over the joint range", "proven at every configuration"),
        tuple(rows),
        tuple("" if isinstance(row[2], float) and row[2] > 0.0 else "warn" for row in rows),
        caption="Smallest eigenvalue of the mass matrix (kg m², rotors included). A negative one would give kinetic energy "
        "below zero; possible bodies cannot, base parameters estimated freely can.",
        digits=3,
    )


def _ellipsoid_figure(robot: Robot) -> Figure:
    # A slightly bent arm shows its links better than a stretched one.
    q = np.full((1, robot.n_joints), _BEND)
    surfaces = tuple(
        surface(robot, q, i)
        for i, link in enumerate(robot.links)
        if link.inertial is not None and link.inertial[0] > 0.0
    )
    titles = {f"{axis}axis": {"title": {"text": f"{axis} [m]"}} for axis in "xyz"}
    return Figure(
        "ellipsoids",
        surfaces,
        {
            "scene": {"aspectmode": "data", "camera": {"eye": {"x": 2.3, "y": 2.3, "z": 0.9}}, **titles},
            "legend": {"orientation": "v", "x": 1.0, "y": 0.85, "yanchor": "top", "xanchor": "right"},
        },
        "Each link as the solid ellipsoid of uniform density with its mass, centre and inertia, in the base frame with all "
        f"joints at {_BEND:g}.",
        height=520,
    )


_BEND = 0.4
"""Joint position [rad or m] at which links are drawn."""


def surface(robot: Robot, q: Any, i: int) -> dict[str, Any]:
    """The solid ellipsoid of a link: I_x = m (b^2 + c^2) / 5 and so on give its semi-axes a, b, c."""
    link = robot.links[i]
    assert link.inertial is not None
    mass, centre, I = to_centre_of_mass(link.inertial)
    moments, axes = np.linalg.eigh(I)
    squares = 2.5 / mass * (moments.sum() - 2.0 * moments)
    T = forward_kinematics(robot, q, link.name)[0]
    half = np.sqrt(np.maximum(squares, 1e-8))
    return plots.ellipsoid(
        T[:3, :3] @ centre + T[:3, 3], half, T[:3, :3] @ axes, link.name, _PALETTE[i % len(_PALETTE)]
    )

"""Whether the bodies can exist: margins, mass matrices, and the links as ellipsoids."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.positivity import positivity_along, positivity_over, with_standard
from armid.identification.gate import margins
from armid.identification.residuals import run_names
from armid.identification.result import Result
from armid.kernels.kinematics import forward_kinematics
from armid.page import Block, Cell, Figure, Paragraph, Section, Table
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
        f"Found by {_WAYS.get(c.method, c.method)}, with regularisation towards the prior ({c.regulariser}). {count['data']} "
        f"parameters are determined by the data, {count['both']} by data and regularisation, {count['prior']} by regularisation "
        "alone; see the table of parameters." + notes
    )


def _in_words(result: Result) -> str:
    k = result.certificates
    return (
        f"Smallest eigenvalue of the mass matrix of the consistent estimate over {k.configurations} configurations: "
        f"{k.mass_matrix:.3g}"
        + (f"; at every configuration it is proven to be at least {k.mass_matrix_bound:.3g}." if k.proven else ".")
        + f" The unconstrained estimate lies {k.distance:.3g} squared deviations from the nearest physically consistent one; "
        f"noise alone allows {k.distance_limit:.3g} whatever the true bodies are. {k.freedom} constraints bind, which makes the "
        f"p-value of that distance {k.p_value:.2g}."
    )


def _cost_table(result: Result) -> Table:
    return Table(
        ("joint", "torque cost of consistency"),
        tuple((name, plots.percent(float(cost), 2)) for name, cost in result.certificates.torque_cost.items()),
        caption="How much larger the training error of the consistent estimate is than that of the unconstrained one.",
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
        "below zero; a physically consistent estimate cannot, an unconstrained one can.",
        digits=3,
    )


def bodies_section(result: Result) -> Section:
    """Mass and centre of every link beside the description's, by the description's own names of links."""
    by = dict(zip(result.consistent.names, result.consistent.determined_by, strict=True))
    rows: list[tuple[Cell, ...]] = []
    tones: list[str] = []
    for i, (link, before) in enumerate(zip(result.robot.links, result.described.links, strict=True)):
        mass, centre = _mass_and_centre(link.inertial)
        mass_before, centre_before = _mass_and_centre(before.inertial)
        origin = by.get(f"link{i + 1}.mass", "prior")
        rows.append((link.name, mass, mass_before, centre, centre_before, _MASS_ORIGINS[origin]))
        tones.append("faint" if origin == "prior" else "")
    found, described = (
        float(sum(link.inertial[0] for link in robot.links if link.inertial is not None))
        for robot in (result.robot, result.described)
    )
    rows.append(("total", found, described or None, "", "", ""))
    table = Table(
        ("link", "mass [kg]", "description", "centre of mass [m]", "description's", "mass is determined by"),
        tuple(rows),
        (*tones, "sum"),
        caption="Physically consistent estimate, in the frame of each link. Torque shows combinations of these, not every mass "
        "alone: what it does not show is filled in by regularisation towards the description. Faint: by regularisation alone, "
        "which is no measurement.",
    )
    return Section("bodies", "Masses and centres", (table,))


_MASS_ORIGINS = {
    "data": "data",
    "both": "data and regularisation",
    "prior": "regularisation: not in the torque",
}


def _mass_and_centre(inertial: FloatArray | None) -> tuple[float | None, str]:
    """Of a link; nothing for what its description leaves out."""
    if inertial is None or inertial[0] <= 0.0:
        return None, "–"
    mass, centre, _ = to_centre_of_mass(inertial)
    return float(mass), ", ".join(f"{x:.3f}".replace("-", "−") for x in centre)


def arm_figure(robot: Robot, *, height: int = 420) -> Figure:
    """The arm slightly bent, which shows its links better than stretched: the line of its joints, and every body."""
    q = _bent(robot)[np.newaxis]
    frames = [forward_kinematics(robot, q, link.name)[0] for link in robot.links]
    places = np.array([np.zeros(3), *(T[:3, 3] for T in frames), forward_kinematics(robot, q)[0][:3, 3]])
    bones: dict[str, Any] = {
        "type": "scatter3d",
        "mode": "lines+markers",
        "name": "joints",
        "showlegend": False,
        **{axis: plots.short(places[:, k], 4) for k, axis in enumerate("xyz")},
        "line": {"color": plots.GREY, "width": 3},
        "marker": {"color": plots.GREY, "size": 6},
    }
    surfaces = tuple(
        surface(robot, q, i)
        for i, link in enumerate(robot.links)
        if link.inertial is not None and link.inertial[0] > 0.0
    )
    titles = {f"{axis}axis": {"title": {"text": f"{axis} [m]"}} for axis in "xyz"}
    return Figure(
        "ellipsoids",
        (bones, *surfaces),
        {"scene": {"aspectmode": "data", "camera": {"eye": {"x": 2.3, "y": 2.3, "z": 0.9}}, **titles}},
        "Each link as the solid ellipsoid of uniform density with its identified mass, centre and inertia; drag to turn.",
        height=height,
    )


_BEND = 0.7
"""Joint position beyond the middle of its range at which links are drawn [rad or m], where the range allows it."""


def _bent(robot: Robot) -> FloatArray:
    """A configuration within the limits that is neither stretched nor folded, shape [n_joints]."""
    lower, upper = robot.limit("lower"), robot.limit("upper")
    limited = np.isfinite(lower) & np.isfinite(upper)
    lower, upper = np.where(limited, lower, -2.0 * _BEND), np.where(limited, upper, 2.0 * _BEND)
    return np.asarray(0.5 * (lower + upper) + np.minimum(_BEND, 0.25 * (upper - lower)))


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

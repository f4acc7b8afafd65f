"""The page about a planned motion: torque against limits, the phase plane, what limits the speed, what was assumed."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.page import Block, Cell, Figure, Paragraph, Report, Section, Table
from armid.planning.generator import MotionGenerator, PeriodicMotion, SingularGeneratorError
from armid.planning.model import TorqueModel
from armid.planning.motion import Plan
from armid.report.plots import BLUE, COLOURS, GREY, ORANGE, SKY, axes, band, line

_KINDS = ("velocity", "acceleration", "jerk", "torque")


def plan_report(plan: Plan) -> Report:
    """Everything the page shows."""
    robot = plan.model.robot
    sections = [_summary(plan), _torque_section(plan, plan.described), _speed_section(plan), _dynamics_section(plan)]
    if plan.passive is not None:
        sections.append(_generator_section(plan, plan.passive))
    sections.append(_notes_section(plan))
    return Report(
        title=f"{robot.name}: planned motion",
        subtitle=f"{plan.duration:.3f} s along {plan.path.length:.3g} units of path parameter",
        verdict=str(plan.verdict),
        reasons=plan.reasons,
        sections=tuple(sections),
    )


def _summary(plan: Plan) -> Section:
    """Figures that matter, first."""
    blocks: list[Block] = [
        Paragraph(
            f"The motion takes {plan.duration:.3f} s from rest to rest. Without jerk limits the same path could be run in "
            f"{plan.profile.duration:.3f} s."
        )
    ]
    if plan.probability is not None:
        blocks.append(
            Paragraph(
                f"With {plan.kappa:.2f} standard deviations of torque kept free, all torque limits hold with probability "
                f"{plan.probability:.3f}; that makes the motion {100 * plan.longer:.2f} % longer than the "
                f"{plan.duration_certain:.3f} s which it would take if the parameters were known exactly."
            )
        )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(_largest_use(plan, kind, j) for kind in _KINDS)) for j, name in enumerate(plan.model.robot.joint_names)
    )
    caption = "Largest share of each limit that is used; a dash where there is no limit."
    blocks.append(Table(("joint", *_KINDS), rows, caption=caption))
    return Section("summary", "The motion", tuple(blocks))


def _largest_use(plan: Plan, kind: str, joint: int) -> float | None:
    """Share of a limit, None where there is none."""
    limited = np.isfinite(getattr(plan.limits, kind)[joint])
    return float(getattr(plan.usage, kind)[:, joint].max()) if limited else None


def _torque_section(plan: Plan, described: TorqueModel | None) -> Section:
    """Torque of every joint against its limit."""
    t = plan.usage.time
    other = described.torque(*plan.trajectory.sample(t)) if described is not None else None
    figures = []
    for j, name in enumerate(plan.model.robot.joint_names):
        expected, margin = plan.usage.expected[:, j], plan.usage.margin[:, j]
        data = []
        if plan.kappa > 0.0:
            data.append(band(t, expected - margin, expected + margin, "margin for doubt", "rgba(0,114,178,0.2)"))
        data.append(line(t, expected, "expected", BLUE))
        if other is not None:
            data.append(line(t, other[:, j], "as the description says", ORANGE, dash="dot"))
        limit = plan.limits.torque[j]
        if np.isfinite(limit):
            ends = t[[0, -1]]
            data.append(line(ends, np.full(2, limit), "limit", GREY, dash="dash"))
            data.append(line(ends, np.full(2, -limit), "", GREY, dash="dash") | {"showlegend": False})
        figures.append(Figure(f"torque{j}", tuple(data), axes("time [s]", f"{name} [N m or N]"), height=240))
    return Section("torque", "Torque against limits", tuple(figures))


def _speed_section(plan: Plan) -> Section:
    """The phase plane and the kinematic limits."""
    theta, speed = _original_speed(plan)
    tops = np.sqrt(np.maximum(plan.profile.tops, 0.0))
    plane = Figure(
        "phase-plane",
        (
            line(plan.profile.theta, tops, "fastest speed that still reaches the end", GREY, dash="dash"),
            line(plan.profile.theta, np.sqrt(plan.profile.x), "fastest without jerk limits", SKY),
            line(theta, speed, "planned", BLUE),
        ),
        axes("path parameter", "its speed [1/s]"),
        "The planned speed stays below the dashed curve everywhere; where it touches, some limit is used in full.",
    )
    figures: list[Block] = [plane]
    for kind in ("velocity", "acceleration", "jerk"):
        values = getattr(plan.usage, kind)
        data = tuple(
            line(plan.usage.time, values[:, j], name, COLOURS[j % len(COLOURS)])
            for j, name in enumerate(plan.model.robot.joint_names)
            if _largest_use(plan, kind, j) is not None
        )
        if not data:
            figures.append(Paragraph(f"No joint has a limit of {kind}.", "faint"))
            continue
        figures.append(Figure(kind, data, axes("time [s]", f"{kind} over limit"), height=260))
    return Section("speed", "Speed along the path", tuple(figures))


def _original_speed(plan: Plan) -> tuple[FloatArray, FloatArray]:
    """The path's own parameter and its speed along the motion, also when it was planned on an eased path."""
    from armid.planning.path import EasedPath

    at, v, _, _ = plan.trajectory.law.derivatives(plan.usage.time)
    path = plan.trajectory.path
    if not isinstance(path, EasedPath):
        return at, v
    value, slope, _, _ = path.inner(at)
    return value, slope * v


def _dynamics_section(plan: Plan) -> Section:
    """The terms of the reduced dynamics."""
    r = plan.reduced
    figures = []
    for name, values, unit in (
        ("A", r.A, "per unit of θ''"),
        ("B", r.B, "per unit of θ'²"),
        ("Γ", r.Gamma, "[N m or N]"),
    ):
        data = tuple(
            line(r.theta, values[:, j], joint, COLOURS[j % len(COLOURS)])
            for j, joint in enumerate(plan.model.robot.joint_names)
        )
        figures.append(
            Figure(
                f"term-{'Gamma' if name == 'Γ' else name}", data, axes("path parameter θ", f"{name} {unit}"), height=240
            )
        )
    text = Paragraph("Torque along the path is A θ'' + B θ'² + Γ plus friction, from the base parameters alone.")
    return Section("dynamics", "Reduced dynamics", (text, *figures))


def _generator_section(plan: Plan, joint: str) -> Section:
    """Phase portrait of one joint's row with no drive there, and its periodic motions."""
    title = f"Motion generator with {joint} passive"
    try:
        generator = MotionGenerator(plan.reduced.passive(joint))
    except SingularGeneratorError as error:
        return Section("generator", title, (Paragraph(f"Not drawn: {error}.", "faint"),))
    curves = []
    for k, (theta, speed) in enumerate(generator.portrait()):
        for sign in (1.0, -1.0):
            curve = line(theta, sign * speed, "", BLUE if k % 2 else SKY, width=1.0)
            curves.append(curve | {"showlegend": False, "connectgaps": False})
    rows = tuple(
        (at, "centre" if stable else "saddle", generator.small_period(at) if stable else None)
        for at, stable in generator.equilibria()
    )
    orbits = _periodic_motions(generator)
    for orbit in orbits:
        both = np.concatenate([orbit.theta, orbit.theta[::-1]]), np.concatenate([orbit.speed, -orbit.speed[::-1]])
        curves.append(line(*both, "periodic", ORANGE, width=2.0) | {"showlegend": False})
    blocks: list[Block] = [
        Figure("portrait", tuple(curves), axes("path parameter θ", "θ' [1/s]"), "Level curves without friction.", 420)
    ]
    if rows:
        blocks.append(Table(("θ", "kind", "period of small oscillations [s]"), rows, caption="Equilibria."))
    else:
        blocks.append(
            Paragraph("Gravity's row does not vanish on this path: there is no equilibrium and no periodic motion.")
        )
    if orbits:
        found = tuple((orbit.centre, orbit.low, orbit.high, orbit.period) for orbit in orbits)
        blocks.append(
            Table(("around", "from", "to", "period [s]"), found, caption="Periodic motions without friction.")
        )
    return Section("generator", title, tuple(blocks))


_ORBITS = (0.2, 0.5, 0.8)
"""Left turning points of the orbits shown, as shares of the way from a centre to the next equilibrium or the path's start."""


def _periodic_motions(generator: MotionGenerator) -> list[PeriodicMotion]:
    """A few closed orbits around every centre; those that would leave the path are left out."""
    known = [at for at, _ in generator.equilibria()]
    orbits = []
    for centre, stable in generator.equilibria():
        if not stable:
            continue
        border = max([at for at in known if at < centre], default=generator.range[0])
        for share in _ORBITS:
            try:
                orbits.append(generator.periodic(centre - share * (centre - border), centre=centre))
            except InputError:
                continue
    return orbits


def _notes_section(plan: Plan) -> Section:
    """What was assumed."""
    notes = [Paragraph(note.message, "faint") for note in plan.notes]
    checked = Paragraph(
        f"Limits were checked at {len(plan.usage.time)} instants; between them they are not proven.", "faint"
    )
    return Section("notes", "Notes", (*notes, checked))

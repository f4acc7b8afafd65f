"""What friction looks like: measured and identified over velocity, and whether shapes beyond the linear one pay."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armid.arrays import FloatArray
from armid.identification.records import Measured
from armid.identification.result import Result
from armid.page import Block, Cell, Figure, Paragraph, Section, Table
from armid.report import plots
from armid.report.torque import Channel, channels_of, titled, units
from armid.rows.friction import Shape, shape_values
from armid.rows.torque import TorqueRows


def friction_section(result: Result) -> Section:
    """Measured torque minus the predicted rigid-body and rotor part, over velocity, with the identified curve."""
    blocks: list[Block] = [
        _friction_figure(result, channel)
        for channel in channels_of(result)
        if "inputs" in channel[3] and channel[1] < result.described.n_joints and _has_friction(result, channel[1])
    ]
    if not blocks:
        return Section(
            "friction", "Friction", (Paragraph("Nothing to show: the model contains no friction.", "faint"),)
        )
    lead = Paragraph(
        "Measured torque minus everything predicted but friction. Points away from the line by more than their own scatter "
        "show a shape the model lacks."
        + (" The part that grows with the load is taken off the points." if result.effects.load else "")
    )
    return Section("friction", "Friction", (lead, *_shape_tables(result), *blocks))


def _shape_tables(result: Result) -> tuple[Table, ...]:
    """Friction parameters with deviations, beside the held-out error of linear friction; empty without shapes."""
    record = result.friction
    if record is None:
        return ()
    quantities = list(dict.fromkeys(key for found in record.joints.values() for key in found))
    errors = {row.name: row for row in record.held_out}
    rows: list[tuple[Cell, ...]] = []
    for name, found in record.joints.items():
        row = errors.get(name)
        worth: tuple[Cell, ...] = (None, None, "") if row is None else (row.rmse_linear, row.rmse, row.word)
        rows.append((name, *worth, *(_with_deviation(found.get(quantity)) for quantity in quantities)))
    header = ("joint", "held-out RMSE, linear", "with shape", "beyond chance", *quantities)
    caption = (
        f"Linear friction with {', '.join(record.shapes)}, beside linear friction alone. Values of the unconstrained estimate "
        "with standard deviations; in brackets where the motion does not determine them. More shapes fit better on the training "
        "motion: keep one only if it pays on held-out motion."
    )
    return (Table(header, tuple(rows), caption=caption),)


def _with_deviation(item: Measured | None) -> str:
    if item is None:
        return ""
    s = item.standard_deviation
    return f"({item.value:.3g})" if np.isinf(s) else f"{item.value:.4g} ± {s:.2g}"


def _has_friction(result: Result, k: int) -> bool:
    return any(f"joint{k + 1}.{quantity}" in result.consistent.names for quantity in ("viscous", "coulomb"))


def _friction_figure(result: Result, channel: Channel) -> Figure:
    name, k, run, a = channel
    n = result.described.n_joints
    values = dict(zip(result.consistent.names, result.consistent.values, strict=True))
    viscous, coulomb, offset = (values.get(f"joint{k + 1}.{q}", 0.0) for q in ("viscous", "coulomb", "offset"))
    qd = a["inputs"][:, n + k]
    # The rows carry the direction of friction as the fit saw it, low-passed like the torque.
    direction = a["inputs"][:, 3 * n + k] if a["inputs"].shape[1] >= 4 * n else np.sign(qd)
    rest = a["measured"][:, k] - a["consistent"][:, k] + viscous * qd + coulomb * direction + offset
    rest = rest + _shape_torque(result, k, a["inputs"], values)
    x = np.unique(np.concatenate([np.linspace(qd.min(), qd.max(), 200), [-1e-9, 1e-9]]))
    torque_unit, speed_unit = units(result, k)
    return Figure(
        f"friction-{run}-{k}",
        (
            plots.points(qd, rest, "measured", plots.SKY),
            plots.line(x, _friction_curve(result, k, x, values), "identified", plots.ORANGE, width=2.2),
        ),
        plots.axes(f"velocity [{speed_unit}]", f"friction [{torque_unit}]", title={"text": titled(result, name, run)}),
        height=270,
        half=True,
    )


def _shape_torque(result: Result, k: int, inputs: FloatArray, values: Mapping[str, float]) -> FloatArray:
    """Torque of the shapes that the curve of joint k shows, as the rows had them, shape [n_samples]."""
    first, out = 4 * result.described.n_joints, np.zeros(len(inputs))
    for place, column in enumerate(TorqueRows(result.described, result.effects).shape_columns):
        if column.joint == k and column.quantity in ("stribeck", "viscous_asymmetry"):
            out += values[f"joint{k + 1}.{column.quantity}"] * inputs[:, first + place]
    return out


def _friction_curve(result: Result, k: int, x: FloatArray, values: Mapping[str, float]) -> FloatArray:
    """Identified friction of joint k over velocity, shape as x; without the part that depends on the load."""
    of = {
        q: values.get(f"joint{k + 1}.{q}", 0.0)
        for q in ("viscous", "coulomb", "offset", "stribeck", "viscous_asymmetry")
    }
    scale = result.shapes.scales[k] if result.shapes.scales else 1.0
    way = shape_values(Shape.SMOOTH, x, scale=scale) if result.effects.smooth else np.sign(x)
    curve = of["viscous"] * x + of["coulomb"] * way + of["offset"]
    curve = curve + of["viscous_asymmetry"] * shape_values(Shape.ASYMMETRIC, x)
    return np.asarray(curve + of["stribeck"] * shape_values(Shape.STRIBECK, x, scale=scale))

"""A result as tables and sentences to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any

from armid.identification.held_out import JudgedJoint, judged_joints
from armid.identification.records import FrictionShapes
from armid.page import Cell, Table

if TYPE_CHECKING:
    from armid.identification.result import Result

_SAID_ALOUD = ("bounds-active", "bound-broken", "geometry-missing", "not-converged")
"""Notes on the bodies that belong into a summary."""


def judged_errors(result: Result) -> dict[str, JudgedJoint]:
    """By joint: the held-out error as the gate judges it, beside its limit; empty where nothing is known to judge by."""
    if result.evidence is None:
        return {}
    return {joint.name: joint for joint in judged_joints(result.joints, result.evidence)}


def judged_share(joint: JudgedJoint | None) -> float:
    """Held-out error in motion over the torque in motion; NaN of a joint that never moves, or of which nothing is known."""
    return nan if joint is None or joint.rest_share == 1.0 else joint.relative


def error_table(result: Result, motions: Mapping[str, Mapping[str, Any]]) -> Table:
    """Held-out errors, joint by joint, in recorded units; of some joints it is known how they moved."""
    cutoff = result.conditioning.torque_cutoff_hz
    filtered = f", low-passed at {cutoff:.3g} Hz; 'raw' is against the unfiltered torque" if cutoff else ""
    header = ("joint", "train RMSE", "held-out RMSE", "in motion", "at rest", "held-out raw", "relative", "limit")
    judged = judged_errors(result)
    return Table(
        (*header, "unconstrained", "verdict"),
        tuple(
            (
                joint.name,
                joint.train.rmse,
                joint.held_out.rmse,
                _known(motions.get(joint.name, {}).get("rmse_moving")),
                _known(motions.get(joint.name, {}).get("rmse_rest")),
                joint.held_out.rmse_raw,
                _share(judged_share(judged.get(joint.name))),
                _share(judged[joint.name].limit if joint.name in judged else nan),
                raw.held_out.rmse,
                str(result.joint_verdict(joint.name)),
            )
            for joint, raw in zip(result.joints, result.joints_raw, strict=True)
        ),
        caption=f"torque in N m (N for prismatic joints), as recorded{filtered}; 'at rest' is what is beyond the friction that "
        "can hold; 'relative' is the held-out error in motion over the torque in motion, which is judged by 'limit'",
    )


def _share(value: float) -> str:
    """Per cent, or nothing for what is not known."""
    return "" if isnan(value) else f"{100 * value:.1f} %"


def friction_tables(friction: FrictionShapes | None) -> tuple[Table, ...]:
    """Whether the shapes of friction pay, and what they are."""
    if friction is None:
        return ()
    quantities = tuple(dict.fromkeys(key for found in friction.joints.values() for key in found))
    worth = {row.name: row for row in friction.held_out}
    rows: list[tuple[Cell, ...]] = []
    for name, found in friction.joints.items():
        row = worth.get(name)
        errors: tuple[Cell, ...] = (None, None, "") if row is None else (row.rmse_linear, row.rmse, row.word)
        values = (
            f"{m.value:.3g} +- {m.standard_deviation:.1g}" if m.standard_deviation < inf else f"({m.value:.3g})"
            for m in (found[key] for key in quantities if key in found)
        )
        cells = dict(zip((key for key in quantities if key in found), values, strict=True))
        rows.append((name, *errors, *(cells.get(key, "") for key in quantities)))
    title = f"friction with {', '.join(friction.shapes)} beside linear friction, held-out RMSE"
    return (Table(("joint", "linear", "with shape", "", *quantities), tuple(rows), caption=title),)


def sentences(result: Result) -> list[str]:
    """What parameters and bodies rest on, one sentence each."""
    c, k = result.consistent, result.certificates
    count = Counter(c.determined_by)
    proof = f", at least {k.mass_matrix_bound:.3g} anywhere (proven)" if k.proven else ", not proven elsewhere"
    essential = result.sensitivity.essential
    out = []
    if essential is not None:
        price = essential.removals[-1].held_out_error if essential.removals else 1.0
        out.append(
            f"{len(essential.kept)} of {len(result.estimate)} base parameters are essential by {essential.rule}; without the "
            f"others the held-out error is {price:.3f} times as large"
        )
    out.append(
        f"physically consistent by {c.method}, regularisation {c.regulariser}: {count['data']} parameters determined by the "
        f"data, {count['both']} by data and regularisation, {count['prior']} by regularisation alone"
    )
    out.append(f"smallest eigenvalue of M(q) {k.mass_matrix:.3g} sampled{proof}")
    return out + [note.message for note in c.notes if note.code in _SAID_ALOUD]


def _known(value: float | None) -> float | None:
    """None for what is not known, or NaN."""
    return None if value is None or value != value else value


def said(text: str) -> Table:
    """A sentence among tables."""
    return Table((), (), caption=text)

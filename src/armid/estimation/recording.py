"""Conditioned samples to runs: one run per log, its rows those of the torque model as the low-pass left them.

Torque is low-passed before it is compared with the model. Smooth rows are hardly changed by that filter, but the jump of
Coulomb friction is: it must pass the same filter, or every reversal leaves a residual that other parameters try to explain
(parallel filtering, [Gautier1997]).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.reversals import with_reversals
from armid.estimation.run import Run
from armid.logs.conditioning.settings import Conditioning
from armid.logs.samples import Samples, Segment
from armid.logs.torque_pair import check_pair
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.robot.robot import Robot
from armid.rows.filtered import FilteredTorqueRows
from armid.rows.friction import Shapes, Velocity, column_values, friction_directions, smoothed
from armid.rows.presliding import SUBSTEPS
from armid.rows.torque import TorqueRows
from armid.signals.filters import LowPass, low_pass


def torque_source(runs: Sequence[Run]) -> TorqueRows:
    """The torque rows behind the runs."""
    source = runs[0].source
    if isinstance(source, FilteredTorqueRows):
        return source.torque
    if not isinstance(source, TorqueRows):
        raise InputError("runs", f"rows of {type(source).__name__}", "this needs torque rows")
    return source


def with_torque_source(run: Run, source: TorqueRows) -> Run:
    """The same motion and torque with other torque rows."""
    filtered = isinstance(run.source, FilteredTorqueRows)
    return replace(run, source=FilteredTorqueRows(source) if filtered else source)


def runs_of(
    samples: Samples,
    robot: Robot,
    effects: Effects,
    *,
    presliding: Sequence[float] | None = None,
    shapes: Shapes | None = None,
) -> tuple[Run, ...]:
    """One run per log.

    Args:
        samples: conditioned, joints in the robot's order.
        robot: the arm.
        effects: with payload `both`, each log's own conditions say whether it carried it.
        presliding: distance over which each joint's Coulomb friction turns around [rad or m]; zero for at once.
        shapes: what friction beyond the linear one needs; its own presliding counts then.

    Raises:
        InputError: motor and joint torque that were not recorded together; shapes of friction without their scales.
    """
    if effects.torques in (TorqueSide.BOTH, TorqueSide.DIFFERENCE):
        check_pair(samples)
    friction = shapes if shapes is not None else Shapes(tuple(presliding or ()))
    runs = []
    for (log, rate), group in groupby(samples.segments, key=lambda s: (s.log, s.rate)):
        segments = list(group)
        start = segments[0].start
        part = samples.window(start, segments[-1].stop)
        loaded = effects.payload is not PayloadRuns.BOTH or segments[0].conditions.loaded
        shifted = [replace(s, start=s.start - start, stop=s.stop - start) for s in segments]
        run = Run(
            name=log,
            source=rows_of(robot, effects.linear, loaded),
            inputs=_with_signs(part, shifted, effects, friction),
            y=part.torque(effects.torques),
            segments=tuple((s.start, s.stop) for s in shifted),
            rate=rate,
            y_raw=part.torque(effects.torques, raw=True) if part.raw_torques else None,
        )
        whole = _with_shape_inputs(run, part, shifted, rows_of(robot, effects, loaded), friction)
        runs.append(_without_context(with_reversals(whole, part.qd, _smear(part, rate)), segments[0]))
    return tuple(runs)


def _without_context(run: Run, segment: Segment) -> Run:
    """A run of one piece of a long log without the samples of the neighbouring pieces that filters were shown."""
    if not (segment.continues or segment.lead or segment.trail):
        return run
    return replace(run.window(segment.lead, len(run) - segment.trail), continues=segment.continues)


def _smear(samples: Samples, rate: float) -> float:
    """Period of the cut-off [s]; zero where nothing was filtered."""
    cutoff = samples.cutoff_hz if samples.cutoff_hz is not None else np.inf
    return 0.0 if LowPass(rate, cutoff).passes_all else 1.0 / cutoff


def _with_signs(samples: Samples, segments: Sequence[Segment], effects: Effects, shapes: Shapes) -> FloatArray:
    """Inputs of the rows without shapes of friction: the motion, and the direction of Coulomb friction if it is there."""
    inputs = samples.inputs()
    if not effects.coulomb:
        return inputs
    velocity = _velocity_of(samples, slice(None), segments[0].rate)
    columns = smoothed(directions(samples, segments, shapes), velocity, effects, shapes)
    return np.column_stack([inputs, filtered(samples, segments, columns)])


def _with_shape_inputs(
    run: Run,
    samples: Samples,
    segments: Sequence[Segment],
    rows: TorqueRows | FilteredTorqueRows,
    shapes: Shapes,
) -> Run:
    """The run with the columns of friction shapes, low-passed like the torque.

    Args:
        run: with linear friction.
        samples, segments: it was made of.
        rows: with the shapes.
        shapes: what they need.
    """
    torque = rows.torque if isinstance(rows, FilteredTorqueRows) else rows
    if not torque.shape_columns:
        return replace(run, source=rows)
    load = None
    if shapes.load is not None:
        load = run.predicted([shapes.load.get(name, 0.0) for name in run.source.columns])
    direction = directions(samples, segments, shapes)
    velocity = _velocity_of(samples, slice(None), run.rate)
    values = column_values(torque.shape_columns, torque.robot, velocity, direction, shapes, load)
    return replace(run, source=rows, inputs=np.column_stack([run.inputs, filtered(samples, segments, values)]))


@lru_cache(maxsize=32)
def rows_of(robot: Robot, effects: Effects, loaded: bool) -> TorqueRows | FilteredTorqueRows:
    """One source per robot and effects, so that its kernels are recorded and compiled once."""
    rows = TorqueRows(robot, effects, loaded=loaded)
    return FilteredTorqueRows(rows) if effects.coulomb else rows


def directions(samples: Samples, segments: Sequence[Segment], shapes: Shapes) -> FloatArray:
    """Direction of Coulomb friction at points around each sample, shape [n_samples, SUBSTEPS, n_joints]."""
    out = np.empty((len(samples.qd), SUBSTEPS, samples.n_joints))
    for s in segments:
        out[s.slice] = friction_directions(samples.q[s.slice], _velocity_of(samples, s.slice, s.rate), shapes)
    return out


def _velocity_of(samples: Samples, part: slice, rate: float) -> Velocity:
    """Of the drives, between the samples too."""
    between = samples.velocities_between
    return Velocity(samples.qd[part], samples.qdd[part], rate, None if between is None else between[part])


def filtered(samples: Samples, segments: Sequence[Segment], columns: FloatArray) -> FloatArray:
    """Columns after the torque's own low-pass, segment by segment; their mean over the interval where there is none.

    The filter works on the points between the samples too: torque passed it before it was thinned out.

    Args:
        samples, segments: the columns belong to.
        columns: shape [n_samples, points, n_columns].

    Returns:
        Shape [n_samples, n_columns].
    """
    count, points, width = columns.shape
    out = np.empty((count, width))
    settings = samples.settings or Conditioning()
    cutoff = samples.cutoff_hz if samples.cutoff_hz is not None else np.inf
    for s in segments:
        if settings.low_pass(s.rate, cutoff).passes_all:
            out[s.slice] = columns[s.slice].mean(axis=1)
            continue
        dense = low_pass(columns[s.slice].reshape(-1, width), settings.low_pass(s.rate * points, cutoff))
        out[s.slice] = dense.reshape(-1, points, width)[:, points // 2]
    return out

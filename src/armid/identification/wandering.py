"""Torque that wanders slowly with time: its shape is not known beforehand, and is found as a few half waves over the recording.

A drift of joint j adds sum_k s_k cos(k pi t / T) to its torque alone. A half wave lasts at least as long as the joint takes to
and fro: where it has not come back within one, a drift is not told from torque that goes with the motion. The rows say how
large the waves are with the base parameters free, and what they take away of the squared error together. Of as many waves
chance alone makes the length of the normalised sizes about the root of their number, and longer by x with a probability below
exp(-x^2 / 2); so x is what counts as deviations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.eliminated import Eliminated
from armid.estimation.recording import torque_source
from armid.estimation.run import Run, each_run
from armid.estimation.runs import before
from armid.identifiability.base import BaseParameters
from armid.identification.candidates import CHANGES, DRIFTS, Seen
from armid.identification.imperfection_rows import RowNoise, RowsBeside
from armid.robot.robot import JointKind, Robot
from armid.rows.imperfections import (
    EVERY_RECORDING,
    KINDS,
    ColumnReference,
    Family,
    Imperfection,
    drift_curve,
    imperfections,
)

WAVES = 5
"""Most half waves: two and a half swings over a recording."""

_MISSED = 0.125
"""Of a swing, deviation of what its shape misses: where half waves do not hold a drift, bodies and torque of the position take
part of it. Sines planted in the RV-2SQ came out 15 to 18 % too small, whatever their size: up to 22 % more were there."""

THINNED = 1200
"""Samples of the training motion: two hundred and more for every half wave."""

_ALONG = np.linspace(0.0, 1.0, 201)


def wanders(
    robot: Robot,
    runs: Sequence[Run],
    base: BaseParameters,
    reference: ColumnReference,
    noise: RowNoise,
    *,
    found_on: int,
    beside: Sequence[Imperfection],
    energy: float,
    several: bool = False,
) -> list[Seen]:
    """The slow drift of every joint as the rows show it, with its own shape; its size is the swing between its extremes.

    Beside these, what else is another at the end of the recording than at its begin: gains and friction.

    Args:
        robot: as the runs have it.
        runs: freed from what was found.
        base: parameters to fit beside it.
        reference: where columns are taken.
        noise: of the rows.
        found_on: samples that the noise was found on, at most.
        beside: what may be there as well, as large as the rows say: drifts that were found, and torque that goes with the
            position of a joint (`of_position`), which a slow motion takes along.
        energy: squared error to which shares of what is taken away refer.
        several: whether the runs are of several recordings.
    """
    most = _half_waves(runs, robot.n_joints)
    waves = [_wave(robot, reference, j, k) for j, count in enumerate(most) for k in range(count)]
    lines = [replace(_wave(robot, reference, j, 0), family=Family.DRIFT, waves=()) for j in range(robot.n_joints)]
    known = set(beside)
    source = torque_source(runs)
    changes = imperfections(robot, source.effects, reference, CHANGES)
    changing = [i for i in (*changes, *(anew(changes) if several else ())) if i not in known]
    rows = RowsBeside(runs, base, (*beside, *waves, *lines, *changing), most=THINNED)
    factor = rows.factor(reference, rows.thinned(noise, found_on))
    left = Eliminated.of(len(base) + len(beside), [factor])
    whole = float(np.sum(left.factor[left.base :, -1] ** 2))
    out = []
    for j, first in enumerate(before(most)):
        sizes, taken = left.together(np.arange(first, first + most[j]))
        _, straight = left.together(np.array([len(waves) + j]))
        item, swing = _shaped(waves[first], sizes)
        out.append(
            Seen(
                item=item,
                size=swing,
                deviation=_deviation(item, swing, taken),
                taken=taken * energy / whole,
                spread=_MISSED * swing,
                beyond=(taken - straight) * energy / whole,
            )
        )
    # Sized beside torque of the position, which a slow motion takes along with time; but ranked like the others, without it.
    drifts = sum(item.family in DRIFTS for item in beside)
    alone = Eliminated.of(len(base) + drifts, [factor])
    without = float(np.sum(alone.factor[alone.base :, -1] ** 2))
    for k, item in enumerate(changing, start=len(waves) + len(lines)):
        size, deviation, _ = left.alone(k)
        taken = alone.alone(k + len(beside) - drifts)[2] * energy / without
        out.append(Seen(item=item, size=size, deviation=deviation, taken=taken))
    return out


def anew(items: Iterable[Imperfection]) -> tuple[Imperfection, ...]:
    """Those that change along a straight line, changing from begin to end in every recording."""
    lines = (Family.DRIFT, *CHANGES)
    return tuple(replace(item, part=EVERY_RECORDING) for item in items if item.family in lines)


def of_position(robot: Robot, reference: ColumnReference) -> tuple[Imperfection, ...]:
    """Torque that goes with the position of its own joint: a magnet of an encoder, a cable, a sensor that is not round."""
    waves = [(Family.POSITION_SINE, j) for j in range(robot.n_joints)]
    waves += [(Family.POSITION_COSINE, j) for j in range(robot.n_joints)]
    return tuple(replace(_wave(robot, reference, j, 0), family=family, waves=()) for family, j in waves)


def beyond_choice(seen: Seen, noise: RowNoise) -> Seen:
    """A drift of a shape that was chosen, with the deviation that holds the choice.

    What a model lacks holds on from pose to pose, and looks like a drift; so rows of the joint count by how long its own
    residuals hold together once the drift is undone.

    Args:
        seen: the drift as rows show it that count like those of most joints.
        noise: without it.
    """
    own = by_own_rows(seen, noise).deviation
    return replace(seen, deviation=_deviation(seen.item, seen.size, (seen.size / own) ** 2))


def by_own_rows(seen: Seen, noise: RowNoise) -> Seen:
    """A candidate with the deviation by how long the residuals of its very joint hold together."""
    longer = max(float(noise.lengths[seen.item.joint or 0]) / noise.rows_per_sample, 1.0)
    return replace(seen, deviation=seen.deviation * sqrt(longer))


def _deviation(item: Imperfection, swing: float, taken: float) -> float:
    """Of a swing that takes away so much squared error, in units of the noise: as long as chance explains it, all of it."""
    return abs(swing) / max(sqrt(taken) - sqrt(len(item.waves)), 1.0)


def _half_waves(runs: Sequence[Run], n_joints: int) -> list[int]:
    """Of every joint: as many as it went to and fro in these motions, at least one and at most `WAVES`.

    A motion in which it turned around once or twice has one to and fro, and one in which it never did has none.
    """
    motions: list[FloatArray] = []
    for goes_on, turned in each_run(runs, _turned):
        if goes_on and motions:
            motions[-1] = motions[-1] + turned
        else:
            motions.append(turned)
    times = np.sum([(turned + 1.0) // 2.0 for turned in motions], axis=0)[:n_joints]
    return np.clip(times, 1, WAVES).astype(int).tolist()


def _turned(run: Run) -> tuple[bool, FloatArray]:
    """Whether a run goes on where the one before it ended, and how often the joint of every channel turned around in it."""
    return run.continues, np.array([float(len(times)) for times in run.reversals])


def _wave(robot: Robot, reference: ColumnReference, j: int, k: int) -> Imperfection:
    """One half wave more of a joint."""
    return Imperfection(
        family=Family.SLOW_DRIFT,
        joint=j,
        unit="N" if robot.joints[j].kind is JointKind.PRISMATIC else "N m",
        tolerance=max(KINDS[Family.SLOW_DRIFT].tolerance * float(reference.size[j]), 1e-12),
        waves=tuple(float(k == i) for i in range(k + 1)),
    )


def _shaped(wave: Imperfection, sizes: FloatArray) -> tuple[Imperfection, float]:
    """The drift made of waves of these sizes, its shape for a swing of one, and its swing."""
    curve = replace(wave, waves=tuple(sizes.tolist()))
    swing = float(np.ptp(drift_curve(curve, _ALONG)))
    return replace(wave, waves=tuple((sizes / max(swing, 1e-300)).tolist())), swing

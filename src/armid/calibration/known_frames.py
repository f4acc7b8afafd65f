"""A new name is not yet a new frame: held-out sensors and targets that stand where those of the training files stood.

A frame that is fitted to held-out rows takes up part of the error that they are to show. Names alone are no reason to do so:
every new one is paired with the training frame nearest to it, and where rows fit as well with that one, nothing is refitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.setups import frame_test
from armid.calibration.start import start_frames
from armid.kinematics.measurement import Measurements
from armid.notes import Note, Severity
from armid.robot.robot import Robot


def with_known_frames(
    robot: Robot, train: Measurements, held_out: Measurements
) -> tuple[Measurements, tuple[Note, ...]]:
    """Held-out measurements with the training files' names for new ones that stand at the same places, and what was decided.

    Args:
        robot: nominal arm.
        train: what was fitted.
        held_out: the others.
    """
    setups, targets = _pairs(robot, train, held_out)
    if not setups and not targets:
        return held_out, ()
    found = frame_test(robot, [train, renamed_as(held_out, setups, targets)])
    setups, targets = setups if found.sensor else {}, targets if found.tool else {}
    if not setups and not targets:
        return held_out, ()
    same = ", ".join(f"{new} where {old} was" for new, old in {**setups, **targets}.items())
    text = (
        f"of the held-out rows, {same}: they fit as well with that frame as with one of their own (F = {found.statistic:.3g}, "
        f"limit {found.limit:.3g}), so that it is not fitted again; if it did move, use --setups per-file"
    )
    return renamed_as(held_out, setups, targets), (Note("setups", Severity.INFO, text),)


def renamed_as(measurements: Measurements, setups: Mapping[str, str], targets: Mapping[str, str]) -> Measurements:
    """The same measurements with other names of some setups and targets."""
    observations = tuple(
        replace(o, setup=setups.get(o.setup, o.setup), target=targets.get(o.target, o.target))
        for o in measurements.observations
    )
    return replace(measurements, observations=observations)


def _pairs(robot: Robot, train: Measurements, held_out: Measurements) -> tuple[dict[str, str], dict[str, str]]:
    """New setups and new targets with the nearest ones of the training files that the held-out rows do not have."""
    here, there = start_frames(robot, train), start_frames(robot, held_out)
    placed = {*train.places, *held_out.places}  # Their bodies are known or new as a whole.
    names = [
        ([x for x in held_out.setups if x not in train.setups], [x for x in train.setups if x not in held_out.setups]),
        (
            [x for x in held_out.targets if x not in train.targets and x not in placed],
            [x for x in train.targets if x not in held_out.targets and x not in placed],
        ),
    ]
    return (
        _nearest(names[0], there.setups, here.setups),
        _nearest(names[1], there.targets, here.targets),
    )


def _nearest(
    names: tuple[Sequence[str], Sequence[str]], new: Mapping[str, FloatArray], old: Mapping[str, FloatArray]
) -> dict[str, str]:
    """Pairs with the least distance between their origins altogether; none where there are more new ones than old."""
    from scipy.optimize import linear_sum_assignment

    if not names[0] or len(names[0]) > len(names[1]):
        return {}
    away = [[float(np.linalg.norm(new[a][:3, 3] - old[b][:3, 3])) for b in names[1]] for a in names[0]]
    return {names[0][i]: names[1][k] for i, k in zip(*linear_sum_assignment(away), strict=True)}

"""Discrete mistakes of a recording as hypotheses: another sign, two joints exchanged, a quarter turn of an encoder.

Each knows what undoes it: in runs, to look whether they are then explained better, and in a mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf, pi

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.run import Run, information_of
from armid.identification.candidates import MOTION, in_mapping
from armid.identification.faults import Answer, Fault
from armid.information.information import Information, with_reversed
from armid.robot.robot import JointKind, Robot

SIMPLEST = ("torque-sign", "mirrored", "position-sign", "torques-swapped", "swapped", "quarter-turn")
"""Of mistakes that explain as much the first is named."""

Change = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""From inputs [n_samples, >= 3 n] and torque [n_samples, n] to what they would be without the mistake."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Hypothesis:
    """Something that is either wrong with a recording or not.

    Args:
        kind: `torque-sign`, `position-sign`, `mirrored`, `swapped`, `torques-swapped`, `quarter-turn`.
        joint: that it is about; of two the first.
        channels: of torque of these joints.
        words: that undo it in a mapping.
        experiment: that would decide it.
        undo: the motion and torque without it, save for `reversed_torque`; one function for hypotheses that share it.
        reversed_torque: channel whose torque has the other sign, besides.
        angle: by which the zero is off [rad]; NaN for what has no size.
        other: the second joint of two.
    """

    kind: str
    joint: str
    channels: tuple[int, ...]
    words: str
    experiment: str
    undo: Change
    reversed_torque: int | None = None
    angle: float = float("nan")
    other: str = ""

    @property
    def exchange(self) -> bool:
        """Whether it is more than a sign."""
        return self.kind not in SIMPLEST[:3]

    @property
    def least_better(self) -> int:
        """Joints that must be explained better without it.

        Two joints that were exchanged are both wrong, and a turned encoder turns weight for its own joint and for those beside
        it. Of one light joint alone another geometry explains a cable, or a sensor that is not round.
        """
        return 2 if self.exchange else 1

    def fault(self, answer: Answer, explains: float) -> Fault:
        """As a row of what could be wrong; found, it is always too large to be used."""
        found = answer is Answer.FOUND
        return Fault(
            kind=f"{self.kind} with {self.other}" if self.other else self.kind,
            joint=self.joint,
            estimate=self.angle,
            low=self.angle,
            high=self.angle,
            standard_deviation=0.0 if found else inf,
            unit="rad" if self.angle == self.angle else "",
            answer=answer,
            explains=explains,
            words=self.words if found else "",
            experiment="" if found else self.experiment,
            large=found,
        )


def not_tried(robot: Robot) -> tuple[Fault, ...]:
    """Directions of drives that move several joints: reversed, their coupling would be another one too."""
    return tuple(
        Fault(
            kind=kind,
            joint=robot.joint_names[j],
            experiment=_TURN.format(robot.joint_names[j]),
        )
        for j in range(robot.n_joints)
        if _coupled(robot, j)
        for kind in ("position-sign", "mirrored")
    )


def _coupled(robot: Robot, j: int) -> bool:
    """Whether a drive moves more than its own joint, or another drive moves that too."""
    C = robot.coupling
    return C is not None and bool(np.count_nonzero(C[j]) + np.count_nonzero(C[:, j]) > 2)


_TURN = "turn {} and look which way it counts"
_REVERSED = {
    "torque-sign": ("torque", "move {} against a spring or a hand and look at the sign"),
    "position-sign": (MOTION, _TURN),
    "mirrored": ("position, velocity and torque", _TURN),
}
"""By kind: channels that have the other sign, and what would decide it."""


def signs(robot: Robot) -> Iterator[Hypothesis]:
    """Signs of torque and position, joint by joint; of drives that are coupled, of torque alone."""
    for j in range(robot.n_joints):
        yield _reversed("torque-sign", robot, j, _as_it_is)
        if not _coupled(robot, j):
            backwards = _backwards(j, robot.n_joints)
            yield _reversed("position-sign", robot, j, backwards)
            yield _reversed("mirrored", robot, j, backwards)


def _reversed(kind: str, robot: Robot, j: int, undo: Change) -> Hypothesis:
    """A sign of one joint; torque besides, except where motion alone is reversed."""
    (channels, experiment), name = _REVERSED[kind], robot.joint_names[j]
    return Hypothesis(
        kind=kind,
        joint=name,
        channels=(j,),
        words=in_mapping(channels, "sign", name, "-1"),
        experiment=experiment.format(name),
        undo=undo,
        reversed_torque=None if channels == MOTION else j,
    )


def exchanges(robot: Robot) -> Iterator[Hypothesis]:
    """Joints exchanged, with and without their motion, and encoders off by a quarter or half a turn; not for coupled drives."""
    if robot.coupling is not None:
        return
    names, n = robot.joint_names, robot.n_joints
    for i, j in combinations(range(n), 2):
        for kind, motion in (("torques-swapped", False), ("swapped", True)):
            what = "columns" if motion else "torque columns"
            yield Hypothesis(
                kind=kind,
                joint=names[i],
                channels=(i, j),
                words=f"{what} of {names[i]} and {names[j]} exchanged",
                experiment=f"move {names[i]} alone",
                undo=_swapped(i, j, n, motion=motion),
                other=names[j],
            )
    for j, joint in enumerate(robot.joints):
        for angle in (0.5 * pi, pi, -0.5 * pi) if joint.kind is JointKind.REVOLUTE else ():
            yield Hypothesis(
                kind="quarter-turn",
                joint=joint.name,
                channels=(j,),
                words=in_mapping("position", "offset", joint.name, f"{-angle:.6g}"),
                experiment=f"drive {joint.name} to its zero and look",
                undo=_turned(j, -angle),
                angle=angle,
            )


def _as_it_is(inputs: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    return inputs, y


def _backwards(j: int, n: int) -> Change:
    def change(inputs: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        inputs = np.array(inputs)
        inputs[:, j::n] *= -1.0  # position, velocity, acceleration and direction of the joint
        return inputs, y

    return change


def _turned(j: int, angle: float) -> Change:
    def change(inputs: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        inputs = np.array(inputs)
        inputs[:, j] += angle
        return inputs, y

    return change


def _swapped(i: int, j: int, n: int, *, motion: bool) -> Change:
    def change(inputs: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        y = np.array(y)
        y[:, [i, j]] = y[:, [j, i]]
        if motion:
            inputs = np.array(inputs)
            for start in range(0, inputs.shape[1], n):
                inputs[:, [start + i, start + j]] = inputs[:, [start + j, start + i]]
        return inputs, y

    return change


class Without:
    """What a few runs tell once a mistake is undone; hypotheses that differ in the sign of a torque alone share their rows.

    Args:
        runs: as recorded.
        rows: of runs, that tell it.
    """

    def __init__(self, runs: Sequence[Run], rows: Callable[[Sequence[Run]], Information] = information_of) -> None:
        self.runs, self._rows = runs, rows
        self._known: dict[Change, Information] = {_as_it_is: rows(runs)}

    @property
    def as_it_is(self) -> Information:
        """Of the rows as they are."""
        return self._known[_as_it_is]

    def told(self, mistake: Hypothesis) -> Information:
        """Of the rows without it."""
        if mistake.undo not in self._known:
            self._known[mistake.undo] = self._rows([_undone(run, mistake.undo) for run in self.runs])
        known, channel = self._known[mistake.undo], mistake.reversed_torque
        return known if channel is None else with_reversed(known, self.runs[0].channels[channel])


def _undone(run: Run, undo: Change) -> Run:
    inputs, y = undo(run.inputs, run.y)
    return replace(run, inputs=inputs, y=y)

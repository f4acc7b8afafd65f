"""What calibrated kinematics and the direction of gravity change in the dynamics: one recording, identified under each belief."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from armid.estimation.estimate import Estimate
from armid.identification.pipeline import identify
from armid.identification.result import Result
from armid.identification.settings import Identification
from armid.logs.log import Log
from armid.robot.robot import Robot

NOMINAL, CALIBRATED, LEVELLED = "nominal kinematics", "calibrated kinematics", "calibrated, gravity levelled"


@dataclass(frozen=True)
class Change:
    """One combination of standard parameters under every belief; the combinations are those of the nominal arm.

    Args:
        name, unit: of the base parameter.
        values, standard_deviations: one per result.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    standard_deviations: tuple[float, ...]

    @property
    def relative(self) -> tuple[float, ...]:
        """Difference from the first over its size, or over its standard deviation where that is larger.

        [Kolyubin2017] fig. 7; a parameter near zero would otherwise change by any percentage.
        """
        size = max(abs(self.values[0]), self.standard_deviations[0])
        return tuple((value - self.values[0]) / size if size > 0.0 else 0.0 for value in self.values)


@dataclass(frozen=True, eq=False)
class HandOver:
    """Identifications of the same recordings: nominal kinematics first, everything that is known last.

    Args:
        names: of the beliefs.
        results: one per belief; the last is the one to use.
        changes: of the nominal arm's base parameters.
    """

    names: tuple[str, ...]
    results: tuple[Result, ...]
    changes: tuple[Change, ...]

    @property
    def result(self) -> Result:
        """With calibrated kinematics and, when asked for, the real direction of gravity."""
        return self.results[-1]


def hand_over(
    nominal: Robot,
    calibrated: Robot,
    train: Sequence[Log],
    held_out: Sequence[Log],
    settings: Identification,
    *,
    gravity: npt.ArrayLike | None = None,
    motion: Callable[[Log], Log] = lambda log: log,
    progress: Callable[[str], None] = lambda _: None,
) -> HandOver:
    """Identify with nominal kinematics, with calibrated ones, and with gravity as it really is.

    Args:
        nominal: the arm as described.
        calibrated: the same arm after kinematic calibration.
        train: logs to learn from.
        held_out: logs no part of which is used for any choice.
        settings: of the identification; `find_gravity` fits base tilt from the training torque.
        gravity: in the base frame, from a levelled instrument [m/s^2], shape [3]; a sensor frame alone does not know it.
        motion: what the calibration makes of a recording: encoder errors taken off. Nominal kinematics knows of none.
        progress: told in words what is being done.
    """
    plain = replace(settings, find_gravity=False, sensitivity=False)
    beliefs = [(NOMINAL, nominal, plain), (CALIBRATED, calibrated, replace(plain, described=nominal))]
    if gravity is not None or settings.find_gravity:
        arm = calibrated if gravity is None else calibrated.with_gravity(gravity)
        beliefs.append((LEVELLED, arm, replace(settings, described=nominal)))
    else:
        beliefs[-1] = (CALIBRATED, calibrated, replace(settings, described=nominal))
    results = []
    moved = [motion(log) for log in train], [motion(log) for log in held_out]
    for name, arm, how in beliefs:
        progress(name)
        learned, tested = (train, held_out) if name == NOMINAL else moved
        results.append(identify(arm, learned, tested, how))
    return HandOver(tuple(name for name, _, _ in beliefs), tuple(results), changes([r.estimate for r in results]))


def changes(estimates: Sequence[Estimate]) -> tuple[Change, ...]:
    """Base parameters of the first estimate, and the same combinations of the others' parameters.

    Base parameters of a calibrated arm are other combinations: axes that no longer meet split some of them into
    parts the data can hardly tell apart. The nominal combination `b = P pi` of those parts is well determined, with covariance
    `P E C (P E)^T` for an estimate with embedding E and covariance C.
    """
    first = estimates[0]
    values, deviations = [], []
    for e in estimates:
        M = first.base.projection @ e.base.embedding
        values.append(M @ e.values)
        deviations.append(np.sqrt(np.einsum("ij,jk,ik->i", M, e.covariance, M)))
    return tuple(
        Change(name, unit, tuple(float(v[k]) for v in values), tuple(float(d[k]) for d in deviations))
        for k, (name, unit) in enumerate(zip(first.names, first.units, strict=True))
    )

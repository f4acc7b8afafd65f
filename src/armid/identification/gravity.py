"""Which way is down: gravity direction as two extra parameters, and a reversed mounting found instead of fitted around.

Torque is linear in gravity for given parameters and linear in the parameters for given gravity. Least squares alone hides
a reversed mounting (first moments just change sign); possible bodies cannot, so hypotheses are compared by the
error of the physically consistent fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.consistency.consistent import Consistency
from armid.consistency.prior import nominal_prior
from armid.estimation.extended import Column, extended
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import torque_source, with_torque_source
from armid.estimation.run import Run, information_of
from armid.estimation.runs import map_runs
from armid.identifiability.base import BaseParameters
from armid.identifiability.structure import structural_base
from armid.information.information import Information
from armid.information.solve import solve
from armid.information.status import Status
from armid.notes import Note, Severity
from armid.rows.torque import TorqueRows

_TANGENTS = ("gravity.tilt1", "gravity.tilt2")
_NOTABLE_TILT = np.deg2rad(0.2)
"""[rad]; below this, levelling by hand is no better."""
_CLEARLY_BETTER = 1.2
"""Ratio of consistent errors (root mean square) above which another direction of gravity is the likely one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GravityFit:
    """Direction of gravity in the base frame.

    Args:
        gravity: [m/s^2], shape [3].
        tilt: angle from the robot description's gravity [rad].
        standard_deviation: of the direction, root of the trace of its covariance [rad].
        consistent_error: weighted root mean square error of the consistent fit, per hypothesis that was tried.
        status: of the iteration.
        iterations: used.
        notes: `gravity-reversed`, `gravity-tilted`, or none.
    """

    gravity: FloatArray
    tilt: float
    standard_deviation: float
    consistent_error: dict[str, float]
    status: Status
    iterations: int
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "gravity", read_only(self.gravity))


@dataclass(frozen=True, eq=False)
class GravityDirection:
    """Settings of the search.

    Args:
        iterations: Gauss-Newton steps, at most.
        tolerance: [rad].
        consistency: decides between hypotheses.
    """

    iterations: int = 15
    tolerance: float = 1e-6
    consistency: Consistency = field(default_factory=Consistency)

    def fit(self, runs: Sequence[Run]) -> GravityFit:
        """The direction that explains the torque with possible bodies."""
        source = torque_source(runs)
        nominal = np.array(source.robot.gravity)
        size = float(np.linalg.norm(nominal))
        errors = {name: self.consistent_error(runs, g * size) for name, g in _hypotheses(nominal / size).items()}
        best = min(errors, key=lambda name: errors[name])
        if errors["as described"] < _CLEARLY_BETTER * errors[best]:
            best = "as described"
        start = _hypotheses(nominal / size)[best] * size
        gravity, deviation, status, used = self.refine(runs, start)
        tilt = angle(gravity, nominal)
        return GravityFit(
            gravity=gravity,
            tilt=tilt,
            standard_deviation=deviation,
            consistent_error=errors,
            status=status,
            iterations=used,
            notes=_gravity_notes(best, tilt, deviation, errors),
        )

    def consistent_error(
        self, runs: Sequence[Run], gravity: FloatArray, *, information: Information | None = None
    ) -> float:
        """Weighted root mean square error of possible bodies under this gravity, weights from the free fit.

        Args:
            runs: of the training motion.
            gravity: [m/s^2], shape [3].
            information: of the runs under this gravity; spares a pass.
        """
        turned = _with_gravity_all(runs, gravity)
        source = torque_source(turned)
        information = information_of(turned) if information is None else information
        # The noise must be the same for every hypothesis, else a bad fit would excuse itself.
        sigma = {
            channel.name: max(float(np.sqrt(np.sum(channel.factor[:, -1] ** 2) / channel.count)), 1e-12)
            for channel in information.channels
        }
        weighted = information.weighted({name: 1.0 / s for name, s in sigma.items()})
        # Bodies are the same under whatever gravity, and so is what is believed of them.
        prior = nominal_prior(torque_source(runs).robot, source.columns)
        _, error = self.consistency.values(weighted, prior)
        return float(np.sqrt(error / information.count))

    def refine(self, runs: Sequence[Run], start: FloatArray) -> tuple[FloatArray, float, Status, int]:
        """Gauss-Newton over base parameters and two tangents of the sphere."""
        gravity, deviation = start, float("inf")
        for used in range(1, self.iterations + 1):
            turned = _with_gravity_all(runs, gravity)
            # A tilted base lets gravity act on the first link too, so the base parameters depend on the direction.
            base = structural_base(turned[0].source)
            fit = WeightedLeastSquares().fit(information_of(turned), base)
            T = _tangents(gravity)
            wide = _widened_all(turned, base, fit.values, T)
            step, deviation = _joint_step(wide, base, fit.sigma)
            size = float(np.linalg.norm(gravity))
            gravity = gravity + size * T @ step
            gravity *= size / np.linalg.norm(gravity)
            if float(np.linalg.norm(step)) < self.tolerance:
                return gravity, deviation, Status.SOLVED, used
        return gravity, deviation, Status.NOT_CONVERGED, self.iterations


def _hypotheses(down: FloatArray) -> dict[str, FloatArray]:
    """Mountings worth trying: as described, upside down, and on the four walls."""
    T = _tangents(down)
    return {
        "as described": down,
        "reversed": -down,
        **{f"wall {k + 1}": s * T[:, k // 2] for k, s in enumerate((1.0, -1.0, 1.0, -1.0))},
    }


def _tangents(gravity: FloatArray) -> FloatArray:
    """Two unit vectors orthogonal to gravity and each other, shape [3, 2]."""
    down = gravity / np.linalg.norm(gravity)
    first = np.eye(3)[int(np.argmin(np.abs(down)))]
    first = first - down * (down @ first)
    first /= np.linalg.norm(first)
    return np.column_stack([first, np.cross(down, first)])


def with_gravity(run: Run, gravity: FloatArray) -> Run:
    """The same run under another gravity."""
    return with_torque_source(run, _under(torque_source([run]), tuple(np.asarray(gravity, dtype=np.float64).tolist())))


@lru_cache(maxsize=16)
def _under(source: TorqueRows, gravity: tuple[float, ...]) -> TorqueRows:
    """The rows under another gravity; one for all runs that share them, so that their kernels are compiled once."""
    return replace(source, robot=source.robot.with_gravity(gravity))


def _with_gravity_all(runs: Sequence[Run], gravity: FloatArray) -> Sequence[Run]:
    """The same runs under another gravity."""
    return map_runs(runs, partial(with_gravity, gravity=gravity))


def _widened_all(runs: Sequence[Run], base: BaseParameters, values: FloatArray, T: FloatArray) -> Sequence[Run]:
    """Every run with its tangents."""
    return map_runs(runs, partial(_with_tangents, base=base, values=values, T=T))


def _with_tangents(run: Run, base: BaseParameters, values: FloatArray, T: FloatArray) -> Run:
    """Two more columns: change of torque per radian of tilt."""
    size = float(np.linalg.norm(torque_source([run]).robot.gravity))
    columns = []
    for k, name in enumerate(_TANGENTS):
        slope = _gravity_torque(run, base.embedding @ values, size * T[:, k])
        columns.append(Column(name, tuple((channel, slope[:, c]) for c, channel in enumerate(run.channels))))
    return extended(run, columns)


def _gravity_torque(run: Run, standard: FloatArray, gravity: FloatArray) -> FloatArray:
    """Torque of gravity alone, linear in it, shape [n_samples, channels]."""
    source = torque_source([run])
    n = source.robot.n_joints
    still = np.array(run.inputs)
    still[:, n:] = 0.0
    rigid = np.where([parameter.of_joint for parameter in source.space.parameters], 0.0, standard)
    return with_gravity(replace(run, inputs=still), gravity).predicted(rigid)


def _joint_step(wide: Sequence[Run], base: BaseParameters, sigma: Mapping[str, float]) -> tuple[FloatArray, float]:
    """Least squares over base parameters and tangents: the tilt [rad] and its deviation [rad]."""
    p = len(base.parameters)
    rows = information_of(wide).select([*base.independent, p, p + 1])
    solution = solve(rows, weights={name: 1.0 / s for name, s in sigma.items()})
    r = len(base)
    return solution.values[r:], float(np.sqrt(np.trace(solution.inverse[r:, r:])))


def angle(a: FloatArray, b: FloatArray) -> float:
    """Between two vectors [rad]; accurate near zero."""
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b))


def _gravity_notes(best: str, tilt: float, deviation: float, errors: dict[str, float]) -> tuple[Note, ...]:
    """What to tell about the mounting."""
    if best != "as described":
        ratio = errors["as described"] / max(errors[best], 1e-300)
        code = "gravity-reversed" if best == "reversed" else "gravity-direction"
        text = (
            f"physically consistent parameters explain the torque {ratio:.1f} times better with gravity {best} than as "
            "described; correct the mounting (gravity vector) of the robot, or the sign of the torque"
        )
        return (Note(code, Severity.ERROR, text),)
    if tilt > max(_NOTABLE_TILT, 3.0 * deviation):
        text = f"the base is tilted by {np.rad2deg(tilt):.2f} deg against its description"
        return (Note("gravity-tilted", Severity.WARNING, text),)
    return ()

"""`armid.OnlineEstimator`: an arm identified while it moves, sample by sample, with derivatives from the past only."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError, ShapeError
from armid.estimation.estimate import units_of
from armid.estimation.least_squares import GaussianPrior
from armid.estimation.recursive.estimator import ChangeDetection, RecursiveEstimator
from armid.estimation.recursive.forgetting import Forgetting
from armid.identifiability.structure import structural_base
from armid.identification.inputs import files_of, is_result, result_of, robot_of
from armid.identification.result import Result
from armid.notes import Note, Severity
from armid.online.drifts import News
from armid.online.state import OnlineState, drift_checks, online_checks, start_check
from armid.online.watch import CORRELATION_TIME, DriftWatch
from armid.outcome import Provenance
from armid.parameters.effects import DEFAULT_FRICTION, Effects, PayloadRuns, TorqueSide, effects_of
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows
from armid.signals.causal import CausalDifferentiator, LocalPolynomial
from armid.words import number

_GAP = 1.5
"""Sampling periods: a longer step is a gap, and the window of the differentiator starts anew."""

_SMOOTHING = 0.03
"""[s] Half window of the differentiator: passes the motion of an arm up to about 10 Hz."""


_WATCH = ChangeDetection()
"""How a changed arm is noticed unless something else is asked for."""


class OnlineEstimator:
    """Base parameters of an arm while it moves. Memory and time per sample are fixed.

    Starting from a robot nothing is known; starting from a result its parameters are, as well as they were identified.

    Args:
        arm: a robot, a result, or where one of them is (URDF, YAML, catalogue name, folder of `armid identify`).
        rate: samples per second [Hz].
        friction: of `viscous`, `coulomb`, `offset` with commas between them; all three by default. A result has its own.
        rotor_inertia: whether rotor inertias are estimated too.
        torques: `link`, `motor`, `both` or `difference`.
        effects: the last three as an object, instead of them.
        sigma: torque noise per channel [N m or N]; that of the result, or one for all, by default.
        forget: time constant of forgetting [s]; never by default.
        detection: how a changed arm is noticed; None does not watch, neither that nor, starting from a result, whether
            sensors or friction drift.
        half_window: samples on either side of the differentiator's middle; 30 ms by default.
        base, tip: links of a branched URDF between which the arm lies.

    Raises:
        InputError: a result that an on-line estimator cannot go on from, or settings that make no sense.
    """

    def __init__(
        self,
        arm: str | Path | Robot | Result,
        *,
        rate: float = 1000.0,
        friction: str | None = None,
        rotor_inertia: bool = False,
        torques: str | TorqueSide = TorqueSide.LINK,
        effects: Effects | None = None,
        sigma: Mapping[str, float] | None = None,
        forget: float | None = None,
        detection: ChangeDetection | None = _WATCH,
        half_window: int | None = None,
        base: str | None = None,
        tip: str | None = None,
    ) -> None:
        if not number("rate", rate) > 0.0:
            raise InputError("rate", f"{rate}", "expected samples per second, above zero")
        if not isinstance(arm, Result | Robot):
            arm = result_of(arm) if is_result(arm) else robot_of(arm, base=base, tip=tip)
        if isinstance(arm, Result):
            _check_result(arm, own=friction is None and effects is None)
            model, prior = arm.effects, GaussianPrior.from_estimate(arm.estimate)
            source, columns = TorqueRows(arm.robot, model), arm.estimate.base
            memory = max(CORRELATION_TIME * rate, 1.0) ** 0.5
            noise = sigma or {name: memory * s for name, s in arm.estimate.sigma.items()}
        else:
            words = friction or DEFAULT_FRICTION
            model = effects or effects_of(words, rotor_inertia=rotor_inertia, torques=torques, shapes=False)
            source, prior = TorqueRows(arm, model), None
            columns = structural_base(source)
            noise = sigma or dict.fromkeys(source.channels, 1.0)
        self.robot, self.rate, self.effects = source.robot, float(rate), model
        self._source, self._from_result = source, prior is not None
        self.recursive = RecursiveEstimator(
            source,
            columns,
            noise,
            rate=rate,
            prior=prior,
            forgetting=None if forget is None else Forgetting(forget),
            detection=detection,
        )
        width = half_window or max(3, round(_SMOOTHING * rate))
        self._differentiator = CausalDifferentiator(
            LocalPolynomial(rate, width), self.robot.n_joints, len(source.channels)
        )
        self._watch: DriftWatch | None = None
        if isinstance(arm, Result) and detection is not None:
            spread = np.array([noise[name] / max(CORRELATION_TIME * rate, 1.0) ** 0.5 for name in source.channels])
            self._watch = DriftWatch(arm, source, spread, rate=rate)
        self._start_checks = (start_check(arm.reasons),) if isinstance(arm, Result) else ()
        self._smoothed = 0
        self._time: float | None = None
        self.gaps = 0
        self.events: list[Note] = []
        self.drifts: list[Note] = []
        self._news: list[News] = []

    @property
    def delay(self) -> float:
        """How old the state is that an update from positions refers to [s]."""
        return self._differentiator.polynomial.delay

    def update(self, q: npt.ArrayLike, qd: npt.ArrayLike, qdd: npt.ArrayLike, tau: npt.ArrayLike) -> bool:
        """One sample with its derivatives.

        Args:
            q, qd, qdd: position, velocity, acceleration [rad, rad/s, rad/s^2 or m, ...], shape [n_joints] each.
            tau: torque [N m or N], shape [n_channels]: one per joint, with both torques joint sensors' before motors'.

        Returns:
            Whether the arm was noticed to have changed.

        Raises:
            ShapeError: other shapes.
            InputError: numbers that are not finite.
        """
        x = np.concatenate([np.asarray(part, dtype=np.float64) for part in (q, qd, qdd)])
        if x.shape != (3 * self.robot.n_joints,):
            raise ShapeError("q, qd, qdd", x.shape, f"[{self.robot.n_joints}] each")
        return self._counted(x, self._torque(tau), None)

    def update_positions(self, q: npt.ArrayLike, tau: npt.ArrayLike, *, time: float | None = None) -> bool:
        """One sample without derivatives, which come from a window of past ones; see `delay`.

        Args:
            q: position [rad or m], shape [n_joints].
            tau: torque [N m or N], shape [n_channels].
            time: of the sample [s]. One that is not after the last is ignored; after a gap the window starts anew. None: as if a
                sampling period after the last.

        Returns:
            Whether the estimate moved: not while the window fills.

        Raises:
            ShapeError: other shapes.
            InputError: numbers that are not finite.
        """
        position, torque = np.asarray(q, dtype=np.float64), self._torque(tau)
        if position.shape != (self.robot.n_joints,):
            raise ShapeError("q", position.shape, f"[{self.robot.n_joints}]")
        if not self._in_order(time):
            return False
        state = self._differentiator.push(position, torque)
        if state is None:
            return False
        self._smoothed += 1
        self._counted(*state, self._one_way())
        return True

    def _torque(self, tau: npt.ArrayLike) -> FloatArray:
        torque = np.asarray(tau, dtype=np.float64)
        torque = torque[0] if torque.ndim == 2 and len(torque) == 1 else torque
        if torque.shape != (len(self._source.channels),):
            raise ShapeError("tau", torque.shape, f"[{len(self._source.channels)}]")
        return torque

    def _in_order(self, time: float | None) -> bool:
        """Whether a sample comes after the last one; a gap restarts the window."""
        if time is None:
            self._time = None if self._time is None else self._time + 1.0 / self.rate
            return True
        if self._time is not None:
            step = time - self._time
            if step <= 0.0:
                return False
            if step > _GAP / self.rate:
                self.gaps += 1
                self._differentiator.reset()
                if self._watch is not None:
                    self._watch.reset()
        self._time = time
        return True

    def _one_way(self) -> npt.NDArray[np.bool_] | None:
        """Channels of joints that kept their direction; all when there is no Coulomb friction to jump."""
        if not self.effects.coulomb:
            return None
        return np.tile(self._differentiator.one_way, len(self._source.channels) // self.robot.n_joints)

    def _counted(self, x: FloatArray, torque: FloatArray, counted: npt.NDArray[np.bool_] | None) -> bool:
        if not isfinite(float(x.sum()) + float(torque.sum())):
            raise InputError("sample", "holds values that are not finite", "leave it out")
        changed = self.recursive.update(x, torque, counted)
        if changed:
            name, error = max(self.recursive.innovations.items(), key=lambda item: abs(item[1]))
            text = f"{self._when} the arm changed: {name} is {error:+.3g} off"
            self.events.append(Note("arm-changed", Severity.WARNING, text, name))
        if self._watch is not None:
            fresh = self._watch.update(x, torque, counted)
            self._news += fresh
            self.drifts += [Note(one.code, Severity.WARNING, f"{self._when} {one.text}", one.subject) for one in fresh]
        return changed

    @property
    def _when(self) -> str:
        return f"at {self._time - self.delay:.3f} s" if self._time is not None else f"at sample {self.samples}"

    @property
    def samples(self) -> int:
        """That were used."""
        return self.recursive.samples

    @property
    def values(self) -> FloatArray:
        """Present base parameters, shape [r]; those not yet determined at their start."""
        return self.recursive.values

    def state(self) -> OnlineState:
        """What the arm looks like now: an answer with intervals and a verdict."""
        units = units_of(self.recursive.base, np.array(self._source.space.units, dtype=object))
        estimate = self.recursive.present(units, scaled=not self._from_result)
        estimate = estimate.with_covariance(self._inflation() * estimate.covariance, estimate.covariance_kind)
        excitation = self.recursive.excitation()
        relative = self.recursive.relative_error
        return OnlineState(
            robot=self.robot,
            estimate=estimate,
            frozen=excitation.frozen,
            samples=self.samples,
            gaps=self.gaps,
            delay=self.delay,
            time=self._time,
            relative_error=relative,
            condition_number_scaled=excitation.condition_number_scaled,
            events=(*self.events, *self.drifts),
            drifts=() if self._watch is None else self._watch.drifts,
            checks=(
                *self._start_checks,
                *online_checks(
                    estimate,
                    self._source.space,
                    frozen=excitation.frozen,
                    relative_error=relative,
                    events=len(self.events),
                    gaps=self.gaps,
                ),
                *drift_checks(tuple(zip(self._news, self.drifts, strict=True)), watched=self._watch is not None),
            ),
            notes=(*self.events, *self.drifts),
            provenance=Provenance(inputs=files_of(self.robot), settings=self._settings()),
        )

    def _inflation(self) -> float:
        """Factor on variances of independent samples: white noise that a window has smoothed comes back in its neighbours.

        Residuals of a smoothed stream are c = w.w times smaller in variance and remember 1 / c samples. The noise that a result
        brings along has its memory in it.
        """
        if not self._smoothed or self._from_result:
            return 1.0
        w = self._differentiator.polynomial.weights[0]
        return max(1.0 / float(w @ w), 1.0)

    def _settings(self) -> dict[str, object]:
        return {
            "rate_hz": self.rate,
            "friction": ",".join(self.effects.friction) or "none",
            "rotor_inertia": self.effects.rotor_inertia,
            "torques": self.effects.torques.value,
            "forget_s": self.recursive.forgetting.time_constant,
            "from_result": self._from_result,
        }


def _check_result(known: Result, *, own: bool) -> None:
    """Refuses a result from which an on-line estimator cannot go on."""
    if not own:
        raise InputError("friction", "given with a result", "the result's own effects are used")
    if known.effects.shapes:
        words = ", ".join(known.effects.shapes)
        raise InputError("result", f"friction with {words}", "identify the arm with viscous,coulomb,offset")
    if known.effects.payload is not PayloadRuns.NONE or known.gains:
        raise InputError("result", "identified with a payload or from currents", "identify the arm alone, from torque")

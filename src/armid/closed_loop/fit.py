"""Base values whose simulated loop comes nearest to a recording: DIDIM, closed-loop output error, maximum likelihood.

All three are Gauss-Newton iterations on the same simulation and differ in what they compare and what they differentiate:

| method | compares | derivative |
|---|---|---|
| `didim` [Gautier2013] | torque | the rows A(simulated motion): the motion itself taken as independent of the values |
| `cloe` | position | exact |
| `ml` | position and torque, by their joint noise | exact |

Every value simulated is that of bodies that can exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from armid.arrays import FloatArray
from armid.closed_loop.loop import LoopDivergedError, LoopMotion, Start
from armid.closed_loop.weighting import LoopResponse, Weighting, fitted_weighting, loop_response, white_weighting
from armid.information.information import triangular

Bodies = Callable[[FloatArray, FloatArray], FloatArray]
"""From a factor R and z of the base values (|R b - z| small) to the base values of possible bodies nearest in that metric."""

_MOST_ITERATIONS = 25
_SETTLED = 0.02
"""A step counts as none when it moves no parameter by more than this share of its standard deviation."""
_REWEIGHTED = 4
"""Iterations with the noise's own spectrum, after those in which every channel counts by its level."""
_RESPONSES = 2
"""How often the loop's answer to its noise is simulated anew while the values still move."""
_PROBE_RUNS = 2
"""Pairs of runs that tell whether the noise was fed back at all."""
_RESPONSE_RUNS = 8
"""Pairs of runs that give its spectrum and shift."""
_HALVINGS = 8
_DAMPINGS = (0.0, 1e-3, 1e-1)
"""Shares of the diagonal added when a full step does not help: far from the answer the loop is not linear."""


class LoopMethod(StrEnum):
    """What is compared with the recording."""

    DIDIM = "didim"
    CLOE = "cloe"
    ML = "ml"


@dataclass(frozen=True, eq=False)
class LoopRecord:
    """A recorded motion beside the loop that simulates it.

    Args:
        motion: the loop.
        position: measured [rad or m], shape [samples, n].
        torque: measured [N m or N], shape [samples, n].
    """

    motion: LoopMotion
    position: FloatArray
    torque: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class LoopFit:
    """What a fit found.

    Args:
        values: base values of least squares at the last linearisation, shape [r].
        bodies: base values of the possible bodies last simulated, shape [r].
        covariance: of the values, shape [r, r].
        gains: rows kp, kd, ki, shape [3, n].
        gain_deviations: of estimated gains, shape [3, n]; zero where known.
        weightings: of the noise, one per record.
        iterations: used.
        converged: whether the values settled.
        why: in words, when they did not.
        torque_deviation: of the torque residuals of every joint [N m or N], shape [n].
    """

    values: FloatArray
    bodies: FloatArray
    covariance: FloatArray
    gains: FloatArray
    gain_deviations: FloatArray
    weightings: tuple[Weighting, ...]
    iterations: int
    converged: bool
    why: str = ""
    torque_deviation: FloatArray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, eq=False)
class _State:
    """Everything that is iterated: base values, gains, initial states."""

    values: FloatArray
    gains: FloatArray
    starts: tuple[Start, ...]


def fit_loop(
    records: Sequence[LoopRecord],
    start: FloatArray,
    method: LoopMethod,
    bodies: Bodies,
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> LoopFit:
    """The fit.

    Args:
        records: all under one controller.
        start: base values, shape [r].
        method: see there.
        bodies: see `Bodies`.
        seed: of the noise that is simulated to find how the loop answers to it.
        progress: told in words what is being done.

    Raises:
        LoopDivergedError: not even the start can be simulated.
    """
    motions = [record.motion for record in records]
    state = _State(start, motions[0].controller.gains, tuple(m.at_rest() for m in motions))
    problem = _Problem(tuple(records), method, bodies, seed)
    state, noise, used, converged, why = problem.iterate(state, progress)
    return problem.finish(state, noise, used, converged, why)


@dataclass(frozen=True, eq=False)
class _Noise:
    """The noise of every record: how its errors are weighted, and how its loop answers to it (once that is known)."""

    weightings: tuple[Weighting, ...]
    responses: tuple[LoopResponse, ...] = ()


def _still(step: float, iterations: int) -> str:
    return f"after {iterations} iterations a step still moved a parameter by {step:.2g} of its deviation"


@dataclass(frozen=True, eq=False)
class _Problem:
    """The iteration of one fit."""

    records: tuple[LoopRecord, ...]
    method: LoopMethod
    bodies: Bodies
    seed: int

    @property
    def n(self) -> int:
        return self.records[0].motion.n

    @property
    def used(self) -> FloatArray:
        """Which channels count: positions, then torques."""
        q = float(self.method is not LoopMethod.DIDIM)
        tau = float(self.method is not LoopMethod.CLOE)
        return np.repeat([q, tau], self.n)

    def iterate(self, state: _State, progress: Callable[[str], None]) -> tuple[_State, _Noise, int, bool, str]:
        """First every channel by its level, then by the spectrum of the noise."""
        noise = self.levels(state)
        coloured, step, iteration = 0, np.inf, 0
        for iteration in range(1, _MOST_ITERATIONS + 1):
            progress(f"closed loop, iteration {iteration}")
            candidate, step = self.improved(state, self.factor(state, noise), noise)
            # When no step helps, the values have settled as far as this weighting can tell.
            state, step = (state, 0.0) if candidate is None else (candidate, step)
            settled = step < _SETTLED
            if coloured and (settled or coloured >= _REWEIGHTED):
                break
            if coloured or settled:
                noise = self.spectra(state, noise, fresh=coloured < _RESPONSES)
                coloured += 1
            else:
                noise = self.levels(state)
        if not coloured:
            return state, self.spectra(state, noise, fresh=True), iteration, False, _still(step, iteration)
        settled = step < 10.0 * _SETTLED
        return state, noise, iteration, settled, "" if settled else _still(step, iteration)

    def levels(self, state: _State) -> _Noise:
        """Every channel by the level of its residuals."""
        return _Noise(tuple(white_weighting(r, self.used) for r in self.residuals(state, None)))

    def spectra(self, state: _State, noise: _Noise, *, fresh: bool) -> _Noise:
        """Noise as the residuals show it; with `fresh` also how the loop answers to it, by simulation."""
        if not fresh and noise.responses:
            return replace(noise, weightings=self.weightings(state, noise.responses, noise))
        quiet = [self.response(k, state, None) for k in range(len(self.records))] if not noise.responses else []
        weightings = self.weightings(state, quiet, None) if quiet else noise.weightings
        # Rough while the values still move; the shift of the last one decides below one deviation.
        fine = bool(noise.responses)
        loud = tuple(
            self.response(k, state, w.position_noise if w.fed_back else None, fine=fine)
            for k, w in enumerate(weightings)
        )
        return _Noise(self.weightings(state, loud, None), loud)

    def weightings(
        self, state: _State, responses: Sequence[LoopResponse], noise: _Noise | None
    ) -> tuple[Weighting, ...]:
        errors = self.residuals(state, _Noise((), tuple(responses)))
        return tuple(fitted_weighting(r, H.spectrum, self.used) for r, H in zip(errors, responses, strict=True))

    def response(self, k: int, state: _State, level: FloatArray | None, *, fine: bool = False) -> LoopResponse:
        """How a loop answers to noise in its encoders; `fine`: with shorter steps and more runs."""
        motion = self.motion(k, state)
        if level is None:
            return loop_response(motion, state.values, state.starts[k], runs=_PROBE_RUNS, seed=self.seed + k)
        refined = replace(motion, refinement=2) if fine else motion
        runs = _RESPONSE_RUNS if fine else _RESPONSE_RUNS // 2
        return loop_response(refined, state.values, state.starts[k], noise=level, runs=runs, seed=self.seed + k)

    def motion(self, k: int, state: _State) -> LoopMotion:
        motion = self.records[k].motion
        return motion.with_gains(state.gains) if motion.free_gains else motion

    def residuals(self, state: _State, noise: _Noise | None) -> list[FloatArray]:
        """Measured minus simulated position and torque of every record, shape [samples, 2 n]; its noise shifts the simulated."""
        out = []
        for k, record in enumerate(self.records):
            got = self.motion(k, state).extrapolated(state.values, start=state.starts[k])
            error = np.hstack([record.position - got.position, record.torque - got.torque])
            out.append(error - noise.responses[k].shift if noise is not None and noise.responses else error)
        return out

    def factor(self, state: _State, noise: _Noise) -> FloatArray:
        """Factor [R z; 0 rho] of the whitened linearised problem: nuisances first, base values last; steps are its unknowns."""
        r, extra = len(state.values), self.n_extra
        blocks = []
        for k, (error, weighting) in enumerate(zip(self.residuals(state, noise), noise.weightings, strict=True)):
            slopes = self.slopes(k, state)
            order = np.concatenate([np.arange(r, slopes.shape[2]), np.arange(r)])
            rows = np.concatenate([slopes[:, :, order], error[:, :, np.newaxis]], axis=2)
            for joint in weighting.rows(rows):
                blocks.append(self._placed(triangular(joint), k, r, extra))
        return triangular(np.vstack(blocks))

    @property
    def n_extra(self) -> int:
        """Nuisances: gains once, initial states per record."""
        if self.method is LoopMethod.DIDIM:
            return 0
        return self.records[0].motion.n_gains + sum(2 * self.n for r in self.records if r.motion.free_start)

    def _placed(self, R: FloatArray, k: int, r: int, extra: int) -> FloatArray:
        """A record's factor among the columns of all: gains, the initial states of each record, base values, error."""
        own = R.shape[1] - 1 - r
        gains = self.records[k].motion.n_gains if own else 0
        out = np.zeros((len(R), extra + r + 1))
        first = gains + sum(2 * self.n for record in self.records[:k] if record.motion.free_start)
        out[:, :gains] = R[:, :gains]
        out[:, first : first + own - gains] = R[:, gains:own]
        out[:, extra:] = R[:, own:]
        return out

    def slopes(self, k: int, state: _State) -> FloatArray:
        """Derivatives of position and torque, shape [samples, 2 n, parameters]."""
        motion = self.motion(k, state)
        if self.method is LoopMethod.DIDIM:
            got = motion.simulate(state.values, start=state.starts[k])
            rows = torque_rows(motion, got.motion)
            return np.concatenate([np.zeros_like(rows), rows], axis=1)
        return np.concatenate([b.slopes for b in motion.blocks(state.values, start=state.starts[k])])

    def improved(self, state: _State, factor: FloatArray, noise: _Noise) -> tuple[_State | None, float]:
        """A state that fits better, and the step to it in standard deviations; None when no step helps."""
        extra = self.n_extra
        before = float(np.sum(factor[:, -1] ** 2))
        R, z = factor[:-1, :-1], factor[:-1, -1]
        step = np.inf
        for damping in _DAMPINGS:
            Rd, zd = damped(R, z, damping)
            Rb, zb = Rd[extra:, extra:], zd[extra:]
            target = self.bodies(Rb, zb + Rb @ state.values)
            move = target - state.values
            aim = zd[:extra] - Rd[:extra, extra:] @ move
            nuisance = np.asarray(np.linalg.lstsq(Rd[:extra, :extra], aim, rcond=None)[0], dtype=np.float64)
            deviations = np.sqrt(np.sum(np.linalg.pinv(R) ** 2, axis=1))
            full = np.concatenate([nuisance, move])
            step = float(np.max(np.abs(full) / np.maximum(deviations, 1e-300)))
            if self.method is LoopMethod.DIDIM:
                return self.moved(state, nuisance, move), step
            for halving in range(_HALVINGS if damping else 3):
                share = 0.5**halving
                candidate = self.moved(state, share * nuisance, share * move)
                try:
                    errors = self.residuals(candidate, noise)
                except LoopDivergedError:
                    continue
                after = sum(
                    float(np.sum(rows**2)) for w, e in zip(noise.weightings, errors, strict=True) for rows in w.rows(e)
                )
                if after < before:
                    return candidate, share * step
        return None, step

    def moved(self, state: _State, nuisance: FloatArray, move: FloatArray) -> _State:
        """The state after a step."""
        if self.method is LoopMethod.DIDIM or not len(nuisance):
            return replace(state, values=state.values + move)
        places = self.records[0].motion.gain_places
        first = len(state.values)
        gains = state.gains.copy()
        gains[places >= 0] += nuisance[places[places >= 0] - first]
        at, starts, n = self.records[0].motion.n_gains, [], self.n
        for record, start in zip(self.records, state.starts, strict=True):
            if record.motion.free_start:
                start = replace(
                    start,
                    position=start.position + nuisance[at : at + n],
                    velocity=start.velocity + nuisance[at + n : at + 2 * n],
                )
                at += 2 * n
            starts.append(start)
        return _State(state.values + move, gains, tuple(starts))

    def finish(self, state: _State, noise: _Noise, iterations: int, converged: bool, why: str) -> LoopFit:
        """Free values and covariance at the last state."""
        factor = self.factor(state, noise)
        extra = self.n_extra
        R, z = factor[:-1, :-1], factor[:-1, -1]
        T = np.linalg.pinv(R, rcond=1e-12)
        covariance = T @ T.T
        full = T @ z
        deviations = np.zeros_like(state.gains)
        places = self.records[0].motion.gain_places
        if extra and self.records[0].motion.free_gains:
            deviations[places >= 0] = np.sqrt(np.diag(covariance))[places[places >= 0] - len(state.values)]
        errors = np.concatenate(self.residuals(state, noise))
        return LoopFit(
            values=state.values + full[extra:],
            bodies=state.values,
            covariance=covariance[extra:, extra:],
            gains=state.gains,
            gain_deviations=deviations,
            weightings=noise.weightings,
            iterations=iterations,
            converged=converged,
            why=why,
            torque_deviation=np.sqrt(np.mean(errors[:, self.n :] ** 2, axis=0)),
        )


def damped(R: FloatArray, z: FloatArray, share: float) -> tuple[FloatArray, FloatArray]:
    """R and z with a share of each column's length added as a pull towards no step."""
    if not share:
        return R, z
    pull = np.diag(np.sqrt(share) * np.linalg.norm(R, axis=0))
    factor = triangular(np.column_stack([np.vstack([R, pull]), np.concatenate([z, np.zeros(len(pull))])]))
    return factor[:-1, :-1], factor[:-1, -1]


def torque_rows(motion: LoopMotion, inputs: FloatArray) -> FloatArray:
    """Rows of the base parameters along a motion, Coulomb friction as the loop simulates it, shape [samples, n, r]."""
    plant, n = motion.plant, motion.n
    out = np.zeros((len(inputs), n, len(plant.base)))
    packed = plant.rigid_rows.packed(inputs)
    out[:, plant.row_channels, plant.row_columns] = packed.T
    qd, qdd = inputs[:, n : 2 * n], inputs[:, 2 * n :]
    values = (qdd, qd, np.tanh(qd / motion.controller.friction_velocity), np.ones_like(qd))
    for places, column in zip(plant.drive_places, values, strict=True):
        for j in np.flatnonzero(places >= 0):
            out[:, j, places[j]] = column[:, j]
    return out

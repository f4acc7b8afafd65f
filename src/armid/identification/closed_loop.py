"""Noise-free motion for instruments: the current estimate under a controller along the commanded motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.errors import ShapeError
from armid.estimation.recording import torque_source, with_torque_source
from armid.estimation.run import Run
from armid.identifiability.base import BaseParameters
from armid.information.status import EstimationError, Status
from armid.kernels.evaluate import CompiledRows, compiled_rows
from armid.parameters.effects import TorqueSide
from armid.rows.friction import averaged_sign

_LONGEST_STEP = 0.25
"""Integration step in units of one over the controller's angular frequency: stable, and accurate to a few per cent of the lag."""
_FARTHEST = 1.0
"""[rad or m]; a simulated joint farther than this from its command has left it for good."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ClosedLoop:
    """Simulates base values b along a commanded motion: proportional-derivative control with the estimate's own feed-forward.

        M(q) qdd = tau - n(q, qd),   tau = tau_b(command) + w^2 D (q_r - q) + 2 w D (qd_r - qd)

    with D the diagonal of M at each command. An instance is what `InstrumentalVariables.fit` takes as `simulate`.

    Args:
        base: whose values are simulated.
        commanded: (q, qd, qdd) of the command, one array per run name, shape [n_samples, 3 n_joints].
        bodies: from base values to standard parameters of possible bodies (`nearest_bodies`): a first estimate from noisy
            motion has too little inertia here and there, and a simulation of impossible bodies runs away.
        bandwidth: of the controller [Hz].
        substeps: integration steps per sample; None: as many as the bandwidth needs.
    """

    base: BaseParameters
    commanded: dict[str, FloatArray]
    bodies: Callable[[FloatArray], FloatArray]
    bandwidth: float = 5.0
    substeps: int | None = None

    def __call__(self, values: FloatArray, run: Run) -> FloatArray:
        """Simulated inputs of a run, shape of `run.inputs`.

        Raises:
            EstimationError: the motion runs away from its command.
        """
        source = torque_source([run])
        if source.effects.torques in (TorqueSide.BOTH, TorqueSide.DIFFERENCE):
            raise ShapeError("torques", (len(source.channels),), "one channel per joint for a simulation")
        n = source.robot.n_joints
        command = self.commanded[run.name]
        if command.shape != (len(run), 3 * n):
            raise ShapeError(f"command of {run.name}", command.shape, f"[{len(run)}, {3 * n}]")
        # Feed-forward cancels the jumps of Coulomb friction; integrated with steps they would only chatter.
        jumps = np.array([p.quantity.endswith("coulomb") for p in source.space.parameters])
        standard = np.where(jumps, 0.0, self.bodies(values))
        rows = compiled_rows(source)
        out = np.array(with_torque_source(run, source).inputs)
        for start, stop in run.segments:
            out[start:stop, : 3 * n] = self.follow(rows, standard, command[start:stop], run.rate)
        if out.shape[1] > 3 * n:
            # Filtered signs of the velocity are inputs too; the simulated velocity has its own.
            out[:, 3 * n :] = averaged_sign(out[:, n : 2 * n], out[:, 2 * n : 3 * n], run.rate)
        return out

    def follow(self, rows: CompiledRows, standard: FloatArray, command: FloatArray, rate: float) -> FloatArray:
        """One uniform stretch by semi-implicit Euler steps."""
        n = command.shape[1] // 3
        q, qd, qdd = (np.array(command[0, k * n : (k + 1) * n]) for k in range(3))
        out = np.empty(command.shape)
        w = 2.0 * np.pi * self.bandwidth
        substeps = self.substeps or max(1, int(np.ceil(w / (_LONGEST_STEP * rate))))
        h = 1.0 / (rate * substeps)
        fine = _interpolated(command, substeps)
        weights = _entry_weights(rows, standard)
        forward = torque(rows, weights, fine)
        probe = _probes(n)
        for k in range(len(command)):
            out[k] = np.concatenate([q, qd, qdd])
            for j in range(k * substeps, min((k + 1) * substeps, len(fine))):
                M, bias = _inertia_and_bias(rows, weights, probe, q, qd)
                error = w**2 * (fine[j, :n] - q) + 2.0 * w * (fine[j, n : 2 * n] - qd)
                qdd = _accelerated(M, forward[j] + np.diag(M) * error - bias)
                qd = qd + h * qdd
                q = q + h * qd
            if not np.all(np.abs(q - command[k, :n]) < _FARTHEST):
                raise EstimationError(Status.NOT_CONVERGED, f"simulated motion left its command after {k / rate:.2f} s")
        return out


class RealLoop:
    """Noise-free inputs of the runs from simulating the recorded loop itself; `InstrumentalVariables.fit` takes it as `simulate`.

    Args:
        positions: from base values to the positions of every recording.
        conditioned: from these to (q, qd, qdd) by run.
    """

    def __init__(
        self,
        positions: Callable[[FloatArray], list[FloatArray]],
        conditioned: Callable[[Sequence[FloatArray]], dict[str, FloatArray]],
    ) -> None:
        self._positions, self._conditioned = positions, conditioned
        self._last: tuple[bytes, dict[str, FloatArray]] = (b"", {})

    def __call__(self, values: FloatArray, run: Run) -> FloatArray:
        """Simulated inputs of a run, shape of `run.inputs`."""
        key = np.asarray(values, dtype=np.float64).tobytes()
        if self._last[0] != key:
            self._last = (key, self._conditioned(self._positions(values)))
        n = torque_source([run]).robot.n_joints
        out = np.array(run.inputs)
        out[:, : 3 * n] = self._last[1][run.name]
        if out.shape[1] > 3 * n:
            out[:, 3 * n :] = averaged_sign(out[:, n : 2 * n], out[:, 2 * n : 3 * n], run.rate)
        return out


def _interpolated(command: FloatArray, substeps: int) -> FloatArray:
    """The command at every integration step, linear between samples."""
    coarse = np.arange(len(command))
    fine = np.arange((len(command) - 1) * substeps + 1) / substeps
    return np.column_stack([np.interp(fine, coarse, column) for column in command.T])


def _entry_weights(rows: CompiledRows, standard: FloatArray) -> FloatArray:
    """What every packed entry of the rows adds to every channel, shape [n_channels, n_entries]."""
    weights = np.zeros((len(rows.source.channels), len(rows.entries)))
    for k, (channel, column) in enumerate(rows.entries):
        weights[channel, k] = standard[column]
    return weights


def torque(rows: CompiledRows, weights: FloatArray, inputs: FloatArray) -> FloatArray:
    """A pi, shape [n_samples, n_channels]."""
    return np.asarray((weights @ np.asarray(rows.packed(inputs))).T)


def _probes(n: int) -> FloatArray:
    """Inputs at zero and at unit accelerations, position and velocity to be filled in, shape [n + 1, 3 n]."""
    inputs = np.zeros((n + 1, 3 * n))
    inputs[1:, 2 * n :] = np.eye(n)
    return inputs


def _inertia_and_bias(
    rows: CompiledRows, weights: FloatArray, probe: FloatArray, q: FloatArray, qd: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """M(q) and n(q, qd) from torques at zero and at unit accelerations: torque is affine in the acceleration."""
    n = len(q)
    probe[:, :n], probe[:, n : 2 * n] = q, qd
    tau = torque(rows, weights, probe)
    return (tau[1:] - tau[0]).T, tau[0]


def _accelerated(M: FloatArray, force: FloatArray) -> FloatArray:
    """M^-1 force."""
    return np.asarray(np.linalg.solve(M, force), dtype=np.float64)

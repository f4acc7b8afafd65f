"""One recorded motion under one controller, simulated with any base values, with exact derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.closed_loop.controller import JointController
from armid.closed_loop.plant import LoopPlant
from armid.errors import ArmidError
from armid.kernels.dynamics import mass_matrix

LONGEST_STEP = 2.5e-4
"""[s] of one integration step: a 5 kHz controller takes one per tick, a 1 kHz one four."""

_FARTHEST = 1.0
"""[rad or m]; a simulated joint farther than this from its command has left it for good."""

_CHUNK = 1024
"""Ticks at a time: their stages and derivatives stay near the core, and memory does not grow with the log."""

_LANES = 2
"""Doubles that the compiled step reads per input; the first counts."""


class LoopDivergedError(ArmidError):
    """The simulated arm left its command, or its inertia matrix was not positive.

    Args:
        seconds: when.
        what: in words.
    """

    def __init__(self, seconds: float, what: str) -> None:
        self.seconds = seconds
        self.what = what
        super().__init__(f"the simulated loop fails after {seconds:.3f} s: {what}")


@dataclass(frozen=True, eq=False, kw_only=True)
class LoopBlock:
    """Some consecutive samples of a simulated motion.

    Args:
        first: index of the first sample.
        position, torque: shape [k, n].
        slopes: derivatives of position and torque with respect to the parameters, shape [k, 2 n, p]; empty when not asked for.
        motion: (q, qd, qdd) at the samples, shape [k, 3 n].
    """

    first: int
    position: FloatArray
    torque: FloatArray
    slopes: FloatArray
    motion: FloatArray


@dataclass(frozen=True, eq=False)
class Start:
    """Where a motion begins.

    Args:
        position, velocity, integral: of the arm [rad, rad/s] and of the error [rad s], shape [n] each.
    """

    position: FloatArray
    velocity: FloatArray
    integral: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class LoopMotion:
    """A commanded motion to be simulated: the parameters of its derivatives are base values, gains, initial state.

    Args:
        plant: the arm.
        controller: with its gains.
        reference: commanded position at every control tick [rad or m], shape [ticks, n].
        forward: feed-forward torque there [N m or N], shape [ticks, n].
        stride: control ticks per sample of the log.
        inertia: of each axis [kg m^2], for the stability of the integration only, shape [n]; `axis_inertia` finds it.
        free_gains: whether the gains are among the parameters.
        free_start: whether the initial position and velocity are among the parameters.
        refinement: times as many integration steps as needed for stability and three digits.
    """

    plant: LoopPlant
    controller: JointController
    reference: FloatArray
    forward: FloatArray
    stride: int
    inertia: FloatArray
    free_gains: bool = False
    free_start: bool = False
    refinement: int = 1

    @property
    def n(self) -> int:
        return self.plant.robot.n_joints

    @property
    def n_samples(self) -> int:
        return -(-len(self.reference) // self.stride)

    @property
    def substeps(self) -> int:
        """Integration steps per control tick."""
        return self.refinement * max(1, int(np.ceil(1.0 / (self.controller.rate * LONGEST_STEP) - 1e-9)))

    @cached_property
    def gain_places(self) -> npt.NDArray[np.intp]:
        """Columns of kp, kd, ki among the parameters; -1 where known, shape [3, n]."""
        out = np.full((3, self.n), -1, dtype=np.intp)
        if self.free_gains:
            first = len(self.plant.base)
            used = [0, 1] + ([2] if np.any(self.controller.ki) else [])
            for k, row in enumerate(used):
                out[row] = first + k * self.n + np.arange(self.n)
        return out

    @property
    def n_gains(self) -> int:
        return int(np.sum(self.gain_places >= 0))

    @property
    def n_parameters(self) -> int:
        """Base values, then free gains, then the initial position and velocity."""
        return len(self.plant.base) + self.n_gains + (2 * self.n if self.free_start else 0)

    def with_gains(self, gains: FloatArray) -> LoopMotion:
        """The same under other gains, rows kp, kd, ki as torque per unit, shape [3, n]."""
        return replace(self, controller=self.controller.with_torque_gains(gains))

    def at_rest(self) -> Start:
        """On the command, moving as it does."""
        velocity = (self.reference[1] - self.reference[0]) * self.controller.rate
        return Start(self.reference[0].copy(), velocity, np.zeros(self.n))

    def simulate(self, values: FloatArray, *, start: Start | None = None, noise: FloatArray | None = None) -> LoopBlock:
        """The whole motion.

        Args:
            values: base values, shape [r].
            start: initial state; on the command by default.
            noise: error of the encoders that the controller reads, at every tick, shape [ticks, n].

        Raises:
            LoopDivergedError: it cannot be simulated to its end.
        """
        return joined(list(self.blocks(values, start=start, noise=noise, slopes=False)))

    def extrapolated(self, values: FloatArray, *, start: Start | None = None) -> LoopBlock:
        """The whole motion, the error of the integration removed to its next order: `fine + (fine - coarse) / 3`.

        Arguments and errors as of `simulate`.
        """
        coarse = self.simulate(values, start=start)
        fine = replace(self, refinement=2 * self.refinement).simulate(values, start=start)
        return LoopBlock(
            first=0,
            position=fine.position + (fine.position - coarse.position) / 3.0,
            torque=fine.torque + (fine.torque - coarse.torque) / 3.0,
            slopes=coarse.slopes,
            motion=fine.motion + (fine.motion - coarse.motion) / 3.0,
        )

    def blocks(
        self,
        values: FloatArray,
        *,
        start: Start | None = None,
        noise: FloatArray | None = None,
        slopes: bool = True,
    ) -> Iterator[LoopBlock]:
        """The motion piece by piece; arguments as of `simulate`.

        Raises:
            LoopDivergedError: it cannot be simulated to its end.
        """
        from armid.closed_loop.stepping import advance, advance_tangent

        begin = start or self.at_rest()
        buffers = _Buffers(self, np.asarray(values, dtype=np.float64), begin)
        chunk = max(self.stride, _CHUNK // self.stride * self.stride)
        silent = np.zeros((chunk, self.n)) if noise is None else noise
        for first in range(0, len(self.reference), chunk):
            part = slice(first, min(first + chunk, len(self.reference)))
            k = part.stop - first
            seen = silent[:k] if noise is None else silent[part]
            integrals = buffers.open(k, first)
            done = advance(
                buffers.step,
                buffers.addresses,
                buffers.inputs,
                buffers.packed,
                buffers.drive,
                buffers.gains,
                buffers.timing,
                self.reference[part],
                self.forward[part],
                seen,
                buffers.state,
                buffers.queue,
                buffers.ticks,
                buffers.stages,
                buffers.factors,
            )
            self._check(done, k, first)
            out = np.empty((-(-k // self.stride) if slopes else 0, 2 * self.n, self.n_parameters))
            if slopes:
                errors = buffers.ticks[:, 2] / self.controller.rate
                sums = integrals + np.cumsum(errors, axis=0) - errors
                rows = self.plant.tangent_kernel.store(list(buffers.stages), buffers.rigid)
                advance_tangent(
                    rows,
                    self.plant.row_channels,
                    self.plant.row_columns,
                    self.plant.drive_places,
                    self.gain_places,
                    buffers.drive,
                    buffers.gains,
                    buffers.timing,
                    self.stride,
                    sums,
                    buffers.ticks,
                    buffers.stages,
                    buffers.factors,
                    buffers.S,
                    buffers.S_queue,
                    out,
                )
            at = slice(None, None, self.stride)
            yield LoopBlock(
                first=first // self.stride,
                position=buffers.ticks[at, 0].copy(),
                torque=buffers.ticks[at, 1].copy(),
                slopes=out,
                motion=buffers.stages[:, :: 2 * self.substeps][:, at].T.copy(),
            )

    def _check(self, done: int, asked: int, first: int) -> None:
        if done == asked:
            return
        positive = done >= 0
        tick = first + (done if positive else -1 - done)
        what = "a joint leaves its command" if positive else "the inertia matrix is not positive"
        raise LoopDivergedError(tick / self.controller.rate, what)


class _Buffers:
    """Memory of one simulation."""

    def __init__(self, motion: LoopMotion, values: FloatArray, start: Start) -> None:
        plant, controller, n = motion.plant, motion.controller, motion.n
        self.motion = motion
        self.rigid = plant.rigid_values(values)
        self.inputs = np.zeros((2 * n, _LANES))
        self.packed = np.zeros(plant.n_packed)
        self.sources = (self.inputs.ctypes.data + 8 * _LANES * np.arange(2 * n)).astype(np.uintp)
        addresses = [self.sources.ctypes.data, self.rigid.ctypes.data, self.packed.ctypes.data]
        self.addresses = np.array(addresses, dtype=np.intp)
        self.step = compiled_step(plant.step_address)
        self.drive = np.vstack([plant.drive_values(values), controller.friction_velocity, motion.inertia])
        self.gains = controller.gain_rows()
        first = motion.reference[0] - start.position
        slope = (motion.reference[min(1, len(motion.reference) - 1)] - motion.reference[0]) * controller.rate
        derivative = slope - start.velocity
        # The error one tick before the first: as if the arm had moved evenly until then.
        self.state = np.array(
            [start.position, start.velocity, first - derivative / controller.rate, derivative, start.integral]
        )
        self.queue = np.zeros((controller.delay_ticks + 1, n))
        p = motion.n_parameters
        self.S = np.zeros((5, n, p))
        self.S_queue = np.zeros((controller.delay_ticks + 1, n, p))
        if motion.free_start:
            at = p - 2 * n + np.arange(n)
            joint = np.arange(n)
            self.S[0, joint, at] = 1.0
            self.S[1, joint, at + n] = 1.0
            self.S[2, joint, at] = -1.0
            self.S[2, joint, at + n] = 1.0 / controller.rate
            self.S[3, joint, at + n] = -1.0

    def open(self, k: int, first: int) -> FloatArray:
        """Arrays for k ticks from the given one on; returns the integral of the error before them."""
        n, steps = self.motion.n, k * self.motion.substeps
        self.ticks = np.empty((k, 5, n))
        self.stages = np.empty((3 * n, 2 * steps))
        self.factors = np.empty((2 * steps, n * (n + 1) // 2))
        self.timing = np.array([self.motion.controller.rate, self.motion.substeps, first, _FARTHEST])
        return self.state[4].copy()


def compiled_step(address: int) -> Any:
    """A compiled function by its address, as numba calls it."""
    from numba import types

    kind = types.void(types.intp, types.intp, types.intp, types.intp, types.int64, types.int64)

    class _Step(types.WrapperAddressProtocol):
        _numba_type_ = types.FunctionType(kind)

        def __wrapper_address__(self) -> int:
            return address

        def signature(self) -> Any:
            return kind

    return _Step()


def joined(blocks: list[LoopBlock]) -> LoopBlock:
    """Consecutive blocks as one."""
    names = ("position", "torque", "slopes", "motion")
    return LoopBlock(
        first=blocks[0].first, **{name: np.concatenate([getattr(b, name) for b in blocks]) for name in names}
    )


def axis_inertia(plant: LoopPlant, values: FloatArray, reference: FloatArray) -> FloatArray:
    """Inertia each axis shows along a motion, the others free: median of 1 / (M^-1)_jj, shape [n]."""
    robot = plant.robot
    picked = reference[:: max(1, len(reference) // 64)]
    inertial = np.zeros(10 * robot.n_joints)
    columns, places = plant.rigid_columns
    inertial[list(columns)] = values[list(places)]
    M = mass_matrix(robot, picked, inertial=inertial) + np.diag(plant.drive_values(values)[0])
    w, V = np.linalg.eigh(M)
    # A start from noisy motion may lack inertia here and there: what is negative counts as little.
    safe = np.maximum(w, 1e-3 * w[:, -1:])
    inverse = np.einsum("kij,kj,klj->kil", V, 1.0 / safe, V)
    return np.median(1.0 / np.einsum("kii->ki", inverse), axis=0)

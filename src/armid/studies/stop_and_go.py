"""Motions of [Kolyubin2017] eq. 24 from starts in which joints run at full speed or creep.

Viscous and Coulomb friction of a joint are told apart best when it is as fast as it may be for half of the time and as slow as it
can be for the other half (`goal_states.bound_of_every_motion`). A random series has most of its speeds in between, and a descent
from it stays near that. Starts here have both speeds in turn, in pieces of random length.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.design.augmented import Schedule
from armid.design.candidate import Candidate, Workshop
from armid.design.excitation import ExcitationProblem
from armid.kernels.lanes import BLOCK
from armid.motions.basis import FourierBasis
from armid.motions.limits import MotionLimits

_GRID = 12
"""Instants of the descents per period of the highest harmonic: rows hold products of several, which fewer would not see."""

_INSTANTS = 1024
"""Of a start, before it becomes a series."""

_CREEP = 0.12
"""Of the velocity limit; what is slower counts as standstill in a descent, where the sign of a velocity is rounded off."""

_PIECES = (0.4, 2.5)
"""[s] Shortest and longest piece of one speed."""

_TURNS = 2.2
"""[rad] from the middle of the range, at most, where a joint turns around; 0.85 of a smaller range."""

_GUARDS = (0.002, 0.008, 0.03)
"""Shares of every limit that the last descents keep away from it, for what happens between instants: until a motion fits."""

_CONDITION = (Schedule(5, 100), Schedule(4, 150, (16.0, 40.0), 200.0))
"""Descents for the condition number alone."""

_GOALS = Schedule(8, 200, (40.0, 120.0), 200.0)
"""The descent for all goals together, as sharp as these are compared."""


def stop_and_go(basis: FourierBasis, limits: MotionLimits, rng: np.random.Generator) -> FloatArray:
    """Coefficients of a motion that runs and creeps in turn, shape [size, n_joints].

    At its instants it keeps limits of position and velocity; what is between them descents mend.

    Args:
        basis: family of motions; corners are rounded so that it has them.
        limits: of the joints.
        rng: for directions, lengths of pieces, and where each joint begins.
    """
    step = basis.period / _INSTANTS
    joints = range(len(limits.velocity))
    q = np.column_stack([_one_joint(limits.half_range[j], limits.velocity[j], step, rng) for j in joints])
    frequency = np.fft.rfftfreq(_INSTANTS, step)
    pass_band = np.exp(-((2.0 * frequency * basis.period / basis.harmonics) ** 2))
    q = np.fft.irfft(np.fft.rfft(q, axis=0) * pass_band[:, np.newaxis], _INSTANTS, axis=0)
    P = basis.matrices(np.linspace(0.0, basis.period, _INSTANTS, endpoint=False))
    constant, moved = np.linalg.lstsq(P[0], np.ones(_INSTANTS), rcond=None)[0], np.linalg.lstsq(P[0], q, rcond=None)[0]
    used = np.maximum(
        np.abs(P[0] @ moved).max(axis=0) / limits.half_range, np.abs(P[1] @ moved).max(axis=0) / limits.velocity
    )
    return np.asarray(moved / np.maximum(used, 1.0) + np.outer(constant, limits.middle))


def _one_joint(half_range: float, velocity: float, step: float, rng: np.random.Generator) -> FloatArray:
    """Position from the middle of the range along one period, which it ends where it began, shape [_INSTANTS]."""
    turn = min(0.85 * half_range, _TURNS)
    at, speed, left = float(rng.uniform(-0.5, 0.5)) * turn, 0.0, 0.0
    q = np.empty(_INSTANTS)
    for k in range(_INSTANTS):
        if left <= 0.0:
            speed = velocity * float(rng.choice((1.0, _CREEP))) * float(rng.choice((-1.0, 1.0)))
            left = float(rng.uniform(*_PIECES))
        if at * speed > turn * abs(speed):
            speed = -speed
        at, left = at + speed * step, left - step
        q[k] = at
    return q - np.linspace(0.0, q[-1] - q[0], _INSTANTS)


def descended(problem: ExcitationProblem, basis: FourierBasis, seed: int) -> Candidate:
    """A certified motion: from a start that stops and goes, for the condition number alone, then for all goals.

    Args:
        problem: with or without goals.
        basis: family of motions.
        seed: of the start.
    """
    alone = Workshop(replace(problem, goals=None), (basis,), seed)
    count = BLOCK * -(-_GRID * basis.harmonics // BLOCK)
    start = stop_and_go(basis, problem.limits, np.random.default_rng(seed))
    found = Candidate(start=seed, family=0, coefficients=start)
    for schedule in _CONDITION:
        found = alone.descended(found, alone.grid(0, count), schedule, float("inf"))
    together = Workshop(problem, (basis,), seed)
    for guard in _GUARDS:
        found = together.certified(together.descended(found, together.grid(0, count, guard), _GOALS, float("inf")))
        if found.feasible:
            break
    return found

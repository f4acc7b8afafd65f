"""The experiment of a Monte-Carlo comparison: motions, noise and wrong starting values, as in [Leboutet2021]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from armid.arrays import FloatArray
from armid.closed_loop.controller import JointController, catalogue_controller
from armid.closed_loop.loop import LoopMotion, axis_inertia
from armid.closed_loop.plant import LoopPlant
from armid.consistency.positivity import with_standard
from armid.errors import InputError
from armid.identifiability.structure import structural_base
from armid.kernels.dynamics import mass_matrix
from armid.logs.log import Channel, Log
from armid.parameters.effects import Effects
from armid.parameters.inertial import pseudo_inertia
from armid.robot.described import described_values
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows

EFFECTS = Effects(viscous=True, coulomb=True, rotor_inertia=True)
LOG_RATE = 1000.0
CONTROL_RATE = 5000.0
NOISE: Mapping[str, tuple[float, float]] = {
    "low": (np.deg2rad(1e-4), 0.05),
    "standard": (np.deg2rad(1e-3), 0.05),
    "high": (np.deg2rad(1e-2), 0.05),
}
"""Deviations of position [rad, or the same number of m] and torque [N m or N]."""

_HARMONICS = 20
_WRONG = 0.15
"""Relative deviation of every standard parameter of a wrong start."""
_BANDWIDTH = 2.0 * np.pi * 8.0
"""[rad/s] of the loop of an arm that comes without one."""
_USED = 0.9
"""Share of every limit that a motion uses."""
_DRAWS = 12
"""Motions drawn; the one with the smallest condition number is run."""
_SPARSE = 100
"""Control ticks between the samples on which a condition number rests."""
_REFINED = 4
"""Integration steps of the true arm for one of the fits': what is compared shares no error of integration."""


@dataclass(frozen=True, eq=False)
class Protocol:
    """One arm under one loop along two motions.

    Args:
        robot: its own parameters are the truth.
        seconds: of each motion.
        seed: of the motions.

    Raises:
        InputError: an arm without bodies.
    """

    robot: Robot
    seconds: float = 10.0
    seed: int = 0

    def __post_init__(self) -> None:
        if any(link.inertial is None for link in self.robot.links):
            raise InputError(self.robot.name, "links without inertial parameters", "a benchmark needs a true arm")

    @cached_property
    def plant(self) -> LoopPlant:
        source = TorqueRows(self.robot, EFFECTS)
        return LoopPlant(source, structural_base(source))

    @cached_property
    def standard(self) -> FloatArray:
        """True standard parameters."""
        return described_values(self.robot, self.plant.source.space.parameters)

    @cached_property
    def truth(self) -> FloatArray:
        """True base values."""
        return self.plant.base.values(self.standard)

    @cached_property
    def controller(self) -> JointController:
        """That of the catalogue, or a well-damped one for the arm's inertia."""
        known = catalogue_controller(self.robot)
        if known is not None:
            return known
        rng = np.random.default_rng(0)
        lower, upper = self._range
        M = mass_matrix(self.robot, rng.uniform(lower, upper, (200, self.robot.n_joints)))
        inertia = np.einsum("kii->ki", M).mean(axis=0) + self.robot.drive("rotor_inertia")
        return JointController(
            rate=CONTROL_RATE,
            kp=inertia * _BANDWIDTH**2,
            kd=1.4 * inertia * _BANDWIDTH,
            ki=np.zeros(self.robot.n_joints),
        )

    @property
    def _range(self) -> tuple[FloatArray, FloatArray]:
        lower, upper = self.robot.limit("lower"), self.robot.limit("upper")
        return np.where(np.isfinite(lower), lower, -np.pi), np.where(np.isfinite(upper), upper, np.pi)

    @cached_property
    def training(self) -> LoopMotion:
        return self._motion(0)

    @cached_property
    def validation(self) -> LoopMotion:
        return self._motion(1)

    def _motion(self, which: int) -> LoopMotion:
        """The best conditioned of several random motions, each as wide as the limits allow."""
        from armid.closed_loop.fit import torque_rows

        rng = np.random.default_rng([self.seed, which])
        candidates = [self._reference(rng) for _ in range(_DRAWS)]
        rate = self.controller.rate
        inertia = axis_inertia(self.plant, self.truth, candidates[0])
        motions = [
            LoopMotion(
                plant=self.plant,
                controller=self.controller,
                reference=reference,
                forward=np.zeros_like(reference),
                stride=round(rate / LOG_RATE),
                inertia=inertia,
            )
            for reference in candidates
        ]

        def condition(motion: LoopMotion) -> float:
            some = motion.reference[::_SPARSE]
            qd = np.gradient(some, _SPARSE / rate, axis=0)
            inputs = np.hstack([some, qd, np.gradient(qd, _SPARSE / rate, axis=0)])
            rows = torque_rows(motion, inputs)
            flat = rows.reshape(-1, rows.shape[2])
            return float(np.linalg.cond(flat / np.maximum(np.linalg.norm(flat, axis=0), 1e-12)))

        return min(motions, key=condition)

    def _reference(self, rng: np.random.Generator) -> FloatArray:
        """A Fourier series at rest at both ends, at every control tick."""
        n, robot = self.robot.n_joints, self.robot
        k = np.arange(1, _HARMONICS + 1)
        a, b = rng.standard_normal((2, n, _HARMONICS)) / k**1.5
        # At rest: the velocities of the sines and the accelerations of the cosines cancel at the ends.
        a -= (a @ k)[:, None] * k / (k @ k)
        b -= (b @ k**2)[:, None] * k**2 / (k**2 @ k**2)
        w = 2.0 * np.pi * k / self.seconds
        t = np.arange(round(self.seconds * self.controller.rate)) / self.controller.rate
        sine, cosine = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        shape = sine @ a.T + cosine @ b.T
        lower, upper = self._range
        middle = 0.5 * (lower + upper)
        shape -= 0.5 * (shape.max(axis=0) + shape.min(axis=0))
        speed = cosine @ (a * w).T - sine @ (b * w).T
        push = -(sine @ (a * w**2).T + cosine @ (b * w**2).T)
        room = [
            0.5 * (upper - lower) / np.abs(shape).max(axis=0),
            robot.limit("velocity") / np.abs(speed).max(axis=0),
            robot.limit("acceleration") / np.abs(push).max(axis=0),
        ]
        return np.ascontiguousarray(middle + _USED * np.min(room, axis=0) * shape)

    def log(self, noise: str, run: int) -> Log:
        """A recording of the training motion: encoder noise fed back, torque noise added."""
        return self._recording(self.training, noise, run, drawn_for=2)

    def held_out_log(self, noise: str, run: int) -> Log:
        """A recording of the other motion, by the same sensors."""
        return self._recording(self.validation, noise, run, drawn_for=4)

    def _recording(self, along: LoopMotion, noise: str, run: int, *, drawn_for: int) -> Log:
        rng = np.random.default_rng([self.seed, drawn_for, list(NOISE).index(noise), run])
        position, torque = NOISE[noise]
        motion = replace(along, refinement=_REFINED)
        drawn = position * rng.standard_normal(motion.reference.shape)
        got = motion.simulate(self.truth, noise=drawn)
        return Log(
            name=f"{self.robot.name}-{noise}-{run}",
            joints=self.robot.joint_names,
            time=np.arange(motion.n_samples) / LOG_RATE,
            channels={
                Channel.POSITION: got.position + drawn[:: motion.stride],
                Channel.COMMANDED_POSITION: motion.reference[:: motion.stride],
                Channel.LINK_TORQUE: got.torque + torque * rng.standard_normal(got.torque.shape),
            },
        )

    def wrong_robot(self, run: int) -> Robot:
        """The arm as a description has it whose every standard parameter is wrong by 15 %."""
        return with_standard(self.robot, dict(zip(self.plant.source.columns, self.wrong_standard(run), strict=True)))

    def wrong_start(self, run: int) -> FloatArray:
        """Base values of possible bodies whose standard parameters are wrong by 15 % each."""
        return self.plant.base.values(self.wrong_standard(run))

    def link_columns(self, link: int) -> list[int]:
        """Where the ten parameters of a link stand."""
        parameters = self.plant.source.space.parameters
        return [k for k, p in enumerate(parameters) if not p.of_joint and p.body == link]

    def wrong_standard(self, run: int) -> FloatArray:
        """Standard parameters drawn around the truth, each link until it is a body that can exist."""
        rng = np.random.default_rng([self.seed, 3, run])
        wrong = np.array(self.standard)
        for i in range(self.robot.n_joints):
            columns = self.link_columns(i)
            share = 1.0
            while True:
                ten = self.standard[columns] * (1.0 + share * _WRONG * rng.standard_normal(len(columns)))
                if np.linalg.eigvalsh(pseudo_inertia(ten))[0] > 0.0:
                    break
                # A body near the edge of what exists has few neighbours at full distance.
                share *= 0.98
            wrong[columns] = ten
        drives = [k for k, p in enumerate(self.plant.source.space.parameters) if p.of_joint]
        wrong[drives] *= np.maximum(1.0 + _WRONG * rng.standard_normal(len(drives)), 0.1)
        return wrong

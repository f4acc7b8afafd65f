"""A small arm, an exciting motion and its torque, for estimation tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from armid.estimation.run import Run
from armid.identifiability.base import BaseParameters
from armid.identifiability.structure import structural_base
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects
from armid.robot import Drive, Elementary, Joint, JointKind, Link, Move, Robot
from armid.rows.torque import TorqueRows
from support.chains import random_inertial

FRICTION = Effects(viscous=True, coulomb=True, offset=True)


def elbow_arm(rng: np.random.Generator, **fields: object) -> Robot:
    """Axes z, y, y with offsets: the first three joints of most industrial arms."""
    turns = (
        (Elementary(motion=Move.TZ, value=0.3), Elementary(motion=Move.RZ, value=0.0, variable=True)),
        (Elementary(motion=Move.TX, value=0.1), Elementary(motion=Move.RY, value=0.0, variable=True)),
        (Elementary(motion=Move.TZ, value=0.4), Elementary(motion=Move.RY, value=0.0, variable=True)),
    )
    drives = []
    for _ in turns:
        viscous, coulomb = (float(x) for x in rng.uniform(0.5, 2.0, 2))
        drives.append(Drive(viscous=viscous, coulomb=coulomb, offset=float(rng.normal())))
    joints = tuple(
        Joint(name=f"j{i + 1}", kind=JointKind.REVOLUTE, transforms=t, drive=d)
        for i, (t, d) in enumerate(zip(turns, drives))
    )
    links = tuple(Link(f"l{i + 1}", random_inertial(rng) * 2.0) for i in range(3))
    return Robot(name="elbow", joints=joints, links=links, **fields)  # type: ignore[arg-type]


def fourier_motion(rng: np.random.Generator, n: int, count: int, rate: float, *, harmonics: int = 5) -> np.ndarray:
    """(q, qd, qdd) of a random Fourier motion, shape [count, 3 n]."""
    t = np.arange(count) / rate
    w = 2.0 * np.pi * np.arange(1, harmonics + 1) * 0.15
    a, phase = (
        rng.normal(size=(n, harmonics)) * 1.2 / np.sqrt(np.arange(1, harmonics + 1)),
        rng.uniform(0, 7, (n, harmonics)),
    )
    angle = w * t[:, None, None] + phase
    parts = [a * np.sin(angle), a * w * np.cos(angle), -a * w**2 * np.sin(angle)]
    return np.hstack([part.sum(axis=2) for part in parts])


def standard_values(robot: Robot, source: TorqueRows) -> np.ndarray:
    """The robot's own parameters in the order of the source's columns."""
    values = []
    for name in source.columns:
        owner, quantity = name.split(".")
        index = int(owner[4:] if owner.startswith("link") else owner[5:]) - 1
        if owner.startswith("link"):
            values.append(
                robot.links[index].inertial[source.columns.index(name) - source.columns.index(f"{owner}.mass")]
            )
        else:
            values.append(getattr(robot.joints[index].drive, quantity))
    return np.array(values)


@dataclass
class Case:
    """A run with known truth."""

    robot: Robot
    source: TorqueRows
    base: BaseParameters
    inputs: np.ndarray
    rows: np.ndarray
    standard: np.ndarray
    clean: np.ndarray
    rate: float

    @property
    def truth(self) -> np.ndarray:
        return self.base.values(self.standard)

    def run(self, noise: np.ndarray | float = 0.0, name: str = "motion") -> Run:
        return Run(name=name, source=self.source, inputs=self.inputs, y=self.clean + noise, rate=self.rate)


def case(
    seed: int = 3, *, count: int = 1500, rate: float = 50.0, effects: Effects = FRICTION, robot: Robot | None = None
) -> Case:
    rng = np.random.default_rng(seed)
    arm = elbow_arm(rng) if robot is None else robot
    source = TorqueRows(arm, effects)
    inputs = fourier_motion(rng, arm.n_joints, count, rate)
    rows = evaluate_rows(source, inputs)
    standard = standard_values(arm, source)
    return Case(
        arm,
        source,
        structural_base(source),
        inputs,
        rows,
        standard,
        rows @ standard,
        rate,
    )


def coloured(rng: np.random.Generator, shape: tuple[int, int], sigma: np.ndarray | float, a=(1.0, -0.9)) -> np.ndarray:
    """Autoregressive noise; stationary from the first sample."""
    warm = 400
    return lfilter([1.0], a, rng.normal(size=(shape[0] + warm, shape[1])) * sigma, axis=0)[warm:]

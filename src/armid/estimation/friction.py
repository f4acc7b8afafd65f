"""Friction beyond viscous + Coulomb + offset: direction-dependent, Stribeck, smooth sign, load-dependent.

Every shape is linear but for one velocity scale per joint. All candidate scales go through the rows once; choosing among
them then happens on the small factor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.estimation.extended import Column, extended
from armid.estimation.factor import solve_factor
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import torque_source
from armid.estimation.run import Run, information_of
from armid.experiments.torque import TorqueRows
from armid.identifiability.base import BaseParameters, base_parameters
from armid.identifiability.structure import structural_base
from armid.information.information import Information, triangular


class Shape(StrEnum):
    """What is added to the linear friction model of a joint."""

    ASYMMETRIC = "asymmetric"
    """viscous_asymmetry * |qd|: other slopes in either direction (other levels are the offset)."""
    STRIBECK = "stribeck"
    """stribeck * sign(qd) exp(-(qd / scale)^2): more friction near standstill."""
    SMOOTH = "smooth"
    """coulomb_smooth * tanh(qd / scale): a sign without a jump."""
    LOAD = "load"
    """coulomb_load * |load torque| sign(qd): friction that grows with what the gear carries."""

    @property
    def has_scale(self) -> bool:
        return self in (Shape.STRIBECK, Shape.SMOOTH)

    @property
    def quantity(self) -> str:
        return {
            Shape.ASYMMETRIC: "viscous_asymmetry",
            Shape.STRIBECK: "stribeck",
            Shape.SMOOTH: "coulomb_smooth",
            Shape.LOAD: "coulomb_load",
        }[self]


def shape_values(shape: Shape, qd: FloatArray, *, scale: float = 1.0, load: FloatArray | None = None) -> FloatArray:
    """The column of one joint, shape [n_samples].

    Args:
        shape: which.
        qd: velocity [rad/s or m/s], shape [n_samples].
        scale: velocity scale, for Stribeck and smooth.
        load: torque the gear carries, for load-dependent friction, shape [n_samples].
    """
    match shape:
        case Shape.ASYMMETRIC:
            return np.abs(qd)
        case Shape.STRIBECK:
            return np.sign(qd) * np.exp(-((qd / scale) ** 2))
        case Shape.SMOOTH:
            return np.tanh(qd / scale)
        case Shape.LOAD:
            if load is None:
                raise InputError("load", "load-dependent friction needs the load torque", "fit once without it first")
            return np.abs(load) * np.sign(qd)


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """An estimate with shaped friction.

    Args:
        estimate: over the extended parameters.
        shape: what was added.
        scales: velocity scale chosen for each joint [rad/s or m/s]; empty for shapes without one.
        improvement: weighted squared error without the shape over that with it, minus one.
        runs: the runs with the new columns, for covariances and prediction.
    """

    estimate: Estimate
    shape: Shape
    scales: Mapping[str, float]
    improvement: float
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class FrictionSearch:
    """Adds one shape to every joint, its scales found by an outer search.

    Args:
        shape: what to add.
        candidates: scales tried per joint, spaced evenly in the logarithm.
        fastest: largest scale tried, relative to the 90 % quantile of the joint's speed.
        slowest: smallest, likewise.
        sweeps: over the joints, at most.
    """

    shape: Shape
    candidates: int = 12
    fastest: float = 1.0
    slowest: float = 0.01
    sweeps: int = 4

    def fit(self, runs: Sequence[Run], estimate: Estimate) -> FrictionFit:
        """Args:
        runs: with `TorqueRows` as source.
        estimate: without the shape; its noise weighs the channels, its torque is the load.
        """
        source = torque_source(runs)
        joints = source.robot.joint_names
        grids = {joint: self.grid(runs, i) for i, joint in enumerate(joints)}
        wide = [self.with_candidates(run, grids, estimate) for run in runs]
        information = information_of(wide).weighted({name: 1.0 / s for name, s in estimate.sigma.items()})
        chosen = self.choose(information, estimate.base, joints, grids)
        final = tuple(self.with_chosen(run, grids, chosen, estimate) for run in runs)
        base = structural_base(final[0].source)
        fit = WeightedLeastSquares().fit(information_of(final), base)
        before = energy(information, list(estimate.base.independent))
        picked = [len(source.columns) + self.place(i, chosen[i]) for i in range(len(joints))]
        after = energy(information, [*estimate.base.independent, *picked])
        scales = (
            {joint: float(grids[joint][chosen[i]]) for i, joint in enumerate(joints)} if self.shape.has_scale else {}
        )
        return FrictionFit(fit, self.shape, scales, before / max(after, 1e-300) - 1.0, final)

    def grid(self, runs: Sequence[Run], joint: int) -> FloatArray:
        """Scales to try for one joint."""
        if not self.shape.has_scale:
            return np.ones(1)
        n = len(torque_source(runs).robot.joints)
        speed = float(np.quantile(np.abs(np.concatenate([run.inputs[:, n + joint] for run in runs])), 0.9))
        return np.geomspace(max(self.slowest * speed, 1e-9), max(self.fastest * speed, 1e-6), self.candidates)

    def place(self, joint: int, candidate: int) -> int:
        """Where a candidate stands among the new columns."""
        return joint * (self.candidates if self.shape.has_scale else 1) + candidate

    def columns(self, run: Run, joint: int, scales: FloatArray, estimate: Estimate, suffix: bool) -> list[Column]:
        """Candidate columns of one joint."""
        source = torque_source([run])
        n = source.robot.n_joints
        qd = run.inputs[:, n + joint]
        load = run.predicted(rigid_part(source, estimate))[:, joint] if self.shape is Shape.LOAD else None
        name = f"joint{joint + 1}.{self.shape.quantity}"
        channel = source.channels[joint]
        return [
            Column(
                f"{name}{k}" if suffix else name, ((channel, shape_values(self.shape, qd, scale=float(s), load=load)),)
            )
            for k, s in enumerate(scales)
        ]

    def with_candidates(self, run: Run, grids: Mapping[str, FloatArray], estimate: Estimate) -> Run:
        parts = [self.columns(run, i, grid, estimate, True) for i, grid in enumerate(grids.values())]
        return extended(run, [column for part in parts for column in part])

    def with_chosen(self, run: Run, grids: Mapping[str, FloatArray], chosen: Sequence[int], estimate: Estimate) -> Run:
        parts = [self.columns(run, i, grid[[chosen[i]]], estimate, False) for i, grid in enumerate(grids.values())]
        return extended(run, [column for part in parts for column in part])

    def choose(
        self, information: Information, base: BaseParameters, joints: Sequence[str], grids: Mapping[str, FloatArray]
    ) -> list[int]:
        """Coordinate descent over the joints' candidates on the small factor."""
        p = len(base.parameters)
        chosen = [len(grids[joint]) // 2 for joint in joints]
        for _ in range(self.sweeps):
            before = list(chosen)
            for i, joint in enumerate(joints):
                scores = []
                for k in range(len(grids[joint])):
                    trial = [*chosen[:i], k, *chosen[i + 1 :]]
                    scores.append(
                        energy(information, [*base.independent, *(p + self.place(j, c) for j, c in enumerate(trial))])
                    )
                chosen[i] = int(np.argmin(scores))
            if chosen == before:
                break
        return chosen


def energy(information: Information, columns: Sequence[int]) -> float:
    """Smallest weighted squared error with these columns; dependent ones are dropped."""
    factor = information.select(columns).stacked()
    keep = base_parameters(factor[:, :-1], parameters=[str(c) for c in columns], tolerance=1e-7).independent
    small = triangular(factor[:, [*keep, factor.shape[1] - 1]])
    return solve_factor(small, tuple(str(c) for c in keep)).energy


def rigid_part(source: TorqueRows, estimate: Estimate) -> FloatArray:
    """The estimate's standard parameters with friction, rotor inertia and offsets set to zero."""
    standard = np.array(estimate.standard)
    for i, name in enumerate(source.columns):
        if name.startswith("joint"):
            standard[i] = 0.0
    return standard

"""[Kolyubin2017]'s kinematic experiment, simulated: what its 17 poses can give, and what an unmodelled arm leaves.

The arm is the catalogue's LWR4+ with the deviations of [Kolyubin2017] table 2 (frames 2 to 8; the camera's place is
known), measured with 60 um and as many radians as 60 um make between the LEDs of the fixture. On top of that a real arm
bends under its own weight and reads its angles off discs that are not centred; neither is in a rigid model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import pi

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.enough import MEAN_OVER_RMS, position_uncertainty
from armid.calibration.fit import FitSettings, KinematicFit, fit
from armid.calibration.noise import VectorLoss
from armid.calibration.solve import SolverSettings
from armid.design.poses import PoseMethod, PoseSettings, Purpose, design_poses
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.measurement import Measurements, Observations, Observed
from armid.kinematics.model import ErrorModel, FrameModel, KinematicModel, TermBasis
from armid.kinematics.rotations import rotation_exp, rotation_log
from armid.kinematics.words import Term, UnknownGeometry
from armid.robot.elementary import Elementary, Move
from armid.robot.load import load_robot
from armid.robot.robot import Robot

_CAMERA = ((0.0, 0.0, 1.55, -4.3), (1.5, 0.1, -0.79, -0.14))
"""Table 2, rows 0 and 1: alpha [rad], d [m], theta [rad], r [m] from the camera to the first joint."""
_FIXTURE = (0.0, 0.0015, 0.79, 0.093)
"""Row 8: from the last joint to the LED fixture."""
_DEVIATIONS = (
    (1.2e-4, -3e-4, -4.2e-3, 3.9e-5),
    (6.1e-4, -3e-4, -9.8e-3, -1e-4),
    (1.4e-4, 1.1e-3, -6.5e-3, 2.6e-4),
    (-1.1e-4, -9e-4, 1.1e-3, 8e-4),
    (6.4e-4, 4e-4, -1.6e-3, 1.6e-4),
    (-3.6e-4, -6e-4, 0.0, 0.0),
    (5.3e-4, -1.7e-3, -4.1e-3, -1.9e-3),
)
"""Table 2, calibrated minus nominal of rows 2 to 8."""
_NAMES = ("alpha", "a", "theta", "d")
_LIMITS = np.array([17 * pi / 18, 2 * pi / 3, 17 * pi / 18, 2 * pi / 3, 17 * pi / 18, pi / 2, 17 * pi / 18])
"""Table 1 [rad]."""
_CAMERA_KNOWN = frozenset(f"link1.{name}" for name in _NAMES)
_POSITION_NOISE = 60e-6
"""[m] Of the camera."""
_ORIENTATION_NOISE = 200e-6
"""[rad] The same over the 0.3 m between the LEDs."""
_POSES = 17
_FRESH = 200
"""Poses of the check."""
MANY = 1000
"""Poses from which on a fit is as good as its model can be: doubling them changes the error by less than 1 %."""
_ALL_TERMS = frozenset({Term.OFFSET, Term.ECCENTRICITY, Term.COMPLIANCE})


@dataclass(frozen=True, slots=True)
class Errors:
    """Of a fit on fresh poses.

    Args:
        mean, largest: position [m].
        turned: mean orientation [rad].
    """

    mean: float
    largest: float
    turned: float

    @property
    def below_published(self) -> bool:
        """Whether all three are below [Kolyubin2017] table 3."""
        return self.mean < PUBLISHED.mean and self.largest < PUBLISHED.largest and self.turned < PUBLISHED.turned


PUBLISHED = Errors(0.80e-3, 1.76e-3, float(np.radians(0.10)))
"""[Kolyubin2017] table 3, after calibration of the real arm."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What the simulated arm does and a rigid model does not know.

    Args:
        compliance: of every joint under its gravity torque [rad/(N m)].
        eccentricity: amplitude of every joint's once-per-turn error, at a random phase [rad].
    """

    compliance: float = 0.0
    eccentricity: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRow:
    """One disturbance, averaged over draws of noise and phases.

    Args:
        disturbance: which.
        displacement: mean distance by which it moves the tool [m]; what is left if a model absorbs nothing of it.
        rigid: geometry and zeros from 17 poses.
        bound: the same from 1000 poses without noise: no rigid model of the arm is better.
        modelled: with eccentricity and compliance among the unknowns, from the same 17 poses.
        predicted: mean position error of that from the covariance [m].
    """

    disturbance: Disturbance
    displacement: float
    rigid: Errors
    bound: Errors
    modelled: Errors
    predicted: float


@dataclass(frozen=True, eq=False)
class Replica:
    """The simulated arm with its camera.

    Args:
        robot: nominal.
        truth: the chain with every term, over whose parameters the true arm is one vector.
        values: that vector, shape [p].
    """

    robot: Robot
    truth: KinematicModel
    values: FloatArray

    def poses(self, q: FloatArray) -> FloatArray:
        """T_camera_fixture at drive positions, shape [n, 4, 4]."""
        return predicted_poses(self.truth, self.values, q, setup="camera", target="tool")

    def measured(self, q: FloatArray, rng: np.random.Generator, *, noise: float = 1.0) -> Measurements:
        """What the camera says, with that many times its noise."""
        T, n = self.poses(q), len(q)
        p = T[:, :3, 3] + noise * _POSITION_NOISE * rng.normal(size=(n, 3))
        R = rotation_exp(noise * _ORIENTATION_NOISE * rng.normal(size=(n, 3))) @ T[:, :3, :3]
        sigma = np.array([_POSITION_NOISE] * 3 + [_ORIENTATION_NOISE] * 3)
        return Measurements(
            q=q,
            observations=(
                Observations(
                    quantity=Observed.POSE, rows=np.arange(n), position=p, rotation=R, sigma=sigma, setup="camera"
                ),
            ),
        )


def _row_chain(row: tuple[float, float, float, float]) -> tuple[Elementary, ...]:
    """Rx Tx Rz Tz of one row ([Kolyubin2017] eq. 2)."""
    return tuple(Elementary(motion=m, value=x) for m, x in zip((Move.RX, Move.TX, Move.RZ, Move.TZ), row, strict=True))


def _frames(robot: Robot) -> tuple[dict[str, FrameModel], dict[str, FrameModel]]:
    """The known camera, down to the floor under the catalogue's arm, and the fixture with its four unknowns."""
    # Joint 1 of the catalogue starts 0.31 m above its base; [Kolyubin2017] counts from the joint.
    height = sum(e.value for e in robot.joints[0].transforms if e.motion is Move.TZ)
    chain = (*_row_chain(_CAMERA[0]), *_row_chain(_CAMERA[1]), Elementary(motion=Move.TZ, value=-height))
    return (
        {"camera": FrameModel(chain, (None,) * len(chain))},
        {"tool": FrameModel(_row_chain(_FIXTURE), _NAMES, rank=2)},
    )


def replica(disturbance: Disturbance | None = None, *, rng: np.random.Generator) -> Replica:
    """The arm of table 2 with a disturbance whose phases are drawn."""
    disturbance = disturbance or Disturbance()
    robot = load_robot("lwr4plus")
    setups, targets = _frames(robot)
    truth = kinematic_model(robot, ErrorModel(UnknownGeometry.MDH, _ALL_TERMS), setups=setups, targets=targets)
    values = np.zeros(len(truth.parameters))
    for i, row in enumerate(_DEVIATIONS):
        owner = f"link{i + 2}" if i < len(_DEVIATIONS) - 1 else "tool"
        for name, value in zip(_NAMES, row, strict=True):
            values[truth.index(f"{owner}.{name}")] = value
    phase = rng.uniform(-pi, pi, robot.n_joints)
    factor = {
        TermBasis.SIN: disturbance.eccentricity * np.cos(phase),
        TermBasis.COS: disturbance.eccentricity * np.sin(phase),
        TermBasis.TORQUE: np.full(robot.n_joints, -disturbance.compliance),
    }
    for term in truth.terms:
        if term.basis in factor:
            values[term.parameter] = factor[term.basis][term.joint]
    return Replica(robot, truth, values)


def _random_poses(rng: np.random.Generator, count: int) -> FloatArray:
    """Anywhere within the joint limits of table 1, shape [count, 7]."""
    return rng.uniform(-1.0, 1.0, (count, len(_LIMITS))) * _LIMITS


def optimised_poses(seed: int, *, count: int = _POSES) -> FloatArray:
    """Poses of the library's own search (exchanges over a pool of 3000)."""
    settings = PoseSettings(
        count=count,
        frame="led_fixture",
        method=PoseMethod.EXCHANGE,
        pool=(3000,),
        self_collision=False,
        transitions=False,
        starts=2,
    )
    return design_poses(load_robot("lwr4plus"), Purpose.CALIBRATION, settings, seed=seed).poses


def fitted(robot: Robot, measurements: Measurements, terms: frozenset[Term] = frozenset({Term.OFFSET})) -> KinematicFit:
    """Frames 2 to 8 in the parameters of [Kolyubin2017], and these joint terms."""
    setups, targets = _frames(robot)
    settings = FitSettings(SolverSettings(loss=VectorLoss(0.0)), setups=setups, targets=targets, fixed=_CAMERA_KNOWN)
    return fit(robot, measurements, ErrorModel(UnknownGeometry.MDH, terms), settings=settings)


def _errors_on(found: KinematicFit, arm: Replica, q: FloatArray) -> Errors:
    """Distance between the fitted and the true arm."""
    model, true = predicted_poses(found.model, found.after.values, q, setup="camera", target="tool"), arm.poses(q)
    away = np.linalg.norm(model[:, :3, 3] - true[:, :3, 3], axis=1)
    turned = np.linalg.norm(rotation_log(true[:, :3, :3] @ np.swapaxes(model[:, :3, :3], 1, 2)), axis=1)
    return Errors(float(away.mean()), float(away.max()), float(turned.mean()))


def _predicted_error(found: KinematicFit, q: FloatArray) -> float:
    """Mean position error that noise and prior leave, from the covariance [m]."""
    there = Measurements(
        q=q, observations=(Observations(quantity=Observed.POINT, rows=np.arange(len(q)), setup="camera"),)
    )
    sigma = position_uncertainty(found, found.after.covariance, there)
    return MEAN_OVER_RMS * float(np.sqrt((sigma**2).mean()))


def replica_table(disturbances: Iterable[Disturbance], *, seed: int = 0, draws: int = 5) -> Iterator[ReplicaRow]:
    """How the calibration fares under each disturbance.

    Args:
        disturbances: to try.
        seed: of poses, noise and phases.
        draws: of noise and phases, averaged (errors as root mean squares would weigh the worst; these are plain means).
    """
    q = optimised_poses(seed)
    for disturbance in disturbances:
        yield _averaged(disturbance, [_drawn(disturbance, q, np.random.default_rng((seed, k))) for k in range(draws)])


def _drawn(disturbance: Disturbance, q: FloatArray, rng: np.random.Generator) -> ReplicaRow:
    """One draw."""
    arm = replica(disturbance, rng=rng)
    fresh, many = _random_poses(rng, _FRESH), _random_poses(rng, MANY)
    undisturbed = replica(rng=rng).poses(fresh)
    seen = arm.measured(q, rng)
    modelled = fitted(arm.robot, seen, _ALL_TERMS)
    return ReplicaRow(
        disturbance=disturbance,
        displacement=float(np.linalg.norm((arm.poses(fresh) - undisturbed)[:, :3, 3], axis=1).mean()),
        rigid=_errors_on(fitted(arm.robot, seen), arm, fresh),
        bound=_errors_on(fitted(arm.robot, arm.measured(many, rng, noise=0.0)), arm, fresh),
        modelled=_errors_on(modelled, arm, fresh),
        predicted=_predicted_error(modelled, fresh),
    )


def _averaged(disturbance: Disturbance, rows: list[ReplicaRow]) -> ReplicaRow:
    """The mean of several draws."""

    def mean(name: str) -> Errors:
        found = [getattr(row, name) for row in rows]
        return Errors(*(float(np.mean([getattr(x, k) for x in found])) for k in ("mean", "largest", "turned")))

    return ReplicaRow(
        disturbance=disturbance,
        displacement=float(np.mean([r.displacement for r in rows])),
        rigid=mean("rigid"),
        bound=mean("bound"),
        modelled=mean("modelled"),
        predicted=float(np.mean([r.predicted for r in rows])),
    )

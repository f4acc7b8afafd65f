"""Mass and centre of a load from a few poses at rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray, samples
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.estimation.run import Run
from armid.information.solve import solve_factor
from armid.logs.log import Channel, Log
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.space import ParameterSpace
from armid.payload.payload import Payload
from armid.payload.search import COLUMNS, Arm, PayloadSearch, arm_covariance, base_of_columns
from armid.rows.torque import TorqueRows

_RESTING_VELOCITY = 2e-3
"""[rad/s or m/s] Slower than this a joint is at rest: a tenth of a degree per second, above the noise of good encoders."""

_DIFFERENCE_TIME = 0.1
"""[s] Over which velocity is taken: at 20 bits an encoder's noise is then below a tenth of `_RESTING_VELOCITY`."""

_SHORTEST_REST = 0.3
"""[s] Torque is averaged over at least so long."""

_ROUNDS = 3
"""Of noise and solution."""

_SMALLEST_NOISE = 0.05
"""Of the noise in motion: means over a rest are better than single samples, but hardly more than this."""

_SETTLING = 0.15
"""[s] Left out at the start of a rest: the arm still swings."""


@dataclass(frozen=True, eq=False)
class Rest:
    """Poses at rest.

    Args:
        q: [rad or m], shape [n_poses, n_joints].
        torque: mean at each, shape [n_poses, n_joints].
    """

    q: FloatArray
    torque: FloatArray


def static_payload(arm: Arm, effects: Effects, poses: Rest, *, frame: str | None = None) -> Payload:
    """Mass and centre of mass of a load from torque at rest.

    At rest friction can hold any torque up to the Coulomb level, and nobody knows which: each joint counts with that level as
    its noise, besides what its residuals show. Approaching every pose from both sides makes it cancel.

    Args:
        arm: identified without the load.
        effects: of that identification.
        poses: at least two.
        frame: the load is given in; the tip frame by default.
    """
    q = samples("q", poses.q, arm.robot.n_joints)
    torque = samples("torque", poses.torque, arm.robot.n_joints)
    if len(q) < 2:
        raise InputError("poses", f"{len(q)} at rest", "mass and centre need at least two poses that differ in tilt")
    loaded = Effects(
        viscous=effects.viscous,
        coulomb=effects.coulomb,
        offset=effects.offset,
        rotor_inertia=effects.rotor_inertia,
        torques=TorqueSide.LINK if effects.torques is TorqueSide.LINK else TorqueSide.MOTOR,
        payload=PayloadRuns.LOADED,
    )
    source = TorqueRows(arm.robot, loaded)
    still = np.zeros_like(q)
    run = Run(name="poses at rest", source=source, inputs=np.hstack([q, still, still]), y=torque)
    _check_poses(run)
    rest = run.with_measured(run.residuals(arm.over(source.space)))
    free, covariance = _weighted_by_friction(arm, source, rest)
    return PayloadSearch(correlated=False, parameters=4).possible(arm, free, covariance, frame)


def _weighted_by_friction(arm: Arm, source: TorqueRows, rest: Run) -> tuple[Estimate, FloatArray]:
    """Mass and first moments with every joint weighted by its noise: what friction may hold, and what the residuals show.

    Returns:
        The estimate, and its covariance with the arm's own uncertainty.
    """
    information = rest.information()
    wanted = [source.space.index(name) for name in COLUMNS[:4]]
    held = _static_friction(arm, source)
    sigma = held
    for _ in range(_ROUNDS):
        weighted = information.weighted({name: 1.0 / s for name, s in sigma.items()}).select(wanted)
        solution = solve_factor(weighted.stacked(), COLUMNS[:4])
        left = rest.residuals(_scattered(solution.values, wanted, rest))
        spread = np.sqrt(np.sum(left**2, axis=0) / max(len(rest) - 4.0 / len(sigma), 1.0))
        sigma = {name: max(held[name], float(s)) for name, s in zip(rest.source.channels, spread, strict=True)}
    values, inverse = solution.values, solution.inverse
    base = base_of_columns(rest.source.columns, wanted)
    free = Estimate(
        base=base,
        units=("kg", *["kg m"] * 3),
        values=values,
        covariance=inverse,
        covariance_kind="friction",
        sigma=sigma,
        method="weighted least squares at rest",
    )
    return free, inverse + arm_covariance(arm, source.space, information, free, wanted)


def _scattered(values: FloatArray, wanted: list[int], rest: Run) -> FloatArray:
    """Values at their places among all columns, shape [p]."""
    out = np.zeros(len(rest.source.columns))
    out[wanted] = values
    return out


def _static_friction(arm: Arm, source: TorqueRows) -> dict[str, float]:
    """Standard deviation of what each joint's friction holds at rest, evenly anywhere up to the Coulomb level."""
    levels = _coulomb_levels(arm, source.space)
    out = {}
    for k, name in enumerate(source.channels):
        smallest = _SMALLEST_NOISE * max(arm.estimate.sigma.get(name, 1.0), 1e-12)
        out[name] = max(levels.get(k, 0.0) / 3.0**0.5, smallest)
    return out


def _coulomb_levels(arm: Arm, space: ParameterSpace) -> dict[int, float]:
    """Largest Coulomb level of each joint, by its index [N m or N]."""
    out: dict[int, float] = {}
    for parameter, value in zip(space.parameters, arm.over(space), strict=True):
        if parameter.quantity in ("coulomb", "motor_coulomb"):
            out[parameter.body] = max(out.get(parameter.body, 0.0), abs(float(value)))
    return out


def _check_poses(run: Run) -> None:
    """Refuses poses that cannot tell mass from centre."""
    information = run.information()
    wanted = [run.source.columns.index(name) for name in COLUMNS[:4]]
    R = information.select(wanted).stacked()[:-1, :-1]
    s = np.linalg.svd(R / np.maximum(np.linalg.norm(R, axis=0), 1e-300), compute_uv=False)
    if s[-1] < 1e-3 * s[0]:
        raise InputError(
            "poses", f"{len(run)} poses at rest do not tell mass from centre of mass", "tilt the flange between poses"
        )


def poses_at_rest(log: Log, channel: Channel) -> Rest:
    """The stretches of a log in which every joint stands still, each as one pose with its mean torque.

    Raises:
        InputError: no such stretch.
    """
    time, q = log.time, log[Channel.POSITION]
    velocity = np.abs(_slow_velocity(time, q)).max(axis=1)
    still = velocity < _RESTING_VELOCITY
    edges = np.flatnonzero(np.diff(np.concatenate([[0], still.astype(int), [0]])))
    poses, torques = [], []
    for start, stop in edges.reshape(-1, 2):
        inside = slice(int(np.searchsorted(time, time[start] + _SETTLING)), stop)
        if time[stop - 1] - time[start] >= _SHORTEST_REST + _SETTLING:
            poses.append(q[inside].mean(axis=0))
            torques.append(log[channel][inside].mean(axis=0))
    if not poses:
        raise InputError(
            log.name, f"no stretch of {_SHORTEST_REST + _SETTLING:.2g} s at rest", "hold each pose for half a second"
        )
    return Rest(np.array(poses), np.array(torques))


def _slow_velocity(time: FloatArray, q: FloatArray) -> FloatArray:
    """Difference over a tenth of a second, so that neither noise nor the steps of an encoder look like motion, shape of q."""
    step = float(np.median(np.diff(time))) if len(time) > 1 else 1.0
    half = max(1, round(0.5 * _DIFFERENCE_TIME / step))
    i = np.arange(len(time))
    before, after = np.maximum(i - half, 0), np.minimum(i + half, len(time) - 1)
    return np.asarray((q[after] - q[before]) / np.maximum(time[after] - time[before], step)[:, np.newaxis])

"""A whole campaign of frequency responses: which axis, where, how long, within limits, clearances and a budget of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray, samples
from armid.documents import read_json, restored
from armid.errors import InputError
from armid.motions.limits import motion_limits
from armid.motions.sweep import RAMP, Signal, SweepMotion, sweep_motion
from armid.robot.robot import Robot
from armid.rows.axis_inertia import AxisInertiaRows
from armid.scene.scene import Scene

_POSITIONS = 241
"""Of the axis looked at for clearance along its way: steps of about a degree and a half over one turn."""


@dataclass(frozen=True, eq=False)
class Site:
    """What is to be measured.

    Args:
        name: of the measurement.
        pose: [rad or m], shape [n_joints]; the measured axis' own position does not matter to its inertia.
        axis: name of the joint.
    """

    name: str
    pose: FloatArray
    axis: str


@dataclass(frozen=True, eq=False)
class PlannedSweep:
    """One motion to record.

    Args:
        name: of the file.
        motion: to run.
        deviation: of the inertia to expect [kg m^2 or kg].
    """

    name: str
    motion: SweepMotion
    deviation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSettings:
    """How sites are measured.

    Args:
        frequencies: [Hz]; chosen by the limits when empty.
        signal: sines or a chirp.
        rate_hz: of the recording.
        minutes: in all, ramps included, ways between poses not; 8 s per site when None.
        torque_noise: standard deviation per sample, relative to the torque limit.
    """

    frequencies: tuple[float, ...] = ()
    signal: Signal = Signal.SINES
    rate_hz: float = 1000.0
    minutes: float | None = None
    torque_noise: float = 3e-3


def sweep_plan(
    robot: Robot, sites: Sequence[Site], settings: SweepSettings | None = None, *, scene: Scene | None = None
) -> tuple[PlannedSweep, ...]:
    """A motion for every site, its axis centred where it has the most room.

    When there is more time than room a motion is repeated, turn by turn in either direction.

    Raises:
        InputError: no room, or a budget too small for the number of sites.
    """
    wanted = settings or SweepSettings()
    seconds = None if wanted.minutes is None else 60.0 * wanted.minutes / len(sites) - 2.0 * RAMP
    if seconds is not None and seconds <= 0.0:
        raise InputError("minutes", f"{wanted.minutes:g} for {len(sites)} measurements", "more time, or fewer poses")
    return tuple(sweep for site in sites for sweep in _site_sweeps(robot, site, wanted, seconds, scene))


def _site_sweeps(
    robot: Robot, site: Site, settings: SweepSettings, seconds: float | None, scene: Scene | None
) -> list[PlannedSweep]:
    """The motions of one site."""
    k = robot.joint_index(site.axis)
    within = _free_way(robot, site.pose, k, scene)
    pose = np.array(site.pose)
    pose[k] = 0.5 * (within[0] + within[1])
    motion = sweep_motion(
        robot,
        pose,
        site.axis,
        settings.frequencies or None,
        rate_hz=settings.rate_hz,
        signal=settings.signal,
        seconds=seconds,
        within=within,
    )
    limit = robot.joints[k].limits.torque
    noise = settings.torque_noise * (limit if np.isfinite(limit) else 100.0)
    deviation = motion.deviation(noise, settings.rate_hz)
    repeats = 1 if seconds is None else max(1, round((seconds + 2.0 * RAMP) / motion.duration))
    names = [site.name] if repeats == 1 else [f"{site.name}-{i + 1}" for i in range(repeats)]
    back = replace(motion, offset=-motion.offset)
    return [PlannedSweep(name, back if i % 2 else motion, deviation) for i, name in enumerate(names)]


def _free_way(robot: Robot, pose: FloatArray, axis: int, scene: Scene | None) -> tuple[float, float]:
    """The longest range of positions of one axis that keeps all clearances, the others staying where they are.

    Raises:
        InputError: none does.
    """
    limits = motion_limits(robot)[0]
    low, high = float(limits.lower[axis]), float(limits.upper[axis])
    if scene is None or not len(scene):
        return low, high
    positions = np.linspace(low, high, _POSITIONS)
    poses = np.tile(samples("pose", np.asarray(pose)[np.newaxis], robot.n_joints), (_POSITIONS, 1))
    poses[:, axis] = positions
    free = np.flatnonzero(scene.is_free(poses))
    if not len(free):
        raise InputError(f"joint {robot.joint_names[axis]!r}", "not clear at any position", "choose another pose")
    best = max(np.split(free, np.flatnonzero(np.diff(free) > 1) + 1), key=len)
    return float(positions[best[0]]), float(positions[best[-1]])


def all_axes(poses: FloatArray, axes: Sequence[str]) -> tuple[Site, ...]:
    """Every axis at every pose."""
    return tuple(Site(f"pose{k + 1}-{axis}", pose, axis) for k, pose in enumerate(poses) for axis in axes)


def sites_from(path: Path, robot: Robot, axes: Sequence[str]) -> tuple[Site, ...]:
    """Sites of a `poses.json` written by `armid poses --for axis-inertia`: each pose with the axes to be measured there.

    Raises:
        InputError: not such a file, or of another arm.
    """
    what = "poses.json of `armid poses --for axis-inertia`"
    content = read_json(path, what)
    joint_of = dict(zip(AxisInertiaRows(robot).channels, robot.joint_names, strict=True))

    def decoded(value: dict[str, Any]) -> tuple[Site, ...]:
        names, purpose = value["joint_names"], value["purpose"]
        if tuple(names) != robot.joint_names or purpose != "axis-inertia":
            raise InputError(
                path, f"{purpose} poses of {', '.join(map(str, names))}", f"axis-inertia poses of {robot.name}"
            )
        q = samples(f"{path}: poses", value["poses"], robot.n_joints)
        own = [[joint_of[channel] for channel in channels] for channels in value["measured"]]
        return tuple(
            Site(f"pose{k + 1}-{axis}", pose, axis)
            for k, (pose, measured) in enumerate(zip(q, own, strict=True))
            for axis in measured
            if axis in axes
        )

    sites: tuple[Site, ...] = restored(path, content, decoded, what)
    return sites

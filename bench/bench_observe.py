"""Who pushed the arm: contacts found, how late, and alarms without any.

`python -m bench observe` pushes the embedded robot at several speeds and sizes and watches it by its identified model, by its
description and by one fixed level per joint, all set on the same motion without contact for the same rate of false alarms. Then
it watches real recordings in which nobody pushed (`ARMID_DATA`), on motion that neither model nor levels have seen. `--quick`
pushes less, and leaves the recordings out.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import armid
from armid.arrays import FloatArray
from armid.errors import ArmidError
from armid.identification.inputs import Recordings
from armid.logs.log import Log
from armid.motions.fourier import FourierTrajectory
from armid.motions.limits import motion_limits
from armid.observation.arm import ObservedArm, observed_arm
from armid.observation.contacts import Contact, contacts_along
from armid.observation.levels import AlarmLevels, Features, alarm_levels
from armid.observation.observe import levels_from
from armid.observation.residuals import ObservedMotion, beyond_rest, residuals
from armid.robot.robot import Robot
from armid.simulation.assumed import AssumedDrives
from armid.simulation.controllers import Law, PdGravity
from armid.simulation.motions import Reference
from armid.simulation.plant import Plant
from armid.simulation.variation import varied
from bench.measure import table

ARM, VARIATION, RATE = "panda", 0.2, 500.0
SPEEDS = {"slow": 20.0, "medium": 10.0, "fast": 6.0}
"""Periods of the motions [s]."""
FORCES = (5.0, 10.0, 20.0, 40.0)
"""[N] at the flange."""
LASTS, APART = 0.3, 1.5
"""[s] of a push, and from one to the next."""
STATED = 60.0
"""False alarms an hour."""
BANDWIDTH = 10.0
MAPPINGS = Path("docs/mappings")


@dataclass(frozen=True, eq=False)
class Leaned:
    """A controlled arm that somebody pushes at the flange.

    Args:
        force: by time [s]: force in base axes [N], shape [3].
        controller: of the drives, which do not know.
    """

    force: Callable[[float], FloatArray]
    controller: PdGravity

    def law(self, robot: Robot, plant: Plant, reference: Reference, period: float) -> Law:
        own = self.controller.law(robot, plant, reference, period)

        def hand(k: int, q: FloatArray, qd: FloatArray) -> FloatArray:
            push = self.force(k * period)
            return armid.jacobian(robot, q).reshape(6, -1)[:3].T @ push if push.any() else np.zeros(robot.n_joints)

        return replace(own, hand=hand)


@dataclass(frozen=True, eq=False)
class Pushes:
    """Pushes of one size, one after the other, in directions of chance."""

    size: float
    seconds: float
    seed: int

    @property
    def begins(self) -> FloatArray:
        """[s]."""
        return np.arange(1.0, self.seconds - LASTS - 0.5, APART)

    def __call__(self, t: float) -> FloatArray:
        k = int(np.searchsorted(self.begins, t, side="right")) - 1
        if k < 0 or t >= self.begins[k] + LASTS:
            return np.zeros(3)
        direction = np.random.default_rng((self.seed, k)).normal(size=3)
        return self.size * direction / np.linalg.norm(direction)


def motion(robot: Robot, period: float, repetitions: int, seed: int) -> FourierTrajectory:
    """Five harmonics of chance around the middle of the joints' ranges, as large as limits allow."""
    rng = np.random.default_rng(seed)
    limits = motion_limits(robot)[0]
    n = robot.n_joints
    size = 0.15 * limits.half_range[:, np.newaxis] / np.arange(1, 6)
    made = FourierTrajectory(
        joint_names=robot.joint_names,
        period=period,
        repetitions=repetitions,
        offset=limits.middle,
        sine=size * rng.normal(size=(n, 5)),
        cosine=size * rng.normal(size=(n, 5)),
    )
    _, qd, qdd = made.sample(np.linspace(0.0, period, 500))
    most = np.maximum(np.abs(qd).max(axis=0) / limits.velocity, np.abs(qdd).max(axis=0) / limits.acceleration)
    shrink = 0.8 / max(float(most.max()), 0.8)
    return replace(made, sine=shrink * made.sine, cosine=shrink * made.cosine)


def played(specimen: Robot, moved: FourierTrajectory, seed: int, pushes: Pushes | None = None) -> Log:
    """The embedded robot along a motion, with typical sensors."""
    controller = PdGravity() if pushes is None else Leaned(pushes, PdGravity())
    done = armid.simulate(specimen, moved, controller=controller, sensors="typical", rate_hz=RATE, seed=seed)
    return done.log


def fixed_levels(arm: ObservedArm, quiet: Sequence[ObservedMotion]) -> AlarmLevels:
    """One number per joint, whatever it does: set on the same motion for the same rate."""
    found = [beyond_rest(residuals(arm.robot, each, BANDWIDTH), "momentum") for each in quiet]
    none = np.zeros_like(np.vstack(found))
    plain = Features(speed=none, acceleration=none, deviation=none, reversal=none)
    return alarm_levels(np.vstack(found), plain, quiet[0].step, STATED, lengths=[len(part) for part in found])


def watched(arm: ObservedArm, levels: AlarmLevels, seen: ObservedMotion) -> tuple[Contact, ...]:
    found = residuals(arm.robot, seen, BANDWIDTH)
    features = arm.features(seen, found)
    external = beyond_rest(found, "momentum")
    return contacts_along(arm.robot, seen, external, levels.deviation(features), levels.level(features))


def hits(contacts: Sequence[Contact], pushes: Pushes) -> list[float]:
    """How late each push was seen [s]; not a number where it was not."""
    begins = np.array([contact.begins for contact in contacts])
    late = []
    for at in pushes.begins:
        inside = begins[(begins >= at) & (begins < at + LASTS + 0.1)]
        late.append(float(inside[0] - at) if len(inside) else float("nan"))
    return late


def simulated_table(quick: bool) -> None:
    """Pushes found and false alarms, by what is known of the arm."""
    described, _ = AssumedDrives().apply(armid.load_robot(ARM))
    specimen = varied(described, VARIATION, np.random.default_rng(5))
    learn = [played(specimen, motion(described, 8.0, 3, seed), seed) for seed in (1, 2)]
    result = armid.identify(described, learn[0], validate=learn[1], rotor_inertia=True, sensitivity=False)
    print(
        f"{ARM}, {VARIATION:.0%} from its description: {result.verdict}, {result.relative_error['held_out']:.2%} held out"
    )
    free = [played(specimen, motion(described, t, 3, 10 + k), 10 + k) for k, t in enumerate(SPEEDS.values())]
    calm = [
        played(specimen, motion(described, t, 2, 100 + 10 * k + r), 100 + 10 * k + r)
        for k, t in enumerate(SPEEDS.values())
        for r in range(1 if quick else 4)
    ]
    arms = {"identified": ObservedArm(result.robot, result), "described": ObservedArm(described)}
    ways: dict[str, tuple[ObservedArm, AlarmLevels]] = {}
    for name, arm in arms.items():
        ways[name] = arm, levels_from(arm, [arm.motion(log) for log in free], STATED, "momentum", BANDWIDTH)
    arm = arms["identified"]
    ways["identified, fixed level"] = arm, fixed_levels(arm, [arm.motion(log) for log in free])
    seconds = sum(float(log.time[-1]) for log in calm)
    quiet = sum(float(log.time[-1]) for log in free)
    print(f"{quiet:.0f} s of free motion set the levels, {seconds:.0f} s of other motion try them.")
    rows = []
    for name, (arm, levels) in ways.items():
        alarms = sum(len(watched(arm, levels, arm.motion(log))) for log in calm)
        rows.append((name, STATED * seconds / 3600.0, alarms, *(f"{x:.2g}" for x in median_levels(arm, levels, calm))))
    joints = [f"level {name.removeprefix('panda_')}" for name in described.joint_names]
    table(f"Without contact ({STATED:g} an hour stated)", ("levels", "expected", "alarms", *joints), rows)
    found_table(specimen, described, ways, quick)


def median_levels(arm: ObservedArm, levels: AlarmLevels, logs: Sequence[Log]) -> FloatArray:
    """Along motion without contact [N m], shape [n_joints]."""
    seen = []
    for log in logs:
        along = arm.motion(log)
        seen.append(levels.level(arm.features(along, residuals(arm.robot, along, BANDWIDTH))))
    return np.asarray(np.median(np.vstack(seen), axis=0))


def found_table(
    specimen: Robot, described: Robot, ways: dict[str, tuple[ObservedArm, AlarmLevels]], quick: bool
) -> None:
    rows = []
    for k, (speed, period) in enumerate(SPEEDS.items()):
        for size in FORCES[1::2] if quick else FORCES:
            moved = motion(described, period, 1 if quick else 2, 300 + k)
            pushes = Pushes(size, moved.duration, seed=17 * k)
            log = played(specimen, moved, 400 + k, pushes)
            cells = []
            for arm, levels in ways.values():
                late = np.array(hits(watched(arm, levels, arm.motion(log)), pushes))
                seen = np.isfinite(late)
                delay = f"{1e3 * np.median(late[seen]):.0f} ms" if seen.any() else "-"
                cells.append(f"{seen.mean():.0%} {delay}")
            rows.append((f"{speed}, {size:g} N", len(pushes.begins), *cells))
            sys.stdout.flush()
    table(f"Pushes of {LASTS:g} s at the flange: found, median delay", ("motion, force", "pushes", *ways), rows)


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A real arm: what it is identified from, and recordings without contact in turn for levels and for the test.

    Args:
        robot, words: as `armid.identify` takes them.
        learn: mapping files to identify from.
        quiet: mapping files of other motion, each split in two parts when there is only one.
    """

    name: str
    robot: str
    learn: tuple[str, ...]
    quiet: tuple[str, ...]
    words: dict[str, Any]


RECORDED = (
    Recorded(
        name="xMate7 Pro",
        robot="docs/mappings/xmate7pro-robot.yaml",
        learn=("xmate7pro-1-periods-1",),
        quiet=("xmate7pro-1-periods-2", "xmate7pro-3-periods-2"),
        words={"friction": "viscous,coulomb", "rotor_inertia": True},
    ),
    Recorded(
        name="UR10e, currents",
        robot="ur10e",
        learn=("ur10e-14harm50sec", "ur10e-14harm50sec-load"),
        quiet=("ur10e-40sec_12harm", "ur10e-50sec_12harm"),
        words={"torques": "motor", "payload": "both"},
    ),
    Recorded(
        name="LWR4+",
        robot="dynamics/lwr4plus/kuka_lwr4.urdf",
        learn=("lwr4plus-1",),
        quiet=("lwr4plus-2",),
        words={"rotor_inertia": True},
    ),
    Recorded(name="Panda", robot="panda", learn=("panda",), quiet=("panda",), words={}),
)
RATES = (1800.0, 360.0, 60.0, 1.0)


def part_of(seen: ObservedMotion, begin: float, end: float) -> ObservedMotion:
    """Between two shares of its length."""
    cut = slice(int(begin * len(seen.time)), int(end * len(seen.time)))
    arrays = {name: getattr(seen, name)[cut] for name in ("time", "q", "qd", "qdd", "torque", "turning")}
    return replace(seen, **arrays)


def recordings_table(data: Path) -> None:
    """Alarms on real motion without contact: levels from one motion, watched on another, and the other way round."""
    rows, reader = [], Recordings(data_root=data)
    totals = np.zeros((2, len(RATES)))
    for recorded in RECORDED:
        local = data / recorded.robot
        robot = armid.load_robot(local if local.is_file() else recorded.robot)
        learn = [MAPPINGS / f"{name}.yaml" for name in recorded.learn]
        result = armid.identify(robot, learn, sensitivity=False, **recorded.words)
        arm = observed_arm(result, force=True)
        quiet = [arm.motion(log) for log in reader.read([MAPPINGS / f"{q}.yaml" for q in recorded.quiet], robot)]
        if len(quiet) == 1:
            begin = 0.6 if recorded.learn == recorded.quiet else 0.0
            middle = 0.5 * (begin + 1.0)
            quiet = [part_of(quiet[0], begin, middle), part_of(quiet[0], middle, 1.0)]
        for free, seen in (quiet, quiet[::-1]):
            rows.append(_recorded_row(recorded.name, arm, free, seen, totals))
            sys.stdout.flush()
    share = [f"{expected:.1f} / {int(got)}" for expected, got in totals.T]
    rows.append(("together", "", "", *share))
    heads = [f"{rate:g} an hour" for rate in RATES]
    table("Recordings without contact: alarms expected / found", ("arm", "free [s]", "watched [s]", *heads), rows)


def _recorded_row(
    name: str, arm: ObservedArm, free: ObservedMotion, seen: ObservedMotion, totals: FloatArray
) -> tuple[object, ...]:
    lasting = [float(part.time[-1] - part.time[0]) for part in (free, seen)]
    cells = []
    for k, rate in enumerate(RATES):
        try:
            levels = levels_from(arm, [free], rate, "momentum", BANDWIDTH)
        except ArmidError:
            cells.append("too short")
            continue
        expected, got = rate * lasting[1] / 3600.0, len(watched(arm, levels, seen))
        totals[:, k] += expected, got
        cells.append(f"{expected:.1f} / {got}")
    return (name, f"{lasting[0]:.0f}", f"{lasting[1]:.0f}", *cells)


def main(words: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="bench observe")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--recordings", action="store_true", help="recordings alone")
    asked = parser.parse_args(list(words))
    if not asked.recordings:
        simulated_table(asked.quick)
    data = Path(os.environ.get("ARMID_DATA", "../shared/data"))
    if asked.quick:
        return
    if not (data / "dynamics").is_dir():
        print(f"no recordings at {data} (ARMID_DATA)")
        return
    recordings_table(data)

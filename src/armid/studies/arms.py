"""Arms that armid was not raised on, each from its description to files that other programs read, held against the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from armid.arrays import FloatArray
from armid.design.design import design_motion
from armid.design.search import Budget
from armid.documents import read_yaml
from armid.errors import ArmidError, InputError
from armid.export.export import Format, export_result
from armid.export.gate import mujoco_model, pinocchio_model
from armid.export.mjcf_drives import mjcf_drives
from armid.identification.identify import identify
from armid.identification.metrics import nominal_standard
from armid.identification.result import Result
from armid.kernels.dynamics import inverse_dynamics
from armid.motions.trajectory import SampledTrajectory, Trajectory
from armid.robot.load import load_robot
from armid.robot.robot import Drive, JointKind, Robot
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario
from armid.simulation.simulate import simulate

PACKAGE = "example-robot-data"
JOINTS = range(4, 9)
"""Moving joints of what is called an arm here."""
_STATES = 2000
_VARIATION = 0.15
"""Of the specimen against its description."""
_TORQUE_SHARE = 0.6
"""Of the torque limits that a random motion may ask of the described links; friction, rotors and variation come on top."""
_FACTOR = 2.0
"""Masses farther from the truth than this must be marked undetermined."""

_TIPS = {
    "baxter.urdf": "left_hand_camera_link",
    "pr2.urdf": "r_gripper_palm_link",
    "tiago_pro.urdf": "gripper_left_base_link",
}
"""Of files with several arms, which of them."""


@dataclass(frozen=True, kw_only=True)
class ArmFile:
    """A description in the package.

    Args:
        path: of the file.
        robot: the arm; None when there is none.
        reason: why there is none.
    """

    path: Path
    robot: Robot | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ArmRecord:
    """What came of one arm.

    Args:
        name: of its file.
        joints: how many.
        designed: condition number of the default design; nan when it refused.
        design_seconds: until it was there [s].
        first_seconds: of searching until there was a first certified motion, which the rest of the time improves [s].
        refused_after: until the design refused [s]; nan when it did not.
        why: of a refusal, or of an arm that went no further.
        verdict: of the identification.
        model, urdf, mjcf: torque error against the truth at random states, a fraction: of the identified model, and of its
            files as other programs read them.
        refused: formats that were refused.
        inside, intervals: base parameters within their 95 % intervals, and how many there are.
        wrong_masses: links whose mass is off by more than a factor of two and not marked undetermined.
    """

    name: str
    joints: int
    designed: float = float("nan")
    design_seconds: float = float("nan")
    first_seconds: float = float("nan")
    refused_after: float = float("nan")
    why: str = ""
    verdict: str = ""
    model: float = float("nan")
    urdf: float = float("nan")
    mjcf: float = float("nan")
    refused: tuple[str, ...] = ()
    inside: int = 0
    intervals: int = 0
    wrong_masses: tuple[str, ...] = ()

    def line(self) -> str:
        """One row of the table; whole reasons stand in the record."""
        motion = f"{self.designed:.3g}" if np.isfinite(self.designed) else "-"
        seconds = np.nanmax([self.design_seconds, self.refused_after, 0.0])
        errors = (f"{100 * error:.3f}" if np.isfinite(error) else "-" for error in (self.model, self.urdf, self.mjcf))
        said = (self.why, *(f"no {format_.split(' ', 1)[0]}" for format_ in self.refused), *self.wrong_masses)
        remark = "; ".join(part if len(part) <= _REMARK else f"{part[:_REMARK]}..." for part in said if part)
        cells = (
            self.name,
            self.joints,
            motion,
            f"{self.first_seconds:.1f}" if np.isfinite(self.first_seconds) else "-",
            f"{seconds:.1f}",
            self.verdict or "-",
            *errors,
            f"{self.inside}/{self.intervals}",
            remark.replace("|", "/"),
        )
        return f"| {' | '.join(map(str, cells))} |"


_REMARK = 120
"""Characters of a reason in the table."""
HEADER = (
    "| arm | joints | condition | first s | design s | verdict | model % | URDF % | MJCF % | inside | remarks |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)
"""Of the table: condition number of the first design, when there was something certified to run, torque errors against the
truth at 2,000 states, base parameters in their 95 % intervals."""


def package_arms(*parts: str) -> Iterator[ArmFile]:
    """Every description in the installed package, in order; those that are no serial arm with the reason.

    Args:
        parts: of file names, of which one must occur; none for all files.

    Raises:
        InputError: the package is not installed.
    """
    try:
        files = distribution(PACKAGE).files or []
    except PackageNotFoundError:
        raise InputError(PACKAGE, "is not installed", f"pip install {PACKAGE}, or armid[bench]") from None
    named = [
        file for file in files if file.name.endswith(".urdf") and (not parts or any(p in file.name for p in parts))
    ]
    for path in sorted(Path(str(file.locate())) for file in named):
        try:
            robot = load_robot(path, tip=_TIPS.get(path.name))
        except ArmidError as error:
            yield ArmFile(path=path, reason=str(error))
            continue
        if robot.n_joints not in JOINTS:
            yield ArmFile(path=path, reason=f"{robot.n_joints} moving joints")
        else:
            yield ArmFile(path=path, robot=robot)


def random_motion(robot: Robot, seed: int, *, seconds: float = 20.0, rate: float = 200.0) -> SampledTrajectory:
    """A random Fourier motion within position, velocity and torque limits, for arms that have no design yet.

    It is drawn in around the pose that is easiest to hold until the drives can do it.
    """
    rng = np.random.default_rng(seed)
    t, w = np.arange(int(seconds * rate)) / rate, 2.0 * np.pi / 10.0 * np.arange(1, 6)
    a, b = rng.normal(size=(2, robot.n_joints, 5)) / np.sqrt(np.arange(1, 6))
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q, qd, qdd = s @ a.T + c @ b.T, (c * w) @ a.T - (s * w) @ b.T, -(s * w**2) @ a.T - (c * w**2) @ b.T
    slides = np.array([joint.kind is JointKind.PRISMATIC for joint in robot.joints])
    low, high = np.maximum(robot.limit("lower"), -2.5), np.minimum(robot.limit("upper"), 2.5)
    fastest = 0.8 * np.minimum(robot.limit("velocity"), np.where(slides, 0.4, 1.5))
    size = np.minimum(0.42 * (high - low) / np.abs(q).max(axis=0), fastest / np.abs(qd).max(axis=0))
    middle = (low + high) / 2.0
    centre = _easiest_to_hold(robot, low, high, rng)
    for share in (1.0, 0.8, 0.6, 0.4, 0.2, 0.1):
        place = share * middle + (1.0 - share) * centre
        states = place + share * size * q, share * size * qd, share * size * qdd
        if _torque_use(robot, *(state[:: len(t) // 200 or 1] for state in states)).max() < _TORQUE_SHARE:
            break
    return SampledTrajectory(robot.joint_names, t, *states)


def _easiest_to_hold(robot: Robot, low: FloatArray, high: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Of some random poses, well inside the ranges, the one that takes least of the torque limits."""
    poses = rng.uniform(0.7 * low + 0.3 * high, 0.3 * low + 0.7 * high, size=(200, robot.n_joints))
    still = np.zeros_like(poses)
    return np.asarray(poses[np.argmin(_torque_use(robot, poses, still, still).max(axis=1))])


def _torque_use(robot: Robot, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Torque of the described links over the limits, shape [n_samples, n_joints]."""
    return np.abs(inverse_dynamics(robot, q, qd, qdd)) / robot.limit("torque")


def arm_story(
    robot: Robot,
    *,
    name: str,
    design_seconds: float = 20.0,
    design_starts: int | None = None,
    motion_seconds: float = 20.0,
    seed: int = 0,
    rate_hz: float = 250.0,
    design: bool = True,
) -> ArmRecord:
    """One arm through everything; what fails stands in the record.

    Args:
        robot: as described.
        name: for the table.
        design_seconds: that the default design may take for each of two motions.
        design_starts: random starts of each design instead of seconds: the same motions however busy the machine is.
        motion_seconds: length of random motions.
        seed: of everything random.
        rate_hz: of the logs.
        design: look for motions by design; otherwise random ones.
    """
    record = ArmRecord(name=name, joints=robot.n_joints)
    motions: list[Trajectory] = []
    if design:
        record, motions = _designed(robot, record, Budget(design_seconds, starts=design_starts), seed)
    designed = len(motions) == 2
    if not designed:
        motions = [random_motion(robot, seed + k, seconds=motion_seconds) for k in range(2)]
    try:
        # A random motion keeps no distance; what matters here is what can be learnt from it.
        return _identified(robot, motions, record, Physics(collisions=designed), seed, rate_hz)
    except ArmidError as error:
        return replace(record, why="; ".join(part for part in (record.why, str(error)) if part))


def _designed(robot: Robot, record: ArmRecord, budget: Budget, seed: int) -> tuple[ArmRecord, list[Trajectory]]:
    """Two motions of the default design, or as many as it gave, with the reason why there are no more."""
    motions: list[Trajectory] = []
    for k in range(2):
        began = perf_counter()
        try:
            if budget.starts is None:
                found = design_motion(robot, torques="motor", seconds=budget.seconds, seed=seed + k)
            else:
                found = design_motion(
                    robot, torques="motor", seconds=None, starts=budget.starts, workers=1, seed=seed + k
                )
        except ArmidError as error:
            return replace(record, why=str(error), refused_after=perf_counter() - began), motions
        motions.append(found.trajectory)
        if not k:
            first = found.search.history[0][0] if found.search.history else found.search.seconds
            record = replace(
                record,
                designed=found.condition_number,
                design_seconds=perf_counter() - began,
                first_seconds=first,
            )
    return record, motions


def _identified(
    robot: Robot, motions: list[Trajectory], record: ArmRecord, physics: Physics, seed: int, rate_hz: float
) -> ArmRecord:
    """The same specimen along both motions; the first is learnt from, the second held out."""
    plan = Scenario(physics=physics, variation=_VARIATION, seed=seed)
    ran = [
        simulate(robot, motion, scenario=plan, sensors="typical", rate_hz=rate_hz, rotor_ratio=0.5, friction_ratio=0.05)
        for motion in motions
    ]
    truth = ran[0].experiments[0].run.robot
    # Most arms have no joint torque sensors, and only the motors feel their rotors.
    result = identify(robot, ran[0].log, validate=ran[1].log, torques="motor", sensitivity=False, seed=seed)
    record = replace(record, verdict=str(result.verdict), why="; ".join((*filter(None, [record.why]), *result.reasons)))
    record = _against_truth(record, result, truth)
    return _exported(record, result, truth) if result.verdict == "trusted" else record


def _against_truth(record: ArmRecord, result: Result, truth: Robot) -> ArmRecord:
    """Error of the model, intervals and masses."""
    estimate, values = result.estimate, _standard(result, truth)
    low, high = estimate.interval()
    true = estimate.base.projection @ values
    wrong = []
    for row in result.standard_parameters:
        k = result.consistent.names.index(row.name)
        if row.name.endswith(".mass") and row.determined_by == "data":
            ratio = row.value / values[k]
            if not 1.0 / _FACTOR < ratio < _FACTOR:
                wrong.append(f"{row.name} {row.value:.3g} kg, true {values[k]:.3g}")
    return replace(
        record,
        model=_error(truth, lambda q, qd, qdd: inverse_dynamics(result.robot, q, qd, qdd, drives=True)),
        inside=int(np.sum((low <= true) & (true <= high))),
        intervals=len(true),
        wrong_masses=tuple(wrong),
    )


def _standard(result: Result, truth: Robot) -> FloatArray:
    """The specimen's standard parameters, in the order of the result's."""
    return nominal_standard(truth, result.consistent.names)


def _exported(record: ArmRecord, result: Result, truth: Robot) -> ArmRecord:
    """The result as files, read by other programs."""
    refused, errors = [], dict.fromkeys((Format.URDF, Format.MJCF), float("nan"))
    with TemporaryDirectory() as folder:
        for target in (Format.URDF, Format.MJCF, Format.C):
            try:
                done = export_result(result, target, Path(folder))
            except ArmidError as error:
                refused.append(f"{target.value} ({error})")
                continue
            if target is not Format.C:
                errors[target] = _read_elsewhere(result.robot, truth, done.files, mjcf=target is Format.MJCF)
    return replace(record, refused=tuple(refused), urdf=errors[Format.URDF], mjcf=errors[Format.MJCF])


def _read_elsewhere(robot: Robot, truth: Robot, files: Sequence[Path], *, mjcf: bool) -> float:
    """Error of a file's own bodies, read by MuJoCo or Pinocchio, with the drives that stand in it or beside it."""
    text = files[0].read_text(encoding="utf-8")
    rigid = mujoco_model(robot, text) if mjcf else pinocchio_model(robot, text)
    if rigid is None:
        return float("nan")
    drives = mjcf_drives(robot, text) if mjcf else drives_beside(files[1])
    read = replace(robot, joints=tuple(replace(joint, drive=drives[joint.name]) for joint in robot.joints))

    def torque(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        links = np.array([rigid(*row) for row in zip(q, qd, qdd, strict=True)])
        friction = read.drive("viscous") * qd + read.drive("coulomb") * np.sign(qd) + read.drive("offset")
        return np.asarray(links + read.drive("rotor_inertia") * qdd + friction)

    return _error(truth, torque)


def drives_beside(path: Path) -> dict[str, Drive]:
    """Drives by joint from the table beside a URDF: bodies and drives of a file belong together."""
    joints = read_yaml(path, "joint properties")["joints"]
    return {
        name: Drive(
            rotor_inertia=row["armature"], viscous=row["damping"], coulomb=row["friction"], offset=row["offset"]
        )
        for name, row in joints.items()
    }


def _error(truth: Robot, torque: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]) -> float:
    """Norm of the error over the norm of the torque at random states."""
    rng = np.random.default_rng(0)
    low, high = np.maximum(truth.limit("lower"), -np.pi), np.minimum(truth.limit("upper"), np.pi)
    q = rng.uniform(low, high, size=(_STATES, truth.n_joints))
    qd, qdd = rng.normal(size=(2, *q.shape))
    expected = inverse_dynamics(truth, q, qd, qdd, drives=True)
    return float(np.linalg.norm(torque(q, qd, qdd) - expected) / np.linalg.norm(expected))

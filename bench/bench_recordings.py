"""Simulated recordings of many arms, good, hard and misread: what `armid calibrate` makes of each.

A good or hard file must give an arm whose error on fresh poses is what its covariance predicts (at most 1.5 times, as the
root mean square over draws), or a verdict that says to keep the nominal links; a misread one must be refused with its cause.
Run: python -m bench recordings
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from armid.calibration.calibrate import calibrate
from armid.calibration.enough import MEAN_OVER_RMS, position_uncertainty
from armid.calibration.hold_out import Advice
from armid.calibration.start import ALL
from armid.errors import ArmidError
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.measurement import Measurements, Observations, Observed
from armid.kinematics.model import ErrorModel, FrameModel
from armid.kinematics.rotations import inverse, rigid, rotation_exp
from armid.parameters.space import OwnerKind
from armid.robot import Elementary, Joint, JointKind, Limits, Link, Move, Robot
from armid.robot.load import load_robot

POSITION_NOISE, ORIENTATION_NOISE = 1e-4, 2e-4
CATALOGUE = ("ur10e", "panda", "iiwa14", "lwr4plus", "tx40", "mabi-max100", "cmu-dd-arm2", "cylindrical")


def made(name: str, *joints: tuple[Move, tuple[float, float], tuple[Elementary, ...]]) -> Robot:
    kinds = {True: JointKind.REVOLUTE, False: JointKind.PRISMATIC}
    parts = tuple(
        Joint(
            name=f"j{i + 1}",
            kind=kinds[m.is_rotation],
            transforms=(*before, Elementary(motion=m, value=0.0, variable=True)),
            limits=Limits(lower=limits[0], upper=limits[1]),
        )
        for i, (m, limits, before) in enumerate(joints)
    )
    return Robot(name=name, joints=parts, links=tuple(Link(f"l{i + 1}") for i in range(len(parts))))


def scara() -> Robot:
    turn, T = (-2.5, 2.5), Elementary
    return made(
        "scara",
        (Move.RZ, turn, (T(Move.TZ, 0.4),)),
        (Move.RZ, turn, (T(Move.TX, 0.35),)),
        (Move.TZ, (-0.2, 0.0), (T(Move.TX, 0.3),)),
        (Move.RZ, turn, ()),
    )


def gantry() -> Robot:
    slide, turn = (-0.5, 0.5), (-1.5, 1.5)
    axes = (
        (Move.TX, slide),
        (Move.TY, slide),
        (Move.TZ, slide),
        (Move.RZ, turn),
        (Move.RY, turn),
        (Move.RZ, turn),
    )
    return made("gantry", *((m, limits, ()) for m, limits in axes))


def random_arm(n: int, seed: int) -> Robot:
    rng = np.random.default_rng((n, seed))
    joints = []
    for _ in range(n):
        before = (
            Elementary(motion=Move.RX, value=float(rng.choice([0.0, np.pi / 2, -np.pi / 2]))),
            Elementary(motion=Move.TX, value=float(rng.uniform(0.0, 0.4))),
            Elementary(motion=Move.TZ, value=float(rng.uniform(0.0, 0.4))),
        )
        joints.append((Move.RZ, (-2.5, 2.5), before))
    return made(f"{n}R-{seed}", *joints)


@dataclass
class Scene:
    """A true arm behind a description, its sensor and tool."""

    robot: Robot
    rng: np.random.Generator
    size: float = 0.2

    def __post_init__(self) -> None:
        frames = [rigid(rotation_exp(self.rng.normal(size=3)), s * self.rng.normal(size=3)) for s in (1.0, 0.1)]
        self.model = kinematic_model(
            self.robot,
            ErrorModel(),
            setups={"sensor": FrameModel.around(frames[0], ALL, outside=True)},
            targets={"tool": FrameModel.around(frames[1], ALL, outside=False)},
        )
        arm = self.model.owned(OwnerKind.LINK, OwnerKind.JOINT)
        self.values = np.where(arm, self.size * self.model.tolerances * self.rng.normal(size=len(arm)), 0.0)

    def configurations(self, count: int) -> np.ndarray:
        lower, upper = (np.clip(self.robot.limit(k), -2.0, 2.0) for k in ("lower", "upper"))
        return self.rng.uniform(lower, upper, (count, self.robot.n_joints))

    def poses(self, q: np.ndarray) -> np.ndarray:
        return predicted_poses(self.model, self.values, q, setup="sensor", target="tool")

    def seen(self, q: np.ndarray) -> np.ndarray:
        T = self.poses(q)
        T[:, :3, 3] += POSITION_NOISE * self.rng.normal(size=(len(q), 3))
        T[:, :3, :3] = rotation_exp(ORIENTATION_NOISE * self.rng.normal(size=(len(q), 3))) @ T[:, :3, :3]
        return T


def as_poses(q: np.ndarray, T: np.ndarray) -> Measurements:
    return Measurements(
        q=q,
        observations=(
            Observations(quantity=Observed.POSE, rows=np.arange(len(q)), position=T[:, :3, 3], rotation=T[:, :3, :3]),
        ),
    )


def as_positions(q: np.ndarray, T: np.ndarray) -> Measurements:
    return Measurements(
        q=q, observations=(Observations(quantity=Observed.POSITION, rows=np.arange(len(q)), position=T[:, :3, 3]),)
    )


def outcome(scene: Scene, measurements: Measurements, fresh: np.ndarray) -> tuple[str, float, float, float]:
    """Verdict (or the refusal), error over prediction, error after and before on fresh poses [mm]."""
    try:
        found = calibrate(scene.robot, measurements, folds=3)
    except ArmidError as error:
        return str(error), np.nan, np.nan, np.nan
    fit, true = found.fit, scene.poses(fresh)
    after, before = (away(fit, s.values, fresh, true) for s in (fit.after, fit.before))
    there = Measurements(q=fresh, observations=(Observations(quantity=Observed.POINT, rows=np.arange(len(fresh))),))
    sigma = position_uncertainty(fit, fit.after.covariance, there)
    return str(found.advice), after / (MEAN_OVER_RMS * np.sqrt((sigma**2).mean())), 1e3 * after, 1e3 * before


def away(fit, values: np.ndarray, q: np.ndarray, true: np.ndarray) -> float:
    """Mean distance between the fitted and the true tool [m]."""
    T = predicted_poses(fit.model, values, q, setup="sensor", target="tool")
    return float(np.linalg.norm((T - true)[:, :3, 3], axis=1).mean())


def frozen(*joints: int, width: float = 0.0) -> Callable:
    def change(scene: Scene, q: np.ndarray) -> np.ndarray:
        q = np.array(q)
        for j in joints:
            q[:, j] = 0.4 + width * scene.rng.normal(size=len(q))
        return q

    return change


def near_one_pose(scene: Scene, q: np.ndarray) -> np.ndarray:
    return 0.3 + 0.05 * q


def bad_rows(scene: Scene, T: np.ndarray) -> np.ndarray:
    T = np.array(T)
    k = scene.rng.permutation(len(T))[: max(1, len(T) // 20)]
    T[k, :3, 3] += 0.1 * scene.rng.normal(size=(len(k), 3))
    return T


def copied(scene: Scene, T: np.ndarray) -> np.ndarray:
    T = np.array(T)
    T[5], T[17] = T[4], T[4]
    return T


def good_and_hard() -> None:
    """Every line: draws, root mean square of error over prediction, error after and before, verdicts."""
    print(f"{'arm':14s} {'recording':26s} {'ratio':>6s} {'after':>8s} {'before':>8s} mm   verdicts")
    arms = [
        *map(load_robot, CATALOGUE),
        scara(),
        gantry(),
        *(random_arm(n, s) for n in (4, 5, 6, 7, 8) for s in (0, 1)),
    ]
    for robot in arms:
        for name, count, how in (("30 poses", 30, as_poses), ("30 positions", 30, as_positions)):
            line(robot, name, count, how)
    ur, panda = load_robot("ur10e"), load_robot("panda")
    for robot in (ur, panda):
        for name, options in {
            "a joint frozen": {"move": frozen(3)},
            "a joint nearly frozen": {"move": frozen(2, width=1e-3)},
            "all near one pose": {"move": near_one_pose},
            "5 % bad rows": {"spoil": bad_rows, "count": 60},
            "copied rows": {"spoil": copied},
            "no deviation": {"size": 0.0},
            "five times the deviation": {"size": 1.0},
            "8 poses": {"count": 8},
        }.items():
            count = options.pop("count", 40)
            line(robot, name, count, as_poses, **options)


def line(
    robot: Robot, name: str, count: int, how: Callable, *, size=0.2, move=None, spoil=None, draws: int = 3
) -> None:
    rows = []
    for draw in range(draws):
        scene = Scene(robot=robot, capsules=np.random.default_rng((draw, count)), boxes=size)
        q, fresh = scene.configurations(count), scene.configurations(200)
        if move is not None:
            q, fresh = move(scene, q), move(scene, fresh)
        T = scene.seen(q)
        rows.append(outcome(scene, how(q, T if spoil is None else spoil(scene, T)), fresh))
    ratio = np.sqrt(np.mean([r[1] ** 2 for r in rows]))
    verdicts = {v: [r[0] for r in rows].count(v) for v in dict.fromkeys(r[0] for r in rows)}
    kept = all(r[0] != Advice.TRUSTED for r in rows)
    mark = " " if (ratio < 1.5 and np.mean([r[2] - r[3] for r in rows]) < 0) or kept else "*"
    told = ", ".join(f"{n} {v}" for v, n in verdicts.items())
    after, before = (np.mean([r[k] for r in rows]) for k in (2, 3))
    print(f"{robot.name:14s} {name:26s} {ratio:6.2f} {after:8.3f} {before:8.3f}   {mark} {told}")


def misread() -> None:
    """Every line: how many of the arms were refused with the cause that was planted."""
    print("\nmisread as                         named / arms")
    cases: dict[str, tuple[Callable, str]] = {
        "degrees": (lambda q, T: as_poses(np.degrees(q), T), "degrees"),
        "millimetres": (lambda q, T: as_poses(q, moved(T, 1e3 * T[:, :3, 3])), "millimetres"),
        "quaternion x y z w": (lambda q, T: as_poses(q, rolled(T)), "x y z w"),
        "Euler ZYX for xyz": (lambda q, T: as_euler(q, T, "ZYX"), "euler-ZYX"),
        "Euler zyx for xyz": (lambda q, T: as_euler(q, T, "zyx"), "euler-zyx"),
        "Euler ZYZ for xyz": (lambda q, T: as_euler(q, T, "ZYZ"), "euler-ZYZ"),
        "sensor on the hand": (lambda q, T: as_poses(q, inverse(T)), "--sensor hand"),
        "first two joints swapped": (lambda q, T: as_poses(q[:, [1, 0, *range(2, q.shape[1])]], T), "swapped"),
        "second joint flipped": (lambda q, T: as_poses(q * (1 - 2 * np.eye(q.shape[1])[1]), T), "opposite sign"),
        "second joint 90 deg off": (lambda q, T: as_poses(q + np.pi / 2 * np.eye(q.shape[1])[1], T), "another zero"),
        "joints from the tip": (lambda q, T: as_poses(q[:, ::-1], T), "from the tip to the base"),
        "rows of another run": (lambda q, T: as_poses(q[::-1], T), "right robot"),
    }
    arms = [*map(load_robot, CATALOGUE[:6]), random_arm(6, 2), random_arm(7, 2)]
    for name, (make, words) in cases.items():
        wrong = []
        for k, robot in enumerate(arms):
            scene = Scene(robot=robot, capsules=np.random.default_rng((k, 99)))
            q = scene.configurations(30)
            said = outcome(scene, make(q, scene.seen(q)), q)[0]
            if words not in said:
                wrong.append(f"{robot.name}: {said[:120]}")
        print(f"{name:34s} {len(arms) - len(wrong)} / {len(arms)}  {'; '.join(wrong)}")


def moved(T: np.ndarray, p: np.ndarray) -> np.ndarray:
    T = np.array(T)
    T[:, :3, 3] = p
    return T


def rolled(T: np.ndarray) -> np.ndarray:
    """Quaternions written x y z w and read w x y z."""
    T = np.array(T)
    xyzw = Rotation.from_matrix(T[:, :3, :3]).as_quat()
    T[:, :3, :3] = Rotation.from_quat(np.roll(xyzw, -1, axis=1)).as_matrix()
    return T


def as_euler(q: np.ndarray, T: np.ndarray, order: str) -> Measurements:
    """Angles written in one convention and read about fixed axes x, y, z."""
    angles = Rotation.from_matrix(T[:, :3, :3]).as_euler(order)
    wrong = Rotation.from_euler("xyz", angles).as_matrix()
    return Measurements(
        q=q,
        observations=(
            Observations(
                quantity=Observed.POSE, rows=np.arange(len(q)), position=T[:, :3, 3], rotation=wrong, numbers=angles
            ),
        ),
    )


def main() -> None:
    good_and_hard()
    misread()


if __name__ == "__main__":
    main()

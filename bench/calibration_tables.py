"""Tables of `bench calibration` on recordings and on simulated arms with errors that no model has."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from armid.calibration.calibrate import calibrate
from armid.calibration.choose import choose, default_candidates
from armid.calibration.fit import FitSettings, fit, fit_candidates, refit
from armid.calibration.frame_changes import frame_changes
from armid.calibration.hold_out import cross_validate, folds_of, mean_deviation, table_of
from armid.calibration.inputs import calibration_inputs
from armid.calibration.intervals import spread_of
from armid.calibration.noise import InstrumentNoise, VectorLoss
from armid.calibration.solve import SolverSettings, linearise, posterior, solve, step
from armid.calibration.start import ALL, start_frames
from armid.calibration.tool_error import by_group, error_table
from armid.calibration.words import SetupSharing
from armid.estimation.quantiles import student_quantile
from armid.kernels.dynamics import gravity
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.measurement import Measurements, Observations, Observed
from armid.kinematics.model import ErrorModel, FrameModel
from armid.kinematics.parameter import Tolerances
from armid.kinematics.rotations import rigid, rotation_exp
from armid.parameters.space import OwnerKind
from armid.robot.load import load_robot
from armid.rows.pose_residual import residuals

ROBOTS = Path(__file__).parent.parent / "docs" / "robots"
RECORDINGS = {
    "ur10 A": (ROBOTS / "ur10.yaml", "ur10_ipa/series_A.csv"),
    "ur10 B": (ROBOTS / "ur10.yaml", "ur10_ipa/series_B.csv"),
    "irb120": (ROBOTS / "irb120.yaml", "irb120_wu2015/calibration.csv"),
    "talos": ("talos_leftarm/talos_full_v2.urdf", "talos_leftarm/talos_left_arm_02_10_contact.csv"),
    "fr3": (ROBOTS / "fr3.yaml", "fr3_d405/camera_poses.csv"),
    "fanuc": (ROBOTS / "fanuc-r2000ic-165f.yaml", "fanuc_r2000ic_165f/three_smr.csv"),
    "ur10 camera": ("ur10_camera_figaroh/ur10_robot.urdf", "ur10_camera_figaroh/calibration.csv"),
}


def recordings(*names):
    """Arms with their recordings, those that are there."""
    root = Path(os.environ.get("ARMID_DATA", "../shared/data")) / "kinematics"
    for name in names or RECORDINGS:
        robot, poses = RECORDINGS[name]
        robot = root / robot if isinstance(robot, str) else robot
        if not (root / poses).is_file():
            print(f"  {name}: no recording at {root / poses}")
            continue
        found = calibration_inputs(
            robot, root / poses, None, mapping=None, setups=SetupSharing.AUTO, base=None, tip=None
        )
        yield name, found.robot, found.train


def held_out_table(*, quick: bool) -> None:
    print("held-out mean [mm]: nominal links, geometry, chosen model, chosen model with blocked folds; advice")
    for name, arm, measured in recordings(*(["irb120", "fr3"] if quick else [])):
        found = calibrate(arm, measured)
        held, blocked = found.held_out, found.held_out_blocked
        numbers = [held.before, found.held_out_geometric.after, held.after, *([blocked.after] if blocked else [])]
        told = " ".join(f"{1e3 * table.main[0].mean():8.4f}" for table in numbers)
        print(f"  {name:12s} {told}   {found.advice}")


def _score(model, values, test):
    none = np.zeros(len(values), dtype=bool)
    return 1e3 * error_table(residuals(model, values, test, wanted=none)).position.mean()


def plain_map(arm, measured, noise):
    """A plain Gauss-Newton fit: priors of 1 mm and 2 mrad, and the noise that the whole recording shows."""
    errors = ErrorModel(tolerances=Tolerances(length=1e-3, angle=2e-3, offset=2e-3))
    setups, targets = start_frames(arm, measured).models(measured)
    model = kinematic_model(arm, errors, setups=setups, targets=targets)
    values, everything = np.zeros(len(model.parameters)), np.ones(len(model.parameters), dtype=bool)
    for _ in range(20):
        at = linearise(model, values, measured, noise, VectorLoss(0.0), everything)
        values = values + step(posterior(at), 0.0)
    return model, values


MOST_TESTED = 1500
"""Configurations on which few are tested; half of them in shorter recordings."""

DRAWS = {"ur10 A": 60}
"""Draws of few configurations, where twenty do not tell two fits apart."""


def few_table(*, quick: bool) -> None:
    """Errors on the other configurations of a recording, of fits to few of them."""
    print("mean position error on other poses [mm]: frames only, armid, plain MAP fit of 1 mm and 2 mrad")
    print(
        "median over draws; mean; armid minus plain, mean and its standard error; share of draws where armid is better"
    )
    for name, arm, measured in recordings("ur10 A", *([] if quick else ["ur10 B", "irb120", "fr3"])):
        rng = np.random.default_rng(0)
        order = rng.permutation(np.unique(measured.group))
        tested = min(MOST_TESTED, len(order) // 2)
        test, pool = measured.subset(np.isin(measured.group, order[:tested])), order[tested:]
        noise = fit(arm, measured.subset(np.isin(measured.group, order[:300]))).after.noise
        for count in (n for n in (8, 12, 20) if n <= len(pool)):
            rows = []
            for _ in range(5 if quick else DRAWS.get(name, 20)):
                m = measured.subset(np.isin(measured.group, rng.choice(pool, count, replace=False)))
                ours = fit(arm, m)
                model, values = plain_map(arm, m, noise)
                found = (ours.model, ours.before.values), (ours.model, ours.after.values), (model, values)
                rows.append([_score(*each, test) for each in found])
            told = ["".join(f"{x:8.3f}" for x in over(rows, axis=0)) for over in (np.median, np.mean)]
            apart = np.array([ours - plain for _, ours, plain in rows])
            paired = (
                f"{apart.mean():+.3f} +- {apart.std(ddof=1) / np.sqrt(len(apart)):.3f}   {np.mean(apart < 0.0):.2f}"
            )
            print(f"  {name:8s} {count:3d} random poses {told[0]}   {told[1]}   {paired}")


CUTS = {
    "rows": lambda m: m.group < np.median(m.group),
    "base angle": lambda m: m.q[:, 0] < np.median(m.q[:, 0]),
    "elbow angle": lambda m: m.q[:, 2] < np.median(m.q[:, 2]),
    "random": lambda m: np.random.default_rng(0).random(int(m.group.max()) + 1)[m.group] < 0.5,
}


def halves_table(*, quick: bool) -> None:
    print("difference of link parameters between halves, rms in stated deviations: independent residuals, ours")
    for name, arm, measured in recordings(*(["fr3"] if quick else ["ur10 A", "ur10 B", "fr3", "talos", "irb120"])):
        for number, errors in enumerate(default_candidates(arm)):
            whole = fit(arm, measured, errors)
            told = [f"{cut} {_apart(whole, measured, rule)}" for cut, rule in CUTS.items()]
            print(f"  {name:8s} {('geometry', 'all terms')[number]:10s} {', '.join(told)}")


def _apart(whole, measured, cut) -> str:
    first = cut(measured)
    parts = [(refit(whole, m), m) for m in (measured.subset(first), measured.subset(~first))]
    kept = whole.model.owned(OwnerKind.LINK)
    for found, _ in parts:
        kept = kept & found.after.selection.kept
    if not kept.any():
        return "-"
    apart = (parts[0][0].after.values - parts[1][0].after.values)[kept]
    spreads = [spread_of(found, m) for found, m in parts]
    out = []
    for covariances in ([s.plain for s in spreads], [s.covariance() for s in spreads]):
        sigma = np.sqrt(sum(np.diag(C) for C in covariances))[kept]
        out.append(float(np.sqrt(np.mean((apart / sigma) ** 2))))
    return f"{out[0]:.1f} {out[1]:.2f}"


def coverage_table(*, quick: bool) -> None:
    """Truth inside 95 % intervals, over all arm parameters."""
    print("coverage of 95 % intervals and rms z: independent residuals, ours")
    for arm, count in (("ur10e", 60), ("ur10e", 250), ("panda", 100)):
        for kind in KINDS:
            z = [_deviations(arm, seed, kind, count) for seed in range(3 if quick else 10)]
            plain, wide = (np.concatenate(x) for x in zip(*z, strict=True))
            told = [f"{np.mean(np.abs(x) < 1.96):.2f} {np.sqrt(np.mean(x**2)):.2f}" for x in (plain, wide)]
            print(f"  {arm:6s} {count:4d} poses, unmodelled {kind:12s} {told[0]}   {told[1]}")


KINDS = ("nothing", "gear errors", "sag", "drift", "all three")


class RealArm:
    """An arm with planted errors, seen with noise, and with what no model has: gear errors, sag, a sensor that drifts."""

    def __init__(self, name, seed, kind):
        self.rng = rng = np.random.default_rng(seed)
        self.kind, self.arm = kind, load_robot(name)
        Z = rigid(rotation_exp(rng.normal(size=3)), 2.0 * rng.normal(size=3))
        X = rigid(rotation_exp(rng.normal(size=3)), 0.1 * rng.normal(size=3))
        frames = {"sensor": FrameModel.around(Z, ALL, outside=True)}, {"tool": FrameModel.around(X, ALL, outside=False)}
        self.model = kinematic_model(self.arm, ErrorModel(), setups=frames[0], targets=frames[1])
        own, n = self.model.owned(OwnerKind.LINK, OwnerKind.JOINT), self.arm.n_joints
        self.truth = np.where(own, 0.15 * self.model.tolerances * rng.normal(size=len(own)), 0.0)
        self.size, self.phase = 3e-4 * rng.normal(size=(3, n)), rng.uniform(0.0, 2 * np.pi, (3, n))
        self.soft = -3e-6 * np.abs(rng.normal(size=n))
        self.drift = None

    def has(self, kind):
        return self.kind in (kind, "all three")

    def seen(self, n, noise=1e-4, *, clean=False, shuffled=False, quantity=Observed.POSE):
        """Measurements at random configurations, along the drift or at random times of it."""
        rng = self.rng
        q = rng.uniform(-1.5, 1.5, (n, self.arm.n_joints))
        real = np.array(q)
        if not clean and self.has("gear errors"):
            real += sum(self.size[h] * np.sin((h + 2) * q + self.phase[h]) for h in range(3))
        if not clean and self.has("sag"):
            real += self.soft * gravity(self.arm, q)
        T = predicted_poses(self.model, self.truth, real, setup="sensor", target="tool")
        if not clean and self.has("drift"):
            self.drift = self.drift or tuple(3e-4 * rng.normal(size=3) for _ in range(2))
            along = rng.permutation(np.linspace(0.0, 1.0, n)) if shuffled else np.linspace(0.0, 1.0, n)
            away, turn = (np.outer(along, x) for x in self.drift)
            T = rigid(rotation_exp(turn), away) @ T
        p = T[:, :3, 3] + noise * rng.normal(size=(n, 3))
        R = rotation_exp(noise * rng.normal(size=(n, 3))) @ T[:, :3, :3]
        seen = {"rotation": R} if quantity is Observed.POSE else {}
        return Measurements(q=q, observations=(Observations(quantity=quantity, rows=np.arange(n), position=p, **seen),))


def _deviations(name, seed, kind, count):
    """Found minus true arm parameters in stated deviations; the truth is what poses without errors give the same parameters."""
    real = RealArm(name, seed, kind)
    m = real.seen(count)
    found = fit(real.arm, m)
    exact = solve(
        found.model,
        real.seen(300, 1e-8, clean=True),
        start=found.after.values,
        noise=InstrumentNoise(dict.fromkeys(found.after.noise.model, 1e-6)),
        allowed=found.after.selection.kept,
        settings=replace(SolverSettings(), estimate_noise=False),
    )
    spread = spread_of(found, m)
    kept = found.model.owned(OwnerKind.LINK, OwnerKind.JOINT) & found.after.selection.kept & exact.selection.kept
    apart = (found.after.values - exact.values)[kept]
    return tuple(apart / np.sqrt(np.diag(C))[kept] for C in (spread.plain, spread.covariance()))


def changes_table(*, quick: bool) -> None:
    """Trackers that move by little, and recordings where nothing moved."""
    print(
        "tracker moves by so many times its noise half way: share found, with the row to one; accused where nothing moved"
    )
    for arm, count, quantity in (("iiwa14", 40, Observed.POSITION), ("ur10e", 40, Observed.POSE)):
        for kind in ("nothing", "gear errors", "sag"):
            told = [_changes(arm, kind, count, quantity, size, 5 if quick else 20) for size in (3, 5, 10, 0)]
            shares = "   ".join(f"{size:2d}: {a:.2f} {b:.2f}" for size, (a, b) in zip((3, 5, 10), told, strict=False))
            print(
                f"  {arm:7s} {count:3d} {quantity}s, unmodelled {kind:12s} {shares}   nothing: {told[-1][0]:.2f}",
                flush=True,
            )


def _changes(name, kind, count, quantity, size, draws):
    """Share of recordings where a change is found, and where its row is right to one."""
    found, right, noise = 0, 0, 1e-4
    for seed in range(draws):
        real = RealArm(name, seed, kind)
        m = real.seen(count, noise, quantity=quantity)
        by = real.rng.normal(size=3)
        (o,) = m.observations
        after = np.arange(count)[:, np.newaxis] >= count // 2
        moved = replace(o, position=o.position + after * (size * noise * by / np.linalg.norm(by)))
        m = replace(m, observations=(moved,))
        changes = frame_changes(fit(real.arm, m), m)
        found += bool(changes)
        right += any(abs(int(x.label.split()[1]) - count // 2 - 1) <= 1 for x in changes)
    return found / draws, right / draws


FRESH = 2000
"""Configurations that the true error is taken over, where an arm can be asked for as many."""


def stated_table(*, quick: bool) -> None:
    """The held-out error that a calibration states beside its error at configurations it never saw, frames as they were."""
    print(
        "stated held-out mean over true one: mean ratio; scatter (foreseen by the interval); how often it holds the true one"
    )
    draws = 4 if quick else 12
    for name, count, quantity, kinds in (
        ("ur10e", 8, Observed.POSE, KINDS[:2]),
        ("panda", 12, Observed.POSE, KINDS[:2]),
        ("ur10e", 20, Observed.POSE, KINDS),
        ("ur10e", 60, Observed.POSITION, KINDS),
        ("panda", 60, Observed.POSE, KINDS),
    ):
        for kind in kinds:
            pairs = [_stated_and_true(RealArm(name, seed, kind), count, quantity) for seed in range(draws)]
            _print_stated(f"{name:7s} {count:3d} {quantity}s, unmodelled {kind}", pairs)
    for name, count in {"irb120": 25, "talos": 40, "ur10 B": 60, "fr3": 60}.items():
        for found, arm, measured in recordings(name):
            pairs = [_stated_of_part(arm, measured, count, seed) for seed in range(draws)]
            _print_stated(f"{found:7s} {count:3d} random poses, the others as truth", pairs)


def _stated_and_true(real, count, quantity):
    found = real.seen(count, quantity=quantity)
    return _stated(real.arm, found, real.seen(FRESH, shuffled=True, quantity=quantity))


def _stated_of_part(arm, measured, count, seed):
    order = np.random.default_rng(seed).permutation(np.unique(measured.group))
    parts = (np.isin(measured.group, x) for x in (order[:count], order[count : count + 600]))
    return _stated(arm, *(measured.subset(part) for part in parts))


def _stated(arm, train, fresh):
    """Stated mean, its deviation, the mean on other rows and the deviation of that."""
    candidates = default_candidates(arm)
    fits = list(fit_candidates(arm, train, candidates, settings=FitSettings(), start=None))
    how, parts = folds_of(train, np.random.default_rng(0))
    held, _ = cross_validate(fits, choose, train, parts, how)
    best = fits[choose(fits, train)]
    table = table_of(best, best.after.values, fresh)
    return held, table.main[0].mean(), mean_deviation(by_group(*table.main, fresh))


def _print_stated(name, pairs) -> None:
    ratio = np.log([held.after.main[0].mean() / true for held, true, _ in pairs])
    inside = []
    for held, true, deviation in pairs:
        half = student_quantile(0.975, held.groups - 1) * np.hypot(held.deviation, deviation)
        inside.append(abs(held.after.main[0].mean() - true) < half)
    chance = np.sqrt(np.mean([(held.deviation**2 + d**2) / true**2 for held, true, d in pairs]))
    own = ratio.std(ddof=1)
    print(
        f"  {name:52s} {np.exp(ratio.mean()):.2f} +- {own / np.sqrt(len(ratio)):.2f}   {own:.2f} ({chance:.2f})   "
        f"{np.mean(inside):.2f}",
        flush=True,
    )

"""Tables of `bench calibration` on recordings and on simulated arms with errors that no model has."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from armid.calibration.calibrate import calibrate
from armid.calibration.choose import default_candidates
from armid.calibration.fit import fit, refit
from armid.calibration.inputs import calibration_inputs
from armid.calibration.intervals import spread_of
from armid.calibration.noise import InstrumentNoise, VectorLoss
from armid.calibration.solve import SolverSettings, linearise, posterior, solve, step
from armid.calibration.start import ALL, start_frames
from armid.calibration.tool_error import error_table
from armid.calibration.words import SetupSharing
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
            for _ in range(5 if quick else 20):
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
        for kind in ("nothing", "gear errors", "sag", "drift", "all three"):
            z = [_deviations(arm, seed, kind, count) for seed in range(3 if quick else 10)]
            plain, wide = (np.concatenate(x) for x in zip(*z, strict=True))
            told = [f"{np.mean(np.abs(x) < 1.96):.2f} {np.sqrt(np.mean(x**2)):.2f}" for x in (plain, wide)]
            print(f"  {arm:6s} {count:4d} poses, unmodelled {kind:12s} {told[0]}   {told[1]}")


def _deviations(name, seed, kind, count):
    """Found minus true arm parameters in stated deviations; the truth is what poses without errors give the same parameters."""
    rng = np.random.default_rng(seed)
    arm = load_robot(name)
    Z = rigid(rotation_exp(rng.normal(size=3)), 2.0 * rng.normal(size=3))
    X = rigid(rotation_exp(rng.normal(size=3)), 0.1 * rng.normal(size=3))
    frames = {"sensor": FrameModel.around(Z, ALL, outside=True)}, {"tool": FrameModel.around(X, ALL, outside=False)}
    model = kinematic_model(arm, ErrorModel(), setups=frames[0], targets=frames[1])
    own = model.owned(OwnerKind.LINK, OwnerKind.JOINT)
    truth = np.where(own, 0.15 * model.tolerances * rng.normal(size=len(own)), 0.0)
    size, phase = 3e-4 * rng.normal(size=(3, arm.n_joints)), rng.uniform(0.0, 2 * np.pi, (3, arm.n_joints))
    soft = -3e-6 * np.abs(rng.normal(size=arm.n_joints))

    def seen(n, noise, *, clean):
        q = rng.uniform(-1.5, 1.5, (n, arm.n_joints))
        real = np.array(q)
        if not clean and kind in ("gear errors", "all three"):
            real += sum(size[h] * np.sin((h + 2) * q + phase[h]) for h in range(3))
        if not clean and kind in ("sag", "all three"):
            real += soft * gravity(arm, q)
        T = predicted_poses(model, truth, real, setup="sensor", target="tool")
        if not clean and kind in ("drift", "all three"):
            along = np.linspace(0.0, 1.0, n)
            away, turn = (np.outer(along, 3e-4 * rng.normal(size=3)) for _ in range(2))
            T = rigid(rotation_exp(turn), away) @ T
        p = T[:, :3, 3] + noise * rng.normal(size=(n, 3))
        R = rotation_exp(noise * rng.normal(size=(n, 3))) @ T[:, :3, :3]
        o = Observations(quantity=Observed.POSE, rows=np.arange(n), position=p, rotation=R)
        return Measurements(q=q, observations=(o,))

    m = seen(count, 1e-4, clean=False)
    found = fit(arm, m)
    exact = solve(
        found.model,
        seen(300, 1e-8, clean=True),
        start=found.after.values,
        noise=InstrumentNoise(dict.fromkeys(found.after.noise.model, 1e-6)),
        allowed=found.after.selection.kept,
        settings=replace(SolverSettings(), estimate_noise=False),
    )
    spread = spread_of(found, m)
    kept = found.model.owned(OwnerKind.LINK, OwnerKind.JOINT) & found.after.selection.kept & exact.selection.kept
    apart = (found.after.values - exact.values)[kept]
    return tuple(apart / np.sqrt(np.diag(C))[kept] for C in (spread.plain, spread.covariance()))

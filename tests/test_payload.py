"""What an arm carries: closed forms, the embedded arm, poses at rest, on-line, known grippers, a real pair of recordings."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from armid.errors import InputError, UnknownNameError
from armid.estimation.estimate import Estimate
from armid.estimation.recording import runs_of
from armid.estimation.recursive.forgetting import Forgetting
from armid.estimation.run import Run, information_of
from armid.identifiability.structure import structural_base
from armid.identification.gains import DriveGainSearch
from armid.identification.sensors import Sized
from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.evaluate import evaluate_rows
from armid.logs.conditioning import Conditioning, condition
from armid.logs.log import Channel, Log
from armid.logs.read import ReadOptions, unchecked_log
from armid.outcome import Check
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import from_centre_of_mass, six, to_centre_of_mass, transformed
from armid.payload.checks import arm_check, clock_check, load_checks, synchronisation_check, torque_check
from armid.payload.formats import franka_set_load, kuka_load_data, ur_set_target_payload
from armid.payload.identify import known_body
from armid.payload.online import OnlinePayload
from armid.payload.payload import Payload, jacobian
from armid.payload.search import COLUMNS, Arm, PayloadSearch
from armid.payload.static import Rest, poses_at_rest, static_payload
from armid.payload.synchronisation import out_of_step, torque_lag
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.imperfections import Family, Imperfection
from armid.rows.torque import TorqueRows
from support.outcomes import failing
from support.realdata import ROOT, real_data

ROBOT = load_robot("iiwa14")
EFFECTS = Effects(viscous=True, coulomb=True)
LOAD = from_centre_of_mass(1.0, [0.02, -0.015, 0.13], np.diag([0.004, 0.005, 0.003]))
"""In the last link's frame: 1 kg."""


def arm(deviation: float = 1e-6) -> Arm:
    """The arm known exactly, up to a stated doubt."""
    source = TorqueRows(ROBOT, EFFECTS)
    base = structural_base(source)
    standard = np.array([true_value(name) for name in source.columns])
    sigma = dict.fromkeys(source.channels, 0.05)
    covariance = deviation**2 * np.eye(len(base))
    return Arm(
        robot=ROBOT,
        estimate=Estimate(
            base=base,
            units=("",) * len(base),
            values=base.values(standard),
            covariance=covariance,
            covariance_kind="iid",
            sigma=sigma,
            method="known",
        ),
    )


def true_value(name: str) -> float:
    owner, quantity = name.split(".")
    index = int(owner[4:] if owner.startswith("link") else owner[5:]) - 1
    if owner.startswith("link"):
        order = ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
        return float(ROBOT.inertial[10 * index + order.index(quantity)])
    return float(getattr(ROBOT.joints[index].drive, quantity))


def states(count: int, speed: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(count) / 100.0
    w, phase = rng.uniform(0.5, 1.0, (2, 3, 7))
    w = w * speed
    angle = t[:, np.newaxis, np.newaxis] * w + 6.0 * phase
    return np.hstack([(0.35 * f).sum(axis=1) for f in (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle))])


def loaded_torque(x: np.ndarray, noise: float, seed: int = 1) -> np.ndarray:
    inertial = np.array(ROBOT.inertial)
    inertial[-10:] += LOAD
    clean = inverse_dynamics(ROBOT, *np.split(x, 3, axis=1), inertial=inertial, drives=True)
    clean -= ROBOT.drive("rotor_inertia") * x[:, 14:] + ROBOT.drive("offset")
    return clean + noise * np.random.default_rng(seed).normal(size=clean.shape)


def loaded_run(count: int = 3000, speed: float = 3.0, noise: float = 0.05) -> Run:
    x = states(count, speed)
    source = TorqueRows(ROBOT, replace(EFFECTS, payload=PayloadRuns.LOADED))
    return Run(name="loaded", source=source, inputs=x, y=loaded_torque(x, noise), rate=100.0)


def in_flange(ten: np.ndarray) -> np.ndarray:
    return transformed(ten, np.linalg.inv(ROBOT.tip.T_link_frame))


def test_derivatives_of_mass_centre_and_inertia() -> None:
    ten = LOAD

    def split(values: np.ndarray) -> np.ndarray:
        mass, centre, inertia = to_centre_of_mass(values)
        return np.concatenate([[mass], centre, six(inertia)])

    h = 1e-6
    numeric = np.array([(split(ten + h * e) - split(ten - h * e)) / (2 * h) for e in np.eye(10)]).T
    assert np.allclose(jacobian(ten), numeric, atol=1e-6)


def test_load_of_a_moving_arm_with_joint_torque_sensors() -> None:
    """1 kg: mass within 0.5 %, centre within 2 mm; the intervals hold the truth; a possible body."""
    found = PayloadSearch().fit(arm(), [loaded_run()])
    truth = to_centre_of_mass(in_flange(LOAD))
    assert found.frame == ROBOT.tip.name
    assert found.mass == pytest.approx(1.0, abs=0.005)
    assert np.abs(found.centre_of_mass - truth[1]).max() < 2e-3
    assert found.separated
    assert np.abs(found.inertia - truth[2]).max() < 2e-3
    deviation = found.standard_deviations
    assert abs(found.mass - 1.0) < 4.0 * float(deviation["mass"])  # type: ignore[arg-type]
    assert (np.abs(found.inertia - truth[2]) < 5.0 * np.asarray(deviation["inertia"])).all()
    assert np.linalg.eigvalsh(found.inertia)[0] > 0.0


def test_the_arms_own_doubt_widens_the_intervals() -> None:
    sure, doubtful = (PayloadSearch().fit(arm(d), [loaded_run()]) for d in (1e-6, 1e-2))
    assert doubtful.covariance[0, 0] > 4.0 * sure.covariance[0, 0]


def test_a_slow_motion_does_not_separate_inertia_and_says_so() -> None:
    found = PayloadSearch().fit(arm(), [loaded_run(800, speed=0.15)])
    assert not found.separated
    assert [n.code for n in found.notes] == ["inertia-not-separated"]
    assert found.mass == pytest.approx(1.0, abs=0.02)
    assert np.isinf(np.asarray(found.standard_deviations["inertia"])).all()


def test_a_few_poses_at_rest_give_mass_and_centre() -> None:
    q = np.random.default_rng(3).uniform(-1.2, 1.2, size=(12, 7))
    x = np.hstack([q, np.zeros((12, 14))])
    found = static_payload(arm(), EFFECTS, Rest(q, loaded_torque(x, 0.02)))
    truth = to_centre_of_mass(in_flange(LOAD))
    assert found.mass == pytest.approx(1.0, abs=0.03)
    assert np.abs(found.centre_of_mass - truth[1]).max() < 0.01
    assert [n.code for n in found.notes] == ["inertia-not-measured"]


def test_poses_at_rest_are_found_in_a_log() -> None:
    t = np.arange(0.0, 6.0, 0.01)
    way = np.clip(np.floor(t) % 2 + 0 * t, 0, 1)
    ramp = np.where(np.floor(t) % 2 == 0, 0.0, np.clip(t % 1.0, 0.0, 1.0)) + np.floor(t / 2)
    q = np.tile(ramp[:, np.newaxis], 7)
    torque = np.tile((10.0 * np.floor(t / 2))[:, np.newaxis], 7)
    log = Log(
        name="steps",
        joints=ROBOT.joint_names,
        time=t,
        channels={Channel.POSITION: q, Channel.LINK_TORQUE: torque},
        named=True,
    )
    rest = poses_at_rest(log, Channel.LINK_TORQUE)
    assert len(rest.q) == 3
    assert np.allclose(rest.q[:, 0], [0.0, 1.0, 2.0], atol=1e-6)
    assert np.allclose(rest.torque[:, 0], [0.0, 10.0, 20.0])
    moving = Log(
        name="m",
        joints=ROBOT.joint_names,
        time=t,
        channels={Channel.POSITION: q * 0 + t[:, np.newaxis], Channel.LINK_TORQUE: torque},
        named=True,
    )
    with pytest.raises(InputError, match="at rest"):
        poses_at_rest(moving, Channel.LINK_TORQUE)
    assert way.size == t.size


def test_poses_that_cannot_tell_mass_from_centre_are_refused() -> None:
    q = np.zeros((5, 7))
    with pytest.raises(InputError, match="tilt the flange"):
        static_payload(arm(), EFFECTS, Rest(q, np.zeros((5, 7))))
    with pytest.raises(InputError, match="at least two poses"):
        static_payload(arm(), EFFECTS, Rest(q[:1], np.zeros((1, 7))))


def test_on_line_a_grasp_is_noticed_and_the_load_learnt() -> None:
    x = states(3500, 3.0)
    y = loaded_torque(x, 0.05)
    empty = (
        y[:1500]
        - evaluate_rows(TorqueRows(ROBOT, replace(EFFECTS, payload=PayloadRuns.LOADED)), x[:1500])[:, :, -10:] @ LOAD
    )
    estimator = OnlinePayload(arm(), EFFECTS, rate=100.0, forgetting=Forgetting(20.0))
    changes = [k for k in range(3500) if estimator.update(x[k], empty[k] if k < 1500 else y[k])]
    assert len(changes) == 1
    assert 1500 <= changes[0] < 1530
    found = estimator.payload()
    assert found.mass == pytest.approx(1.0, abs=0.01)
    assert np.abs(found.centre_of_mass - to_centre_of_mass(in_flange(LOAD))[1]).max() < 4e-3


def test_a_known_gripper_is_subtracted() -> None:
    gripper = from_centre_of_mass(0.4, [0.0, 0.0, 0.05], 1e-3 * np.eye(3))
    thing = from_centre_of_mass(1.2, [0.01, 0.0, 0.2], 2e-3 * np.eye(3))
    both = Payload(
        frame="flange", inertial=gripper + thing, covariance=1e-8 * np.eye(10), separated=True, method="known"
    )
    rest = both.without(gripper)
    assert rest.mass == pytest.approx(1.2)
    assert np.allclose(rest.centre_of_mass, [0.01, 0.0, 0.2])
    assert np.allclose(rest.inertia, 2e-3 * np.eye(3), atol=1e-9)
    assert not failing(rest)
    flat = both.without(from_centre_of_mass(0.4, [0.0, 0.0, 0.05], 0.1 * np.eye(3)))
    assert failing(flat) == {"possible-remainder"}
    with pytest.raises(InputError, match=r"only 1\.6 kg is carried"):
        both.without(from_centre_of_mass(2.0, [0, 0, 0], np.eye(3)))
    with pytest.raises(InputError, match="negative"):
        both.without(-gripper)


def test_makers_formats() -> None:
    I = np.diag([0.01, 0.02, 0.03])
    load = Payload(
        frame="flange",
        inertial=from_centre_of_mass(2.0, [0.01, 0.02, 0.03], I),
        covariance=np.eye(10),
        separated=True,
        method="known",
    )
    assert kuka_load_data(load) == (
        "{M 2.000,CM {X 10.0,Y 20.0,Z 30.0,A 0.00,B 0.00,C 0.00},J {X 0.01000,Y 0.02000,Z 0.03000}}"
    )
    assert ur_set_target_payload(load) == "set_target_payload(2.0000, [0.01, 0.02, 0.03], [0.01, 0.02, 0.03, 0, 0, 0])"
    assert franka_set_load(load) == "setLoad(2.0000, {0.01, 0.02, 0.03}, {0.01, 0, 0, 0, 0.02, 0, 0, 0, 0.03})"


def test_makers_formats_rebuild_the_load() -> None:
    """A skew load, read back from each text by the maker's own convention."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 3))
    I = 0.01 * (A @ A.T + np.eye(3))
    load = Payload(
        frame="flange",
        inertial=from_centre_of_mass(2.0, [0.01, -0.02, 0.03], I),
        covariance=np.eye(10),
        separated=True,
        method="known",
    )
    numbers = {
        name: [float(x) for x in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)]
        for name, text in (
            ("kuka", kuka_load_data(load)),
            ("ur", ur_set_target_payload(load)),
            ("franka", franka_set_load(load)),
        )
    }
    m, x, y, z, a, b, c, *moments = numbers["kuka"]
    assert (m, x, y, z) == (2.0, 10.0, -20.0, 30.0)
    # A about Z, B about the new Y, C about the newest X: intrinsic angles.
    R = Rotation.from_euler("ZYX", [a, b, c], degrees=True).as_matrix()
    assert np.allclose(R @ np.diag(moments) @ R.T, I, atol=2e-4)
    xx, yy, zz, xy, xz, yz = numbers["ur"][4:]
    assert np.allclose([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], I, rtol=1e-5)
    assert np.allclose(np.reshape(numbers["franka"][4:], (3, 3), order="F"), I, rtol=1e-5)


def test_equal_moments_have_no_axes_of_their_own() -> None:
    """Round-off beside equal moments is not printed, and turns nothing."""
    skew = 1e-17 * np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0.0]])
    load = Payload(
        frame="flange",
        inertial=from_centre_of_mass(1.0, [0, 0, 0.1], 2e-3 * np.eye(3) + skew),
        covariance=np.eye(10),
        separated=True,
        method="known",
    )
    assert "A 0.00,B 0.00,C 0.00" in kuka_load_data(load)
    assert "e-" not in ur_set_target_payload(load) + franka_set_load(load)


def test_torque_of_the_wrong_sign_is_no_load() -> None:
    run = loaded_run(1500)
    explained = evaluate_rows(run.source, run.inputs) @ arm().over(run.source.space)
    flipped = run.with_measured(2.0 * explained - run.y)
    found = PayloadSearch().fit(arm(), [flipped])
    assert "no-load" in [n.code for n in found.notes]
    assert {"load-present", "load-seen"} <= failing(found)
    assert found.verdict == "untrusted"


def test_effects_of_the_result_are_required() -> None:
    source = TorqueRows(ROBOT, Effects(viscous=True, coulomb=True, offset=True, payload=PayloadRuns.LOADED))
    x = states(50, 1.0)
    run = Run(name="x", source=source, inputs=x, y=loaded_torque(x, 0.0))
    with pytest.raises(InputError, match=r"identified without joint1\.offset"):
        PayloadSearch().fit(arm(), [run])
    bare = Run(name="x", source=TorqueRows(ROBOT, EFFECTS), inputs=x, y=loaded_torque(x, 0.0))
    with pytest.raises(InputError, match="no payload among the parameters"):
        PayloadSearch().fit(arm(), [bare])
    assert COLUMNS[0] == "payload.mass"


def test_torque_out_of_step_is_measured_and_refused() -> None:
    """A lag of the torque comes back to a tenth; all joints agree, so the run is refused."""
    x = states(3000, 3.0)
    t = np.arange(3000) / 100.0
    source = TorqueRows(ROBOT, replace(EFFECTS, payload=PayloadRuns.LOADED))
    clean = loaded_torque(x, 0.0)
    known = np.concatenate([arm().over(source.space)[:-10], LOAD])
    for lag in (0.02, -0.01):
        late = np.stack([np.interp(t - lag, t, column) for column in clean.T], axis=1)
        run = Run(
            name="late",
            source=source,
            inputs=x,
            y=late + 0.02 * np.random.default_rng(0).normal(size=late.shape),
            rate=100.0,
        )
        assert torque_lag([run], known)[0] == pytest.approx(lag, rel=0.1)
        with pytest.raises(InputError, match="late" if lag > 0 else "early"):
            PayloadSearch().fit(arm(), [run])
    assert out_of_step([loaded_run()], known) == 0.0


def test_friction_at_rest_is_noise_of_the_static_load() -> None:
    """Any torque up to the Coulomb level may be held: deviations cover it, over many draws."""
    rng = np.random.default_rng(3)
    coulomb = ROBOT.drive("coulomb")
    scores = []
    for _ in range(12):
        q = rng.uniform(-1.2, 1.2, size=(10, 7))
        torque = loaded_torque(np.hstack([q, np.zeros((10, 14))]), 0.0) + coulomb * rng.uniform(-1.0, 1.0, size=(10, 7))
        found = static_payload(arm(), EFFECTS, Rest(q, torque))
        scores.append((found.mass - 1.0) / float(found.standard_deviations["mass"]))  # type: ignore[arg-type]
    assert np.sqrt(np.mean(np.square(scores))) < 1.6


def test_a_load_too_light_to_feel_is_said() -> None:
    run = loaded_run(1500)
    explained = evaluate_rows(run.source, run.inputs) @ arm().over(run.source.space)
    light = run.with_measured(explained + 0.002 * (run.y - explained))
    found = PayloadSearch().fit(arm(1e-3), [light])
    assert {"load-not-seen", "no-load"} & {n.code for n in found.notes}
    assert "load-seen" in failing(found)


def test_torque_of_more_than_a_rigid_body_is_not_to_be_trusted() -> None:
    """A push that no body makes: a third of the torque is left."""
    run = loaded_run(1500)
    push = 15.0 * np.sin(np.arange(1500) / 7.0)
    found = PayloadSearch().fit(arm(), [run.with_measured(run.y + push[:, np.newaxis])])
    assert "torque-explained" in failing(found)


def test_rows_numbers_and_intervals_of_a_load() -> None:
    found = PayloadSearch().fit(arm(), [loaded_run()])
    assert found.parameters["mass"].value == found.mass
    assert [row.value for row in found.parameters[1:4]] == found.centre_of_mass.tolist()
    assert found.parameters["Ixy"].value == found.inertia[0, 1]
    low, high = found.interval("mass")
    assert low < 1.0 < high
    assert high - low == pytest.approx(2 * 1.96 * float(found.standard_deviations["mass"]), rel=1e-3)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="weight"):
        found.interval("weight")
    assert not failing(found)


def test_what_a_load_is_held_against() -> None:
    """Every check fails for its own reason and for no other."""

    def codes(*checks: Check) -> list[str]:
        return [check.code for check in checks if not check.passed]

    good = {"mass": 1.0, "spread": 0.01, "moved": 0.1, "doubt": 0.1, "limit": 0.5}
    assert not codes(*load_checks(**good))
    assert codes(*load_checks(**good | {"moved": 4.0})) == ["near-possible-body"]
    assert codes(*load_checks(**good | {"doubt": 0.7})) == ["inertia-separated"]
    assert codes(*load_checks(**good | {"spread": 0.5})) == ["load-seen"]
    assert (
        codes(synchronisation_check(0.01), synchronisation_check(-0.02), synchronisation_check(0.001))
        == ["synchronised"] * 2
    )
    assert codes(arm_check(()), arm_check(["unphysical"])) == ["arm-trusted"]


def test_a_known_body_in_words_or_numbers() -> None:
    assert np.array_equal(known_body("0.4,0,0,0.05"), known_body([0.4, 0.0, 0.0, 0.05]))
    ten = known_body([0.4, 0, 0, 0.05, 1e-3, 0, 0, 1e-3, 0, 1e-3])
    assert np.allclose(ten, from_centre_of_mass(0.4, [0, 0, 0.05], 1e-3 * np.eye(3)))
    for bad in ("1,2", "a,b,c,d", [1.0, 2.0, 3.0]):
        with pytest.raises(InputError, match="4 numbers"):
            known_body(bad)


UR_EFFECTS = Effects(
    viscous=True, coulomb=True, offset=True, rotor_inertia=True, torques=TorqueSide.MOTOR, payload=PayloadRuns.BOTH
)


def ur10e_run(robot: Robot, log: Log) -> Run:
    return runs_of(condition(log, robot, Conditioning(cutoff=5.0)), robot, UR_EFFECTS)[0]


def ur10e_arm(robot: Robot, runs: list[Run]) -> tuple[Arm, np.ndarray]:
    """Arm and drive gains from runs with and without 2.805 kg."""
    base = structural_base(TorqueRows(robot, UR_EFFECTS, loaded=True), TorqueRows(robot, UR_EFFECTS, loaded=False))
    gains = DriveGainSearch().fit(information_of(runs), base, {"payload.mass": 2.805})
    scale = float((gains.standard_deviations / gains.values).min())
    return Arm(robot=robot, estimate=gains.estimate, scale_deviation=scale), gains.values


def test_ur10e_weighs_what_it_carries() -> None:
    """2.805 kg: drive gains from the unloaded run and the first half of the loaded one, the mass from the second half.

    The other way round, and from quarters, the deviations hold as well.
    """
    folder = real_data("dynamics", "ur10e")
    robot = load_robot(str(folder / "ur10e.urdf"))
    options = ReadOptions(data_root=real_data())
    mapping = ROOT / "docs" / "mappings"
    unloaded = ur10e_run(robot, unchecked_log(mapping / "ur10e-14harm50sec.yaml", robot, options=options))
    halves = unchecked_log(mapping / "ur10e-14harm50sec-load.yaml", robot, options=options).split(0.5)
    for known, other in (halves, halves[::-1]):
        arm, gains = ur10e_arm(robot, [unloaded, ur10e_run(robot, known)])
        runs = [ur10e_run(robot, log) for log in (other, *other.split(0.5))]
        found = [PayloadSearch().fit(arm, [run.with_measured(run.y * gains)]) for run in runs]
        assert found[0].mass == pytest.approx(2.805, rel=0.03)
        for one in found:
            assert abs(one.mass - 2.805) < 2.0 * float(one.standard_deviations["mass"])  # type: ignore[arg-type]
            assert one.mass == pytest.approx(2.805, rel=0.05)


def test_ur10e_weighs_the_same_three_weeks_earlier(tmp_path: Path) -> None:
    """Another pair of recordings, gains and arm from the later one: the same load, and none when there is none."""
    folder = real_data("dynamics", "ur10e")
    robot = load_robot(str(folder / "ur10e.urdf"))
    options = ReadOptions(data_root=real_data())
    mapping = ROOT / "docs" / "mappings"
    logs = [unchecked_log(mapping / f"ur10e-14harm50sec{x}.yaml", robot, options=options) for x in ("", "-load")]
    arm, gains = ur10e_arm(robot, [ur10e_run(robot, log) for log in logs])
    text = (mapping / "ur10e-14harm50sec-load.yaml").read_text()
    for name, mass in (("load", 2.805), ("unload", 0.0)):
        other = text.replace("ur-20_02_19_14harm50secLoad.csv", f"ur-20_01_31-{name}.csv")
        (tmp_path / f"{name}.yaml").write_text("\n".join(x for x in other.splitlines() if not x.startswith("rows:")))
        run = ur10e_run(robot, unchecked_log(tmp_path / f"{name}.yaml", robot, options=options))
        found = PayloadSearch().fit(arm, [run.with_measured(run.y * gains)])
        assert found.mass == pytest.approx(mass, abs=0.03 * 2.805)
        assert abs(found.mass - mass) < 3.0 * float(found.standard_deviations["mass"])  # type: ignore[arg-type]
        assert ("load-not-seen" in [n.code for n in found.notes]) == (mass == 0.0)


def test_torque_left_over_at_one_joint_is_laid_to_that_joint() -> None:
    alone, spread = torque_check(0.2, {"a": 0.96, "b": 0.04}), torque_check(0.2, {"a": 0.6, "b": 0.4})
    assert not alone.passed
    assert "nearly all of it at a: " in alone.message
    assert "another arm" in spread.message


def test_a_clock_that_velocities_contradict_is_decisive_beyond_three_tolerances() -> None:
    item = Imperfection(family=Family.CLOCK, joint=None, unit="1", tolerance=0.01)
    assert clock_check(None).passed
    small, large = (clock_check(Sized(item, size, 0.001)) for size in (0.02, 0.05))
    assert not small.passed
    assert not small.decisive
    assert not large.passed
    assert large.decisive
    assert "clock: {gain: 0.9524}" in large.message


def test_an_encoder_that_reads_too_much_widens_the_interval_and_a_sound_one_does_not() -> None:
    """The load alone takes up what the encoder does, and its residuals do not say how much of it."""
    sound = loaded_run()
    inputs = np.array(sound.inputs)
    inputs[:, [1, 8, 15]] *= 1.02
    clean, wrong = (PayloadSearch().fit(arm(), [run]) for run in (sound, replace(sound, inputs=inputs)))
    assert abs(clean.mass - 1.0) < 4.0 * clean.standard_deviations["mass"] < 0.01
    assert abs(wrong.mass - 1.0) > 10.0 * clean.standard_deviations["mass"]
    low, high = wrong.interval("mass")
    assert low < 1.0 < high

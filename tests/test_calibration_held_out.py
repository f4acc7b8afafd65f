"""Held-out means held out: what a row is scored by never saw that row."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from armid.calibration.calibrate import calibrate
from armid.calibration.contradictions import told_by_joints
from armid.calibration.fit import fit
from armid.calibration.hold_out import compared, cross_validate, folds_of, row_blocks, table_of
from armid.calibration.inputs import calibration_inputs
from armid.calibration.setups import frame_test
from armid.calibration.tool_error import ErrorTable
from armid.calibration.words import SetupSharing
from armid.errors import InputError
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.measurement import KnownPlace, MeasurementError, Measurements, Observations, Observed
from armid.kinematics.rotations import rigid, rotation_exp
from armid.notes import Severity
from tests.support.calibration_cells import Cell

NOISE = 1e-4


@pytest.fixture(scope="module")
def cell():
    return Cell.drawn("ur10e", seed=3, size=0.3)


def points(cell, q, places, rng, *, target="smr", sensor="sensor"):
    """Positions of known places on one body."""
    T = predicted_poses(cell.model, cell.values, q, setup="sensor", target="tool")
    observations = []
    for k, at in enumerate(places):
        seen = T[:, :3, 3] + T[:, :3, :3] @ np.array(at)
        observations.append(
            Observations(
                quantity=Observed.POSITION,
                rows=np.arange(len(q)),
                position=seen + NOISE * rng.normal(size=seen.shape),
                setup=sensor,
                target=f"{target}{k + 1}",
            )
        )
    known = {f"{target}{k + 1}": KnownPlace("plate", tuple(at)) for k, at in enumerate(places)}
    return Measurements(q=q, observations=tuple(observations), places=known)


PLACES = ((0.1, 0.0, 0.0), (-0.05, 0.08, 0.0), (-0.05, -0.08, 0.03))


def test_new_targets_at_known_places_of_a_known_body_need_no_refit(cell):
    rng = np.random.default_rng(0)
    train = points(cell, cell.poses(30, rng), PLACES, rng)
    other = points(cell, cell.poses(12, rng), [(0.0, 0.1, 0.05)], rng, target="new")
    found = calibrate(cell.robot, train, validate=other, terms="offset", setups="shared")
    assert found.held_out.refitted == ()
    assert "refitted to held-out rows: nothing" in found.summary()
    # The truth: the target where the plate carries it, seen by the sensor where it stood.
    assert found.held_out.after.position.mean() < 4 * NOISE


def test_a_shared_frame_that_no_training_file_has_is_refused(cell):
    rng = np.random.default_rng(1)
    train, other = cell.measured(30, rng), cell.measured(10, rng)
    other = replace(other, observations=tuple(replace(o, target="elsewhere") for o in other.observations))
    with pytest.raises(InputError, match=r"elsewhere is in no training file.*shared cannot be honoured"):
        calibrate(cell.robot, train, validate=other, terms="offset", setups="shared")


def test_a_new_frame_is_never_scored_on_the_rows_it_was_fitted_to(cell):
    rng = np.random.default_rng(2)
    train = cell.measured(40, rng, position=5e-4, orientation=5e-4)
    other = cell.measured(5, rng, position=5e-4, orientation=5e-4)
    moved = rigid(rotation_exp([0.3, 0.1, 0.2]), np.array([0.4, -0.2, 0.1]))
    other = cell.seen_from(other, moved)
    found = calibrate(cell.robot, train, validate=other, terms="offset")
    assert len(found.held_out.refitted) == 1
    assert found.held_out.refitted[0].startswith("validation.sensor on the other parts")
    assert "validation.sensor" in found.as_dict()["held_out_refitted"][0]
    # Five poses fit a frame of six unknowns closely; scored on others they show the whole noise.
    assert found.held_out.after.position.mean() > 0.8 * 5e-4 * 1.6


def named(measurements, setup, targets):
    observations = (replace(o, setup=setup, target=targets[o.target]) for o in measurements.observations)
    return replace(measurements, observations=tuple(observations), places={})


def test_a_new_name_is_no_new_frame(cell):
    """Three markers under other names, in another order, seen by a sensor of another name that did not move."""
    rng = np.random.default_rng(7)
    train, other = (replace(points(cell, cell.poses(n, rng), PLACES, rng), places={}) for n in (30, 12))
    called = named(other, "station", {"smr1": "c", "smr2": "a", "smr3": "b"})
    same, new = (calibrate(cell.robot, train, validate=x, terms="offset") for x in (other, called))
    assert new.held_out.refitted == ()
    np.testing.assert_allclose(new.held_out.after.position, same.held_out.after.position, atol=1e-12)
    (note,) = [n for n in new.notes if n.code == "setups"]
    assert "station where sensor was, c where smr1 was, a where smr2 was" in note.message
    # One that did move is fitted for itself, and the markers that stayed are not.
    moved = cell.seen_from(called, rigid(rotation_exp([0.0, 0.0, 0.02]), np.array([0.01, 0.0, 0.0])))
    new = calibrate(cell.robot, train, validate=moved, terms="offset")
    assert [x.split(" on ")[0] for x in new.held_out.refitted] == ["station"]


def test_files_that_do_not_share_a_frame_are_told_apart_and_a_false_shared_is_refused(cell):
    rng = np.random.default_rng(3)
    first, second = cell.measured(30, rng), cell.measured(30, rng)
    moved = cell.seen_from(second, rigid(rotation_exp([0.0, 0.0, 0.5]), np.array([0.5, 0.0, 0.0])))
    assert frame_test(cell.robot, [first, second]).shared
    test = frame_test(cell.robot, [first, moved])
    assert (test.sensor, test.tool) == (False, True)
    with pytest.raises(MeasurementError, match="these files do not share a frame"):
        calibrate(cell.robot, [first, moved], terms="offset", setups="shared")
    with pytest.raises(MeasurementError, match="these files do not share a frame"):
        calibrate(cell.robot, first, validate=moved, terms="offset", setups="shared")
    found = calibrate(cell.robot, [first, moved], terms="offset")
    assert any(n.code == "setups" and "do not share the sensor frame" in n.message for n in found.notes)


def test_a_target_that_was_mounted_anew_leaves_the_sensor_shared(cell):
    rng = np.random.default_rng(4)
    first, second = cell.measured(30, rng), cell.measured(30, rng, tool=rigid(np.eye(3), np.array([0.0, 0.02, 0.0])))
    test = frame_test(cell.robot, [first, second])
    assert (test.sensor, test.tool) == (True, False)


def test_both_ends_of_a_length_are_kept_aside_together():
    """With one end alone there is no length to test."""
    q = np.random.default_rng(5).uniform(-1.0, 1.0, (40, 6))
    ends = np.arange(0, 40, 2), np.arange(1, 40, 2)
    bar = Observations(quantity=Observed.LENGTH, rows=ends[0], distance=np.ones(20), other_rows=ends[1])
    m = Measurements(q=q, observations=(bar,))
    for parts in (folds_of(m, np.random.default_rng(0), 4)[1], row_blocks(m, 4)):
        assert np.sum(parts, axis=0).tolist() == [1] * 40
        assert sum(len(o) for aside in parts for o in m.subset(aside).observations) == 20
    # Lengths from one pose to all others tie everything together: nothing could be kept aside, so they are parted.
    rows, others = np.zeros(39, dtype=int), np.arange(1, 40)
    star = Observations(quantity=Observed.LENGTH, rows=rows, distance=np.ones(39), other_rows=others)
    assert len(folds_of(Measurements(q=q, observations=(star,)), np.random.default_rng(0), 4)[1]) == 4


def test_blocks_never_hold_all_rows_of_a_sensor():
    q = np.random.default_rng(6).uniform(-1.0, 1.0, (30, 6))
    seen = [
        Observations(quantity=Observed.POSITION, rows=rows, position=np.zeros((len(rows), 3)), setup=name)
        for name, rows in (("left", np.arange(20)), ("right", np.arange(20, 30)))
    ]
    m = Measurements(q=q, observations=tuple(seen))
    parts = row_blocks(m, 5)
    assert np.sum(parts, axis=0).tolist() == [1] * 30
    for aside in parts:
        assert m.subset(aside).setups == m.subset(~aside).setups == ("left", "right")
        assert np.flatnonzero(aside)[:4].tolist() == list(range(np.flatnonzero(aside)[0], np.flatnonzero(aside)[0] + 4))


def test_held_out_rows_elsewhere_in_joint_space_keep_the_training_frames():
    """A model error there looks like a moved frame; refitted frames would take it up, and the stated error would flatter."""
    cell, rng = Cell.drawn("panda", seed=5, size=0.1), np.random.default_rng(5)
    q = cell.poses(60, rng)
    low = q[:, 3] < 0.0
    first, second = (
        cell.measured(len(x), rng, q=x, joints=lambda q: 2e-3 * np.sin(2.0 * q + 0.5)) for x in (q[low], q[~low])
    )
    assert not frame_test(cell.robot, [first, second]).shared
    given = calibration_inputs(cell.robot, first, second, mapping=None, setups=SetupSharing.AUTO, base=None, tip=None)
    assert given.held_out is not None
    assert given.held_out.setups == first.setups
    (note,) = given.notes
    assert note.severity is Severity.WARNING
    assert "keep the frames of the training files" in note.message
    # Nor where most rows leave the calibrated ranges, although some lie among the others.
    inside, wide = (cell.measured(60, rng, q=x * q, joints=lambda q: 1e-3 * np.sin(4.0 * q + 0.5)) for x in (0.35, 1.0))
    assert not told_by_joints(np.vstack([inside.q, wide.q]), np.arange(120) >= 60)
    assert not frame_test(cell.robot, [inside, wide]).shared
    given = calibration_inputs(cell.robot, inside, wide, mapping=None, setups=SetupSharing.AUTO, base=None, tip=None)
    assert given.held_out is not None
    assert given.held_out.setups == inside.setups
    # A tracker that was carried elsewhere is no matter of the model: its frame is new.
    moved = cell.seen_from(second, rigid(rotation_exp([0.0, 0.0, 0.5]), np.array([0.5, 0.0, 0.0])))
    given = calibration_inputs(cell.robot, first, moved, mapping=None, setups=SetupSharing.AUTO, base=None, tip=None)
    assert given.held_out is not None
    assert given.held_out.setups == ("validation.sensor",)


def test_joints_tell_sides_apart_by_one_value_or_by_neighbours_but_not_by_targets_of_one_pose():
    rng = np.random.default_rng(8)
    q = rng.uniform(-1.0, 1.0, (40, 6))
    assert told_by_joints(q, q[:, 4] > 0.1)
    assert told_by_joints(np.vstack([q, q + 3.0]), np.repeat([False, True], 40))
    side = rng.random(40) < 0.5
    assert not told_by_joints(q, side)
    assert not told_by_joints(np.repeat(q, 3, axis=0), np.repeat(side, 3))
    # Few rows on one side are told from the rest only when they are.
    few = np.arange(40) < 4
    assert not told_by_joints(q, few)


def test_the_interval_of_the_held_out_mean_is_nadeau_and_bengios_and_knows_runs():
    rng = np.random.default_rng(9)
    m = Measurements(q=rng.uniform(-1.0, 1.0, (50, 6)), observations=())
    rows = np.arange(50)
    errors = 1e-3 * rng.random(50)
    none = np.zeros(0), np.zeros(0, dtype=np.intp)
    table = ErrorTable(errors, rows, *none)
    held = compared("so", table, table, m, trained=45.0)
    single = errors.std(ddof=1)
    batches = errors.reshape(10, 5).mean(axis=1).std(ddof=1) / np.sqrt(10)
    expected = max(single / np.sqrt(50), batches) * np.sqrt(1.0 + 50 / 45)
    np.testing.assert_allclose(held.deviation, expected)
    low, high = held.interval
    np.testing.assert_allclose([(low + high) / 2, high - low], [errors.mean(), 2 * t.ppf(0.975, 49) * expected])
    # Five alike in a row are one: the mean of fifty is known no better than that of ten.
    alike = np.repeat(errors[::5], 5)
    wide = compared("so", table, ErrorTable(alike, rows, *none), m)
    np.testing.assert_allclose(wide.deviation, errors[::5].std(ddof=1) / np.sqrt(10))


def test_errors_of_a_fit_that_leaves_few_equations_over_count_as_fewer(cell):
    """Eight poses are 48 equations, of which thirty become parameters: left out in turn they err like three, not like eight."""
    rng = np.random.default_rng(12)
    train = cell.measured(8, rng)
    found = fit(cell.robot, train)
    held, _ = cross_validate([found], lambda *_: 0, train, folds_of(train, rng)[1], "each")
    left = 1.0 - found.after.selection.kept.sum() / 48
    assert left < 0.5
    errors = held.after.position
    np.testing.assert_allclose(held.deviation, errors.std(ddof=1) * np.sqrt(1.0 / (8 * left) + 1.0 / 7))


def test_the_stated_error_is_that_of_fresh_poses_within_its_interval():
    """No bias over several draws, and an interval that holds the truth."""
    ratios, inside = [], 0
    for seed in range(5):
        cell, rng = Cell.drawn("ur10e", seed=seed, size=0.1), np.random.default_rng(seed)
        gears = lambda q: 3e-4 * np.sin(3.0 * q + 0.5)  # noqa: E731
        train, fresh = (cell.measured(n, rng, joints=gears) for n in (30, 1000))
        found = fit(cell.robot, train)
        held, _ = cross_validate([found], lambda *_: 0, train, folds_of(train, rng, 6)[1], "six folds")
        true = table_of(found, found.after.values, fresh).position.mean()
        ratios.append(np.log(held.after.position.mean() / true))
        inside += held.interval[0] < true < held.interval[1]
    assert abs(np.mean(ratios)) < 0.12  # Two deviations of the mean of five, which scatter by 0.13.
    assert inside >= 4


def test_the_interval_is_stated(cell):
    rng = np.random.default_rng(10)
    found = calibrate(cell.robot, cell.measured(12, rng), terms="offset", folds=3)
    low, high = found.as_dict()["held_out_interval"]
    assert low < found.held_out.after.position.mean() < high
    assert "at other configurations of this kind" in found.summary()


def test_files_of_one_name_in_two_folders_are_both_read(cell, tmp_path):
    rng = np.random.default_rng(11)
    paths = []
    for folder in ("monday", "tuesday"):
        m = cell.measured(12, rng)
        (o,) = m.observations
        path = tmp_path / folder / "poses.csv"
        path.parent.mkdir()
        head = ",".join([*(f"q{k}" for k in range(1, 7)), "x", "y", "z"])
        np.savetxt(path, np.column_stack([m.q, o.position]), delimiter=",", header=head, comments="")
        paths.append(path)
    given = calibration_inputs(cell.robot, paths, None, mapping=None, setups=SetupSharing.PER_FILE, base=None, tip=None)
    assert len(given.train.q) == 24
    assert len(given.train.setups) == 2

"""`identify` with the controller known: files in, a better estimate out, refusals in one line."""

from __future__ import annotations

import numpy as np
import pytest

import armid
from armid.errors import InputError
from armid.identification.metrics import nominal_standard
from armid.information.status import EstimationError
from armid.logs.log import Channel, Log
from armid.studies.protocol import EFFECTS, Protocol

GAINS = "format: armid-controller/1\nrate_hz: 5000\nkp: {kp}\nkd: {kd}\n"


@pytest.fixture(scope="module")
def protocol():
    return Protocol(armid.load_robot("cmu-dd-arm2"), 2.0, seed=3)


@pytest.fixture(scope="module")
def logs(protocol):
    # With 0.05 N m the arm's own torque noise is that of the protocol.
    return protocol.log("standard", 0), protocol.log("standard", 1)


@pytest.fixture(scope="module")
def file(protocol, tmp_path_factory):
    path = tmp_path_factory.mktemp("controller") / "controller.yaml"
    gains = protocol.controller
    path.write_text(GAINS.format(kp=gains.kp.tolist(), kd=gains.kd.tolist()))
    return path


def identified(protocol, logs, **options):
    return armid.identify(protocol.robot, logs[0], validate=logs[1], effects=EFFECTS, sensitivity=False, **options)


def shifts(result):
    truth = result.estimate.base.values(nominal_standard(result.described, result.estimate.base.parameters))
    return (result.estimate.values - truth) / result.estimate.standard_deviations


@pytest.fixture(scope="module")
def default(protocol, logs):
    return identified(protocol, logs)


@pytest.mark.parametrize("method", ["didim", "cloe", "ml"])
def test_the_loop_gives_honest_intervals_and_possible_bodies(protocol, logs, file, method):
    result = identified(protocol, logs, method=method, controller=file)
    assert result.estimate.status == "solved"
    assert np.sqrt(np.mean(shifts(result) ** 2)) < 1.8
    assert result.consistent.is_physical


def test_knowing_the_loop_shrinks_the_error_many_times(protocol, logs, file, default):
    best = identified(protocol, logs, method="ml", controller=file)
    assert np.median(best.estimate.standard_deviations / default.estimate.standard_deviations) < 0.3
    assert best.estimate.provenance.loop.noise_fed_back


def test_gains_that_nobody_knows_are_estimated_and_told(protocol, logs, file):
    unknown = file.with_name("unknown.yaml")
    unknown.write_text("format: armid-controller/1\nrate_hz: 5000\nkp: unknown\nkd: unknown\n")
    result = identified(protocol, logs, method="ml", controller=unknown)
    told = [note for note in result.notes if note.code == "gains-estimated"]
    assert len(told) == 3
    loop = result.estimate.provenance.loop
    gains, deviations = np.array(loop.gains), np.array(loop.gain_deviations)
    true = protocol.controller.gains
    assert np.all(np.abs(gains - true)[:2] < 4.0 * deviations[:2] + 1e-3 * true[:2])


def test_a_law_of_another_kind_is_said_not_to_be_one(protocol, logs, file):
    unknown = file.with_name("other.yaml")
    unknown.write_text("format: armid-controller/1\nrate_hz: 5000\nkp: unknown\nkd: unknown\n")
    rng = np.random.default_rng(0)
    shuffled = dict(logs[0].channels)
    shuffled[Channel.COMMANDED_POSITION] = shuffled[Channel.POSITION] + 1e-3 * rng.standard_normal(
        shuffled[Channel.POSITION].shape
    )
    other = Log(name="other", joints=logs[0].joints, time=logs[0].time, channels=shuffled)
    with pytest.raises(EstimationError, match="cannot be told from this log"):
        identified(protocol, (other, logs[1]), method="ml", controller=unknown)


def test_instruments_come_from_the_real_loop(protocol, logs, file):
    result = identified(protocol, logs, method="iv", controller=file)
    assert np.sqrt(np.mean(shifts(result) ** 2)) < 2.5


def test_what_is_missing_is_said(protocol, logs, file):
    with pytest.raises(InputError, match="--method ml: without --controller"):
        identified(protocol, logs, method="ml")
    silent = {k: v for k, v in logs[0].channels.items() if k is not Channel.COMMANDED_POSITION}
    bare = Log(name="bare", joints=logs[0].joints, time=logs[0].time, channels=silent)
    with pytest.raises(InputError, match=r"bare: no channel position.commanded"):
        identified(protocol, (bare, logs[1]), method="ml", controller=file)
    time = np.array(logs[0].time)
    time[1000:] += 0.1
    jumped = Log(name="jumped", joints=logs[0].joints, time=time, channels=logs[0].channels)
    with pytest.raises(InputError, match=r"jumped: the clock jumps at 0.999 s"):
        identified(protocol, (jumped, logs[1]), method="ml", controller=file)


def test_a_wrong_rate_is_refused(protocol, logs, file):
    odd = file.with_name("odd.yaml")
    odd.write_text(file.read_text().replace("5000", "1300"))
    with pytest.raises(InputError, match="whole multiple of the log's rate"):
        identified(protocol, logs, method="cloe", controller=odd)

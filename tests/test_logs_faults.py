"""Every fault injected into recordings of two catalogue robots, and found; clean ones of many robots and rates stay silent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from armid.kernels.dynamics import gravity
from armid.logs import Channel, Log, check_log
from armid.logs.conditioning.timebase import evenly_counted
from armid.logs.conditioning.uniform import Stretch
from armid.notes import Severity
from armid.parameters.inertial import from_centre_of_mass
from support.catalogue_recordings import catalogue, lab_recording

Q, QD, TAU = Channel.POSITION, Channel.VELOCITY, Channel.LINK_TORQUE
ROBOTS = ("iiwa14", "ur10e")
CLEAN = {name: lab_recording(name, 1) for name in ROBOTS}


def found(log: Log, name: str) -> dict[str, Severity]:
    notes = check_log(log, catalogue(name)).notes
    return {note.code: note.severity for note in notes if note.severity is not Severity.INFO}


def with_channel(log: Log, channel: Channel, values: np.ndarray) -> Log:
    return replace(log, channels={**log.channels, channel: values})


def edited(log: Log, channel: Channel, rows: object, columns: object, value: object) -> Log:
    values = np.array(log[channel])
    values[rows, columns] = value(values[rows, columns]) if callable(value) else value
    return with_channel(log, channel, values)


def heaviest(log: Log, name: str) -> int:
    return int(np.argmax(gravity(catalogue(name), log[Q][::50]).std(axis=0)))


def repeated(log: Log, _: str) -> Log:
    index = np.arange(len(log))
    index[7::23] -= 1
    return replace(log.selected(index), time=log.time)


def stamps(log: Log, edit: Callable[[np.ndarray], np.ndarray]) -> Log:
    return replace(log, time=edit(np.array(log.time)))


def clipped(log: Log, name: str) -> Log:
    j = heaviest(log, name)
    top = 0.7 * np.abs(log[TAU][:, j]).max()
    return edited(log, TAU, slice(None), j, lambda x: np.clip(x, -top, top))


def coarse(log: Log, name: str) -> Log:
    j = heaviest(log, name)
    step = np.ptp(log[TAU][:, j]) / 20.0
    return edited(log, TAU, slice(None), j, lambda x: np.round(x / step) * step)


def swapped(log: Log, i: int, j: int, *channels: Channel) -> Log:
    order = list(range(len(log.joints)))
    order[i], order[j] = j, i
    return replace(log, channels={c: v[:, order] if c in channels else v for c, v in log.channels.items()})


def still(log: Log, _: str) -> Log:
    return edited(edited(log, Q, slice(None), 2, 0.3), QD, slice(None), 2, 0.0)


FAULTS: dict[str, tuple[str, Callable[[Log, str], Log]]] = {
    "missing numbers": ("not-finite", lambda log, _: edited(log, TAU, slice(900, 910), 1, np.nan)),
    "missing positions": ("not-finite", lambda log, _: edited(log, Q, slice(900, 902), 3, np.nan)),
    "clock restarts": ("time-backwards", lambda log, _: stamps(log, lambda t: np.where(t > 7.0, t - 2.0, t))),
    "coarse clock": ("time-duplicated", lambda log, _: stamps(log, lambda t: np.floor(t * 100.0) / 100.0)),
    "stamps lost": (
        "time-not-finite",
        lambda log, _: stamps(log, lambda t: np.where(np.arange(len(t)) % 200, t, np.nan)),
    ),
    "clock stands": ("time-frozen", lambda log, _: stamps(log, np.zeros_like)),
    "milliseconds": ("clock-unit", lambda log, _: stamps(log, lambda t: 1e3 * t)),
    "rows lost": ("time-gaps", lambda log, _: log.selected(np.r_[0:1000, 1200 : len(log)])),
    "rows lost at random": (
        "clock-irregular",
        lambda log, _: log.selected(np.flatnonzero(np.arange(len(log)) % 7 % 3 < 2)),
    ),
    "rows repeated": ("repeated-rows", repeated),
    "sensor holds": ("frozen", lambda log, _: edited(log, TAU, slice(1000, 1250), 1, log[TAU][1000, 1])),
    "encoder holds": ("frozen", lambda log, _: edited(log, Q, slice(1000, 1250), 1, log[Q][1000, 1])),
    "no torque sensor": ("torque-dead", lambda log, _: edited(log, TAU, slice(None), slice(None), 0.0)),
    "coarse torque": ("quantised", coarse),
    "clipped torque": ("saturated", clipped),
    "spikes of position": ("spikes", lambda log, _: edited(log, Q, [500, 1300, 2200], 2, lambda x: x + 0.2)),
    "spikes of torque": (
        "spikes",
        lambda log, _: edited(log, TAU, [500, 2200], 1, lambda x: x + 2 * np.ptp(log[TAU][:, 1])),
    ),
    "corrupt packet": ("corrupt-values", lambda log, _: edited(log, TAU, 1200, slice(None), 1e37)),
    "degrees": (
        "degrees",
        lambda log, _: edited(edited(log, Q, ..., slice(None), np.degrees), QD, ..., slice(None), np.degrees),
    ),
    "zero offset": (
        "position-limits",
        lambda log, name: edited(
            log, Q, slice(None), 2, lambda x: x - x.max() + catalogue(name).limit("upper")[2] + 0.3
        ),
    ),
    "velocity reversed": ("velocity-inconsistent", lambda log, _: edited(log, QD, slice(None), 2, np.negative)),
    "velocity in degrees": ("velocity-inconsistent", lambda log, _: edited(log, QD, ..., slice(None), np.degrees)),
    "velocity columns swapped": ("joint-order", lambda log, _: swapped(log, 1, 4, QD)),
    "torque columns swapped": ("joint-order", lambda log, _: swapped(log, 1, 2, TAU)),
    "base and wrist swapped": ("joint-order", lambda log, _: swapped(log, 0, 4, Q, QD, TAU)),
    "torque reversed": ("torque-sign", lambda log, _: edited(log, TAU, ..., slice(None), np.negative)),
    "one torque reversed": (
        "torque-sign",
        lambda log, name: edited(log, TAU, slice(None), heaviest(log, name), np.negative),
    ),
    "ampere": ("torque-unit", lambda log, _: edited(log, TAU, ..., slice(None), lambda x: x / 10.0)),
    "millinewton metres": ("torque-unit", lambda log, _: edited(log, TAU, ..., slice(None), lambda x: 1e3 * x)),
    "gravity compensated": (
        "gravity-compensated",
        lambda log, name: with_channel(log, TAU, log[TAU] - gravity(catalogue(name), log[Q])),
    ),
    "one joint at rest": ("too-little-motion", still),
    "ten milliseconds late": ("torque-lag", lambda log, name: lab_recording(name, 1, lag=0.010)),
    "twenty milliseconds early": ("torque-lag", lambda log, name: lab_recording(name, 1, lag=-0.020)),
    "upside down": ("gravity-reversed", lambda log, name: lab_recording(name, 1, gravity=-catalogue(name).gravity)),
    "on a wall": ("mounting", lambda log, name: lab_recording(name, 1, gravity=np.array([9.81, 0.0, 0.0]))),
    "something in the hand": (
        "payload-suspected",
        lambda log, name: lab_recording(
            name, 1, payload=from_centre_of_mass(3.0, [0.02, 0.01, 0.12], 0.005 * np.eye(3))
        ),
    ),
    "friction compensated": (
        "friction-compensated",
        lambda log, name: lab_recording(name, 1, friction=0.0, channel=Channel.MOTOR_TORQUE),
    ),
}

FOLLOWS = {
    "coarse clock": {"clock-irregular"},
    "stamps lost": {"clock-irregular"},
    "clock stands": {"time-duplicated"},
    "one torque reversed": {"friction-sign"},
    "base and wrist swapped": {"position-limits"},
    "zero offset": {"joint-order", "payload-suspected", "torque-sign", "mounting", "gravity-compensated", "torque-lag"},
    "encoder holds": {"velocity-inconsistent", "spikes"},
}
"""What a fault brings with it: a joint at the wrong zero carries another weight."""


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ROBOTS)
def test_fault_is_found_and_nothing_else(name, fault):
    code, inject = FAULTS[fault]
    codes = found(inject(CLEAN[name], name), name)
    assert code in codes
    assert set(codes) <= {code} | FOLLOWS.get(fault, set())


CLEAN_CASES = [
    ("iiwa14", 100.0, 1.0),
    ("iiwa14", 1000.0, 20.0),
    ("panda", 250.0, 5.0),
    ("panda", 4000.0, 1.0),
    ("ur10e", 125.0, 10.0),
    ("ur10e", 500.0, 0.1),
    ("mabi-max100", 250.0, 10.0),
    ("lwr4plus", 200.0, 3.0),
    ("tx40", 1000.0, 1.0),
    ("tx40", 250.0, 20.0),
]


@pytest.mark.parametrize(("name", "rate", "noise"), CLEAN_CASES)
@pytest.mark.parametrize("channel", [Channel.LINK_TORQUE, Channel.MOTOR_TORQUE])
def test_clean_recordings_trigger_nothing(name, rate, noise, channel):
    seconds = 6.0 if rate > 2000.0 else 15.0
    log = lab_recording(name, 7, rate=rate, noise=noise, seconds=seconds, channel=channel)
    assert found(log, name) == {}


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("seed", [2, 3])
def test_slow_jittered_currents_are_not_late(name, seed):
    """125 Hz, stamps that scatter by a tenth of a step, unknown gain of every drive."""
    log = lab_recording(name, seed, rate=125.0, seconds=30.0, noise=3.0, channel=Channel.CURRENT)
    rng = np.random.default_rng(seed)
    gains = rng.uniform(8.0, 12.0, len(log.joints))
    log = with_channel(log, Channel.CURRENT, log[Channel.CURRENT] / gains)
    log = replace(log, time=log.time + rng.normal(0.0, 0.1 / 125.0, len(log)))
    assert set(found(log, name)) == {"clock-irregular", "torque-in-ampere"}
    late = lab_recording(name, seed, rate=125.0, seconds=30.0, noise=3.0, channel=Channel.CURRENT, lag=0.03)
    late = with_channel(late, Channel.CURRENT, late[Channel.CURRENT] / gains)
    assert "torque-lag" in found(replace(late, time=log.time), name)


def test_jitter_of_stamps_is_never_taken_for_lost_samples():
    """Steps beyond one and a half are rare, but each would shift all samples after it by one."""
    rng = np.random.default_rng(0)
    even = np.arange(4000.0) * 0.003
    log = CLEAN["iiwa14"].selected(np.arange(4000) % len(CLEAN["iiwa14"]))
    jittered = even + rng.normal(0.0, 0.15 * 0.003, len(even))
    assert (np.diff(jittered) > 1.5 * 0.003).any()
    counted = evenly_counted(Stretch(log, jittered, 0.003))
    assert counted is not None
    np.testing.assert_allclose(counted.time, even, atol=0.03 * 0.003)
    missing = np.delete(even, [700, 1500, 1501, 3000])
    counted = evenly_counted(Stretch(log.rows(0, len(missing)), missing + rng.normal(0.0, 1e-5, len(missing)), 0.003))
    assert counted is not None
    np.testing.assert_allclose(counted.time, missing, atol=1e-5)


def test_a_hard_stop_is_no_corrupt_packet():
    log = CLEAN["ur10e"]
    q, tau = np.array(log[Q]), np.array(log[TAU])
    q[2000:], tau[2000:] = q[2000], tau[2000]
    tau[2000, 0] -= 0.8 * np.ptp(tau[:, 0])
    stopped = replace(log, channels={Q: q, TAU: tau + np.random.default_rng(0).normal(0.0, 0.01, tau.shape)})
    assert "spikes" not in found(stopped.rows(0, 2400), "ur10e")

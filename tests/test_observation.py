"""Contacts from an identified model: found when they are there, silent when they are not, at the rate that was stated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

import armid
from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.log import Channel, Log
from armid.observation.levels import Features, alarm_levels
from armid.observation.observe import observe
from armid.observation.residuals import MomentumObserver, observed_motion, residuals
from armid.robot.robot import Robot
from tests.support.contacts import RATE, bump, recorded
from tests.support.outcomes import check_family


@pytest.fixture(scope="module")
def iiwa() -> Robot:
    return armid.load_robot("iiwa14")


class TestResiduals:
    def test_both_ways_give_the_torque_that_was_planted(self, iiwa: Robot) -> None:
        push = bump(20.0, 7, 3, 5.0, 8.0, lasts=2.0)
        log = recorded(iiwa, seconds=20.0, seed=1, push=push, noise=0.0)
        motion = observed_motion(log.time, log.channels[Channel.POSITION], log.channels[Channel.LINK_TORQUE])
        found = residuals(iiwa, motion, 10.0)
        middle = (motion.time > 8.5) & (motion.time < 9.9) & (found.direct_band == 0.0).all(axis=1)
        before = (motion.time > 3.0) & (motion.time < 7.5) & (found.direct_band == 0.0).all(axis=1)
        for external in (found.direct, found.momentum):
            assert np.median(external[middle, 3]) == pytest.approx(5.0, abs=0.1)
            assert abs(np.median(external[before, 3])) < 0.05

    def test_live_observer_gives_the_same(self, iiwa: Robot) -> None:
        log = recorded(iiwa, seconds=4.0, seed=2, push=bump(4.0, 7, 1, 8.0, 2.0))
        q, tau = log.channels[Channel.POSITION], log.channels[Channel.LINK_TORQUE]
        whole = residuals(iiwa, observed_motion(log.time, q, tau), 10.0).momentum
        live = MomentumObserver(iiwa, RATE, 10.0)
        said = [np.array(r) for k in range(len(q)) if (r := live.push(q[k], tau[k])) is not None]
        count = min(len(said), len(whole))
        np.testing.assert_allclose(np.array(said)[:count], whole[:count], atol=1e-6)


class TestLevels:
    def noise(self, seconds: float, seed: int) -> tuple[FloatArray, Features]:
        """White noise whose deviation grows with speed."""
        rng = np.random.default_rng(seed)
        n = int(seconds * 100)
        speed = np.abs(np.sin(np.arange(n) / 300.0))[:, np.newaxis]
        z = np.zeros_like(speed)
        return (0.1 + 0.5 * speed) * rng.normal(size=(n, 1)), Features(
            speed=speed, acceleration=z, deviation=z, reversal=z
        )

    def test_false_alarms_come_as_often_as_stated(self) -> None:
        levels = alarm_levels(*self.noise(600.0, 0), 0.01, per_hour=20.0)
        residual, features = self.noise(6 * 3600.0, 1)
        passed = np.abs(residual[:, 0]) > levels.level(features)[:, 0]
        assert 0.0 < passed.sum() / 6.0 < 60.0

    @pytest.mark.parametrize("kind", ["normal", "laplace", "standard_t"])
    def test_the_stated_rate_holds_for_light_and_heavy_tails_with_memory(self, kind: str) -> None:
        """Ten minutes set the level, two hours try it, six times; alarms closer than 0.1 s are one, as in `observe`."""
        step, stated, found = 0.01, 20.0, []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            shape = {"df": 5} if kind == "standard_t" else {}
            free, watched = (
                lfilter([1.0], [1.0, -0.9], getattr(rng, kind)(size=n, **shape))[:, np.newaxis]
                for n in (60_000, 720_000)
            )
            zeros = [Features(speed=z, acceleration=z, deviation=z, reversal=z) for z in (0.0 * free, 0.0 * watched)]
            level = alarm_levels(free, zeros[0], step, per_hour=stated).level(zeros[1])
            index = np.flatnonzero(np.abs(watched[:, 0]) > level[:, 0])
            found.append((1 + np.sum(np.diff(index) > 0.1 / step)) / 2.0 if len(index) else 0.0)
        # 240 alarms are expected in all; the levels' own sampling error is a factor of two for each.
        assert 0.5 * stated < np.mean(found) < 1.7 * stated

    def test_levels_grow_with_speed(self) -> None:
        residual, features = self.noise(600.0, 0)
        level = alarm_levels(residual, features, 0.01, per_hour=1.0).level(features)
        fast = features.speed[:, 0] > 0.9
        slow = features.speed[:, 0] < 0.1
        assert level[fast].mean() > 3.0 * level[slow].mean()

    def test_too_little_motion_is_refused(self) -> None:
        residual, features = self.noise(1.0, 0)
        with pytest.raises(InputError, match="without contact"):
            alarm_levels(residual, features, 0.01, per_hour=1.0)

    @pytest.mark.parametrize("kind", ["normal", "laplace"])
    def test_a_short_record_gives_levels_that_hold_all_the_same(self, kind: str) -> None:
        """Half a minute sets the level, an hour tries it: little known of a tail makes levels larger, not alarms more."""
        step, stated, found = 0.01, 120.0, []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            free, watched = (
                lfilter([1.0], [1.0, -0.9], getattr(rng, kind)(size=n))[:, np.newaxis] for n in (3000, 360_000)
            )
            zeros = [Features(speed=z, acceleration=z, deviation=z, reversal=z) for z in (0.0 * free, 0.0 * watched)]
            levels = alarm_levels(free, zeros[0], step, per_hour=stated)
            index = np.flatnonzero(np.abs(watched[:, 0]) > levels.level(zeros[1])[:, 0])
            found.append((1 + np.sum(np.diff(index) > 0.1 / step)) if len(index) else 0.0)
        assert np.mean(found) < 1.5 * stated

    def test_residuals_that_come_together_raise_the_levels(self) -> None:
        """The same numbers, spread over the motion or all of the large ones in one part of it."""
        rng = np.random.default_rng(3)
        size = np.repeat(rng.permutation(np.repeat([1.0, 3.0], [240, 60])), 20)
        z = rng.normal(size=6000)[:, np.newaxis]
        zeros = Features(speed=0.0 * z, acceleration=0.0 * z, deviation=0.0 * z, reversal=0.0 * z)
        spread, together = (
            alarm_levels(order[:, np.newaxis] * z, zeros, 0.01, per_hour=5.0) for order in (size, np.sort(size))
        )
        assert together.level(zeros)[0, 0] > 1.2 * spread.level(zeros)[0, 0]

    def test_a_rate_that_a_record_cannot_show_is_said(self) -> None:
        residual, features = self.noise(60.0, 0)
        often, rarely = (alarm_levels(residual, features, 0.01, per_hour=rate) for rate in (60.0, 0.1))
        assert often.shown
        assert not rarely.shown
        assert "more than 1.0 minutes of free motion can show" in rarely.accepted


class TestObserve:
    @pytest.fixture(scope="class")
    @classmethod
    def free(cls, iiwa: Robot) -> list[Log]:
        return [recorded(iiwa, seconds=30.0, seed=seed) for seed in (10, 11)]

    def test_a_contact_is_named_with_its_time_joint_and_size(self, iiwa: Robot, free: list[Log]) -> None:
        log = recorded(iiwa, seconds=30.0, seed=10, push=bump(30.0, 7, 2, 6.0, 12.0))
        seen = observe(iiwa, log, free=free)
        hits = [c for c in seen.contacts if 12.0 <= c.begins < 12.4]
        assert len(hits) == 1
        assert hits[0].joint == iiwa.joint_names[2]
        assert hits[0].torque == pytest.approx(6.0, abs=1.0)
        assert hits[0].begins < 12.1

    def test_silent_without_contact(self, iiwa: Robot, free: list[Log]) -> None:
        seen = observe(iiwa, recorded(iiwa, seconds=30.0, seed=12), free=free)
        assert not seen.contacts

    def test_direct_residual_finds_it_too(self, iiwa: Robot, free: list[Log]) -> None:
        log = recorded(iiwa, seconds=30.0, seed=10, push=bump(30.0, 7, 2, 10.0, 12.0))
        seen = observe(iiwa, log, free=free, residual="direct")
        assert any(12.0 <= c.begins < 12.2 for c in seen.contacts)

    def test_wrench_at_the_flange(self, iiwa: Robot, free: list[Log]) -> None:
        plain = recorded(iiwa, seconds=30.0, seed=10)
        force = np.array([0.0, 0.0, -40.0, 0.0, 0.0, 0.0])
        J = armid.jacobian(iiwa, plain.channels[Channel.POSITION])
        inside = (plain.time >= 5.0) & (plain.time < 6.0)
        push = np.where(inside[:, np.newaxis], np.einsum("nij,i->nj", J, force), 0.0)
        seen = observe(iiwa, recorded(iiwa, seconds=30.0, seed=10, push=push), free=free)
        hit = max(seen.contacts, key=lambda c: c.deviations)
        assert hit.wrench is not None
        np.testing.assert_allclose(hit.wrench[:3], force[:3], atol=8.0)

    def test_faster_than_the_free_motion_is_untrusted(self, iiwa: Robot, free: list[Log]) -> None:
        seen = observe(iiwa, recorded(iiwa, seconds=12.0, seed=10), free=free)
        assert seen.verdict is armid.Verdict.UNTRUSTED
        assert "times as fast" in seen.reasons[0]

    def test_what_is_watched_cannot_set_its_own_levels(self, iiwa: Robot, free: list[Log], tmp_path: Path) -> None:
        with pytest.raises(InputError, match="is both watched and said to be free of contact"):
            observe(iiwa, free[1], free=free)
        written, copied = (free[0].save(tmp_path / name)[0] for name in ("one.npz", "other.npz"))
        with pytest.raises(InputError, match="is both watched"):
            observe(iiwa, written, free=copied)

    @pytest.mark.parametrize("bandwidth", [0.0, -1.0, 0.6 * RATE, float("inf")])
    def test_a_bandwidth_that_the_samples_do_not_have_is_refused(
        self, iiwa: Robot, free: list[Log], bandwidth: float
    ) -> None:
        with pytest.raises(InputError, match=r"bandwidth: .*at most half of the .* samples per second"):
            observe(iiwa, free[0], free=free[1:], bandwidth_hz=bandwidth)
        with pytest.raises(InputError, match=r"bandwidth: .*at most half"):
            MomentumObserver(iiwa, RATE, bandwidth)

    def test_family(self, iiwa: Robot, free: list[Log], tmp_path: Path) -> None:
        log = recorded(iiwa, seconds=30.0, seed=10, push=bump(30.0, 7, 2, 6.0, 12.0))
        check_family(observe(iiwa, log, free=free), tmp_path)

"""Changes over dates: planted ones are found, and fleets without any raise alarms as rarely as stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.errors import InputError
from armid.fleets.course import Course
from armid.fleets.drift import drifts

DAYS = np.arange(8) * 7.0


def fleet(rng, arms=20, dates=8, truth=1.0, claimed=1.0, parameters=("joint1.coulomb", "joint2.coulomb")):
    """Courses that do not change: scatter `truth` while the estimates claim `claimed`, unequal from date to date."""
    out = []
    for arm in range(arms):
        for name in parameters:
            s = rng.uniform(0.5, 2.0, size=dates)
            days = 7.0 * np.arange(dates)
            out.append(
                Course(
                    arm=f"r{arm:02d}",
                    parameter=name,
                    like="coulomb",
                    dates=tuple(f"2026-01-{1 + k:02d}" for k in range(dates)),
                    days=days,
                    values=5.0 + rng.normal() + truth * s * rng.normal(size=dates),
                    deviations=claimed * s,
                )
            )
    return out


@pytest.mark.parametrize(
    ("arms", "dates", "claimed"), [(50, 6, 1.0), (20, 8, 0.3), (20, 4, 3.0), (5, 5, 1.0), (1, 12, 1.0), (2, 3, 0.5)]
)
def test_fleets_without_a_change_raise_alarms_as_rarely_as_stated(arms, dates, claimed):
    """Whatever deviations the estimates claim: the scatter is measured."""
    rng = np.random.default_rng(arms)
    runs = 60
    alarmed = sum(any(d.alarm for d in drifts(fleet(rng, arms, dates, 1.0, claimed), 0.05)) for _ in range(runs))
    # 60 runs at 5 % have more than 9 with a probability of 0.1 %.
    assert alarmed <= 9


def test_a_step_and_a_ramp_are_found_with_arm_parameter_and_date():
    rng = np.random.default_rng(0)
    courses = fleet(rng, 50)
    courses[6].values[5:] += 8.0 * courses[6].deviations.mean()
    courses[31].values[3:] += 0.35 * (courses[31].days[3:] - courses[31].days[2])
    found = [d for d in drifts(courses) if d.alarm]
    assert {(d.arm, d.parameter) for d in found} == {("r03", "joint1.coulomb"), ("r15", "joint2.coulomb")}
    by_arm = {d.arm: d for d in found}
    assert (by_arm["r03"].kind, by_arm["r03"].since) == ("step", "2026-01-06")
    assert by_arm["r15"].kind == "ramp"
    assert abs(int(by_arm["r15"].since[-2:]) - 4) <= 1
    assert by_arm["r15"].low < 0.35 * 35.0 < by_arm["r15"].high
    assert by_arm["r15"].per_day_low > 0.0


def test_worn_arms_do_not_hide_one_another():
    rng = np.random.default_rng(1)
    courses = fleet(rng, 50)
    for k in range(0, 50, 10):
        courses[2 * k].values[4:] += 12.0
    assert sum(d.alarm for d in drifts(courses)) == 5


def test_intervals_cover_the_planted_change():
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(60):
        courses = fleet(rng, 10)
        courses[0].values[4:] += 15.0
        (found,) = (d for d in drifts(courses) if (d.arm, d.parameter) == ("r00", "joint1.coulomb"))
        inside += found.low < 15.0 < found.high
    assert 50 <= inside <= 60


def test_units_and_order_do_not_matter():
    courses = fleet(np.random.default_rng(3), 6)
    a = {(d.arm, d.parameter): d.probability for d in drifts(courses)}
    b = {(d.arm, d.parameter): d.probability for d in drifts(courses[::-1])}
    assert a == pytest.approx(b)


def test_one_date_is_no_course_and_a_rate_is_a_probability():
    assert drifts(fleet(np.random.default_rng(4), 3, 1)) == ()
    with pytest.raises(InputError, match="between 0 and 1"):
        drifts([], 0.0)


def test_claims_that_say_little_and_bad_visits_raise_no_alarms():
    """Scatter that hardly depends on what estimates claim, and one visit in fifty off by itself."""
    rng = np.random.default_rng(7)
    alarmed = 0
    for _ in range(60):
        courses = fleet(rng, 30, 6)
        for course in courses:
            claimed = np.exp(rng.normal(size=6))
            course.deviations[:] = claimed
            off = 4.0 * (rng.random(6) < 0.02) * rng.normal(size=6)
            course.values[:] = claimed**0.3 * (rng.normal(size=6) + off)
        alarmed += any(d.alarm for d in drifts(courses))
    # 60 runs at 5 % have more than 8 with a probability of 0.5 %.
    assert alarmed <= 8


def test_of_a_joints_parameters_the_one_that_changes_most_raises_the_alarm():
    courses = [replace(course, part="joint1") for course in fleet(np.random.default_rng(8), 20)]
    for course, size in zip(courses[:2], (20.0, 10.0), strict=True):
        course.values[4:] += size
    found = [d for d in drifts(courses) if d.alarm]
    assert [(d.arm, d.parameter) for d in found] == [("r00", "joint1.coulomb")]

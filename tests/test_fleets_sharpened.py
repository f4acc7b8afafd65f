"""A parameter given the others of its joint: sharper where a motion confuses them, and only as far as the fleet bears out."""

from __future__ import annotations

import numpy as np
import pytest

from armid.fleets.course import courses_of
from armid.fleets.drift import drifts
from armid.fleets.sharpened import sharpened_courses
from support.fleet_visits import NAMES, drawn_visits


def scatter(courses):
    return float(np.std([course.values - course.values.mean() for course in courses]))


def test_errors_that_go_against_each_other_are_taken_out():
    done = drawn_visits(-0.98, -0.98)
    plain, sharp = courses_of(done, NAMES), sharpened_courses(done, NAMES)
    assert scatter(sharp) < 0.35 * scatter(plain)
    done[-1].values[1] += 2.5
    found = [d for d in drifts(sharpened_courses(done, NAMES)) if d.alarm]
    assert [(d.arm, d.since) for d in found] == [("r29", "2026-06-01")]  # which of the two is named may be chance
    assert not any(d.alarm for d in drifts(courses_of(done, NAMES)))


def test_correlations_that_the_fleet_does_not_show_are_not_believed():
    done = drawn_visits(0.0, -0.98)
    plain, sharp = courses_of(done, NAMES), sharpened_courses(done, NAMES)
    assert scatter(sharp) == pytest.approx(scatter(plain), rel=0.1)
    assert not any(d.alarm for d in drifts(sharp))

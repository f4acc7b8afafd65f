"""Distances of shapes that are apart, against closed forms and against MuJoCo."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Sphere
from armid.scene.hull_distances import HullDistances
from armid.scene.separation import fewer_corners, points_from_hull

SHAPES = (Box((0.2, 0.1, 0.06)), Cylinder(0.05, 0.2), Capsule(0.04, 0.1), Sphere(0.07))


def random_places(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The base at rest and one moving body, shapes [count, 2, 3, 3] and [count, 2, 3]."""
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    turned *= np.sign(np.linalg.det(turned))[:, np.newaxis, np.newaxis]
    R = np.stack([np.tile(np.eye(3), (count, 1, 1)), turned], axis=1)
    p = np.stack([np.zeros((count, 3)), rng.uniform(-0.25, 0.25, size=(count, 3))], axis=1)
    return R, p


def asked(pair: HullDistances, R: np.ndarray, p: np.ndarray, enough: float):
    k = np.arange(len(R))
    one, pairs = np.zeros(len(R), dtype=np.intp), np.tile([1, 0], (len(R), 1))
    room = np.zeros((len(R), 1, 3))
    quick = pair.nearest(R, p, k, pairs, rows=one, enough=np.full(len(R), enough), directions=room)
    again = pair.nearest(R, p, k, pairs, rows=one, enough=np.full(len(R), enough), directions=room)
    return quick, again, pair.witnesses(R, p, k, pairs)


@pytest.mark.parametrize("first", SHAPES)
@pytest.mark.parametrize("second", SHAPES)
def test_distances_are_those_of_mujoco(first, second):
    pair = HullDistances(((0, Geometry(first)), (1, Geometry(second))))
    quick, again, exact = asked(pair, *random_places(150, 1), np.inf)
    # The prism around a cylinder is up to 0.5 % of its radius wider.
    wider = 0.005 * 0.05 * sum(isinstance(shape, Cylinder) for shape in (first, second)) * 1.5
    for found in (quick, again):
        assert (found.distance <= exact.distance + 1e-6).all()
        assert (found.distance >= exact.distance - wider - 1e-6).all()
    apart = exact.distance > 0.01
    assert (exact.distance < 0.0).any()
    assert apart.any()
    assert (np.sum(quick.normal * exact.normal, axis=1)[apart] > 0.98).all()


def test_a_bound_that_is_enough_is_a_bound():
    pair = HullDistances(((0, Geometry(SHAPES[0])), (1, Geometry(SHAPES[1]))))
    quick, again, exact = asked(pair, *random_places(300, 2), 0.03)
    for found in (quick, again):
        assert (found.distance <= exact.distance + 1e-6).all()
        # A pair is called farther than enough only if it is, and nothing nearer is left at a mere bound.
        near = exact.distance < 0.03
        np.testing.assert_allclose(found.distance[near], exact.distance[near], atol=5e-4)


def test_threads_that_ask_at_once_do_not_disturb_one_another():
    """Each has a place of its own to work in: with one for all, distances of other poses came back, and MuJoCo crashed."""
    pair = HullDistances(tuple((k, Geometry(Cylinder(0.1, 0.3))) for k in range(2)))
    places = [random_places(400, seed) for seed in range(8)]
    alone = [asked(pair, R, p, np.inf)[2].distance for R, p in places]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda place: asked(pair, *place, np.inf)[2].distance, places))
    np.testing.assert_array_equal(together, alone)


def test_the_distance_of_points_from_a_cube():
    cube = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
    points = np.random.default_rng(0).normal(scale=2.0, size=(500, 3))
    away = np.empty(len(points))
    points_from_hull(points, cube, away)
    np.testing.assert_allclose(away, np.linalg.norm(np.maximum(np.abs(points) - 1.0, 0.0), axis=1), atol=1e-6)


def test_fewer_corners_and_their_radius_contain_the_hull():
    rng = np.random.default_rng(3)
    ball = rng.normal(size=(3000, 3))
    ball *= 0.05 / np.linalg.norm(ball, axis=1, keepdims=True)
    kept, radius = fewer_corners(ball)
    assert len(kept) < 1500
    assert radius <= 2e-4
    away = np.empty(len(ball))
    points_from_hull(ball, kept, away)
    assert away.max() <= radius + 1e-7

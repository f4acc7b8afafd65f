"""Positive definite mass matrices: a closed form, and the check of [Halper2024]."""

from __future__ import annotations

import numpy as np
import pytest

from armid.consistency.positivity import positivity_along, positivity_over, smallest_eigenvalues, with_standard
from armid.kernels.dynamics import mass_matrix
from armid.robot import Elementary, Joint, JointKind, Link, Move, Robot
from armid.robot.load import load_robot
from support.iiwa_motions import FEASIBILITY_A, FEASIBILITY_B

LENGTH = 0.5

# [Halper2024] table 4.1, inertial part, link by link: mx, my, Ixx, Ixy, Ixz, Iyz, Izz (regrouped where the thesis writes R).
TABLE_4_1 = {
    1: (0, 0, 0, 0, 0, 0, 4.276),
    2: (0.06, -5.8, 4.143, -0.925, 1.443, 0.444, 9.572),
    3: (0.033, -0.071, 0.669, -1.261, -0.346, -0.392, 0.628),
    4: (-0.037, -2.254, 2.67, 0.001, -0.041, 0.146, 1.909),
    5: (0.006, -0.084, 0.079, -0.159, 0.022, -0.165, 0.061),
    6: (-0.03, -0.12, 0.352, 0.028, 0.056, -0.087, 0.48),
    7: (-0.003, 0.048, -0.005, 0.053, -0.057, -0.154, 0.27),
}


def halper_arm() -> Robot:
    names = ("mx", "my", "Ixx", "Ixy", "Ixz", "Iyz", "Izz")
    values = {f"link{i}.{name}": v for i, row in TABLE_4_1.items() for name, v in zip(names, row, strict=True)}
    return with_standard(load_robot("iiwa14"), values)


def test_halper_is_positive_along_its_trajectory() -> None:
    w = 2 * np.pi / 20.0 * np.arange(1, 6)
    t = np.linspace(0.0, 20.0, 2001)
    q = np.sin(np.outer(t, w)) @ (FEASIBILITY_A / w[:, None]) - np.cos(np.outer(t, w)) @ (FEASIBILITY_B / w[:, None])
    found = positivity_along(halper_arm(), q)
    assert found.positive
    # Smallest eigenvalue published for this check with this trajectory's digits.
    assert found.smallest == pytest.approx(0.014, abs=5e-4)


def test_halper_is_positive_over_the_joint_space() -> None:
    found = positivity_over(halper_arm())
    assert 0.0 < found.smallest < 0.0139
    lower, upper = halper_arm().limit("lower"), halper_arm().limit("upper")
    assert np.all((lower <= found.configuration) & (found.configuration <= upper))
    again = smallest_eigenvalues(halper_arm(), found.configuration[None])
    assert again[0] == pytest.approx(found.smallest, rel=1e-9)


def planar(first: float, moment: float, second: float) -> Robot:
    """Two parallel axes: M = [[first + second + 2 b cos q2, second + b cos q2], [., second]], b = LENGTH moment."""
    joints = (
        Joint(name="a", kind=JointKind.REVOLUTE, transforms=(Elementary(motion=Move.RZ, variable=True),)),
        Joint(
            name="b",
            kind=JointKind.REVOLUTE,
            transforms=(Elementary(motion=Move.TX, value=LENGTH), Elementary(motion=Move.RZ, variable=True)),
        ),
    )
    robot = Robot(name="planar", joints=joints, links=(Link("one", None), Link("two", None)))
    return with_standard(robot, {"link1.Izz": first, "link2.mx": moment, "link2.Izz": second})


@pytest.mark.parametrize(("moment", "positive"), [(0.4, True), (2.0, False)])
def test_search_finds_the_worst_configuration(moment: float, positive: bool) -> None:
    first, second, b = 1.0, 0.3, LENGTH * moment
    q2 = np.linspace(-np.pi, np.pi, 20001)
    c = b * np.cos(q2)
    half, product = first / 2 + second + c, (first + second + 2 * c) * second - (second + c) ** 2
    expected = float((half - np.sqrt(half**2 - product)).min())
    found = positivity_over(planar(first, moment, second))
    assert found.positive is positive
    assert found.smallest == pytest.approx(expected, abs=1e-5)


def test_rotors_count() -> None:
    robot = planar(1.0, 0.4, 0.3)
    heavier = with_standard(robot, {"link1.Izz": 1.0, "link2.mx": 0.4, "link2.Izz": 0.3, "joint2.rotor_inertia": 5.0})
    assert positivity_over(heavier).smallest > positivity_over(robot).smallest
    q = np.zeros((1, 2))
    assert mass_matrix(heavier, q) == pytest.approx(mass_matrix(robot, q))

"""Regroupings in closed form against published ones, symbol by symbol, and against samples on any chain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy

from armid.identifiability.errors import NothingIdentifiableError, UnsupportedClosedFormError
from armid.identifiability.expressions import Notation, plain
from armid.identifiability.regrouping import Regrouping, regroup
from armid.parameters.effects import Effects, PayloadRuns
from armid.robot import Robot
from armid.robot.catalogue import catalogue_names
from armid.robot.load import load_robot
from armid.rows.axis_inertia import AxisInertiaRows
from armid.rows.gravity import GravityRows
from armid.rows.inertia_matrix import InertiaMatrixRows
from armid.rows.torque import TorqueRows
from support.arms import rx90, scara, seed_iiwa, seed_lwr
from support.chains import random_robot


def expected(text: str) -> dict[str, sympy.Expr]:
    """Terms of an expression such as `my2 + d3*m3`: m, mx.., Ixx.., Ia with the number of the link."""
    quantities = {"m": "mass", "Ia": "rotor_inertia"}
    names = {}
    for k in range(1, 8):
        for short in ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "Ia"):
            owner = "joint" if short == "Ia" else "link"
            names[sympy.Symbol(f"{short}{k}")] = f"{owner}{k}.{quantities.get(short, short)}"
    expression = sympy.expand(sympy.sympify(text))
    return {name: expression.coeff(symbol) for symbol, name in names.items() if expression.coeff(symbol) != 0}


def assert_regrouped(found: Regrouping, texts: list[str]) -> None:
    """Exactly these combinations, and every other base parameter alone."""
    combined = {}
    for text in texts:
        terms = expected(text)
        combined[next(n for n in found.base.names if n in terms)] = terms
    for name, terms in zip(found.base.names, found.terms, strict=True):
        wanted = combined.get(name, {name: sympy.Integer(1)})
        assert terms.keys() == wanted.keys(), name
        for key, value in terms.items():
            assert sympy.expand(value - wanted[key]) == 0, (name, key, value, wanted[key])
    assert set(combined) <= set(found.base.names)


def test_halper_eq_3_39() -> None:
    found = regroup(TorqueRows(seed_iiwa(), Effects(viscous=True, coulomb=True)))
    upper = "(d3 + d4)*(m4 + m5 + m6 + m7)"
    upper2 = "(d3 + d4)**2*(m4 + m5 + m6 + m7)"
    fore, fore2 = "(d5 + d6)*(m6 + m7)", "(d5 + d6)**2*(m6 + m7)"
    assert_regrouped(
        found,
        [
            "Izz1 + Iyy2",
            f"my2 + mz3 + d3*m3 + {upper}",
            f"Ixx2 - Iyy2 + Iyy3 + 2*d3*mz3 + d3**2*m3 + {upper2}",
            f"Izz2 + Iyy3 + 2*d3*mz3 + d3**2*m3 + {upper2}",
            "my3 - mz4",
            "Ixx3 - Iyy3 + Iyy4",
            "Iyz3 + d4*mz4",
            "Izz3 + Iyy4",
            f"my4 + mz5 + d5*m5 + {fore}",
            f"Ixx4 + Iyy5 - Iyy4 + 2*d5*mz5 + d5**2*m5 + {fore2}",
            f"Izz4 + Iyy5 + 2*d5*mz5 + d5**2*m5 + {fore2}",
            "my5 - mz6",
            "Ixx5 - Iyy5 + Iyy6",
            "Iyz5 + d6*mz6",
            "Izz5 + Iyy6",
            "my6 + mz7 + d7*m7",
            "Ixx6 - Iyy6 + Iyy7 + 2*d7*mz7 + d7**2*m7",
            "Izz6 + Iyy7 + 2*d7*mz7 + d7**2*m7",
            "Ixx7 - Iyy7",
        ],
    )


@pytest.mark.parametrize("robot", [seed_lwr(), load_robot("lwr4-dh")], ids=["table", "lwr4-dh"])
def test_gaz_eq_28(robot: Robot) -> None:
    found = regroup(GravityRows(robot))
    assert_regrouped(
        found,
        [
            "mz6 + mz7",
            "mz5 - my6",
            "my5 + mz4 + d2*(m5 + m6 + m7)",
            "my4 + mz3",
            "mz2 - my3 + d1*(m3 + m4 + m5 + m6 + m7)",
        ],
    )
    assert set(found.base.names) == {
        "link7.my",
        "link7.mx",
        "link6.mx",
        "link6.mz",
        "link5.mz",
        "link5.mx",
        "link4.mz",
        "link4.mx",
        "link3.mz",
        "link2.mx",
        "link3.mx",
        "link2.mz",
    }


def test_scara() -> None:
    """Khalil and Dombre: eight parameters of the arm with three vertical axes and a slide."""
    found = regroup(TorqueRows(scara()))
    assert found.base.names == (
        "link1.Izz",
        "link2.mx",
        "link2.my",
        "link2.Izz",
        "link3.mx",
        "link3.my",
        "link3.Izz",
        "link4.mass",
    )
    assert_regrouped(
        found,
        [
            "Izz1 + L1**2*(m2 + m3)",
            "mx2 + L2*m3",
            "Izz2 + L2**2*m3",
            "mx3 + mx4",
            "my3 + my4",
            "Izz3 + Izz4",
        ],
    )


def test_puma_type_arm() -> None:
    """Khalil and Dombre, the Staubli RX-90 with rotor inertias: forty parameters."""
    found = regroup(TorqueRows(rx90(), Effects(rotor_inertia=True)))
    assert len(found.base) == 40
    outer, wrist = "D3**2*(m3 + m4 + m5 + m6)", "2*RL4*mz4 + RL4**2*(m4 + m5 + m6)"
    assert_regrouped(
        found,
        [
            f"Izz1 + Ia1 + Iyy2 + Iyy3 + {outer}",
            f"Ixx2 - Iyy2 - {outer}",
            "Ixz2 - D3*mz3",
            f"Izz2 + Ia2 + {outer}",
            "mx2 + D3*(m3 + m4 + m5 + m6)",
            f"Ixx3 - Iyy3 + Iyy4 + {wrist}",
            f"Izz3 + Iyy4 + {wrist}",
            "my3 + mz4 + RL4*(m4 + m5 + m6)",
            "Ixx4 + Iyy5 - Iyy4",
            "Izz4 + Iyy5",
            "my4 - mz5",
            "Ixx5 + Iyy6 - Iyy5",
            "Izz5 + Iyy6",
            "my5 + mz6",
            "Ixx6 - Iyy6",
        ],
    )


def test_a_vertical_slide_cannot_tell_its_weight_from_an_offset() -> None:
    found = regroup(TorqueRows(load_robot("cylindrical"), Effects(offset=True)))
    # Joint 2 lifts links 2 and 3; its mass is also accelerated, so the weight stays identifiable beside the offset.
    assert "joint2.offset" in found.base.names
    still = regroup(GravityRows(load_robot("cylindrical")))
    assert still.base.names == ("link2.mass",)
    assert still["link2.mass"] == {"link2.mass": 1, "link3.mass": 1}


@pytest.mark.parametrize("runs", [PayloadRuns.LOADED, PayloadRuns.BOTH])
def test_payload(runs: PayloadRuns) -> None:
    effects = Effects(payload=runs)
    loads = (True, False) if runs is PayloadRuns.BOTH else (True,)
    found = regroup(*(TorqueRows(seed_iiwa(), effects, loaded=loaded) for loaded in loads))
    assert len(found.base) == (53 if runs is PayloadRuns.BOTH else 43)
    if runs is PayloadRuns.LOADED:
        assert found["link7.mx"] == {"link7.mx": 1, "payload.mx": 1}
        d = sympy.Symbol("d7")
        assert found["link6.my"] == {"link6.my": 1, "link7.mass": d, "link7.mz": 1, "payload.mass": d, "payload.mz": 1}


@pytest.mark.parametrize("name", catalogue_names())
@pytest.mark.parametrize("kind", [TorqueRows, GravityRows, InertiaMatrixRows, AxisInertiaRows])
def test_every_catalogue_robot(name: str, kind: type) -> None:
    """`regroup` compares sets and coefficients with those from samples and raises where they differ."""
    robot = load_robot(name)
    if robot.coupling is not None and kind is AxisInertiaRows:
        with pytest.raises(UnsupportedClosedFormError, match="numeric base parameters"):
            regroup(kind(robot))
        return
    effects = (
        Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True)
        if kind is TorqueRows and robot.coupling is None
        else Effects()
    )
    found = regroup(kind(robot, effects))
    assert len(found.terms) == len(found.base)


def with_symbols(robot: Robot) -> Robot:
    """Every constant length gets a name."""
    joints, count = [], 0
    for joint in robot.joints:
        chain = []
        for element in joint.transforms:
            if not element.motion.is_rotation and not element.variable:
                count += 1
                element = replace(element, symbol=f"l{count}")
            chain.append(element)
        joints.append(replace(joint, transforms=tuple(chain)))
    return replace(robot, joints=tuple(joints))


@pytest.mark.parametrize("seed", range(24))
def test_random_chains(seed: int) -> None:
    """Revolute and prismatic joints in any placement: closed forms hold for other lengths than those they came from."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 1 + seed % 5)
    if seed % 2:
        robot = robot.with_gravity([0.0, 0.0, -9.81])
    kind = (TorqueRows, InertiaMatrixRows, AxisInertiaRows, GravityRows)[seed % 4]
    effects = Effects(offset=True, rotor_inertia=True) if kind is TorqueRows else Effects()
    named = with_symbols(robot)
    try:
        found = regroup(kind(named, effects))
    except NothingIdentifiableError:
        assert kind is GravityRows
        return
    longer = {name: 1.7 * value for name, value in found.lengths.items()}
    from armid.identifiability.regrouping import with_lengths
    from armid.identifiability.structure import structural_base

    other = structural_base(kind(with_lengths(named, longer), effects))
    assert other.names == found.base.names
    for i, terms in enumerate(found.terms):
        numeric = other.terms(i)
        for name, value in terms.items():
            at = float(value.subs(longer))
            assert at == pytest.approx(numeric.get(name, 0.0), rel=1e-6, abs=1e-6)


def test_expressions_are_readable() -> None:
    terms = regroup(TorqueRows(seed_iiwa()))["link2.my"]
    assert (
        plain(terms)
        == "link2.my + link3.mz + d3*link3.mass + (d3 + d4)*(link4.mass + link5.mass + link6.mass + link7.mass)"
    )
    notation = Notation.of(TorqueRows(seed_iiwa()).space)
    assert notation.unicode(terms) == "my₂ + mz₃ + d₃ m₃ + (d₃ + d₄) (m₄ + m₅ + m₆ + m₇)"
    assert r"\left" not in notation.latex(terms)
    assert "d_{3}" in notation.latex(terms)


def test_seven_joints_with_friction_are_fast() -> None:
    import time

    start = time.process_time()
    regroup(TorqueRows(seed_iiwa(), Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True)))
    assert time.process_time() - start < 10.0  # asked: gravity and base parameters in 20 s; takes about 0.4 s

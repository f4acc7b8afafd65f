"""Which parameters a motion excites."""

from __future__ import annotations

import numpy as np
import pytest

from armid.errors import InputError
from armid.identifiability.criteria import standard_deviations
from armid.identifiability.excitation import excitation
from armid.identifiability.structure import random_inputs, structural_base
from armid.information.accumulate import accumulate
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects
from armid.rows.torque import TorqueRows
from support.arms import scara, seed_iiwa


def information(source: TorqueRows, x: np.ndarray) -> object:
    return accumulate(source, x, np.zeros((len(x), len(source.channels))))


def test_a_rich_motion_excites_everything() -> None:
    source = TorqueRows(seed_iiwa(), Effects(viscous=True, coulomb=True))
    base = structural_base(source)
    x = random_inputs(source, 400, np.random.default_rng(0))
    found = excitation(information(source, x), base, 0.5)
    assert found.is_persistent
    assert found.notes == ()
    A = evaluate_rows(source, x)[..., base.independent].reshape(-1, len(base))
    np.testing.assert_allclose(found.standard_deviations, standard_deviations(A, 0.5), rtol=1e-8)
    B = A / np.linalg.norm(A, axis=0)
    np.testing.assert_allclose(found.strength, 1 / np.sqrt(np.diag(np.linalg.inv(B.T @ B))), rtol=1e-8)
    values = np.linalg.svd(B, compute_uv=False)
    assert found.bounds == pytest.approx((values[-1] ** 2, values[0] ** 2))


def test_a_locked_joint_is_found_out() -> None:
    source = TorqueRows(scara(), Effects(viscous=True))
    base = structural_base(source)
    x = random_inputs(source, 200, np.random.default_rng(1))
    x[:, [0, 4, 8]] = 0.0  # joint 1 stands still: position, velocity, acceleration
    found = excitation(information(source, x), base, 1.0)
    assert not found.is_persistent
    assert "joint1.viscous" in found.not_excited
    assert "link4.mass" not in found.not_excited
    assert np.isinf(found.standard_deviations[base.index("joint1.viscous")])
    assert np.isfinite(found.standard_deviations[base.index("link4.mass")])
    assert found.notes[0].code == "not-excited"
    assert "joint1.viscous" in found.notes[0].message


def test_standing_still_excites_only_weight() -> None:
    source = TorqueRows(seed_iiwa())
    base = structural_base(source)
    x = random_inputs(source, 100, np.random.default_rng(2))
    x[:, 7:] = 0.0
    found = excitation(information(source, x), base)
    excited = {name for name, yes in zip(base.names, found.excited, strict=True) if yes}
    assert excited == {name for name in base.names if name.partition(".")[2] in ("mx", "my")}
    assert len(excited) == 12


def test_nearly_equal_columns_are_weak_and_the_combination_is_named() -> None:
    source = TorqueRows(scara(), Effects(viscous=True, coulomb=True))
    base = structural_base(source)
    rng = np.random.default_rng(3)
    x = random_inputs(source, 300, rng)
    x[:, 4] = np.sign(x[:, 4]) * (1.0 + 1e-6 * rng.normal(size=300))  # viscous and Coulomb friction look the same
    found = excitation(information(source, x), base)
    assert set(found.not_excited) == {"joint1.viscous", "joint1.coulomb"}
    names = {name for name, _ in found.unexcited_directions[0].combination}
    assert names == {"joint1.viscous", "joint1.coulomb"}


def test_noise_per_channel() -> None:
    source = TorqueRows(scara())
    base = structural_base(source)
    summary = information(source, random_inputs(source, 80, np.random.default_rng(4)))
    quiet = excitation(summary, base, {name: 0.1 for name in source.channels})
    loud = excitation(summary, base, 1.0)
    np.testing.assert_allclose(10 * quiet.standard_deviations, loud.standard_deviations, rtol=1e-9)
    with pytest.raises(InputError, match="positive standard deviation"):
        excitation(summary, base, {"j1": 1.0})
    with pytest.raises(InputError, match="different parameter vectors"):
        excitation(summary, structural_base(TorqueRows(seed_iiwa())), 1.0)

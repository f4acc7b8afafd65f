"""The reference optimum of [Lee2020]: 16 bodies, three regularisers, one weighted error."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.io import loadmat

from armid.consistency.bounds import Bounds, Support
from armid.consistency.consistent import Consistency
from armid.consistency.prior import Prior
from armid.consistency.regularisers import Entropic, Euclidean, PullBack
from armid.information.information import ChannelInformation, Information, triangular
from armid.parameters.inertial import INERTIAL_NAMES
from support.realdata import real_data

THEIR_ORDER = (0, 1, 2, 3, 4, 7, 9, 5, 8, 6)
"""Their (m, h, Ixx, Iyy, Izz, Ixy, Iyz, Ixz) at each of our places."""
GAMMA = 914342.736
LS_ERROR = 1331878.41


@pytest.fixture(scope="module")
def reference():
    data = loadmat(real_data("dynamics", "lee2020", "Train_data_human.mat"), squeeze_me=True)
    result = loadmat(real_data("dynamics", "lee2020", "result.mat"), squeeze_me=True)
    ours = np.concatenate([10 * body + np.array(THEIR_ORDER) for body in range(16)])
    weight = 1.0 / np.sqrt(np.diag(result["Sigma"]))
    A, b = data["A"][:, ours] * weight[:, None], data["b"] * weight
    names = tuple(f"link{i + 1}.{name}" for i in range(16) for name in INERTIAL_NAMES)
    information = Information(
        names, (ChannelInformation("all", np.arange(160), triangular(np.column_stack([A, b])), float(len(b))),)
    )
    prior = Prior(names=names, values=data["Phi_prior"].T.ravel()[ours], scale=np.ones(160), origin={})
    bounds = Bounds(where={f"link{i + 1}": (Support(data["Q"][i]),) for i in range(16)}, margin=0.0)
    solved = {key: result[f"Params_{key}"]["Phi"].item().T.ravel()[ours] for key in ("Euc", "entropic", "pullback")}
    return information, prior, bounds, solved


def fit(reference, regulariser, budget=None):
    information, prior, bounds, _ = reference
    return Consistency(regulariser, bounds, error_budget=budget).fit(information, ("",) * 160, prior)


def test_euclidean_optimum_has_the_published_error(reference):
    estimate = fit(reference, Euclidean(GAMMA))
    assert estimate.chi_square == pytest.approx(LS_ERROR, rel=2e-5)
    assert np.linalg.norm(estimate.values - reference[3]["Euc"]) < 1e-4 * np.linalg.norm(reference[3]["Euc"])


@pytest.mark.parametrize(("key", "regulariser"), [("entropic", Entropic(1.0)), ("pullback", PullBack(1.0))])
def test_invariant_regularisers_reach_the_reference_divergence_at_the_same_error(reference, key, regulariser):
    _, prior, _, solved = reference
    estimate = fit(reference, regulariser, budget=LS_ERROR)
    assert estimate.chi_square == pytest.approx(LS_ERROR, rel=1e-6)
    assert regulariser.value(estimate.values, prior) == pytest.approx(regulariser.value(solved[key], prior), rel=1e-5)
    assert np.linalg.norm(estimate.values - solved[key]) < 1e-4 * np.linalg.norm(solved[key])

"""Rank tied to measurement noise: which base parameters a given log can tell from nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.errors import InputError
from armid.identifiability.base import BaseParameters, base_parameters
from armid.identifiability.detection import DETECTED, detected_base, noise_tolerance, residual_noise
from armid.identifiability.structure import random_inputs, structural_base
from armid.information.accumulate import accumulate
from armid.information.information import ChannelInformation, Information
from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from support.arms import scara


def of_rows(A: np.ndarray, y: np.ndarray) -> tuple[Information, BaseParameters]:
    """Rows of one channel as information, and base parameters that keep every column."""
    factor = np.linalg.qr(np.column_stack([A, y]), mode="r")
    factor *= np.where(np.diag(factor) < 0, -1.0, 1.0)[:, np.newaxis]
    names = tuple(f"p{k}" for k in range(A.shape[1]))
    channel = ChannelInformation("c", np.arange(A.shape[1]), factor, float(len(A)))
    return Information(names, (channel,)), base_parameters(A, parameters=names)


def nearly_parallel(angle: float, count: int = 100) -> np.ndarray:
    """Two columns of unit length with a known small angle between them."""
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(count, 2)))[0]
    return np.column_stack([U[:, 0], np.cos(angle) * U[:, 0] + np.sin(angle) * U[:, 1]])


@pytest.mark.parametrize("noise", [0.001, 0.002, 0.01, 0.05])
def test_a_direction_counts_while_it_can_exceed_three_deviations(noise: float) -> None:
    """Columns at the angle a have the singular values sqrt(1 +- cos a): the ratio is tan(a / 2)."""
    A = nearly_parallel(0.02)
    y = A @ [1.0, 1.0]
    information, base = of_rows(A, y)
    found = detected_base(information, base, {"c": noise})
    assert len(found) == (2 if np.tan(0.01) > DETECTED * noise / np.linalg.norm(y) else 1)
    assert found.decision.tolerance == pytest.approx(DETECTED * noise / np.linalg.norm(y))
    assert "noise" in found.decision.reason
    assert found.names[0] == "p0"


def test_four_times_the_data_see_half_as_far_down() -> None:
    A = nearly_parallel(0.3)
    y = A @ [2.0, -0.5]
    once, _ = of_rows(A, y)
    four, _ = of_rows(np.tile(A, (4, 1)), np.tile(y, 4))
    assert noise_tolerance(four, {"c": 0.1}) == pytest.approx(0.5 * noise_tolerance(once, {"c": 0.1}))


def test_noise_is_what_the_fit_leaves() -> None:
    rng = np.random.default_rng(1)
    source = TorqueRows(scara(), Effects(viscous=True))
    x = random_inputs(source, 4000, rng)
    clean = evaluate_rows(source, x) @ rng.uniform(0.5, 1.5, len(source.columns))
    deviations = np.array([0.3, 0.1, 0.2, 0.05])
    information = accumulate(source, x, clean + deviations * rng.normal(size=clean.shape))
    found = residual_noise(information)
    np.testing.assert_allclose([found[c] for c in source.channels], deviations, rtol=0.05)  # 4000 samples: 1.1 %
    wider = residual_noise(information, samples_per_independent=4.0)
    assert wider[source.channels[0]] == pytest.approx(2.0 * found[source.channels[0]])
    base = structural_base(source)
    assert detected_base(information, base, found).names == base.names


def test_nothing_above_the_noise_is_an_error() -> None:
    information, base = of_rows(nearly_parallel(0.5), np.full(100, 1e-6))
    with pytest.raises(InputError, match="no larger than it"):
        detected_base(information, base, {"c": 1.0})
    with pytest.raises(InputError, match="noise of channel 'c'"):
        detected_base(information, base, {})


def run(*words: str, code: int = 0) -> tuple[dict[str, object], str]:
    outcome = CliRunner().invoke(application(), ["inspect", *words, "--json"])
    assert outcome.exit_code == code, outcome.output
    return (json.loads(outcome.stdout) if code == 0 else {}), outcome.stderr


def test_inspect_says_what_a_log_loses_in_its_noise(tmp_path: Path) -> None:
    """A gentle motion with loud torque loses what depends on acceleration; the same noise said to be small keeps it."""
    robot = load_robot("cmu-dd-arm2")
    rng = np.random.default_rng(2)
    t = np.arange(0.0, 20.0, 0.01)
    w = 2 * np.pi * np.array([0.05, 0.07, 0.11])
    q, qd, qdd = 0.5 * np.sin(t[:, None] * w), 0.5 * w * np.cos(t[:, None] * w), -0.5 * w**2 * np.sin(t[:, None] * w)
    tau = inverse_dynamics(robot, q, qd, qdd) + rng.normal(0.0, 5.0, q.shape)
    header = ",".join(["time", *(f"q_{n}" for n in robot.joint_names), *(f"tau_{n}" for n in robot.joint_names)])
    path = tmp_path / "log.csv"
    np.savetxt(path, np.column_stack([t, q, tau]), delimiter=",", header=header, comments="")
    found, _ = run("cmu-dd-arm2", "--log", str(path))
    above = found["excitation"]["above_noise"]  # type: ignore[index]
    n = found["base_parameters"]
    assert above["lost"]
    assert above["base_parameters"] + len(above["lost"]) == n
    quiet, _ = run("cmu-dd-arm2", "--log", str(path), "--noise", "1e-6")
    assert quiet["excitation"]["above_noise"]["base_parameters"] == n  # type: ignore[index]
    shown = CliRunner().invoke(application(), ["inspect", "cmu-dd-arm2", "--log", str(path)])
    assert "stand out of the noise; lost in it" in shown.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--noise", "1"), "given without a motion"),
        (("--noise", "x", "--log", "l.csv"), "not a list of numbers"),
    ],
)
def test_noise_is_checked(words: tuple[str, ...], message: str) -> None:
    assert message in run("cylindrical", *words, code=1)[1]

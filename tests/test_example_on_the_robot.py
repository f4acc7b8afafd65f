"""The example on the robot goes the whole way, against its simulated controller on the loopback."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "on_the_robot"


def test_from_design_to_observe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    import from_design_to_observe as example

    seen = example.main(tmp_path)
    middle = 0.5 * seen.received / seen.rate_hz
    hits = [c for c in seen.contacts if middle <= c.begins < middle + 0.5]
    assert seen.lost == 0
    assert len(hits) == 1
    assert hits[0].joint == seen.robot.joint_names[1]
    assert hits[0].torque == pytest.approx(4.0, abs=1.5)
    assert (tmp_path / "first" / "trajectory.csv").read_text().startswith("time [s],q_")
    for name in ("from_design_to_observe", "controller"):
        sys.modules.pop(name, None)

"""An installed armid, without any extra, identifies an arm from a log made here and writes its report."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import armid

STEP = 0.01
SECONDS = 8.0
SLOW = 0.8
"""Speed of the motion that is held out, over that of the training motion."""
NOISE = 0.02
"""Of the torque [N m]."""


def record(robot: armid.Robot, file: Path, speed: float, rng: np.random.Generator) -> Path:
    """A log of joint positions and torques of the described arm, with noise.

    Args:
        robot: what moves.
        file: CSV to write.
        speed: of the motion, relative.
        rng: of the noise.
    """
    t = np.arange(0.0, SECONDS, STEP)
    w = speed * (1.3 + 0.8 * np.arange(robot.n_joints))
    a = np.outer(t, w) + np.arange(robot.n_joints)
    q = np.sin(a) + 0.3 * np.sin(2.0 * a)
    qd = w * (np.cos(a) + 0.6 * np.cos(2.0 * a))
    qdd = -(w**2) * (np.sin(a) + 1.2 * np.sin(2.0 * a))
    torque = armid.inverse_dynamics(robot, q, qd, qdd) + NOISE * rng.standard_normal(q.shape)
    names = ["time", *(f"q_{name}" for name in robot.joint_names), *(f"tau_{name}" for name in robot.joint_names)]
    np.savetxt(file, np.column_stack([t, q, torque]), delimiter=",", header=",".join(names), comments="")
    return file


def main() -> None:
    """Identifies from one motion, tests on another, writes the page."""
    robot, rng = armid.load_robot(sys.argv[1]), np.random.default_rng(0)
    train, test = (record(robot, Path(f"{name}.csv"), v, rng) for name, v in (("log", 1.0), ("other", SLOW)))
    result = armid.identify(robot, train, validate=test, imperfections="none", sensitivity=False)
    page = result.report("report.html")
    loaded = sorted({name.split(".")[0] for name in sys.modules} & {"mujoco", "sympy", "plotly"})
    sys.stdout.write(f"armid {armid.__version__}: {result.verdict}, wrote {page}, extras loaded: {loaded or 'none'}\n")
    sys.exit(0 if result.relative_error["held_out"] < 0.05 and not loaded else 1)


if __name__ == "__main__":
    main()

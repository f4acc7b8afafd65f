"""The simulation studies of [Khosla1985]: its motion, and the values of its table 3."""

from __future__ import annotations

import numpy as np

from armid.rows.torque import TorqueRows

TABLE_3 = {
    "link3.Ixz": 0.1,
    "link3.Iyz": 0.15,
    "link3.Iyy": 0.2,
    "link3.Ixy": 0.15,
    "link3.Ixx": 0.2,
    "link3.Izz": 0.3,
    "link3.mx": 0.49,
    "link3.mz": 0.7,
    "link3.my": 0.525,
    "link3.mass": 3.5,
    "link2.Iyy": 0.5,
    "link2.mx": 1.1,
    "link2.mz": 0.55,
    "link2.mass": 5.5,
    "link1.Izz": 1.3,
    "link1.mx": 2.7,
    "link1.mass": 13.5,
}
"""True values of [Khosla1985] table 3."""

START_3 = {
    "link2.Iyy": 0.3,
    "link3.Ixx": 0.05,
    "link3.Izz": 0.1,
    "link2.mx": 0.4,
    "link3.my": 0.2,
    "link2.mass": 4.0,
    "link3.mass": 2.0,
    "link1.Izz": 1.0,
    "link1.mass": 10.0,
}
"""Its initial values; the others are zero."""


def sinusoid(n: int, count: int = 25, moving: tuple[int, ...] | None = None) -> np.ndarray:
    """[Khosla1985] sec. 4: from rest to ninety degrees (1.57 m) and back in a second, the first half at 20 ms; (q, qd, qdd)."""
    t = 0.02 * np.arange(1, count + 1)
    amplitude = np.zeros(n)
    amplitude[list(range(n) if moving is None else moving)] = np.pi / 2
    w = 2.0 * np.pi
    q = 0.5 * (1.0 - np.cos(w * t))[:, np.newaxis] * amplitude
    qd = 0.5 * w * np.sin(w * t)[:, np.newaxis] * amplitude
    qdd = 0.5 * w**2 * np.cos(w * t)[:, np.newaxis] * amplitude
    return np.hstack([q, qd, qdd])


def vector(source: TorqueRows, values: dict[str, float]) -> np.ndarray:
    return np.array([values.get(name, 0.0) for name in source.columns])

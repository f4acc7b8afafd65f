"""The body by which two identifications of one arm differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.parameters.inertial import INERTIAL_NAMES, N_INERTIAL


@dataclass(frozen=True, eq=False, kw_only=True)
class ToolChange:
    """The body by which two identifications of one arm differ; [Gaz2014] eqs. 31-32.

    Args:
        values: mass, first moments [kg, kg m] (and inertia [kg m^2] where it shows) in the last link's frame.
        names: of those.
        standard_deviations: of those.
        apart: for the mass, the estimate each single coefficient gives, name -> kg.
        frame: the last link's name.
    """

    names: tuple[str, ...]
    values: FloatArray
    standard_deviations: FloatArray
    apart: Mapping[str, float] = field(default_factory=dict)
    frame: str = ""

    @property
    def mass(self) -> float:
        """[kg]."""
        return self.value("mass")

    @property
    def centre_of_mass(self) -> tuple[float, float, float]:
        """[m], in the last link's frame; zero where the coefficients do not show it."""
        x, y, z = (self.value(name) / self.mass for name in ("mx", "my", "mz"))
        return x, y, z

    def value(self, name: str) -> float:
        """One of the ten parameters; zero where the coefficients do not show it."""
        return float(self.values[self.names.index(name)]) if name in self.names else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "mass": self.mass,
            "centre_of_mass": self.centre_of_mass,
            "values": dict(zip(self.names, self.values.tolist(), strict=True)),
            "standard_deviations": dict(zip(self.names, self.standard_deviations.tolist(), strict=True)),
            "frame": self.frame,
        }


def tool_change(before: Estimate, after: Estimate, n_joints: int) -> ToolChange:
    """What was added to the last link between two identifications of the same base parameters.

    after - before = P_last pi: least squares weighted by both covariances over what the coefficients show of the last link.
    """
    if before.base.parameters != after.base.parameters or before.names != after.names:
        raise InputError(
            "results", "two identifications of different base parameters", "use the same arm and quantities"
        )
    place = {name: i for i, name in enumerate(before.base.parameters)}
    last = [place[f"link{n_joints}.{name}"] for name in INERTIAL_NAMES]
    P = before.base.projection[:, last]
    seen = [k for k in range(N_INERTIAL) if np.any(P[:, k] != 0.0)]
    difference = after.values - before.values
    covariance = before.covariance + after.covariance
    # Identifications good to round-off would give some coefficients all the weight: the smallest deviation that counts.
    floor = 1e-6 * max(float(np.abs(after.values).max()), 1e-12)
    sigma = np.sqrt(np.maximum(np.diag(covariance), floor**2))
    A, y = P[:, seen] / sigma[:, np.newaxis], difference / sigma
    values = np.asarray(np.linalg.lstsq(A, y, rcond=1e-10)[0], dtype=np.float64)
    inverse = np.linalg.pinv(A.T @ A)
    S = inverse @ (A / sigma[:, np.newaxis]).T
    deviation = np.sqrt(np.maximum(np.diag(S @ covariance @ S.T), 0.0))
    masses = {
        name: float(difference[i] / P[i, 0])
        for i, name in enumerate(before.names)
        if P[i, 0] != 0.0 and np.count_nonzero(P[i]) == 1
    }
    return ToolChange(
        names=tuple(INERTIAL_NAMES[k] for k in seen), values=values, standard_deviations=deviation, apart=masses
    )

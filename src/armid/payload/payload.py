"""The answer about what an arm carries: mass, centre of mass and inertia of a body fixed to its last link."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.documents import write_json
from armid.errors import InputError
from armid.estimation.estimate import EstimatedParameter, estimated_parameters
from armid.identification.faults import Answer, Fault, faults_table
from armid.notes import Note, Severity
from armid.outcome import Check, Listing, Outcome, Provenance
from armid.page import Table
from armid.parameters.inertial import INERTIAL_NAMES, N_INERTIAL, inertial_problem, six, tensor, to_centre_of_mass
from armid.payload.checks import remainder_check
from armid.payload.formats import franka_set_load, kuka_load_data, ur_set_target_payload

_QUANTITIES = ("mass", "centre_x", "centre_y", "centre_z", *INERTIAL_NAMES[4:])
"""What a load is described by; inertias are about its centre of mass."""

_UNITS = ("kg", *["m"] * 3, *["kg m^2"] * 6)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Payload(Outcome):
    """A body carried by the arm.

    Args:
        frame: name of the frame all of it is given in.
        inertial: ten standard parameters about that frame's origin, in its axes.
        covariance: of those, shape [10, 10].
        separated: whether the motion told the inertia from the rest; otherwise `inertia` is that of a typical body.
        method: how it was found.
        faults: what could be wrong with the recordings, each with its answer; looked for where the arm moves.
        checks: what it was held against.
        notes: what a reader must know.
        provenance: inputs and settings.
    """

    _page: ClassVar[str] = "armid.report.payload:payload_page"
    _loads = True

    frame: str
    inertial: FloatArray
    covariance: FloatArray
    separated: bool
    method: str
    faults: Listing[Fault] = field(default_factory=lambda: Listing(()))
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inertial", read_only(self.inertial))
        object.__setattr__(self, "covariance", read_only(self.covariance))

    @property
    def mass(self) -> float:
        """[kg]."""
        return float(self.inertial[0])

    @property
    def centre_of_mass(self) -> FloatArray:
        """[m], shape [3]."""
        return to_centre_of_mass(self.inertial)[1]

    @property
    def inertia(self) -> FloatArray:
        """About the centre of mass, in the frame's axes [kg m^2], shape [3, 3]."""
        return to_centre_of_mass(self.inertial)[2]

    @property
    def standard_deviations(self) -> dict[str, npt.ArrayLike]:
        """Of mass, centre of mass and inertia about it, by the first-order rule; infinite where nothing was measured."""
        deviation = self._deviations()
        return {"mass": float(deviation[0]), "centre_of_mass": deviation[1:4], "inertia": tensor(deviation[4:])}

    def _deviations(self) -> FloatArray:
        """In the order of `_QUANTITIES`, shape [10]."""
        J, known = jacobian(self.inertial), np.isfinite(np.diag(self.covariance))
        variance = np.diag(J[:, known] @ self.covariance[np.ix_(known, known)] @ J[:, known].T)
        unseen = np.any(J[:, ~known] != 0.0, axis=1)
        deviation = np.where(unseen, np.inf, np.sqrt(np.maximum(variance, 0.0)))
        return deviation if self.separated else np.concatenate([deviation[:4], np.full(6, np.inf)])

    @property
    def parameters(self) -> Listing[EstimatedParameter]:
        """Mass, centre of mass and inertia as rows, with 95 % intervals."""
        values = np.concatenate([[self.mass], self.centre_of_mass, six(self.inertia)])
        return estimated_parameters(_QUANTITIES, values, self._deviations(), _UNITS)

    def interval(self, name: str) -> tuple[float, float]:
        """The 95 % interval of one number of the load (`mass`, `centre_x`, `Ixx`, ...).

        Raises:
            UnknownNameError: lists the names there are.
        """
        row = self.parameters[name]
        return row.low, row.high

    def without(self, known: npt.ArrayLike, name: str = "gripper") -> Payload:
        """What is left when a known body (ten parameters in the same frame) is taken away.

        Raises:
            InputError: the known body is heavier than all that was measured.
        """
        body = np.asarray(known, dtype=np.float64)
        if body.shape != (N_INERTIAL,):
            raise InputError(name, f"{body.size} numbers", "the ten standard parameters of a body")
        if problem := inertial_problem(body):
            raise InputError(name, problem, "the ten standard parameters of a body that can exist")
        if body[0] >= self.mass:
            raise InputError(name, f"{body[0]:g} kg, but only {self.mass:.4g} kg is carried", "check the known body")
        rest = self.inertial - body
        notes = self.notes
        if problem := inertial_problem(rest):
            text = f"after subtracting the {name} ({body[0]:g} kg) the rest is no possible body: {problem}"
            notes = (*notes, Note("impossible-remainder", Severity.WARNING, text, name))
        return replace(
            self,
            inertial=rest,
            checks=(*self.checks, remainder_check(rest, name)),
            notes=notes,
            method=f"{self.method}, {name} subtracted",
        )

    @property
    def makers(self) -> dict[str, str]:
        """The load as the controllers of three makers want it."""
        return {
            "kuka": kuka_load_data(self),
            "ur": ur_set_target_payload(self),
            "franka": franka_set_load(self),
        }

    def as_dict(self) -> dict[str, Any]:
        return {
            "mass": self.mass,
            "centre_of_mass": self.centre_of_mass,
            "inertia": self.inertia,
            "standard_deviations": self.standard_deviations,
            "frame": self.frame,
            "inertia_separated": self.separated,
            "method": self.method,
            **self.makers,
            "faults": [fault.as_dict() for fault in self.faults],
            "verdict": self.verdict,
            "reasons": self.reasons,
            "checks": [check.as_dict() for check in self.checks],
            "notes": [note.as_dict() for note in self.notes],
        }

    def _heading(self) -> str:
        x, y, z = 1e3 * self.centre_of_mass
        spread = float(self._deviations()[0])
        return f"load of {self.mass:.4f} kg +- {spread:.4f} at ({x:.1f}, {y:.1f}, {z:.1f}) mm in {self.frame}"

    def _tables(self) -> tuple[Table, ...]:
        found = [fault for fault in self.faults if fault.answer is Answer.FOUND]
        wrong = (faults_table(found),) if found else ()
        return parameters_table(self), *wrong, makers_table(self)

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `payload.json`."""
        return (write_json(Path(folder) / "payload.json", self.as_dict()),)


def parameters_table(load: Payload) -> Table:
    """Every number with its deviation and its interval."""
    rows = tuple((p.name, p.value, p.standard_deviation, p.low, p.high, p.unit) for p in load.parameters)
    return Table(("", "value", "+-", "95 % from", "to", "unit"), rows, digits=4)


def makers_table(load: Payload) -> Table:
    """The texts for three makers' controllers."""
    return Table(("controller", "load data"), tuple(load.makers.items()))


def jacobian(inertial: FloatArray) -> FloatArray:
    """Derivative of (mass, centre, six inertias about the centre) by the ten parameters, shape [10, 10].

    c = h / m and I_c = I + m skew(c)^2 = I - (|h|^2 1 - h h^T) / m.
    """
    m, h = float(inertial[0]), np.asarray(inertial[1:4])
    J = np.zeros((N_INERTIAL, N_INERTIAL))
    J[0, 0] = 1.0
    J[1:4, 0] = -h / m**2
    J[1:4, 1:4] = np.eye(3) / m
    J[4:, 4:] = np.eye(6)
    outer = (h @ h) * np.eye(3) - np.outer(h, h)
    J[4:, 0] = six(outer) / m**2
    for k in range(3):
        e = np.eye(3)[k]
        J[4:, 1 + k] = -six(2.0 * h[k] * np.eye(3) - np.outer(e, h) - np.outer(h, e)) / m
    return J

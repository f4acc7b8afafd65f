"""Channels a controller never uses, and what that implies: combinations of parameters that must vanish; [Gaz2014] sec. VI."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from armid.arrays import FloatArray
from armid.identifiability.base import BaseParameters
from armid.identifiability.rank import STRUCTURAL_TOLERANCE
from armid.identifiability.structure import structural_rows
from armid.kernels.source import RowSource
from armid.notes import Note, Severity

_SILENT = 1e-9
"""Relative to the largest value of its quantity: a channel that never exceeds this is zero. Interfaces transmit single
precision at worst, 6e-8 of the value itself, but a zero is transmitted as zero."""


class Silence(StrEnum):
    """Why a channel says nothing, or less than it could."""

    STRUCTURAL = "structural"
    """The model says zero and so does the controller: a vertical first axis carries no gravity torque."""
    DISCARDED = "discarded"
    """The model says zero but the controller does not: a base that is not level, or calibration residue. Left out."""
    CONSTRAINT = "constraint"
    """The model allows values and the controller always says zero: parameters must cancel, and that is used."""


@dataclass(frozen=True, eq=False)
class SilentChannel:
    """A channel that is zero where it need not be, or not zero where it should be.

    Args:
        channel: its name.
        kind: which of the two.
        largest: largest magnitude reported.
        constraints: combinations of base parameters that must vanish, name -> coefficient each.
    """

    channel: str
    kind: Silence
    largest: float
    constraints: tuple[Mapping[str, float], ...] = ()

    @property
    def note(self) -> Note:
        match self.kind:
            case Silence.STRUCTURAL:
                text, severity = "identically zero, as the model has it; says nothing", Severity.INFO
            case Silence.DISCARDED:
                text = f"the model says zero, the controller up to {self.largest:.3g}: left out (base not quite level?)"
                severity = Severity.WARNING
            case Silence.CONSTRAINT:
                implied = "; ".join(equation(c) for c in self.constraints)
                text, severity = f"always zero although it need not be, hence {implied}", Severity.INFO
        return Note(f"silent-{self.kind.value}", severity, text, self.channel)


def silent_channels(
    sources: Iterable[tuple[RowSource, FloatArray]], ranks: Mapping[str, int], base: BaseParameters
) -> tuple[SilentChannel, ...]:
    """Channels that are zero where they need not be, or the other way round."""
    out = []
    for source, y in sources:
        scale = float(np.abs(y).max(initial=0.0))
        for k, name in enumerate(source.channels):
            largest = float(np.abs(y[:, k]).max(initial=0.0))
            quiet = largest <= _SILENT * scale
            if ranks[name] == 0:
                out.append(SilentChannel(name, Silence.STRUCTURAL if quiet else Silence.DISCARDED, largest))
            elif quiet:
                rows = structural_rows(source)[:, k][:, base.independent]
                out.append(SilentChannel(name, Silence.CONSTRAINT, largest, _implied(rows, base.names)))
    return tuple(out)


def _implied(rows: FloatArray, names: Sequence[str]) -> tuple[Mapping[str, float], ...]:
    """What must vanish so that rows b = 0 for all rows: reduced echelon form of their row space."""
    E = echelon(rows)
    return tuple({names[int(i)]: float(row[i]) for i in np.flatnonzero(row)} for row in E)


def echelon(rows: FloatArray) -> FloatArray:
    """Reduced row echelon form of the row space, full rank, shape [rank, p]."""
    _, s, Vt = np.linalg.svd(rows, full_matrices=False)
    E = Vt[: int(np.count_nonzero(s > STRUCTURAL_TOLERANCE * s[0]))].copy()
    pivot_row = 0
    for column in range(E.shape[1]):
        if pivot_row == len(E):
            break
        best = pivot_row + int(np.argmax(np.abs(E[pivot_row:, column])))
        if abs(E[best, column]) < STRUCTURAL_TOLERANCE:
            continue
        E[[pivot_row, best]] = E[[best, pivot_row]]
        E[pivot_row] /= E[pivot_row, column]
        others = [i for i in range(len(E)) if i != pivot_row]
        E[others] -= np.outer(E[others, column], E[pivot_row])
        pivot_row += 1
    return np.where(np.abs(E) < STRUCTURAL_TOLERANCE, 0.0, E)


def unconstrained(base: BaseParameters, silent: Sequence[SilentChannel]) -> FloatArray:
    """T with b = T t for the free parameters t: the leading one of every constraint follows from the others."""
    equations = [c for s in silent for c in s.constraints]
    T = np.eye(len(base))
    if not equations:
        return T
    rows = np.zeros((len(equations), len(base)))
    for i, terms in enumerate(equations):
        for name, value in terms.items():
            rows[i, base.index(name)] = value
    E = echelon(rows)
    lead = [int(np.flatnonzero(row)[0]) for row in E]
    T[lead] = -E
    T[lead, lead] = 0.0
    return np.delete(T, lead, axis=1)


def equation(terms: Mapping[str, float]) -> str:
    """`link7.Ixz = 0`, `link6.my + 0.5 link7.mass = 0`."""
    text = " + ".join(name if value == 1.0 else f"{value:.6g} {name}" for name, value in terms.items())
    return f"{text} = 0".replace("+ -", "- ")

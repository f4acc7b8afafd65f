"""Torque offsets that nobody can tell from weight: on a vertical slide both are a constant force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.consistency.prior import Prior
from armid.identifiability.base import BaseParameters
from armid.notes import Note, Severity

_ALIASED = 0.005
"""Of its joint's torque: how far an offset is doubted that acts like weight, which is doubted by several times itself. An offset
takes part of the weight only where a rotor inertia that cannot be negative asks for it: on a slide of 2 kg whose inertia is known
to 0.15 kg, noise moved 1.3 N of 20 N at a doubt of 0.02, and moves 0.2 N at this one."""


def alias_notes(base: BaseParameters) -> tuple[Note, ...]:
    """Names every offset that the torque shows only together with parameters of links.

    What is constant stays with the weight (`with_weight_kept`). A file that cannot hold offsets then still carries the arm.

    Args:
        base: what the measurements determine.
    """
    notes = []
    for column, with_it in _aliased(base).items():
        text = (
            f"{base.parameters[column]} acts like {' and '.join(with_it)}: torque shows only their sum; what is constant "
            "is given to the weight (weigh the part, or move the joint in another direction of gravity, to tell)"
        )
        notes.append(Note("offset-is-weight", Severity.INFO, text, base.parameters[column]))
    return tuple(notes)


def with_weight_kept(prior: Prior, base: BaseParameters) -> Prior:
    """The prior with offsets that act like weight doubted so little that the weight keeps what is constant.

    Args:
        prior: with offsets doubted by all of their joint's torque.
        base: what the measurements determine.
    """
    scale = np.array(prior.scale)
    scale[list(_aliased(base))] *= _ALIASED
    return replace(prior, scale=scale)


def _aliased(base: BaseParameters) -> dict[int, list[str]]:
    """Columns of offsets that the torque shows only together with parameters of links, and those: masses where there are."""
    parameters = base.standard
    found = {}
    for k, column in enumerate(base.dependent):
        if parameters[column].drive_quantity != "offset":
            continue
        leading = [(base.names[r], parameters[base.independent[r]]) for r in np.flatnonzero(base.K[:, k])]
        with_it = [name for name, parameter in leading if parameter.of_link]
        with_it = [name for name, parameter in leading if parameter.quantity == "mass"] or with_it
        if with_it:
            found[int(column)] = with_it
    return found

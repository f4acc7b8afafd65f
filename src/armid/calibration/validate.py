"""The held-out test on measurements of their own: links never see them, frames only where they are really new.

A sensor placement or a body on the tool that no training file has must be found somewhere. It is fitted on part of the
held-out rows and scored on the others, part by part, so that no row is scored by a frame that it helped to fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit
from armid.calibration.hold_out import HeldOut, Mask, compared, row_blocks
from armid.calibration.solve import solve
from armid.calibration.start import StartFrames, start_frames
from armid.calibration.tool_error import ErrorTable, error_table, joined_tables
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import calibrated_robot, frame_matrix
from armid.kinematics.measurement import IntArray, MeasurementError, Measurements
from armid.kinematics.model import FrameModel, KinematicModel, covered_ranges, covering
from armid.parameters.space import OwnerKind
from armid.robot.elementary import from_matrix
from armid.rows.pose_residual import residuals

_PARTS = 5
"""Parts of the held-out rows: new frames are fitted on all but one of them and scored on that one."""
_FEWEST = 4
"""Held-out configurations with which a new frame can be fitted on some and scored on others at all."""


def body_of(measurements: Measurements, target: str) -> str:
    """Name of the rigid body that carries a target; its own when it is a body by itself."""
    place = measurements.places.get(target)
    return target if place is None else place.body


def new_setups(train: Measurements, held_out: Measurements) -> tuple[str, ...]:
    """Sensor placements that the training measurements do not have."""
    return tuple(name for name in held_out.setups if name not in train.setups)


def new_bodies(train: Measurements, held_out: Measurements) -> tuple[str, ...]:
    """Bodies on the tool that the training measurements do not have."""
    known = {body_of(train, name) for name in train.targets} | set(train.targets)
    named = (body_of(held_out, name) for name in held_out.targets if name not in train.targets)
    return tuple(dict.fromkeys(name for name in named if name not in known))


def validated(fit: KinematicFit, train: Measurements, held_out: Measurements) -> HeldOut:
    """Errors on other measurements.

    Args:
        fit: to the training measurements.
        train: these.
        held_out: the others.

    Raises:
        MeasurementError: too few held-out configurations for a frame that only they have.
    """
    new = (*new_setups(train, held_out), *new_bodies(train, held_out))
    groups = np.unique(held_out.group)
    if new and len(groups) < _FEWEST:
        raise MeasurementError(
            f"{len(groups)} held-out configurations cannot both fit and score {', '.join(new)}, which no training file has: "
            f"give at least {_FEWEST}, or share the frames of the training files"
        )
    before, after = (_errors(fit, s.values, train, held_out, new) for s in (fit.before, fit.after))
    method = f"{len(groups)} other configurations"
    refitted = tuple(f"{name} on the other parts of the held-out rows, in {_parts_of(held_out)} parts" for name in new)
    return replace(compared(method, before, after, held_out), refitted=refitted)


def _parts_of(held_out: Measurements) -> int:
    return min(_PARTS, len(np.unique(held_out.group)))


def _errors(
    fit: KinematicFit, values: FloatArray, train: Measurements, held_out: Measurements, new: tuple[str, ...]
) -> ErrorTable:
    """Errors of given links; what is new is fitted on the other parts of the rows."""
    chain = _other_frames(fit, values, train, held_out)
    if not new:
        return _scored(chain.model, chain.values, held_out, np.arange(len(held_out.q)))
    tables = []
    for aside in row_blocks(held_out, _parts_of(held_out)):
        found = _placed(fit, chain, held_out.subset(~aside))
        tables.append(_scored(chain.model, found, held_out.subset(aside), np.flatnonzero(aside)))
    return joined_tables(tables)


def _scored(model: KinematicModel, values: FloatArray, test: Measurements, rows: IntArray) -> ErrorTable:
    none: Mask = np.zeros(len(values), dtype=bool)
    return error_table(residuals(model, values, test, wanted=none), rows)


@dataclass(frozen=True, eq=False, slots=True)
class _Chain:
    """The arm between other frames, and where its parameters start."""

    model: KinematicModel
    values: FloatArray


def _placed(fit: KinematicFit, chain: _Chain, rows: Measurements) -> FloatArray:
    """The new frames fitted to some rows; links, joints and known frames stay."""
    free = chain.model.owned(OwnerKind.SETUP, OwnerKind.TARGET)
    settings = fit.settings.solver
    return solve(chain.model, rows, start=chain.values, allowed=free, settings=settings, hold=True).values


def _other_frames(fit: KinematicFit, values: FloatArray, train: Measurements, held_out: Measurements) -> _Chain:
    """The fitted arm between the frames of the held-out rows: known ones fixed, new ones free around start values."""
    known = StartFrames(
        {name: frame_matrix(slots, values) for name, slots in fit.model.setups.items()},
        _known_targets(fit, values, train, held_out),
    )
    found = start_frames(calibrated_robot(fit.model, values), held_out, known=known)
    setups, targets = found.models(held_out)
    setups |= {name: _fixed(T) for name, T in known.setups.items() if name in setups}
    targets |= {name: _fixed(T) for name, T in known.targets.items() if name in targets}
    model = kinematic_model(fit.model.robot, fit.errors, setups=setups, targets=targets)
    model = covering(model, covered_ranges(fit.model))
    begin = np.zeros(len(model.parameters))
    for k, parameter in enumerate(model.parameters):
        if parameter.kind in (OwnerKind.LINK, OwnerKind.JOINT):
            begin[k] = values[fit.model.index(parameter.name)]
    return _Chain(model, begin)


def _known_targets(
    fit: KinematicFit, values: FloatArray, train: Measurements, held_out: Measurements
) -> dict[str, FloatArray]:
    """T_link_target of the training targets, and of others at known places on the same bodies."""
    known = {name: frame_matrix(slots, values) for name, slots in fit.model.targets.items()}
    bodies = {
        place.body: known[name] @ _shift(-np.array(place.position))
        for name, place in train.places.items()
        if name in known
    }
    for name, place in held_out.places.items():
        if name not in known and place.body in bodies:
            known[name] = bodies[place.body] @ _shift(np.array(place.position))
    return known


def _shift(by: FloatArray) -> FloatArray:
    out = np.eye(4)
    out[:3, 3] = by
    return out


def _fixed(T: FloatArray) -> FrameModel:
    """A frame with nothing to fit."""
    elements = from_matrix(T)
    return FrameModel(elements, (None,) * len(elements))

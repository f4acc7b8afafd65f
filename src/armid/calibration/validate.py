"""The held-out test on measurements of their own, also when they were taken in another setup."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit
from armid.calibration.hold_out import HeldOut, compared, table_of
from armid.calibration.solve import solve
from armid.calibration.start import start_frames
from armid.calibration.tool_error import ErrorTable, error_table
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import calibrated_robot
from armid.kinematics.measurement import Measurements
from armid.parameters.space import OwnerKind


def validated(fit: KinematicFit, validate: Measurements) -> HeldOut:
    """Errors on other measurements. Sensor and tool frames with new names are fitted there; links never are."""
    count = f"{len(np.unique(validate.group))} other configurations"
    known = set(validate.setups) <= set(fit.model.setups) and set(validate.targets) <= set(fit.model.targets)
    if known:
        before, after = (table_of(fit, s.values, validate) for s in (fit.before, fit.after))
        return compared(count, before, after, validate)
    before, after = (_elsewhere(fit, s.values, validate) for s in (fit.before, fit.after))
    return compared(f"{count}, sensor and tool frames of their own", before, after, validate)


def _elsewhere(fit: KinematicFit, values: FloatArray, validate: Measurements) -> ErrorTable:
    """Errors in a new setup: only its frames are fitted, links and joints keep the given values."""
    setups, targets = start_frames(calibrated_robot(fit.model, values), validate).models(validate)
    model = kinematic_model(fit.model.robot, fit.errors, setups=setups, targets=targets)
    begin = np.zeros(len(model.parameters))
    for k, parameter in enumerate(model.parameters):
        if parameter.kind in (OwnerKind.LINK, OwnerKind.JOINT):
            begin[k] = values[fit.model.index(parameter.name)]
    frames = model.owned(OwnerKind.SETUP, OwnerKind.TARGET)
    solution = solve(model, validate, start=begin, allowed=frames, settings=fit.settings.solver, hold=True)
    return error_table(solution.residuals)

"""One model fitted to one set of measurements: first the frames alone, then everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from armid.calibration.solve import FitSolution, Mask, SolverSettings, solve
from armid.calibration.start import StartFrames, start_frames
from armid.kinematics.build import kinematic_model
from armid.kinematics.measurement import Measurements
from armid.kinematics.model import ErrorModel, FrameModel, KinematicModel
from armid.kinematics.parameter import Owner
from armid.robot.robot import Robot


@dataclass(frozen=True)
class FitSettings:
    """How to fit.

    Args:
        solver: iterations, loss, noise.
        setups, targets: frames parametrised by the caller instead of around closed-form start values.
        fixed: names of parameters that stay at nominal whatever the data say.
    """

    solver: SolverSettings = field(default_factory=SolverSettings)
    setups: Mapping[str, FrameModel] = field(default_factory=dict)
    targets: Mapping[str, FrameModel] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()

    def allowed(self, model: KinematicModel) -> tuple[Mask, Mask]:
        """Masks of the parameters of the frames, and of all, without the fixed ones."""
        for name in self.fixed:
            model.index(name)
        free = np.array([name not in self.fixed for name in model.names], dtype=bool)
        return model.owned(Owner.SETUP, Owner.TARGET) & free, free


@dataclass(frozen=True, eq=False, kw_only=True)
class KinematicFit:
    """The same model with nominal links and with everything fitted.

    Args:
        errors: what was allowed to differ.
        model: the chain with its parameters.
        before: only sensor and target frames fitted, which is what hand-eye calibration gives.
        after: everything the data can tell.
        settings: how it was done.
    """

    errors: ErrorModel
    model: KinematicModel
    before: FitSolution
    after: FitSolution
    settings: FitSettings


def fit(
    robot: Robot,
    measurements: Measurements,
    errors: ErrorModel | None = None,
    *,
    settings: FitSettings | None = None,
    start: StartFrames | None = None,
) -> KinematicFit:
    """Fit frames, then everything.

    Args:
        robot: nominal arm.
        measurements: what was observed.
        errors: what may differ from nominal.
        settings: how to iterate, and frames with a parametrisation of their own.
        start: start values of sensor and tool frames; closed form by default.
    """
    errors = ErrorModel() if errors is None else errors
    settings = FitSettings() if settings is None else settings
    given = set(settings.setups) >= set(measurements.setups) and set(settings.targets) >= set(measurements.targets)
    setups: dict[str, FrameModel] = {}
    targets: dict[str, FrameModel] = {}
    if not given:
        setups, targets = (start or start_frames(robot, measurements)).models(measurements)
    model = kinematic_model(
        robot, errors, setups={**setups, **settings.setups}, targets={**targets, **settings.targets}
    )
    frames, free = settings.allowed(model)
    before = solve(model, measurements, allowed=frames, settings=settings.solver)
    after = solve(model, measurements, start=before.values, noise=before.noise, allowed=free, settings=settings.solver)
    return KinematicFit(errors=errors, model=model, before=before, after=after, settings=settings)


def refit(previous: KinematicFit, measurements: Measurements) -> KinematicFit:
    """The same model on other measurements, starting from where the previous fit ended."""
    model, solver = previous.model, previous.settings.solver
    before, after = (
        solve(
            model,
            measurements,
            start=found.values,
            noise=found.noise,
            allowed=allowed,
            settings=solver,
            previous=found.selection,
        )
        for found, allowed in zip((previous.before, previous.after), previous.settings.allowed(model), strict=True)
    )
    return replace(previous, before=before, after=after)

"""`armid.sweep`: inertia and viscous friction of single axes from their response to sines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.documents import write_json
from armid.errors import InputError
from armid.identification.inputs import LogsInput, Recordings, RobotInput, files_of, robot_of
from armid.logs.log import Log, matched
from armid.motions.postures import load_postures
from armid.notes import Note
from armid.outcome import Check, Listing, Outcome, Provenance
from armid.page import Table
from armid.response.axis_inertia import AxisInertiaModel, axis_inertia_model
from armid.response.frequency_response import AxisMeasurement, ResponseSettings, axis_response
from armid.robot.robot import Robot
from armid.threads import one_blas_thread

_LARGEST_DISAGREEMENT = 3.0
"""Root mean square of what the parameters leave of the measurements, in their standard deviations: beyond this they do not belong
to one arm, or are worse than they say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InertiaParameter:
    """A base parameter of the load-side inertia.

    Args:
        name: of the standard parameter that leads it.
        unit: SI.
        value, standard_deviation: of the combination.
        relative_standard_deviation: a fraction.
        terms: standard parameter -> coefficient.
    """

    name: str
    unit: str
    value: float
    standard_deviation: float
    relative_standard_deviation: float
    terms: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class InertiaPrediction:
    """Inertia of every axis at a pose where nothing was measured.

    Args:
        pose: [rad or m], shape [n_joints].
        inertia: [kg m^2 or kg], shape [n_joints].
        standard_deviation: of those, shape [n_joints].
    """

    pose: FloatArray
    inertia: FloatArray
    standard_deviation: FloatArray

    def as_dict(self) -> dict[str, FloatArray]:
        return {"pose": self.pose, "inertia": self.inertia, "standard_deviation": self.standard_deviation}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sweep(Outcome):
    """Measured axes, and what follows from all of them together.

    Args:
        robot: the arm.
        axes: one measurement per recording.
        logs: names of the recordings.
        model: base parameters of the load-side inertia; None when they were not asked for.
        predictions: at other poses.
        checks: what every measurement, and the parameters, were held against.
        notes: of all measurements.
        provenance: inputs and settings.
    """

    _page: ClassVar[str] = "armid.report.response:sweep_page"
    _loads = True

    robot: Robot
    axes: tuple[AxisMeasurement, ...]
    logs: tuple[str, ...]
    model: AxisInertiaModel | None = None
    predictions: tuple[InertiaPrediction, ...] = ()
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def parameters(self) -> Listing[InertiaParameter]:
        """Base parameters as rows; none when they were not asked for."""
        if self.model is None:
            return Listing(())
        e = self.model.estimate
        rows = zip(e.names, e.units, e.values, e.standard_deviations, e.relative_standard_deviations, strict=True)
        return Listing(
            InertiaParameter(
                name=n,
                unit=u,
                value=float(v),
                standard_deviation=float(s),
                relative_standard_deviation=float(r),
                terms=e.base.terms(n),
            )
            for n, u, v, s, r in rows
        )

    def as_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "axes": [m.as_dict() | {"log": log} for m, log in zip(self.axes, self.logs, strict=True)]
        }
        if self.model is not None:
            out |= {"base_parameters": len(self.model.estimate), "parameters": self.parameters.as_dicts()}
        if self.predictions:
            out["predictions"] = [prediction.as_dict() for prediction in self.predictions]
        return out | {
            "verdict": self.verdict,
            "reasons": self.reasons,
            "checks": [check.as_dict() for check in self.checks],
        }

    def _heading(self) -> str:
        count = len(self.axes)
        return f"{self.robot.name}: {count} measured ax{'es' if count != 1 else 'is'}"

    def _tables(self) -> tuple[Table, ...]:
        return (axes_table(self), *(() if self.model is None else (parameters_table(self),)))

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `sweep.json`."""
        return (write_json(Path(folder) / "sweep.json", self.as_dict()),)


def axes_table(found: Sweep) -> Table:
    """One row per measurement."""
    rows = tuple(
        (m.axis, m.inertia, m.inertia_deviation, m.viscous, m.viscous_deviation, m.slope, 1e3 * m.lag, log)
        for m, log in zip(found.axes, found.logs, strict=True)
    )
    header = ("axis", "inertia", "+-", "viscous", "+-", "gravity slope", "torque lag ms", "recording")
    return Table(header, rows, caption="inertia in kg m^2 (kg), viscous friction in N m s/rad (N s/m)")


def parameters_table(found: Sweep) -> Table:
    """Base parameters with relative deviations."""
    rows = tuple((p.name, p.value, f"{100 * p.relative_standard_deviation:.2f} %", p.unit) for p in found.parameters)
    return Table(("base parameter", "value", "relative +-", "unit"), rows, digits=5)


@one_blas_thread
def sweep(
    robot: RobotInput,
    logs: LogsInput,
    *,
    frequencies: Sequence[float] | None = None,
    parameters: bool = False,
    predict: str | Path | npt.ArrayLike | None = None,
    settings: ResponseSettings | None = None,
    data_root: str | Path | None = None,
    base: str | None = None,
    tip: str | None = None,
) -> Sweep:
    """Inertia and viscous friction of single axes from frequency response, [RWTH2021] eqs. 8-13.

    Args:
        robot: the arm, or where its description is.
        logs: recordings of one axis at one pose each (paths or logs).
        frequencies: of the sines [Hz]; found in the spectrum by default.
        parameters: also base parameters of the load-side inertia, from all usable measurements together.
        predict: poses at which the inertia of every axis is predicted: CSV with columns q1..qn, or an array [rad or m] of shape
            [n_poses, n_joints]; asks for the parameters too.
        settings: how a recording is analysed, in every detail; `frequencies` come on top.
        data_root: where mapping files find recordings.
        base, tip: links of a branched URDF between which the arm lies.

    Raises:
        InputError: recordings of the wrong kind.
        EstimationError: measurements that do not tell all base parameters apart.
    """
    arm = robot_of(robot, base=base, tip=tip)
    read = Recordings(data_root=data_root).read(logs, arm)
    if not read:
        raise InputError("recordings", "there are none", "recordings of one axis each")
    how = settings or ResponseSettings()
    if frequencies:
        how = replace(how, frequencies=tuple(frequencies))
    measured = tuple(axis_response(matched(log, arm), arm, how) for log in read)
    model = None
    predictions: tuple[InertiaPrediction, ...] = ()
    if parameters or predict is not None:
        model = axis_inertia_model(arm, [m for m in measured if m.usable])
    if model is not None and predict is not None:
        predictions = _predictions(model, predict)
    return Sweep(
        robot=arm,
        axes=measured,
        logs=_names(logs, read),
        model=model,
        predictions=predictions,
        checks=(*(check for m in measured for check in m.checks), *model_checks(model, predictions)),
        notes=tuple(note for m in measured for note in m.notes),
        provenance=Provenance(inputs=files_of(arm, read), settings={"frequencies_hz": list(how.frequencies)}),
    )


def _names(logs: LogsInput, read: Sequence[Log]) -> tuple[str, ...]:
    """Paths as they were given; names of logs that were given as such."""
    given = [logs] if isinstance(logs, str | Path | Log) else list(logs)
    return tuple(log.name if isinstance(one, Log) else str(one) for one, log in zip(given, read, strict=True))


def _predictions(model: AxisInertiaModel, poses: str | Path | npt.ArrayLike) -> tuple[InertiaPrediction, ...]:
    """Inertia of every axis at other poses."""
    n = model.robot.n_joints
    q = load_postures(Path(poses), model.robot) if isinstance(poses, str | Path) else samples("poses", poses, n)
    rows = zip(q, model.inertia(q), model.deviation(q), strict=True)
    return tuple(InertiaPrediction(x, J, s) for x, J, s in rows)


def model_checks(model: AxisInertiaModel | None, predictions: Sequence[InertiaPrediction]) -> list[Check]:
    """Whether the measurements belong together, and predict inertias that can be."""
    if model is None:
        return []
    checks = [
        Check(
            code="measurements-agree",
            passed=model.disagreement < _LARGEST_DISAGREEMENT,
            value=model.disagreement,
            limit=_LARGEST_DISAGREEMENT,
            message=f"the measurements differ from one model by {model.disagreement:.2g} of their standard deviations; "
            "deviations are widened by as much",
            decisive=False,
        )
    ]
    if predictions:
        smallest = float(np.min([prediction.inertia for prediction in predictions]))
        checks.append(
            Check(
                code="positive-inertia",
                passed=smallest > 0.0,
                value=smallest,
                limit=0.0,
                message=f"an inertia of {smallest:.3g} kg m^2 is predicted: measure at more poses",
            )
        )
    return checks

"""Measurements in, calibrated arm out: fit, choose among error models on held-out data, judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from armid.calibration.bootstrap import bootstrapped
from armid.calibration.choose import AUTO, candidates_of, choose
from armid.calibration.compensate import Compensation, compensated
from armid.calibration.contract import contract, enough_table, error_statistics, error_table_of, main_error, tip_table
from armid.calibration.contradictions import pattern_notes, residual_patterns
from armid.calibration.diagnose import check_misfit, diagnose, misfit_notes
from armid.calibration.enough import PoseCount, pose_counts
from armid.calibration.files import export_robot, write_files
from armid.calibration.fit import FitSettings, KinematicFit, fit_candidates
from armid.calibration.found import CalibratedParameter, found_parameters
from armid.calibration.frame_changes import change_notes, frame_changes
from armid.calibration.gauge import TipUncertainty, settled, tip_uncertainty
from armid.calibration.hold_out import Advice, HeldOut, blocked_test, cross_validate, folds_of
from armid.calibration.identifiable import ParameterStatus
from armid.calibration.inputs import PoseData, calibration_inputs, poses_mapping
from armid.calibration.intervals import spread_of, with_intervals
from armid.calibration.judge import (
    Outlier,
    comparison_notes,
    errors_without,
    find_outliers,
    judge,
    kind_notes,
    outlier_notes,
    overfit_notes,
    parameter_notes,
    unexplained_notes,
)
from armid.calibration.neighbours import repeat_notes
from armid.calibration.noise import VectorLoss
from armid.calibration.physics import load_notes, physics_notes, range_notes
from armid.calibration.poses_table import PosesMapping
from armid.calibration.solve import SolverSettings
from armid.calibration.start import start_frames
from armid.calibration.targets import Targets
from armid.calibration.tool_error import ErrorTable, error_table
from armid.calibration.validate import validated
from armid.calibration.words import AngleUnit, LengthUnit, SensorPlace, SetupSharing, StepRule
from armid.cluster.workers import Cluster, Progress, Workers, open_workers
from armid.errors import InputError
from armid.folders import answer_folder
from armid.information.information import Information
from armid.kinematics.calibrated import calibrated_robot
from armid.kinematics.load import carries, with_tool
from armid.kinematics.measurement import Measurements
from armid.kinematics.model import ErrorModel
from armid.kinematics.words import Term, UnknownGeometry
from armid.notes import Note, Severity
from armid.outcome import Check, Listing, Outcome, Provenance
from armid.page import Table
from armid.robot.robot import Robot
from armid.threads import one_blas_thread
from armid.words import choice, number


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Calibration(Outcome):
    """What was found, and whether to believe it.

    Args:
        nominal: the arm as described.
        measurements: all that was fitted.
        fit: the chosen model.
        geometric: the simplest candidate, whose corrections a robot description can hold.
        held_out: errors where nothing was fitted or chosen: each part is predicted by the model that the other parts chose.
        held_out_geometric: the same of the simplest candidate.
        held_out_blocked: the same of the chosen model with consecutive rows kept aside together; None with `validate`.
        patterns: share of the residuals' variance that follows the recording, time and each joint.
        outliers: measurements far from the rest.
        advice: what to do with it; finer than the verdict, which only says whether it may be used.
        checks: what it was held against.
        notes: everything else a reader must know.
        provenance: files, settings, seed.
        tip: how far the tip may be off in the base frame, over the joint ranges that were measured.
        enough: error against the number of configurations, when it was studied.
        compensation: joint targets rewritten for a nominal controller, when some were given.
        workers, retries: of the cluster.
    """

    _page: ClassVar[str] = "armid.report.calibration:calibration_report"

    nominal: Robot
    measurements: Measurements
    fit: KinematicFit
    geometric: KinematicFit
    held_out: HeldOut
    held_out_geometric: HeldOut
    held_out_blocked: HeldOut | None = None
    patterns: Mapping[str, float] = field(default_factory=dict)
    outliers: tuple[Outlier, ...]
    advice: Advice
    checks: tuple[Check, ...]
    notes: tuple[Note, ...]
    provenance: Provenance
    tip: TipUncertainty
    enough: tuple[PoseCount, ...] = ()
    compensation: Compensation | None = None
    workers: int = 1
    retries: int = 0

    @cached_property
    def robot(self) -> Robot:
        """The calibrated arm for everything downstream: identification, planning, a controller."""
        arm = calibrated_robot(self.geometric.model, self.geometric.after.values)
        return arm.with_inertial(self.nominal.inertial) if carries(self.nominal, arm) else arm

    @cached_property
    def parameters(self) -> Listing[CalibratedParameter]:
        """Every unknown of the chosen model with value, uncertainty, tolerance and what became of it."""
        return Listing(found_parameters(self.fit))

    @property
    def information(self) -> Information:
        """What the measurements say about a change of the fitted parameters from what was found, by sensor and kind.

        Rows are whitened and linearised at the calibrated arm; the prior is not among them.
        """
        return self.fit.after.information

    @cached_property
    def errors_before(self) -> ErrorTable:
        """With nominal links, only sensor and tool frames fitted."""
        return error_table(self.fit.before.residuals)

    @cached_property
    def errors_after(self) -> ErrorTable:
        """Of the chosen model on what it was fitted to."""
        return error_table(self.fit.after.residuals)

    @property
    def identified(self) -> tuple[str, ...]:
        """Names of the fitted parameters."""
        return self.with_status(ParameterStatus.IDENTIFIED)

    def with_status(self, status: ParameterStatus) -> tuple[str, ...]:
        """Names of the parameters that were fitted, or held at nominal for this reason."""
        pairs = zip(self.fit.model.names, self.fit.after.selection.status, strict=True)
        return tuple(name for name, s in pairs if s is status)

    def _heading(self) -> str:
        before, after, unit = main_error(self.held_out)
        low, high = (1e3 * x for x in self.held_out.interval)
        return (
            f"{self.nominal.name}: kinematic calibration, {len(self.identified)} of {len(self.parameters)} parameters from "
            f"{len(np.unique(self.measurements.group))} configurations, held-out mean {before:.3f} -> {after:.3f} {unit} "
            f"({low:.3g} to {high:.3g}), {self.advice}"
        )

    def _tables(self) -> tuple[Table, ...]:
        return (
            error_table_of(error_statistics(self), self.held_out.told),
            tip_table(self.tip),
            *([enough_table(self.enough, main_error(self.held_out)[2])] if self.enough else []),
        )

    def as_dict(self) -> dict[str, Any]:
        """The keys of the command contract and more; lengths in m, angles in rad."""
        return contract(self)

    def export(self, path: str | Path, *, force: bool = False) -> Path:
        """Writes the calibrated arm as URDF or, with the suffix `.yaml`, as our own robot file.

        Terms without a place in such a file (eccentricity, compliance) stay in `correction.json`, which `save` writes.

        Args:
            path: of the new file.
            force: write it although it is not to be trusted; it is then marked UNVALIDATED.

        Raises:
            UntrustedError: some decisive check failed.
        """
        if not force:
            self.raise_if_untrusted()
        return export_robot(self, Path(path))

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes robot, correction, tables, residuals, summary and report; `load_calibration` reads them back."""
        return tuple(self.write(folder).values())

    def write(self, folder: str | Path) -> dict[str, Path]:
        """The same as `save`, with what each file is."""
        with answer_folder(folder, "Calibration"):
            return write_files(self, Path(folder))


@one_blas_thread
def calibrate(
    robot: Robot | str | Path,
    poses: PoseData | Sequence[PoseData],
    *,
    validate: PoseData | Sequence[PoseData] | None = None,
    model: UnknownGeometry | str = UnknownGeometry.COMPLETE,
    terms: str | Iterable[Term | str] = AUTO,
    candidates: Sequence[ErrorModel] | None = None,
    setups: SetupSharing | str = SetupSharing.AUTO,
    mapping: PosesMapping | str | Path | None = None,
    lengths: LengthUnit | str | None = None,
    angles: AngleUnit | str | None = None,
    orientation: str | None = None,
    sensor: SensorPlace | str | None = None,
    sigma_position: float = 0.0,
    sigma_orientation: float = 0.0,
    tool_mass: float = 0.0,
    tool_centre: npt.ArrayLike = (0.0, 0.0, 0.0),
    base: str | None = None,
    tip: str | None = None,
    method: StepRule | str = StepRule.LEVENBERG_MARQUARDT,
    robust: bool = True,
    settings: FitSettings | None = None,
    folds: int | None = None,
    enough: bool = False,
    bootstrap: int = 0,
    compensate: Targets | npt.ArrayLike | str | Path | None = None,
    seed: int = 0,
    cluster: Cluster = None,
    progress: Progress = lambda _: None,
) -> Calibration:
    """Find where joints and links really are from measured poses, points, distances or contacts.

    Args:
        robot: nominal arm, or its URDF path, YAML path or catalogue name; of a branched description the chain is taken whose
            joints the poses file names.
        poses: what was observed: poses files (docs/formats.md) or measurements, one or many.
        validate: further measurements for the held-out test; without them part of the first is kept aside in turn.
        model: which link constants are unknown: `complete`, `mdh`, `dh`, `hayati` or `none`.
        terms: joint terms beyond them: of `offset`, `gain`, `eccentricity`, `coupling`, `compliance` (with commas or one by
            one), `none`, or `auto`: zeros, and what clearly lowers left-out errors beyond them.
        candidates: error models, simplest first, instead of `model` and `terms`; a richer one is taken only when left-out
            errors clearly ask for it.
        setups: whether several files share sensor and tool frames: `auto`, `shared` or `per-file`.
        mapping: how to read the columns; `NAME.map.yaml` beside a file by default.
        lengths, angles, orientation, sensor: `m` or `mm`, `rad` or `deg`, how orientation columns are read, and `fixed` or
            `hand`; over what the mapping says.
        sigma_position, sigma_orientation: noise of the instrument where a file has none [m, rad].
        tool_mass: of what the arm carries and its description does not have [kg]: joints sag under it.
        tool_centre: its centre of mass in the frame of the tip [m], shape [3].
        base, tip: links of a branched description where the arm begins and ends.
        method: of a step: `levenberg-marquardt` or `least-squares`.
        robust: whether far residuals count less than their square.
        settings: how to fit, as an object, instead of `method` and `robust`.
        folds: parts of the held-out test; by default it depends on how many configurations there are.
        enough: study how many configurations are enough, too.
        bootstrap: recordings redrawn block by block and fitted, for every joint and the recording itself; intervals are then
            as wide as the wider of these and the clustered ones.
        compensate: joint targets of a nominal arm to rewrite, too (see `armid.compensate`) [rad or m].
        seed: of the split, of the study and of what is redrawn.
        cluster: where held-out parts and redrawn recordings are fitted: `local[:N]`, a scheduler's address, or a Dask client
            (docs/cluster.md); here by default, with the same answer.
        progress: told what is being done.

    Returns:
        The calibrated arm with errors before, after and held out, parameters with intervals, and a verdict.

    Raises:
        InputError: a file that cannot be read; names the line and column.
        MeasurementError: the measurements cannot be what they claim to be; the message names the likely cause.
        UnknownNameError: a word that does not exist.
        ClusterError: a cluster that cannot be used.
    """
    if bootstrap < 0 or bootstrap == 1:
        raise InputError("bootstrap", f"{bootstrap} redrawn recordings show no spread", "give 0, or some fifty")
    if folds is not None and not number("folds", folds) >= 1:
        raise InputError("folds", f"{folds}", "expected how many parts are held out in turn, 2 or more; 1 for one part")
    for name, sigma in (("sigma_position", sigma_position), ("sigma_orientation", sigma_orientation)):
        if not number(name, sigma) >= 0.0:
            raise InputError(name, f"{sigma}", "expected a standard deviation in m or rad, or 0 where the file has it")
    sharing = choice("setups", setups, SetupSharing)
    reading = poses_mapping(
        mapping,
        lengths=lengths and choice("unit of length", lengths, LengthUnit),
        angles=angles and choice("unit of angle", angles, AngleUnit),
        orientation=orientation,
        sensor=sensor and choice("place of the sensor", sensor, SensorPlace),
        sigma_position=sigma_position,
        sigma_orientation=sigma_orientation,
    )
    rule = choice("method", method, StepRule)
    given = calibration_inputs(robot, poses, validate, mapping=reading, setups=sharing, base=base, tip=tip)
    arm = with_tool(given.robot, tool_mass, tool_centre)
    measured = given.train.torque is not None
    models = tuple(candidates) if candidates is not None else candidates_of(arm, model, terms, torque=measured)
    fitting = settings or FitSettings(SolverSettings(method=rule, loss=VectorLoss() if robust else VectorLoss(0.0)))
    provenance = Provenance(
        inputs=given.files,
        settings={
            "model": str(models[0].geometry),
            "terms": [sorted(map(str, candidate.terms)) for candidate in models],
            "setups": str(sharing),
            "method": str(fitting.solver.method),
            "robust": fitting.solver.loss.probability > 0.0,
            "folds": folds,
            "tool_mass": tool_mass,
            "bootstrap": bootstrap,
        },
        seed=seed,
    )
    with open_workers(cluster, progress=progress) as workers:
        found = _calibrated(
            given.robot,
            arm,
            given.train,
            given.held_out,
            notes=given.notes,
            models=models,
            settings=fitting,
            folds=folds,
            seed=seed,
            provenance=provenance,
            enough=enough,
            bootstrap=bootstrap,
            targets=compensate,
            workers=workers,
        )
        return replace(found, workers=workers.count, retries=workers.retries)


def _calibrated(
    robot: Robot,
    arm: Robot,
    measurements: Measurements,
    validate: Measurements | None,
    *,
    notes: Sequence[Note],
    models: Sequence[ErrorModel],
    settings: FitSettings,
    folds: int | None,
    seed: int,
    provenance: Provenance,
    enough: bool,
    bootstrap: int,
    workers: Workers,
    targets: Targets | npt.ArrayLike | str | Path | None,
) -> Calibration:
    """Diagnose, fit every candidate to the arm with what it carries, choose, test on what was kept aside, judge."""
    measurements, found_notes = diagnose(robot, measurements)
    notes = [*notes, *found_notes]
    start = None if settings.setups else start_frames(robot, measurements)
    fits: list[KinematicFit] = []
    for found in fit_candidates(arm, measurements, models, settings=settings, start=start):
        fits.append(found)
        if len(fits) == 1:
            notes += check_misfit(robot, measurements, found)
    notes += misfit_notes(fits[0], measurements)
    best = choose(fits, measurements)
    if validate is None:
        how, parts = folds_of(measurements, np.random.default_rng(seed), folds)
        held_out, tested = cross_validate(fits, choose, measurements, parts, how, workers=workers)
    else:
        tested = [validated(f, measurements, validate) for f in fits]
        held_out = tested[best]
    chosen, spread, simplest = fits[best], spread_of(fits[best], measurements), fits[0]
    if bootstrap:
        spread = bootstrapped(spread, chosen, measurements, bootstrap, seed=seed, workers=workers)
    chosen = settled(with_intervals(chosen, spread), measurements)
    if best:
        simplest = with_intervals(simplest, spread_of(simplest, measurements))
    simplest = settled(simplest, measurements) if best else chosen
    outliers = find_outliers(fits[best], measurements)
    notes += parameter_notes(fits[best]) + outlier_notes(outliers, held_out if validate is None else None)
    notes += comparison_notes(fits, tested, held_out, best)
    notes += overfit_notes(fits[best], measurements, held_out)
    notes += unexplained_notes(chosen, measurements) + kind_notes(chosen)
    patterns = residual_patterns(chosen, measurements)
    left = errors_without(error_table(fits[best].after.residuals), outliers)
    unit = main_error(held_out)[2]
    notes += change_notes(frame_changes(fits[best], measurements), float(np.sqrt(np.mean(left**2))), unit)
    notes += pattern_notes(patterns) + physics_notes(chosen) + load_notes(chosen, measurements)
    if validate is not None:
        notes += range_notes(robot.joint_names, measurements.q, validate.q, "held-out rows")
        notes += repeat_notes(measurements, validate)
    compensation = None if targets is None else compensated(robot, chosen.model, chosen.after.values, targets)
    if compensation is not None:
        notes += range_notes(robot.joint_names, measurements.q, compensation.wanted.q, "targets")
    blocked = blocked_test(fits[best], measurements, seed=seed, workers=workers) if validate is None else None
    if workers.retries:
        text = f"{workers.retries} pieces of work were done again because their worker was lost; the answer is the same"
        notes.append(Note("lost-workers", Severity.INFO, text))
    advice, checks = judge(held_out, blocked, notes, converged=chosen.after.converged)
    return Calibration(
        nominal=robot,
        measurements=measurements,
        fit=chosen,
        geometric=simplest,
        held_out=held_out,
        held_out_geometric=tested[0],
        held_out_blocked=None if blocked is None else blocked.blocked,
        patterns=patterns,
        outliers=outliers,
        advice=advice,
        checks=checks,
        notes=tuple(notes),
        provenance=provenance,
        enough=pose_counts(fits[best], measurements, seed=seed) if enough else (),
        tip=tip_uncertainty(chosen, spread, measurements, seed=seed),
        compensation=compensation,
    )

"""`armid.identify_sequential`: one link after the other from the tip, proximal joints locked or moving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from armid.errors import UnknownNameError
from armid.identifiability.structure import structural_base
from armid.identification.faults import listed_faults
from armid.identification.gate import fault_checks
from armid.identification.inputs import LogsInput, Recordings, RobotInput, files_of, robot_of
from armid.logs.conditioning import VelocitySource
from armid.logs.error_codes import accepted_codes
from armid.outcome import Check, Provenance
from armid.parameters.effects import DEFAULT_FRICTION, Effects, TorqueSide, effects_of
from armid.rows.imperfections import Family
from armid.rows.torque import TorqueRows
from armid.sequential.estimate import TipToBase
from armid.sequential.faults import stage_faults
from armid.sequential.sensors import beside_sensors
from armid.sequential.sequential import Sequential, sequential_checks
from armid.sequential.stages import ErrorStructure, Stage, Staging, stages_of_log
from armid.sequential.start import locks_of, starting_values
from armid.threads import one_blas_thread
from armid.words import choice

_SIDES = (TorqueSide.LINK, TorqueSide.MOTOR)
"""One torque per joint is looked at: both sides, or their difference, are other experiments."""


_LAG = "torque-lag"
"""Code of the log check about the same thing: who accepted it has looked at it."""


@one_blas_thread
def identify_sequential(
    robot: RobotInput,
    logs: LogsInput,
    *,
    friction: str = DEFAULT_FRICTION,
    rotor_inertia: bool = False,
    torques: str | TorqueSide = TorqueSide.LINK,
    effects: Effects | None = None,
    start: str | Path | Mapping[str, float] | None = None,
    plan: str | Path | None = None,
    locked: Sequence[str] = (),
    hold: bool = False,
    commanded: bool = False,
    as_recorded: bool = False,
    velocity: str | VelocitySource = VelocitySource.POSITION,
    cutoff_hz: float | None = None,
    torque_delay: float | None = None,
    accept: str | Sequence[str] = (),
    step: float | None = None,
    data_root: str | Path | None = None,
    base: str | None = None,
    tip: str | None = None,
) -> Sequential:
    """Base parameters joint by joint from the tip, [Khosla1985] sec. 3.

    A joint that stands still in a recording counts as locked, and the recording serves the first joint that moves; a recording
    in which all move serves every joint.

    Args:
        robot: the arm, or where its description is.
        logs: one recording of all joints, or one per stage (paths or logs).
        friction: of `viscous`, `coulomb`, `offset` with commas between them; `none` for none.
        rotor_inertia: whether rotor inertias are found too.
        torques: `link` or `motor`.
        effects: the last three as an object, instead of them.
        start: starting values: a JSON file or mapping from parameter name to number, or `nominal` for the description's own;
            zero by default. Directions that no stage determines keep them.
        plan: folder of `armid design --sequential`, which says which joints are locked in each recording.
        locked: joints that have to stand still in every recording.
        hold: what a stage found stays fixed in later ones, as in [Khosla1985]; for exact data.
        commanded: the commanded motion instead of the measured (output-error structure).
        as_recorded: recorded velocity and acceleration, unfiltered, sample by sample.
        velocity: `position` (derived) or `measured`.
        cutoff_hz: low-pass on rows and torque alike [Hz]; chosen from the spectrum by default.
        torque_delay: how late torque is stamped [s]; of a held command minus half its period. Measured in every recording, and
            taken out as far as a step of it explains, when None.
        accept: codes of log errors to accept.
        step: sampling step of files without a clock [s].
        data_root: where mapping files find recordings.
        base, tip: links of a branched URDF between which the arm lies.

    Raises:
        InputError: recordings of the wrong kind, a joint that moved and should not have, a plan that is none.
        UnknownNameError: a word, joint or parameter that does not exist.
    """
    arm = robot_of(robot, base=base, tip=tip)
    model = effects or effects_of(friction, rotor_inertia=rotor_inertia, torques=torques, shapes=False)
    if model.torques not in _SIDES:
        raise UnknownNameError("torques", model.torques.value, _SIDES)
    settings = Staging(
        effects=model,
        cutoff=cutoff_hz,
        structure=ErrorStructure.OUTPUT if commanded else ErrorStructure.INPUT,
        velocity=choice("velocity source", velocity, VelocitySource),
        torque_delay=torque_delay,
        accept=accepted_codes(accept),
        as_recorded=as_recorded,
    )
    source = TorqueRows(arm, model)
    values = starting_values(start, arm, source.space)
    read = Recordings(step=step, data_root=data_root).read(logs, arm)
    stages: list[Stage] = []
    for log, names in zip(read, locks_of(arm, len(read), plan, locked), strict=True):
        stages += stages_of_log(log, arm, replace(settings, locked=names))
    stages.sort(key=lambda stage: -arm.joint_index(stage.joint))
    found = TipToBase(hold=hold).fit(source, stages, start=values)
    if settings.structure is ErrorStructure.INPUT:
        measured = as_recorded or settings.velocity is VelocitySource.MEASURED
        found = beside_sensors(found, source, stages, recorded_velocity=measured, hold=hold)
    estimate = found.over(structural_base(source), source.space.units)
    faults = stage_faults(arm, read, stages, settings)
    return Sequential(
        robot=arm,
        estimate=estimate,
        found=found,
        structure=settings.structure,
        faults=listed_faults(faults),
        checks=(
            *sequential_checks(estimate, found, source.space),
            *_pairing_checks(stages, settings.accept),
            *fault_checks([f for f in faults if not (_LAG in settings.accept and f.kind == Family.COMMON_DELAY.value)]),
        ),
        notes=estimate.notes,
        provenance=Provenance(inputs=files_of(arm, read), settings=_settings(settings, hold=hold)),
    )


def _pairing_checks(stages: Sequence[Stage], accept: Sequence[str]) -> tuple[Check, ...]:
    """One check for every recording whose pairing was measured, unless its lag was accepted."""
    if _LAG in accept:
        return ()
    measured = {stage.pairing.log: stage.pairing for stage in stages if stage.pairing is not None}
    return tuple(pairing.check() for pairing in measured.values())


def _settings(settings: Staging, *, hold: bool) -> dict[str, object]:
    return {
        "friction": ",".join(settings.effects.friction) or "none",
        "rotor_inertia": settings.effects.rotor_inertia,
        "torques": settings.effects.torques.value,
        "structure": settings.structure.value,
        "velocity": settings.velocity.value,
        "cutoff_hz": settings.cutoff,
        "torque_delay_s": settings.torque_delay,
        "as_recorded": settings.as_recorded,
        "hold": hold,
        "accept": list(settings.accept),
    }

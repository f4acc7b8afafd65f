"""`armid.recover`: the model inside a controller, from the gravity vectors and inertia matrices it reports; [Gaz2014].

Gravity and inertia coefficients are fitted apart, as in the paper, and together over one parameter vector: inertia matrices
and gravity vectors of one arm share most of their coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from armid.consistency.consistent import ConsistentEstimate
from armid.consistency.prior import Prior
from armid.identification.inputs import LogInput, Recordings, RobotInput, file_of, files_of, robot_of
from armid.logs.conditioning import Conditioning, condition
from armid.logs.error_codes import accepted_codes
from armid.outcome import Check, InputFile, Provenance
from armid.parameters.effects import Effects
from armid.recovery.checks import agreement_checks, bodies_check, disagreement_notes, notes_of, reproduction_checks
from armid.recovery.coefficients import collected_coefficients
from armid.recovery.fit import disagreements, element_errors, fit, possible_bodies
from armid.recovery.gravity import suspicions
from armid.recovery.recovery import Recovery
from armid.recovery.samples import ControllerSamples, samples_of
from armid.recovery.tool_change import ToolChange, tool_change
from armid.recovery.validation import FILTER_ORDER, TorqueTest, along_motion, torque_test
from armid.robot.robot import Robot
from armid.threads import one_blas_thread
from armid.words import numbers

_HELD_OUT = 1.0 / 6.0
"""Of the poses when no others are given for validation: 200 of 1200, as in [Gaz2014]."""

_CUTOFF = 1.0
"""[Hz] Low-pass on a motion, as in [Gaz2014] sec. VI."""

SamplesInput = str | Path | ControllerSamples


@one_blas_thread
def recover(
    robot: RobotInput,
    samples: SamplesInput,
    *,
    validate: SamplesInput | None = None,
    along: SamplesInput | None = None,
    torque: LogInput | None = None,
    tool: SamplesInput | None = None,
    rotor_inertia: bool = False,
    bodies: bool = True,
    coefficients: bool = False,
    prior: Prior | None = None,
    gravity: str | Sequence[float] | None = None,
    cutoff_hz: float = _CUTOFF,
    accept: str | Sequence[str] = (),
    base: str | None = None,
    tip: str | None = None,
) -> Recovery:
    """Parameters from the gravity vectors and inertia matrices that a controller reports.

    Args:
        robot: geometry and gravity (or where the description is); its inertial values are only used where data cannot see.
        samples: poses with gravity [N m or N] and inertia [kg m^2, ...] (npz, csv or an object).
        validate: the same at other poses; the last sixth of the samples by default.
        along: the same read along a motion: all elements are compared.
        torque: recording of a motion with joint torque, which is compared with the model's.
        tool: the same arm read with a tool: its mass and centre follow from the change of the coefficients.
        rotor_inertia: whether the inertia matrix has rotor inertias on its diagonal.
        bodies: also find full standard parameters of possible bodies.
        coefficients: also collect every coefficient in the form of [Gaz2014] (a few seconds for seven joints).
        prior: for those; the description's own values by default.
        gravity: in the base frame [m/s^2], three numbers or `X,Y,Z`; the description's by default.
        cutoff_hz: low-pass on the motion of `torque` [Hz].
        accept: codes of errors of that recording to accept.
        base, tip: links of a branched URDF between which the arm lies.

    Raises:
        InputError: data that are not what they claim to be.
    """
    codes = accepted_codes(accept)
    down = None if gravity is None else numbers("gravity", gravity, 3, "0,0,-9.81")
    arm = robot_of(robot, base=base, tip=tip, gravity=down)
    data = samples_of(samples, arm)
    training, validation = data.held_out(_HELD_OUT) if validate is None else (data, samples_of(validate, arm))
    found = recover_model(arm, training, validation, bodies=bodies, prior=prior, rotors=rotor_inertia)
    given = {"samples": samples, "held-out": validate, "along": along, "torque": torque, "tool": tool}
    settings = {"rotor_inertia": rotor_inertia, "bodies": bodies, "gravity": arm.gravity.tolist()}
    return replace(
        found,
        along=None if along is None else along_motion(found, samples_of(along, arm)),
        torque_test=None if torque is None else _tested(found, torque, cutoff_hz, codes),
        tool=None if tool is None else _tool(found, samples_of(tool, arm)),
        coefficients=collected_coefficients(found) if coefficients else (),
        provenance=Provenance(inputs=(*files_of(arm), *_sample_files(given)), settings=settings),
    )


def _sample_files(given: Mapping[str, object]) -> list[InputFile]:
    """The files among what was given, by their role."""
    return [file_of(path, role) for role, path in given.items() if isinstance(path, str | Path)]


def recover_model(
    robot: Robot,
    training: ControllerSamples,
    validation: ControllerSamples,
    *,
    bodies: bool = True,
    prior: Prior | None = None,
    rotors: bool = False,
) -> Recovery:
    """The model inside the controller, judged.

    Args:
        robot: geometry and gravity.
        training, validation: read at different poses.
        bodies, prior: see `recover`.
        rotors: whether the inertia matrix has rotor inertias on its diagonal.
    """
    effects = Effects(rotor_inertia=rotors)
    quantities = tuple(training.sources(robot, effects))
    apart = {name: fit(robot, training, (name,), effects) for name in quantities}
    joint, silent, free, information = fit(robot, training, quantities, effects)
    checks = suspicions(robot, training, effects)
    notes = [s.note for s in silent] + notes_of(checks)
    # Data that are something else disagree with everything; to say so twice would not help.
    if not any(check.decisive for check in checks):
        ratios = disagreements(training, apart, joint, robot, effects)
        checks += agreement_checks(ratios)
        notes += disagreement_notes(ratios)
    held_out = element_errors(robot, validation, joint, effects)
    consistent = possible_bodies(robot, information, joint, prior, effects) if bodies else None
    return Recovery(
        robot=robot,
        gravity=apart["gravity"][0] if "gravity" in apart else None,
        inertia=apart["inertia"][0] if "inertia" in apart else None,
        joint=joint,
        free=free,
        silent=silent,
        training=element_errors(robot, training, joint, effects),
        validation=held_out,
        training_poses=len(training),
        validation_poses=len(validation),
        consistent=consistent,
        effects=effects,
        checks=(*checks, *reproduction_checks(held_out), *_bodies_checks(consistent)),
        notes=tuple(notes),
    )


def _bodies_checks(consistent: ConsistentEstimate | None) -> tuple[Check, ...]:
    return () if consistent is None else (bodies_check(consistent),)


def _tested(found: Recovery, motion: LogInput, cutoff_hz: float, accept: tuple[str, ...]) -> TorqueTest:
    """Measured joint torque against the recovered model along a motion, low-passed as [Gaz2014] does."""
    log = Recordings(checked=True).read(motion, found.robot)[0]
    settings = Conditioning(cutoff=cutoff_hz, order=FILTER_ORDER, accept=accept)
    return torque_test(found, condition(log, found.robot, settings))


def _tool(found: Recovery, data: ControllerSamples) -> ToolChange:
    """What the same arm carries in other samples, from the change of its coefficients; [Gaz2014] eqs. 31-32."""
    after = fit(found.robot, data, tuple(data.sources(found.robot)), found.effects)[0]
    change = tool_change(found.joint, after, found.robot.n_joints)
    return replace(change, frame=found.robot.link_names[-1])

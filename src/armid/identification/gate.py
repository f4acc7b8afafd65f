"""The conditions of the gate that concern estimation, as data. A result is trusted when every decisive one holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite, isnan
from typing import TYPE_CHECKING

import numpy as np

from armid.consistency.certificates import Certificates
from armid.consistency.consistent import ConsistentEstimate
from armid.estimation.estimate import Estimate
from armid.estimation.quantiles import normal_quantile
from armid.identification.comparison import TOLERATED, Comparison, stacked
from armid.identification.evidence import Evidence
from armid.identification.faults import Fault
from armid.identification.held_out import held_out_checks
from armid.identification.sensors import Imperfections
from armid.identification.sizes import said_within
from armid.identification.thresholds import (
    CONSISTENCY_COST,
    IMPLAUSIBLE,
    MARGIN,
    NOTED_COST,
    REVERSED,
    SETTLING,
)
from armid.identification.torque_error import JointErrors
from armid.information.status import Status
from armid.notes import Note, Severity
from armid.outcome import Check
from armid.parameters.inertial import pseudo_inertia
from armid.rows.imperfections import Family

if TYPE_CHECKING:
    from armid.identification.result import Result

LARGEST_CONSISTENCY_COST = CONSISTENCY_COST.value
_NOTABLE_CONSISTENCY_COST = NOTED_COST.value
REVERSED_IS_BETTER = REVERSED.value
_SMALLEST_MARGIN = MARGIN.value
_SETTLING_DELAY = SETTLING.value

_SENSORS = (Family.GAIN, Family.ZERO, Family.SCALE, Family.CLOCK)
"""Imperfections that are the sensor's own, whatever the friction."""

_UNSETTLED = ("torque-lag",)
"""Warnings of logs after which nobody knows what was measured: with torque late against the motion inertia passes for friction,
and least squares fits it almost as well as the truth."""


def judge(
    estimate: Estimate,
    consistent: ConsistentEstimate,
    certificates: Certificates,
    joints: Sequence[JointErrors],
    joints_raw: Sequence[JointErrors],
    *,
    relative_error: Mapping[str, float],
    evidence: Evidence,
) -> tuple[Check, ...]:
    """All conditions with their outcome; from stored figures as from fresh ones.

    Args:
        estimate: unconstrained.
        consistent: possible bodies.
        certificates: of the consistent estimate.
        joints, joints_raw: errors of the consistent and of the unconstrained estimate.
        relative_error: stacked, `train` and `held_out`, of the consistent estimate.
        evidence: everything else.
    """
    return (
        _rank_check(estimate, evidence.structural_rank),
        *_convergence_checks(estimate),
        *held_out_checks(joints, relative_error, evidence),
        *constant_checks(evidence.against_constant),
        *nominal_checks(evidence.against_nominal),
        interval_check(estimate, consistent),
        *physical_checks(consistent, certificates, joints, joints_raw),
        *_gravity_checks(evidence.gravity_error),
        *log_checks(evidence.log_notes, torque_delay=evidence.torque_delay),
    )


def _rank_check(estimate: Estimate, structural_rank: int) -> Check:
    found = len(estimate)
    text = f"the motion determines {found} of {structural_rank} base parameters"
    if found < structural_rank:
        text += ": excite all joints (armid design)"
    return Check(code="rank", passed=found >= structural_rank, value=found, limit=structural_rank, message=text)


def _convergence_checks(estimate: Estimate) -> tuple[Check, ...]:
    if estimate.status is Status.SOLVED:
        return ()
    return (
        Check(code="convergence", passed=False, value=estimate.iterations, limit=0.0, message=estimate.status.message),
    )


def constant_checks(comparisons: Sequence[Comparison]) -> tuple[Check, ...]:
    """A model of an arm must do better than remembering the mean torque of every joint."""
    return tuple(
        Check(
            code="worse-than-constant",
            passed=False,
            value=c.rmse,
            limit=c.rmse_other,
            message=f"{c.name}: held-out error {c.rmse:.3g}, but its mean torque of the training motion alone leaves "
            f"{c.rmse_other:.3g}; "
            "record a motion that excites it",
            subject=c.name,
        )
        for c in comparisons
        if c.worse
    )


def nominal_checks(comparisons: Sequence[Comparison]) -> tuple[Check, ...]:
    """No joint may be predicted worse than before, as far as the held-out motion can tell."""
    if not comparisons:
        return ()
    mine, theirs = stacked(comparisons)
    worse = [c for c in comparisons if c.worse]
    larger = [c.name for c in comparisons if c.rmse > c.rmse_other]
    text = f"held-out error {_ratio_text(mine, theirs)} that of the description's own parameters, and "
    text += (
        f"larger on {', '.join(larger)}, though not beyond chance, a tenth and 1 % of its torque"
        if larger
        else "no joint is worse"
    )
    if not worse:
        return (Check(code="not-worse-than-nominal", passed=True, value=mine, limit=TOLERATED * theirs, message=text),)
    return tuple(
        Check(
            code="not-worse-than-nominal",
            passed=False,
            value=c.rmse,
            limit=TOLERATED * c.rmse_other,
            message=f"{c.name}: held-out error {c.rmse:.3g} against {c.rmse_other:.3g} of the description's own "
            "parameters, beyond "
            "chance; the description knows this joint better than the log does",
            subject=c.name,
        )
        for c in worse
    )


def _ratio_text(mine: float, theirs: float) -> str:
    """`0.23 times`, readable also when the other error is zero."""
    return f"{mine / theirs:.2g} times" if theirs > 0.0 else f"{mine:.2g} against zero,"


def interval_check(estimate: Estimate, consistent: ConsistentEstimate) -> Check:
    """What is claimed to come from the data has an interval."""
    free = [
        name
        for name, s in zip(estimate.names, estimate.standard_deviations, strict=True)
        if not (isfinite(s) and s > 0.0)
    ]
    claimed = [
        name
        for name, by, s in zip(consistent.names, consistent.determined_by, consistent.standard_deviations, strict=True)
        if by == "data" and not isfinite(s)
    ]
    missing = [*free, *claimed]
    text = f"all {len(estimate)} base parameters have finite intervals"
    if missing:
        text = f"no finite interval for {', '.join(missing[:5])}" + (" and others" if len(missing) > 5 else "")
    return Check(code="finite-intervals", passed=not missing, value=len(missing), limit=0.0, message=text)


def _eigenvalues(consistent: ConsistentEstimate) -> tuple[float, ...]:
    """Smallest pseudo-inertia eigenvalue of every body, from its parameters."""
    return tuple(float(np.linalg.eigvalsh(pseudo_inertia(body.of(consistent.values)))[0]) for body in consistent.bodies)


def margins(consistent: ConsistentEstimate) -> dict[str, float]:
    """Smallest over largest eigenvalue of every body's pseudo-inertia."""
    out = {}
    for body in consistent.bodies:
        eigenvalues = np.linalg.eigvalsh(pseudo_inertia(body.of(consistent.values)))
        out[body.owner] = float(eigenvalues[0] / eigenvalues[-1]) if eigenvalues[-1] > 0.0 else -1.0
    return out


def physical_checks(
    consistent: ConsistentEstimate,
    certificates: Certificates,
    joints: Sequence[JointErrors],
    joints_raw: Sequence[JointErrors],
) -> tuple[Check, ...]:
    """Possible bodies with a margin, and what they cost in torque."""
    margin = margins(consistent)
    smallest = min((*certificates.pseudo_inertia.values(), *_eigenvalues(consistent)), default=float("inf"))
    owner = min(margin, key=margin.__getitem__, default="")
    least = margin.get(owner, float("inf"))
    out = [
        Check(
            code="physical-margin",
            passed=least >= _SMALLEST_MARGIN,
            value=least,
            limit=_SMALLEST_MARGIN,
            message=f"{owner}: smallest over largest pseudo-inertia eigenvalue {least:.2g} (at least {_SMALLEST_MARGIN:g})",
            subject=owner,
        ),
        Check(
            code="physical",
            passed=certificates.physical and smallest > 0.0,
            value=smallest,
            limit=0.0,
            message=f"smallest pseudo-inertia eigenvalue {smallest:.2g}, of M(q) {certificates.mass_matrix:.2g} sampled, "
            + (f"at least {certificates.mass_matrix_bound:.2g} everywhere" if certificates.proven else "not proven"),
        ),
        Check(
            code="unconstrained-physical",
            passed=certificates.free_estimate_is_physical,
            value=certificates.distance,
            limit=certificates.distance_limit,
            message=f"unconstrained estimate {certificates.distance:.3g} from the nearest physically consistent one "
            f"(squared deviations; noise allows {certificates.distance_limit:.3g}, p-value {certificates.p_value:.2g})",
            decisive=False,
        ),
    ]
    if consistent.status is not Status.SOLVED:
        text = f"physical consistency: {consistent.status.message}"
        out.append(
            Check(
                code="consistency-convergence",
                passed=False,
                value=consistent.iterations,
                limit=0.0,
                message=text,
                decisive=False,
            )
        )
    for joint, raw in zip(joints, joints_raw, strict=True):
        cost = _consistency_cost(joint, raw)
        if cost > _NOTABLE_CONSISTENCY_COST:
            text = f"{joint.name}: physically consistent parameters fit {cost:.1f} times worse than unconstrained parameters"
            bad = cost > LARGEST_CONSISTENCY_COST
            if bad:
                text += "; check the sign of its torque, the mounting and the joint order"
            out.append(
                Check(
                    code="consistency-cost",
                    passed=not bad,
                    value=cost,
                    limit=LARGEST_CONSISTENCY_COST,
                    message=text,
                    subject=joint.name,
                    decisive=bad,
                )
            )
    return tuple(out)


def _consistency_cost(joint: JointErrors, raw: JointErrors) -> float:
    """Error with possible bodies over that with free parameters, on training or held-out motion, whichever is smaller.

    A wrong sign or mounting costs on both. Where only the training motion shows a cost, free parameters have fitted its noise.
    """
    cost = joint.train.rmse / max(raw.train.rmse, 1e-300)
    held_out = joint.held_out.rmse / max(raw.held_out.rmse, 1e-300)
    return cost if isnan(held_out) else min(cost, held_out)


def _gravity_checks(errors: Mapping[str, float]) -> tuple[Check, ...]:
    """Least squares fits a reversed mounting almost as well; possible bodies do not."""
    if not {"as described", "reversed"} <= set(errors):
        return ()
    ratio = errors["as described"] / max(errors["reversed"], 1e-300)
    text = f"physically consistent parameters fit {1 / ratio:.2g} times better with gravity as described than reversed"
    if ratio > REVERSED_IS_BETTER:
        text = (
            f"physically consistent parameters fit {ratio:.2g} times better with gravity reversed: correct the mounting or the "
            "torque's sign"
        )
    return (
        Check(
            code="gravity-direction",
            passed=ratio <= REVERSED_IS_BETTER,
            value=ratio,
            limit=REVERSED_IS_BETTER,
            message=text,
        ),
    )


def log_checks(notes: Sequence[Note], *, torque_delay: float = 0.0) -> tuple[Check, ...]:
    """What the logs mean must be settled: errors that somebody accepted still count, and so does a lag nobody took out.

    Args:
        notes: of the logs.
        torque_delay: by which torque was moved when the logs were conditioned [s]; it settles a lag.
    """
    return tuple(
        Check(code=f"log-{note.code}", passed=False, value=1.0, limit=0.0, message=note.message, subject=note.subject)
        for note in notes
        if note.severity is Severity.ERROR or (note.code in _UNSETTLED and abs(torque_delay) < _SETTLING_DELAY)
    )


def fault_checks(faults: Sequence[Fault]) -> tuple[Check, ...]:
    """One failure for every fault that was found, is too large to be used, and was not corrected."""
    return tuple(
        Check(
            code="fault",
            passed=False,
            value=fault.estimate,
            limit=fault.tolerance,
            message=_fault_text(fault),
            subject=fault.joint or "",
        )
        for fault in faults
        if fault.large and not fault.corrected
    )


def _fault_text(fault: Fault) -> str:
    """What was found, and the words that undo it or say what it may be."""
    undone = f"undo it {fault.place}: {fault.advice}" if fault.place else fault.advice
    return f"{fault.sentence}; {undone}" if undone else fault.sentence


def sensor_checks(found: Imperfections | None) -> tuple[Check, ...]:
    """One failure for every sensor that the model had to correct beyond what is plausible, and beyond doubt.

    Delays are not among them: they stand in for what filters leave at reversals. Doubt is that of all sensors together: of forty
    sound ones two are beyond 1.96 deviations by chance. Nor is what somebody asked to undo, of a sensor file or with `correct`.
    """
    if found is None or found.moves:
        return ()
    sensors = [sized for sized in found.sizes if sized.item.family in _SENSORS]
    beyond_doubt = normal_quantile(1.0 - 0.025 / max(len(sensors), 1))
    return tuple(
        Check(
            code="implausible-sensor",
            passed=False,
            value=abs(sized.value) / sized.item.tolerance,
            limit=IMPLAUSIBLE.value,
            message=f"{sized.item.family.value} of {'all joints' if joint is None else found.joints[joint]}: the model needs "
            f"{said_within(sized.value, sized.standard_deviation, sized.item.unit)}, "
            f"{abs(sized.value) / sized.item.tolerance:.1f} times what is ordinary; check that sensor, or say so in the mapping",
            subject="" if joint is None else found.joints[joint],
        )
        for sized in sensors
        for joint in (sized.item.joint,)
        if abs(sized.value) > max(IMPLAUSIBLE.value * sized.item.tolerance, beyond_doubt * sized.standard_deviation)
    )


def with_suspects(result: Result, faults: Sequence[Fault]) -> Result:
    """The result with further answers to what could be wrong, and judged by them."""
    return replace(result, suspects=(*result.suspects, *faults), checks=(*result.checks, *fault_checks(faults)))


def checks_of(result: Result) -> tuple[Check, ...]:
    """The conditions of a result judged again from its own figures.

    A condition that failed when the result was made stays failed, whatever the figures say now. Conditions that no figure decides
    (whether a shape of friction pays) stay as they are. Without figures to judge by, only what failed is left: not trusted.
    """
    if result.evidence is None:
        return tuple(check for check in result.checks if not check.passed)
    fresh = judge(
        result.estimate,
        result.consistent,
        result.certificates,
        result.joints,
        result.joints_raw,
        relative_error=result.relative_error,
        evidence=result.evidence,
    )
    # A fault that was found is a cause; errors that are too large may be no more than what it does.
    fresh = (*fault_checks(result.suspects), *fresh, *sensor_checks(result.imperfections))
    codes = {check.code for check in fresh}
    failing = {(check.code, check.subject) for check in fresh if not check.passed}
    kept = (
        check
        for check in result.checks
        if (check.code not in codes if check.passed else (check.code, check.subject) not in failing)
    )
    return (*fresh, *kept)

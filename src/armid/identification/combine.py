"""Two results as one: their Information adds up and is solved anew, without going back to a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import nan, sqrt

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.certificates import certify
from armid.consistency.possible import REGULARISERS, PossibleBodies
from armid.consistency.within_links import within_links
from armid.errors import InputError
from armid.estimation.covariance import Earlier, bread
from armid.estimation.estimate import Estimate, identification_notes
from armid.estimation.least_squares import WeightedLeastSquares
from armid.identifiability.base import BaseParameters
from armid.identifiability.practical import excited, excited_base
from armid.identification.comparison import Comparison
from armid.identification.driving_friction import driving_friction_checks
from armid.identification.evidence import Evidence
from armid.identification.fit import condition_numbers, consistent_prior, effective_information
from armid.identification.gate import judge
from armid.identification.metrics import NOMINAL, RIGID, has_masses, nominal_models
from armid.identification.motion import JointMotion, joined_course
from armid.identification.origins import result_provenance
from armid.identification.plausibility import plausibility_checks
from armid.identification.provenance import check_new
from armid.identification.records import Sensitivity
from armid.identification.result import Result
from armid.identification.thresholds import NEGLIGIBLE_ERROR, TOLERATED_RATIO
from armid.identification.torque_error import JointErrors, TorqueErrors
from armid.information.information import Information
from armid.information.solve import reduced
from armid.notes import Note, Severity
from armid.outcome import Check


def combined(first: Result, second: Result) -> Result:
    """Both experiments together.

    What a second look at the recordings would need (friction shapes beside linear ones, block-wise comparisons, sensitivity) is
    not there; errors on training and held-out motion are, from the stored Information. Held-out motion that the other result
    learned from is no test: without any other the sum is untrusted until it is validated.

    Args:
        first: its robot, conditioning and friction shapes stand for both.
        second: about the same arm and the same parameters.

    Raises:
        InputError: another arm, other parameters, or a recording that both learned from.
    """
    _check_same_model(first, second)
    check_new(first.provenance.train, second.provenance.train, "adding it would count it twice")
    information = first.information + second.information
    base, structural = _common_base(first, second, information)
    estimate = _summed_estimate(first, second, information, base)
    rows = effective_information(information, estimate)
    prior = consistent_prior(first.described, information, estimate)
    consistent = same_way(first).fit(rows, first.consistent.units, prior)
    consistent = within_links(first.described, consistent, rows, same_way(first))
    held_out = _fresh_held_out(first, second)
    known = nominal_models(first.described, information.parameters)
    joints, raw, nominal = (
        joint_errors(information, held_out, values) for values in (consistent.values, estimate.standard, known[NOMINAL])
    )
    relative = {"train": relative_error(information, consistent.values)}
    relative["held_out"] = nan if held_out is None else relative_error(held_out, consistent.values)
    cost = {j.name: j.train.rmse / max(r.train.rmse, 1e-300) - 1.0 for j, r in zip(joints, raw, strict=True)}
    certificates = certify(first.described, consistent, estimate, cost, seed=first.provenance.seed or 0)
    evidence = Evidence(
        structural_rank=len(structural),
        against_nominal=_beside_nominal(held_out, consistent.values, known) if has_masses(first.described) else (),
    )
    checks = judge(
        estimate,
        consistent,
        certificates,
        joints,
        raw,
        relative_error=relative,
        evidence=evidence,
    )
    number, scaled = condition_numbers(information, structural)
    return Result(
        described=first.described,
        effects=first.effects,
        estimate=estimate,
        consistent=consistent,
        certificates=certificates,
        joints=joints,
        joints_raw=raw,
        joints_nominal=nominal,
        relative_error=relative,
        condition_number=number,
        condition_number_scaled=scaled,
        information=information,
        held_out_information=held_out,
        evidence=evidence,
        checks=(
            *checks,
            *plausibility_checks(first.described, consistent),
            *driving_friction_checks(first.described.joint_names, first.effects, estimate, _motions(first, second)),
            *_kept_checks(first),
            *_kept_checks(second),
        ),
        gains=first.gains,
        imperfections=first.imperfections or second.imperfections,
        conditioning=replace(
            first.conditioning,
            samples_train=first.conditioning.samples_train + second.conditioning.samples_train,
            samples_held_out=first.conditioning.samples_held_out + second.conditioning.samples_held_out,
        ),
        sensitivity=Sensitivity(),
        provenance=result_provenance(
            first.provenance.robot,
            robot_name=first.provenance.robot_name,
            train=(*first.provenance.train, *second.provenance.train),
            held_out=tuple(dict.fromkeys((*first.provenance.held_out, *second.provenance.held_out))),
            settings=first.provenance.settings,
            seed=first.provenance.seed,
        ),
        notes=tuple(
            dict.fromkeys(
                (
                    *first.notes,
                    *second.notes,
                    *identification_notes(estimate),
                    *consistent.notes,
                    *_conditioning_notes(first, second),
                )
            )
        ),
        friction=first.friction,
        course=joined_course(first.course, second.course),
        peak_memory_mb=max(first.peak_memory_mb, second.peak_memory_mb),
        seconds=first.seconds + second.seconds,
    )


def _check_same_model(first: Result, second: Result) -> None:
    """Refuses results whose rows mean different things.

    Raises:
        InputError: says what differs.
    """
    if first.described.source.sha256 != second.described.source.sha256 or not np.allclose(
        first.described.gravity, second.described.gravity
    ):
        raise InputError(
            "results",
            f"about {first.described.name} and {second.described.name}, whose descriptions or mountings differ",
            "add results of the same arm",
        )
    if first.effects != second.effects or first.information.parameters != second.information.parameters:
        raise InputError("results", "about other parameters", "identify both with the same effects")
    mine, theirs = first.shapes, second.shapes
    if mine.scales != theirs.scales or mine.load != theirs.load:
        raise InputError(
            "results",
            "found other shapes of friction",
            "identify the second with --prior, which keeps the first's shapes",
        )


def _conditioning_notes(first: Result, second: Result) -> tuple[Note, ...]:
    """That the two were conditioned differently, when they were."""
    mine, theirs = first.conditioning, second.conditioning
    differs = [
        word
        for word, a, b in (
            ("cut-off", mine.torque_cutoff_hz, theirs.torque_cutoff_hz),
            ("presliding", mine.presliding, theirs.presliding),
            ("friction_width", mine.friction_width, theirs.friction_width),
            ("velocity", mine.velocity, theirs.velocity),
        )
        if a != b
    ]
    if not differs:
        return ()
    return (
        Note("conditioning-differs", Severity.INFO, f"the results were conditioned differently: {', '.join(differs)}"),
    )


def _common_base(first: Result, second: Result, information: Information) -> tuple[BaseParameters, BaseParameters]:
    """Base parameters that both together determine, and those a perfect motion would: the larger set of the two results."""
    largest = max((first.estimate.base, second.estimate.base), key=len)
    shown = excited_base(information)
    if excited(information, largest):
        return (shown, shown) if len(shown) > len(largest) else (largest, largest)
    return shown, largest


def _summed_estimate(first: Result, second: Result, information: Information, base: BaseParameters) -> Estimate:
    """Weighted least squares on the sum; each part's samples count by what they told that was new."""
    units = dict(zip(first.consistent.names, first.consistent.units, strict=True))
    estimate = WeightedLeastSquares().fit(information, base, tuple(units[name] for name in base.names))
    B = bread(reduced(information, base), estimate.sigma)
    meat = sum((Earlier(part.information, part.estimate).meat(estimate) for part in (first, second)), np.zeros_like(B))
    named = replace(estimate, method=f"{estimate.method}, sum of results")
    return named.with_covariance(B @ meat @ B, "autocorrelation")


def same_way(result: Result) -> PossibleBodies:
    """The search for possible bodies as the first result's settings say; bounds of it are not stored and do not count."""
    settings = result.provenance.settings
    kind = REGULARISERS.get(str(settings.get("regulariser")), REGULARISERS["pull-back"])
    return PossibleBodies(kind(float(settings.get("regulariser_weight", 0.1))))


def _fresh_held_out(first: Result, second: Result) -> Information | None:
    """Information of the held-out motion of each result that the other did not learn from; None when there is none."""
    parts = []
    for mine, other in ((first, second), (second, first)):
        seen = any(log.overlaps(known) for log in mine.provenance.held_out for known in other.provenance.train)
        if mine.held_out_information is not None and not seen:
            parts.append(mine.held_out_information)
    same = len(parts) == 2 and any(a.overlaps(b) for a in first.provenance.held_out for b in second.provenance.held_out)
    return None if not parts else parts[0] if same or len(parts) == 1 else parts[0] + parts[1]


def joint_errors(train: Information, held_out: Information | None, standard: FloatArray) -> tuple[JointErrors, ...]:
    """Errors per channel from factors; those against raw torque and over its range are not in them."""
    train, held_out = train.pooled(), None if held_out is None else held_out.pooled()
    tested = {} if held_out is None else {c.name: _errors(held_out, c.name, standard) for c in held_out.channels}
    return tuple(
        JointErrors(c.name, _errors(train, c.name, standard), tested.get(c.name, TorqueErrors()))
        for c in train.channels
    )


def _errors(information: Information, name: str, standard: FloatArray) -> TorqueErrors:
    channel = information.channel(name)
    energy, size = channel.error_energy(standard), float(np.sum(channel.factor[:, -1] ** 2))
    return TorqueErrors(rmse=sqrt(energy / max(channel.count, 1.0)), relative=sqrt(energy / size) if size else nan)


def relative_error(information: Information, standard: FloatArray) -> float:
    """Norm of the error over the norm of the torque, all channels stacked."""
    energy = sum(channel.error_energy(standard) for channel in information.channels)
    size = sum(float(np.sum(channel.factor[:, -1] ** 2)) for channel in information.channels)
    return sqrt(energy / size) if size > 0.0 else nan


def _beside_nominal(
    held_out: Information | None, standard: FloatArray, known: Mapping[str, FloatArray]
) -> tuple[Comparison, ...]:
    """The sum beside the description on held-out motion; without its course in time nothing is left to chance."""
    if held_out is None:
        return ()
    best = min((NOMINAL, RIGID), key=lambda name: relative_error(held_out, known[name]))
    out = []
    for channel in held_out.channels:
        mine, theirs = (_errors(held_out, channel.name, values).rmse for values in (standard, known[best]))
        torque = float(np.sum(channel.factor[:, -1] ** 2)) / max(channel.count, 1.0)
        excess = mine**2 - (TOLERATED_RATIO.value * theirs) ** 2 - NEGLIGIBLE_ERROR.value**2 * torque
        out.append(Comparison(name=channel.name, rmse=mine, rmse_other=theirs, excess=excess, uncertainty=0.0))
    return tuple(out)


_KEPT = "log-"
"""Beginning of the codes of conditions about recordings: what was merely accepted in a part was accepted in the sum."""


def _motions(*results: Result) -> tuple[JointMotion, ...]:
    """Training motions of several results, as far as they are known."""
    return tuple(motion for result in results if result.evidence is not None for motion in result.evidence.train)


def _kept_checks(result: Result) -> tuple[Check, ...]:
    """Failed conditions of a part that adding up cannot mend."""
    return tuple(
        check
        for check in result.checks
        if not check.passed and (check.code.startswith(_KEPT) or check.code == "gravity-direction")
    )

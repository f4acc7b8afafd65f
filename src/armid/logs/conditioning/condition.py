"""Log to Samples: one function, every step of it elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.conditioning.parts import Uniform, uniform_parts
from armid.logs.conditioning.settings import OVERSAMPLING, Conditioning
from armid.logs.conditioning.spectrum import chosen_cutoff, spectrum
from armid.logs.conditioning.window import MIN_PERIODS, conditioned, is_long_enough
from armid.logs.health.refuse import refuse_errors
from armid.logs.log import Channel, Log, matched
from armid.logs.samples import Samples, concatenated
from armid.notes import Note, Severity
from armid.robot.robot import Robot


def condition(log: Log, robot: Robot, settings: Conditioning | None = None) -> Samples:
    """Uniform samples with derivatives.

    Rows that are corrupt or repeat the one before are left out, the rest is cut at gaps and put on a uniform grid; the motion
    and the torque pass the same zero-phase low-pass; velocity and acceleration are derived; ends are trimmed; the
    rate is brought down to what the cut-off needs.

    Args:
        log: as read, and checked (`armid.logs.check_log`) or not.
        robot: for the joint order.
        settings: see `Conditioning`; automatic where it leaves a choice.

    Raises:
        LogRefusedError: the log has errors that `settings.accept` does not name.
        InputError: nothing left to condition.
    """
    # Rows that are no measurements are left out one by one; arithmetic on them on the way must not raise.
    with np.errstate(all="ignore"):
        return checked_and_conditioned(log, robot, settings or Conditioning())


def checked_and_conditioned(log: Log, robot: Robot, settings: Conditioning) -> Samples:
    """The steps, in order."""
    ordered = matched(log, robot)
    refuse_errors(ordered, settings.accept)
    parts, notes = uniform_parts(ordered, settings)
    resolved, chosen = resolved_settings(parts, settings)
    whole = concatenated(conditioned_parts(parts, resolved, notes))
    return replace(
        whole,
        settings=resolved,
        noise=noise_levels(parts),
        sources=(log.source,),
        notes=(*ordered.notes, *notes, *chosen),
    )


def conditioned_parts(parts: list[Uniform], settings: Conditioning, notes: list[Note]) -> list[Samples]:
    """Every stretch long enough for the filter; the others are left out and noted."""
    long = [part for part in parts if is_long_enough(part, settings)]
    name = parts[0].log.name
    if not long:
        longest = max(len(part.time) / part.rate for part in parts)
        raise InputError(
            name, f"{longest:.3g} s is shorter than {MIN_PERIODS:g} periods of the {settings.cutoff:g} Hz cut-off"
        )
    if len(long) < len(parts):
        text = f"{len(parts) - len(long)} stretch(es) between gaps too short for the filter left out"
        notes.append(Note("short-stretches", Severity.INFO, text, name))
    pieces = [piece for part in long if len(piece := conditioned(part, settings))]
    if not pieces:
        raise InputError(name, "nothing is left after trimming the ends", "trim less")
    return pieces


def resolved_settings(parts: list[Uniform], settings: Conditioning) -> tuple[Conditioning, list[Note]]:
    """The settings with cut-offs and rate chosen where they were left open."""
    longest = max(parts, key=lambda part: len(part.time))
    notes = []
    cutoff = settings.cutoff
    if cutoff is None:
        choice = chosen_cutoff(longest.channels[Channel.POSITION], longest.rate)
        cutoff = choice.cutoff
        notes.append(replace(choice.note, subject=longest.log.name))
    torque_cutoff = settings.torque_cutoff if settings.torque_cutoff is not None else cutoff
    rate = settings.rate if settings.rate is not None else OVERSAMPLING * max(cutoff, torque_cutoff)
    return replace(settings, cutoff=cutoff, torque_cutoff=torque_cutoff, rate=rate), notes


def noise_levels(parts: list[Uniform]) -> dict[Channel, FloatArray]:
    """Standard deviation of the noise of each channel, from the longest stretch."""
    longest = max(parts, key=lambda part: len(part.time))
    if len(longest.time) < 64:
        return {}
    return {channel: spectrum(values, longest.rate).noise for channel, values in longest.channels.items()}

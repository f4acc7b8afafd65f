"""What a result came from: inputs with hashes, versions, settings."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from armid.errors import InputError
from armid.identification.origins import STEP_SHARES, LogRecord, ResultProvenance, result_provenance
from armid.identification.settings import Identification
from armid.logs.log import Log
from armid.logs.recording import Recording
from armid.outcome import InputFile
from armid.robot.robot import Robot


def provenance(
    robot: Robot, train: Sequence[LogRecord], held_out: Sequence[LogRecord], settings: Identification
) -> ResultProvenance:
    """Inputs with hashes, versions, settings. What an earlier result learned from stays among the training logs."""
    earlier = () if settings.prior is None else settings.prior.provenance.train
    return result_provenance(
        InputFile(robot.source.path, robot.source.sha256, "robot"),
        robot_name=robot.name,
        train=(*earlier, *train),
        held_out=held_out,
        settings=_settings_record(settings),
        seed=settings.seed,
    )


def _settings_record(settings: Identification) -> dict[str, Any]:
    """Every choice that was made, as plain values."""
    return {
        "method": settings.method.value,
        "consistency": settings.way.value,
        "imperfections": [family.value for family in settings.imperfections.families],
        "bounds": list(settings.bounds.statements),
        "regulariser": settings.regulariser.name,
        "regulariser_weight": settings.regulariser.weight,
        "covariance": type(settings.covariance).__name__,
        "seed": settings.seed,
        "prior": None if settings.prior is None else [log.name for log in settings.prior.provenance.train],
        "population": None if settings.population is None else settings.population.arms,
    }


def log_record(log: Recording) -> LogRecord:
    """What is kept of a recording: a log made in memory is known by the hash of its arrays."""
    files = log.source.files or ((log.name, _content_hash(log.log)),)
    return LogRecord(
        name=log.name,
        samples=len(log),
        start_s=log.start_s,
        end_s=log.end_s,
        files=files,
        reader=log.source.reader,
        steps_s=log.clock_steps(STEP_SHARES),
    )


def _content_hash(log: Log) -> str:
    """SHA-256 of the time and channels of a log."""
    digest = hashlib.sha256(np.ascontiguousarray(log.time).tobytes())
    for channel in sorted(log.channels):
        digest.update(channel.encode())
        digest.update(np.ascontiguousarray(log.channels[channel]).tobytes())
    return digest.hexdigest()


def check_new(known: Sequence[LogRecord], more: Sequence[LogRecord], what: str) -> None:
    """Refuses to count a motion twice.

    Args:
        known: recordings already learned from.
        more: recordings to add.
        what: they are to be used for, for the message.

    Raises:
        InputError: one of them is known; names it.
    """
    for log in more:
        if any(log.overlaps(earlier) for earlier in known):
            raise InputError(log.name, f"the earlier result learned from it already ({what})", "give another recording")


def check_apart(train: Sequence[LogRecord], held_out: Sequence[LogRecord]) -> None:
    """Refuses to test on what was learned from.

    Raises:
        InputError: a recording, or rows of one, are in both; names it.
    """
    for log in held_out:
        if any(log.overlaps(known) for known in train):
            raise InputError(
                log.name,
                "held out, but the same rows are among the training logs: predicting them is no test",
                "validate on another recording, or leave --validate out and the last 40 % of each log are held out",
            )

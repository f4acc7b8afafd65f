"""Findings that are data, not exceptions: what a reader of the result must know."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a note weighs."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Note:
    """One finding.

    Args:
        code: stable, kebab-case, for machines (`torque-sign`, `rank-deficient`).
        severity: an `ERROR` means a later stage refuses to go on unless told to.
        message: what was found, where, and what to do about it.
        subject: the joint, link, channel or file it is about; empty when it is about the whole.
    """

    code: str
    severity: Severity
    message: str
    subject: str = ""

    def as_dict(self) -> dict[str, str]:
        return {key: str(value) for key, value in asdict(self).items()}

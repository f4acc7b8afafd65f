"""How a finding is worded: what was found, and what to do."""

from __future__ import annotations

from armid.notes import Note, Severity


def finding(code: str, severity: Severity, subject: str, found: str, do: str) -> Note:
    """A note whose message is the finding followed by what to do about it."""
    return Note(code, severity, f"{found}: {do}", subject)


def share(fraction: float) -> str:
    """A fraction for people."""
    return f"{fraction:.1%}" if fraction >= 1e-3 else f"{fraction:.2g}"

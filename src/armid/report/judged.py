"""The frame of a page about one answer: its own sections, then what it was held against, then notes."""

from __future__ import annotations

from armid.outcome import Outcome
from armid.page import Paragraph, Report, Section, Table
from armid.report.notes import note_tables


def judged_page(outcome: Outcome, title: str, subtitle: str, *sections: Section) -> Report:
    """A page with verdict, checks and notes around the sections of one answer."""
    return Report(
        title=title,
        subtitle=subtitle,
        verdict=outcome.verdict,
        reasons=outcome.reasons,
        sections=(*sections, *_checks_section(outcome), *_notes_section(outcome)),
    )


def _checks_section(outcome: Outcome) -> tuple[Section, ...]:
    if not outcome.checks:
        return ()
    rows = tuple(
        (check.code, check.subject, check.value, check.limit, "holds" if check.passed else "fails", check.decisive)
        for check in outcome.checks
    )
    tones = tuple("" if check.passed else "bad" for check in outcome.checks)
    header = ("check", "about", "value", "limit", "", "decisive")
    failing = tuple(Paragraph(check.message, "bad") for check in outcome.checks if not check.passed)
    return (Section("checks", "What it was held against", (*failing, Table(header, rows, tones, "Every condition."))),)


def _notes_section(outcome: Outcome) -> tuple[Section, ...]:
    blocks = note_tables(outcome.notes)
    return (Section("notes", "Notes", blocks),) if blocks else ()

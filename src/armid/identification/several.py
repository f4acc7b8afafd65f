"""Many recordings: one that cannot be used does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from armid.errors import ArmidError, InputError
from armid.identification.thresholds import KEPT_ROWS, SET_ASIDE
from armid.logs.health.channels import bad_rows
from armid.logs.health.refuse import refuse_notes
from armid.logs.recording import Recording, open_recording
from armid.notes import Note, Severity
from armid.robot.robot import Robot

_MENDABLE = ("frozen", "saturated", "not-finite", "corrupt-values")
"""Errors of a log that go when the rows they are about are cut."""
_ROUNDS = 4
"""Of looking for stretches: each finds the longest of every channel."""


@dataclass(frozen=True, eq=False)
class Usable:
    """Recordings that can be used, and what is to be said about the others."""

    recordings: tuple[Recording, ...]
    notes: tuple[Note, ...]


def usable(
    openers: Sequence[tuple[str, Callable[[], Recording]]],
    robot: Robot,
    *,
    accept: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Usable:
    """Of several recordings those that can be used; bad stretches of the others are cut, or they are set aside with the reason.

    A single recording that cannot be used is refused where it is used.

    Args:
        openers: name and opening function of every recording.
        robot: the arm.
        accept: codes of errors that were looked at and are accepted.
        progress: told which one is being read.

    Raises:
        InputError: more are unusable than chance explains; with the first reason.
    """
    if len(openers) == 1:
        return Usable((openers[0][1](),), ())
    kept: list[Recording] = []
    notes: list[Note] = []
    reasons: list[str] = []
    for k, (name, opening) in enumerate(openers, start=1):
        progress(f"reading {k} of {len(openers)}" + (f", {len(reasons)} set aside" if reasons else ""))
        try:
            recording, cut = mended(opening(), robot, accept)
        except ArmidError as error:
            reasons.append(str(error))
            text = f"set aside: {error}"
            notes.append(Note("log-set-aside", Severity.WARNING, text, name))
            continue
        kept.append(recording)
        notes.extend(cut)
    if len(reasons) > SET_ASIDE.value * len(openers):
        many = f"{len(reasons)} of {len(openers)} cannot be used; the first: {reasons[0]}"
        raise InputError("logs", many, "so many point to a common cause: description, mapping or units")
    return Usable(tuple(kept), tuple(notes))


def mended(recording: Recording, robot: Robot, accept: Sequence[str] = ()) -> tuple[Recording, tuple[Note, ...]]:
    """A recording without its bad stretches, and a note that counts them; as it is when it has none.

    Raises:
        LogRefusedError: it has errors that cutting does not mend.
    """
    open_errors = [note for note in recording.notes if note.severity is Severity.ERROR and note.code not in accept]
    if not open_errors:
        return recording, ()
    if recording.streamed or any(note.code not in _MENDABLE for note in open_errors):
        refuse_notes(recording.name, recording.notes, accept)
    log, rows = recording.log, len(recording)
    for _ in range(_ROUNDS):
        bad = bad_rows(log)
        if not bad.any() or 2 * int(bad.sum()) > len(log):
            break
        log = log.selected(~bad)
    if len(log) == rows or len(log) < KEPT_ROWS.value * rows:
        refuse_notes(recording.name, recording.notes, accept)
    again = open_recording(replace(log, notes=(), checked=False), robot)
    refuse_notes(again.name, again.notes, accept)
    codes = ", ".join(dict.fromkeys(note.code for note in open_errors))
    text = f"{rows - len(log)} of {rows} rows of bad stretches cut ({codes}): {open_errors[0].message}"
    return again, (Note("stretches-cut", Severity.WARNING, text, recording.name),)

"""What could be wrong, in brief: what matters has a row of its own, the rest a line per experiment and one block of bounds.

An arm of seven joints has some ninety faults to look for, and most answers say that nothing is wrong. Printed one below the
other they hide the two or three that a person must act on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from re import split

from armid.identification.faults import Answer, Fault, faults_table, listed_faults
from armid.identification.thresholds import EXPLAINS_SOMETHING
from armid.page import Cell, Table
from armid.screen import unbroken

_MOST_OPEN = 6
"""Undecidable faults with a row of their own; the others are listed with what would decide them."""


def matters(fault: Fault) -> bool:
    """Whether a person should read of it by itself.

    Everything that was found does; of what is undecidable that which may well be there or which explains some of what the model
    leaves over.
    """
    if fault.answer is not Answer.UNDECIDABLE:
        return fault.answer is Answer.FOUND
    return fault.explains >= EXPLAINS_SOMETHING.value or _may_be_there(fault)


def _may_be_there(fault: Fault) -> bool:
    """Whether its size is beyond its tolerance and beyond its own standard deviation."""
    return abs(fault.estimate) > max(fault.tolerance, fault.standard_deviation)


def brief_tables(faults: Iterable[Fault], *, whole: str = "--all-faults lists everything") -> tuple[Table, ...]:
    """What was found; what may be there; what cannot be told, by what would tell it; and the bounds, by kind.

    Args:
        faults: every one that was looked for.
        whole: where all of them are listed.
    """
    asked = tuple(faults)
    joints = _joints_of(asked)
    found, open_ones, bounds = (
        [f for f in asked if f.answer is answer] for answer in (Answer.FOUND, Answer.UNDECIDABLE, Answer.EXCLUDED)
    )
    title = f"what could be wrong with these recordings ({whole})"
    first = (
        replace(faults_table(found), caption=title) if found else Table((), (), caption=f"{title}: nothing was found")
    )
    return (first, *_likely_table(open_ones), *_open_table(open_ones, joints), *_bounds_table(bounds, asked, joints))


def _likely_table(faults: Sequence[Fault]) -> tuple[Table, ...]:
    """Undecidable, yet something points to them: a row each, the most likely where there are many."""
    likely = [fault for fault in listed_faults(faults) if matters(fault)]
    kept = sorted(likely, key=lambda fault: not _may_be_there(fault))[:_MOST_OPEN]
    rows = faults_table(kept).rows
    more = len(likely) - len(kept)
    caption = f"the most likely of what is undecidable; {more} less likely ones are listed below" if more else ""
    header = ("undecidable, may be there", "size", "explains")
    table = Table(header, tuple((name, size, share) for name, _, size, share, _ in rows), caption=caption, words=True)
    return (table,) if rows else ()


def _open_table(faults: Sequence[Fault], joints: Sequence[str]) -> tuple[Table, ...]:
    """Undecidable, all of them: a line per experiment with the kinds that it would decide."""
    rows: list[tuple[Cell, ...]] = []
    for experiment, kinds in _grouped(faults, lambda fault: _first_way(fault.experiment)).items():
        names = "; ".join(
            f"{kind}{_of(found, joints)}" for kind, found in _grouped(kinds, lambda fault: fault.kind).items()
        )
        rows.append(("-", f"{names}: {experiment}" if experiment else names))
    table = Table(("", "undecidable from this log: what would decide it"), tuple(rows), words=True)
    return (table,) if rows else ()


def _first_way(experiment: str) -> str:
    """The first of several ways to decide, without what is then compared; every row of the long table has all of it."""
    return split("[,;] or |, and compare ", experiment)[0]


def _joints_of(faults: Sequence[Fault]) -> tuple[str, ...]:
    """Names in the order of the arm: that of the kind which has most of them, the last of such; what was found stands first."""
    kinds = list(_grouped((fault for fault in faults if fault.joint), lambda fault: fault.kind).values())
    most = max(reversed(kinds), key=len, default=[])
    return tuple(dict.fromkeys(fault.joint for fault in (*most, *faults) if fault.joint))


def _bounds_table(faults: Sequence[Fault], asked: Sequence[Fault], joints: Sequence[str]) -> tuple[Table, ...]:
    """All bounds in one block: the smallest and the largest of every kind, and its joints where they are not all the others.

    Args:
        faults: excluded.
        asked: all of them: joints of a kind that are not excluded are listed above.
        joints: of the arm.
    """

    def of(kind: str, found: Sequence[Fault]) -> str:
        own = {fault.joint for fault in found if fault.joint}
        above = {fault.joint for fault in asked if _family(fault) == kind and fault.joint} - own
        return "" if own and own | above == set(joints) else _of(found, joints)

    kinds = sorted(_grouped(faults, _family).items())
    text = "; ".join(f"{unbroken(f'{kind} {_beyond(found)}')}{of(kind, found)}" for kind, found in kinds)
    title = "excluded beyond these bounds, of every joint that is not listed above"
    return (Table(("", title), (("-", text),), words=True),) if kinds else ()


def _family(fault: Fault) -> str:
    """The kind, without the joint that a crosstalk is from."""
    return fault.kind.partition(" from ")[0]


def _beyond(faults: Sequence[Fault]) -> str:
    """The bound, or the smallest and the largest."""
    ordered = sorted(faults, key=lambda fault: fault.bound)
    low, high = (one.sentence.rpartition("beyond ")[2] for one in (ordered[0], ordered[-1]))
    return low if low == high else f"{low.partition(' ')[0]} to {high}"


def _of(faults: Sequence[Fault], joints: Sequence[str]) -> str:
    """The joints by name, in the order of the arm, or `every joint` with its exceptions; empty for the whole arm."""
    own = {fault.joint for fault in faults if fault.joint}
    if not own:
        return ""
    left = [name for name in joints if name not in own]
    if len(own) > 2 and len(left) <= 2:
        return " of every joint" + (f" but {', '.join(left)}" if left else "")
    return f" of {', '.join(name for name in joints if name in own)}"


def _grouped(faults: Iterable[Fault], key: Callable[[Fault], str]) -> dict[str, list[Fault]]:
    out: dict[str, list[Fault]] = {}
    for fault in faults:
        out.setdefault(key(fault), []).append(fault)
    return out

"""What could be wrong, in brief: what matters has a row of its own, the rest a line per kind.

An arm of seven joints has some ninety faults to look for, and most answers say that nothing is wrong. Printed one below the
other they hide the two or three that a person must act on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from armid.identification.faults import Answer, Fault, faults_table, listed_faults
from armid.identification.thresholds import EXPLAINS_SOMETHING
from armid.page import Cell, Table


def matters(fault: Fault) -> bool:
    """Whether a person should read of it by itself.

    Everything that was found does; of what is undecidable that which may well be there (its size is beyond its tolerance and
    beyond its own standard deviation) or which explains some of what the model leaves over.
    """
    if fault.answer is not Answer.UNDECIDABLE:
        return fault.answer is Answer.FOUND
    may_be_there = abs(fault.estimate) > max(fault.tolerance, fault.standard_deviation)
    return fault.explains >= EXPLAINS_SOMETHING.value or may_be_there


def brief_tables(faults: Iterable[Fault]) -> tuple[Table, ...]:
    """What matters, row by row; what cannot be told and what would tell it, by kind; and the bounds, by kind."""
    asked = tuple(faults)
    joints = tuple(dict.fromkeys(fault.joint for fault in asked if fault.joint))
    rows = [fault for fault in listed_faults(asked) if matters(fault)]
    open_ones = [fault for fault in asked if fault.answer is Answer.UNDECIDABLE and not matters(fault)]
    bounds = [fault for fault in asked if fault.answer is Answer.EXCLUDED]
    title = "what could be wrong with these recordings (--all-faults lists everything)"
    first = replace(faults_table(rows), caption=title) if rows else Table((), (), caption=f"{title}: nothing was found")
    return (first, *_open_table(open_ones, joints), *_bounds_table(bounds, joints))


def _open_table(faults: Sequence[Fault], joints: Sequence[str]) -> tuple[Table, ...]:
    """Undecidable, and nothing points to them: a line per kind with the experiment that would decide."""
    rows: list[tuple[Cell, ...]] = []
    for experiment, kinds in _grouped(faults, lambda fault: fault.experiment).items():
        names = "; ".join(
            f"{kind}{_of(found, joints)}" for kind, found in _grouped(kinds, lambda fault: fault.kind).items()
        )
        rows.append((names, experiment))
    table = Table(
        ("undecidable from this log, and nothing points to it", "what would decide it"), tuple(rows), words=True
    )
    return (table,) if rows else ()


def _bounds_table(faults: Sequence[Fault], joints: Sequence[str]) -> tuple[Table, ...]:
    rows: list[tuple[Cell, ...]] = []
    for kind, found in sorted(_grouped(faults, lambda fault: fault.kind).items()):
        rows.append((kind, _beyond(found), _of(found, joints).removeprefix(" of ") or "the arm"))
    table = Table(("excluded", "beyond", "of"), tuple(rows), words=True)
    return (table,) if rows else ()


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

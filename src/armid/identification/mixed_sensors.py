"""Sensors that mix: read by direction, load or past, or feel another joint; looked for once everything else is undone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import nan

import numpy as np

from armid.estimation.recording import torque_source
from armid.identification.candidates import MIXED, Seen, significant
from armid.identification.faults import Fault
from armid.identification.imperfection_rows import RowNoise
from armid.identification.sensors import Imperfections, Sized
from armid.identification.trials import Trials
from armid.identification.wandering import by_own_rows
from armid.rows.imperfections import Family, Imperfection, imperfections

_ALIKE = (Family.GAIN, Family.LOAD, Family.ASYMMETRIC, Family.SPRING)
"""What a sensor that reads by direction may be taken for, beside torque of the position: where torque is mostly friction it is
friction that differs by direction, where a cable pulls it is the cable."""

_MOST = 3
"""Of the best that are undone, one after the other."""


def mixed_faults(
    trials: Trials,
    record: Imperfections,
    drifts: Sequence[Sized],
    noise: RowNoise,
    *,
    held_out_error: float,
    known: Collection[Imperfection],
    share: float,
) -> tuple[Fault, ...]:
    """What is said of sensors that mix.

    Gains, friction that grows with the load and torque of the position look alike, and stand beside them; rows of a joint count
    by how long its own residuals hold together. Found is what explains most, where its interval leaves what is ordinary and it
    does so on other motion too.

    Args:
        trials: on the recording.
        record, drifts: everything else that the runs are freed from.
        noise: of their rows.
        held_out_error: logarithm of the error on held-out motion.
        known: candidates that were looked at already.
        share: of the shares that a fault must explain.
    """
    scan, answers = trials.train.scan, trials.answers
    effects = torque_source(trials.train.runs).effects
    alike = imperfections(trials.robot, effects, record.reference, _ALIKE)
    candidates = [item for item in imperfections(trials.robot, effects, record.reference, MIXED) if item not in known]
    found: dict[Imperfection, Fault] = {}
    refused: set[Imperfection] = set()
    seen, energy = scan(record, drifts, candidates, noise, alike)
    while len(found) + len(refused) < _MOST:
        worth = [s for s in seen if s.item not in {*found, *refused} and significant(s, energy, share)]
        if not worth:
            break
        best = max(worth, key=lambda s: s.taken)
        instead = _instead(trials, record, drifts, best, candidates, noise, alike)
        trial, quiet, own = (
            _undone(trials, *instead, alike) if instead else _undone(trials, record, drifts, best, alike)
        )
        after = trials.held_out_error(trial)
        change = float(np.exp(after - held_out_error)) - 1.0
        beyond = own.certain and abs(own.size) - own.half > own.item.tolerance
        if not beyond or change >= 0.0 or trials.contradicted(trial, own, alike):
            refused.add(best.item)
            continue
        large = trials.large(trial, own, alike)
        if own.item != best.item:
            refused.add(best.item)
        found[own.item] = answers.found(own, explains=best.taken / energy, change=change, large=large)
        record, noise, held_out_error = trial, quiet, after
        seen, energy = scan(record, drifts, candidates, noise, alike)
    return (*found.values(), *(answers.unfound(by_own_rows(one, noise), energy) for one in _told(seen, found)))


def _told(seen: Sequence[Seen], found: Collection[Imperfection]) -> list[Seen]:
    """Of what was not found, what is said: of crosstalk the one that explains most of a joint, of the waves of a gain the widest.

    Of a gain that may go with the position in several ways, no wave is larger than the widest bound says.
    """
    waved = {item.joint for item in found if item.family is Family.POSITION_GAIN}
    out: dict[tuple[Family, int | None, str], Seen] = {}
    for one in sorted(seen, key=lambda s: -s.taken):
        item = one.item
        if item in found or (item.family is Family.POSITION_GAIN and item.joint in waved):
            continue
        key = item.family, item.joint, "" if item.family in (Family.CROSSTALK, Family.POSITION_GAIN) else item.part
        known = out.setdefault(key, one)
        if item.family is Family.POSITION_GAIN:
            widest = max(known, one, key=lambda s: abs(s.size) + s.half)
            out[key] = replace(widest, item=replace(widest.item, part=""))
    return list(out.values())


def _instead(
    trials: Trials,
    record: Imperfections,
    drifts: Sequence[Sized],
    best: Seen,
    candidates: Sequence[Imperfection],
    noise: RowNoise,
    alike: Sequence[Imperfection],
) -> tuple[Imperfections, Sequence[Sized], Seen] | None:
    """A record without what was undone of a joint whose gain goes with its position, and the wave that is seen then.

    Of such a gain one number for all positions, a spring or an angle off its zero takes most; beside these the rest of it asks
    for bodies that cannot be. None for other candidates, and where nothing of the joint was undone.
    """
    if best.item.family is not Family.POSITION_GAIN:
        return None
    kept = tuple(sized for sized in record.sizes if sized.item.joint != best.item.joint)
    if len(kept) == len(record.sizes):
        return None
    bare, _ = trials.train.fitted(replace(record, sizes=kept), drifts)
    own = [i for i in candidates if i.family is best.item.family and i.joint == best.item.joint]
    seen, _ = trials.train.scan(bare, drifts, own, noise, alike)
    return bare, drifts, max(seen, key=lambda s: s.taken)


def _undone(
    trials: Trials, record: Imperfections, drifts: Sequence[Sized], seen: Seen, alike: Sequence[Imperfection]
) -> tuple[Imperfections, RowNoise, Seen]:
    """A record with one of these undone too, the noise of its rows, and what it is then."""
    with_it = replace(record, sizes=(*record.sizes, Sized(seen.item, seen.size, nan)))
    trial, quiet, _ = trials.settled(with_it, drifts, alike)
    (left,), _ = trials.train.scan(trial, drifts, (seen.item,), quiet, alike)
    return trial, quiet, by_own_rows(left.whole(trial.sizes[-1].value), quiet)

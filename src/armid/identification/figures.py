"""The evidence of a verdict gathered from predictions of training and held-out motion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import nan, sqrt

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.folds import added_by_fold
from armid.estimation.recording import torque_source
from armid.estimation.run import Run, each_run, gathered
from armid.estimation.runs import lengths_of
from armid.identification.comparison import Comparison
from armid.identification.data import Data
from armid.identification.evidence import Evidence, OtherLoad
from armid.identification.gains import DriveGains
from armid.identification.metrics import CONSTANT, Predicted
from armid.identification.sensors import Imperfections
from armid.identification.thresholds import REPEATED_SHARE
from armid.information.information import Information, total
from armid.information.solve import smallest_solution
from armid.information.status import EstimationError
from armid.kernels.evaluate import evaluate_rows, residuals
from armid.logs.recording import Recording
from armid.notes import Note
from armid.parameters.effects import TorqueSide
from armid.parameters.inertial import INERTIAL_NAMES
from armid.rows.gravity import GravityRows

Refit = Callable[[Information], FloatArray]
"""Full standard parameters from the Information of some motion."""

_LOOKED_AT = 2000
"""Samples of a part, spread over its motion: four unknowns need no more."""
_FOLDS = 5
"""Stretches of the training motion, each predicted from the others."""
_LOAD_QUANTITIES = INERTIAL_NAMES[:4]
"""Mass and first moments: what weight shows of a body."""


def evidence_of(
    data: Data,
    train: Predicted,
    tested: Predicted,
    gains: DriveGains | None,
    *,
    refit: Refit,
    standard: FloatArray,
    structural_rank: int,
    gravity_error: Mapping[str, float],
    against_nominal: tuple[Comparison, ...],
) -> Evidence:
    """Everything the gate is told besides estimates and errors.

    Args:
        data: runs and recordings.
        train, tested: predictions of both.
        gains: of drives, when currents were identified.
        refit: parameters of possible bodies from other Information.
        standard: consistent parameters.
        structural_rank, gravity_error, against_nominal: see `Evidence`.
    """
    both = (train.motion, tested.motion)
    repeated = nan if both[0] is None or both[1] is None else both[1].repeats(both[0], data.train)
    return Evidence(
        structural_rank=structural_rank,
        gravity_error=gravity_error,
        against_nominal=against_nominal,
        against_constant=tested.against(CONSTANT, tolerated=1.0),
        log_notes=data.notes,
        torque_delay=data.conditioning.torque_delay + moved_back(data.imperfections),
        train=() if train.motion is None else train.motion.joints(),
        held_out=() if tested.motion is None else tested.motion.joints(),
        noise=noise_floor(data, gains),
        repeated=repeated,
        cross_predicted=cross_predicted(data.train, refit) if repeated > REPEATED_SHARE.value else {},
        other_load=other_load(data.held_out, standard, train=data.train),
    )


def moved_back(found: Imperfections | None) -> float:
    """By how much torque was moved in time by what runs were freed from [s]."""
    return 0.0 if found is None else found.moved_back


def tested_notes(data: Data) -> tuple[Note, ...]:
    """What was found about held-out logs: they are read like the others, and said like the others."""
    return tuple(note for recording in data.recordings[1] for note in recording.notes)


def told_apart(notes: Sequence[Note], recordings: Sequence[Recording]) -> tuple[Note, ...]:
    """The notes, where several recordings have the same to say of one joint each with the name of its own."""
    alike = Counter((note.code, note.subject) for note in notes)
    names = {note: recording.name for recording in reversed(recordings) for note in recording.notes}

    def named(note: Note) -> Note:
        name = names.get(note, "")
        several = alike[note.code, note.subject] > 1 and name != note.subject
        return replace(note, message=f"{name}: {note.message}") if name and several else note

    return tuple(map(named, notes))


def cross_predicted(runs: Sequence[Run], refit: Refit) -> dict[str, float]:
    """Relative error by channel of every fifth of the training motion predicted from the rest; empty when that fails.

    Args:
        runs: training motion.
        refit: parameters of possible bodies from the Information of some of it.
    """
    count = max(1, -(-_FOLDS // len(runs)))
    found = gathered(runs, partial(_by_stretch, count=count), added_by_fold, [k * count for k in range(len(runs))])
    folds = [found[k] for k in sorted(found)]
    energy, size = (dict.fromkeys(runs[0].channels, 0.0) for _ in range(2))
    for k, tested in enumerate(folds):
        try:
            standard = refit(total(folds[:k] + folds[k + 1 :]))
        except EstimationError:
            return {}
        for channel in tested.channels:
            energy[channel.name] += channel.error_energy(standard)
            size[channel.name] += float(np.sum(channel.factor[:, -1] ** 2))
    return {name: sqrt(energy[name] / size[name]) if size[name] > 0.0 else nan for name in energy}


def _by_stretch(run: Run, first: int, count: int) -> dict[int, Information]:
    """Of stretches of a run, before which there are so many others, by fold."""
    return added_by_fold([{k % _FOLDS: part.information()} for k, part in enumerate(_cut(run, count), start=first)])


def _cut(run: Run, count: int) -> Iterator[Run]:
    """Stretches of a run of about equal length, one after the other."""
    edges = np.linspace(0, len(run), count + 1).astype(int)
    for k, (start, stop) in enumerate(pairwise(edges)):
        yield replace(
            run,
            name=f"{run.name} [{k}]",
            inputs=run.inputs[start:stop],
            y=run.y[start:stop],
            y_raw=None,
            segments=((0, int(stop - start)),),
            continues=False,
        )


def noise_floor(data: Data, gains: DriveGains | None) -> dict[str, float]:
    """Noise of the conditioned torque by channel [N m or N]: the white floor of the raw torque behind the low-pass."""
    first = data.choice[0]
    recording = data.recordings[0][0]
    side = torque_source(data.train).effects.torques
    if side not in (TorqueSide.LINK, TorqueSide.MOTOR):
        return {}
    noise = first.noise.get(first.channel(side))
    if noise is None or recording.duration <= 0.0:
        return {}
    raw_rate = len(recording) / recording.duration
    cutoff = first.cutoff_hz
    share = 1.0 if cutoff is None or not np.isfinite(cutoff) else min(1.0, 2.0 * cutoff / raw_rate)
    scale = np.abs(gains.values) if gains is not None else np.ones(len(noise))
    names = data.train[0].channels
    return {name: float(sqrt(share) * s * k) for name, s, k in zip(names, noise, scale, strict=True)}


def other_load(held_out: Sequence[Run], standard: FloatArray, *, train: Sequence[Run] = ()) -> OtherLoad | None:
    """What another body on the flange would explain of the errors; None without held-out motion, or without links in the rows.

    Args:
        held_out: motion in question.
        standard: consistent parameters.
        train: motion that was learned from, when it is at hand.
    """
    if not len(held_out) or torque_source(held_out).effects.torques is TorqueSide.DIFFERENCE:
        return None
    mass, explains = _load_fit(held_out, standard)
    instead, size, share = _sensed_otherwise(held_out, standard)
    return OtherLoad(
        mass=mass,
        explains=explains,
        explains_train=_load_fit(train, standard)[1] if len(train) else 0.0,
        lightest=-_last_bodies(held_out, standard),
        instead=instead,
        instead_size=size,
        instead_explains=share,
    )


def _load_fit(runs: Sequence[Run], standard: FloatArray) -> tuple[float, float]:
    """Mass [kg] and explained share of the squared error of a body added to the last link."""
    parts = list(each_run(runs, _LoadRows(standard, _stride(runs))))
    rows, residual = (np.concatenate([part[k] for part in parts]) for k in range(2))
    values = smallest_solution(rows, residual, rcond=1e-6)
    before = float(residual @ residual)
    after = float(np.sum((residual - rows @ values) ** 2))
    return float(values[0]), 1.0 - after / before if before > 0.0 else 0.0


def _stride(runs: Sequence[Run]) -> int:
    return max(1, sum(lengths_of(runs)) // _LOOKED_AT)


def _sensed_otherwise(runs: Sequence[Run], standard: FloatArray) -> tuple[str, float, float]:
    """What one number that is another in a motion explains best of its errors: in words, its size, and the explained share.

    The weight that a controller takes out, the gain of all torques, or that of one; nothing where both sides are measured.
    """
    if len(runs[0].channels) != torque_source(runs).robot.n_joints:
        return "", 0.0, 0.0
    parts = list(each_run(runs, _SensedRows(standard, _stride(runs))))
    torque, weight, residual = (np.concatenate([part[k] for part in parts]) for k in range(3))
    before = float((residual**2).sum())
    channels = runs[0].channels
    columns = {"weight": weight, "gain of all torques": torque}
    columns |= {
        f"gain of {name}": np.where(np.arange(len(channels)) == c, torque, 0.0) for c, name in enumerate(channels)
    }
    best = "", 0.0, 0.0
    for words, column in columns.items():
        power, shared = float((column**2).sum()), float((column * residual).sum())
        explains = shared**2 / (power * before) if power * before > 0.0 else 0.0
        if explains > best[2]:
            best = words, shared / power, explains
    return best


def _last_bodies(runs: Sequence[Run], standard: FloatArray) -> float:
    """Mass of the bodies of the last half of the joints [kg]."""
    n, columns = torque_source(runs).robot.n_joints, runs[0].source.columns
    names = (f"link{k}.mass" for k in range(n - n // 2 + 1, n + 1))
    return float(sum(standard[columns.index(name)] for name in names if name in columns))


@dataclass(frozen=True, eq=False)
class _SensedRows:
    """Predicted torque of every so many-th sample, the part of it that is weight, and residuals, of one run."""

    standard: FloatArray
    stride: int

    def __call__(self, run: Run) -> tuple[FloatArray, FloatArray, FloatArray]:
        source = torque_source([run])
        n = source.robot.n_joints
        residual = run.residuals(self.standard)[:: self.stride]
        rows = GravityRows(source.robot, source.effects, loaded=source.loaded)
        q = run.inputs[:: self.stride, :n]
        weight = -residuals(rows, q, np.zeros((len(q), n)), self.standard)
        return run.y[:: self.stride] - residual, weight, residual


@dataclass(frozen=True, eq=False)
class _LoadRows:
    """Every so many-th sample's rows of a body on the last link, and residuals, of one run."""

    standard: FloatArray
    stride: int

    def __call__(self, run: Run) -> tuple[FloatArray, FloatArray]:
        n = torque_source([run]).robot.n_joints
        columns = [run.source.columns.index(f"link{n}.{quantity}") for quantity in _LOAD_QUANTITIES]
        rows = evaluate_rows(run.source, run.inputs[:: self.stride])[:, :, columns]
        return rows.reshape(-1, len(columns)), run.residuals(self.standard)[:: self.stride].reshape(-1)

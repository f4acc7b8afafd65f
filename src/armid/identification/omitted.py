"""What the chosen parameters leave out although the training torque shows it, and what they ask although it cannot."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.estimation.recording import torque_source
from armid.estimation.run import Run, gathered
from armid.estimation.runs import lengths_of
from armid.information.information import triangular
from armid.information.solve import smallest_solution
from armid.kernels.evaluate import evaluate_rows
from armid.logs.log import Channel
from armid.logs.samples import MOTOR_SIDE
from armid.notes import Note, Severity
from armid.parameters.effects import Effects, TorqueSide

_LOOKED_AT = 3000
"""Samples: spread over the motion they show a missing column as well as all of them, at no cost."""
_WORTH_SAYING = 0.9
"""Ratio of weighted residuals with and without rotor inertias. On a simulated Panda with 0.05 N m of noise it is above
0.99 without any, 0.89 with 0.02 kg m^2 and 0.48 with 0.1 kg m^2 on every joint."""


def missing_rotors(runs: Sequence[Run], estimate: Estimate) -> tuple[Note, ...]:
    """Says when the torque asks for rotor inertias that are not estimated; decided on training motion alone.

    The rows of rotor inertias, the drives' own accelerations, are freed of what the estimated columns explain; residuals
    that they then take away were theirs.

    Args:
        runs: training motion.
        estimate: of these runs, without rotor inertias.
    """
    effects = torque_source(runs).effects
    if effects.rotor_inertia or effects.torques is not TorqueSide.LINK:
        return ()
    stride = max(1, sum(lengths_of(runs)) // _LOOKED_AT)
    factor, r = gathered(runs, partial(_factor, estimate=estimate, stride=stride), _stacked), len(estimate)
    free, residual = factor[r:, r:-1], factor[:, -1]
    values = smallest_solution(free, residual[r:], rcond=1e-6)
    left = np.linalg.norm([*residual[:r], *(residual[r:] - free @ values)]) / np.linalg.norm(residual)
    if left > _WORTH_SAYING or np.linalg.norm(free, axis=0) @ values <= 0.0:  # negative ones mend something else
        return ()
    text = f"rotor inertias would take {1.0 - left:.0%} off the training error: try --rotor-inertia"
    return (Note("rotor-inertia-missing", Severity.WARNING, text),)


def unfelt_rotors(effects: Effects, recorded: Collection[Channel]) -> tuple[Note, ...]:
    """Says when rotor inertias are asked of joint torque sensors, which stand behind the gears and do not feel them.

    Args:
        effects: what is estimated.
        recorded: torque channels of the log. Without one of the motors, nobody knows where its torque is measured.
    """
    asked = effects.rotor_inertia and effects.torques is TorqueSide.LINK
    if not (asked and Channel.LINK_TORQUE in recorded and any(channel in recorded for channel in MOTOR_SIDE)):
        return ()
    text = (
        "joint torque sensors do not feel the rotors, whose inertia comes out near zero from them; "
        "the log has motor torque too: --torques motor"
    )
    return (Note("rotor-inertia-unfelt", Severity.WARNING, text),)


def _stacked(factors: Sequence[FloatArray]) -> FloatArray:
    """One factor of a few: that of all logs is as large as that of one."""
    return triangular(np.vstack(factors))


def _factor(run: Run, estimate: Estimate, stride: int) -> FloatArray:
    """Of every stride-th sample's rows of the base parameters and of rotor inertias, and residuals, in units of the noise."""
    inputs, weight = run.inputs[::stride], 1.0 / np.array([estimate.sigma[name] for name in run.channels])
    n = len(run.channels)
    rows = evaluate_rows(run.source, inputs)[:, :, list(estimate.base.independent)] * weight[:, np.newaxis]
    rotors = inputs[:, 2 * n : 3 * n, np.newaxis] * np.diag(weight)
    residual = run.residuals(estimate.standard)[::stride] * weight
    return triangular(np.column_stack([rows.reshape(-1, rows.shape[-1]), rotors.reshape(-1, n), residual.reshape(-1)]))

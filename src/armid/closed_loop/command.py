"""From a recorded command to what the controller saw at every tick of its clock."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.closed_loop.controller import JointController
from armid.closed_loop.loop import LoopMotion, axis_inertia
from armid.closed_loop.plant import LoopPlant
from armid.errors import InputError
from armid.kernels.dynamics import inverse_dynamics

_WHOLE = 1e-3
"""Control ticks per sample may be off a whole number by this share: clocks of logs are rounded."""


def ticks_per_sample(controller: JointController, log_rate: float, where: str) -> int:
    """Control ticks per sample of a log.

    Raises:
        InputError: not a whole number.
    """
    ratio = controller.rate / log_rate
    if ratio < 1.0 - _WHOLE or abs(ratio - round(ratio)) > _WHOLE * ratio:
        raise InputError(
            where,
            f"recorded at {log_rate:g} Hz under a controller of {controller.rate:g} Hz",
            "the controller's rate_hz must be a whole multiple of the log's rate",
        )
    return round(ratio)


def loop_motion(
    plant: LoopPlant,
    controller: JointController,
    command: FloatArray,
    values: FloatArray,
    *,
    log_rate: float,
    where: str = "command",
    free_start: bool = True,
) -> LoopMotion:
    """The loop along a command recorded with the log; between samples the command is a cubic spline.

    Args:
        plant: the arm.
        controller: its loop.
        command: commanded positions at the samples of the log [rad or m], shape [samples, n].
        values: base values near the truth, shape [r].
        log_rate: [Hz].
        where: the command was recorded, for messages.
        free_start: whether the initial state is estimated.

    Raises:
        InputError: rates that do not fit.
    """
    stride = ticks_per_sample(controller, log_rate, where)
    reference, qd, qdd = _at_ticks(command, stride, controller.rate)
    forward = np.zeros_like(reference)
    if controller.feedforward is not None:
        forward = np.ascontiguousarray(inverse_dynamics(controller.feedforward, reference, qd, qdd, drives=True))
    return LoopMotion(
        plant=plant,
        controller=controller,
        reference=reference,
        forward=forward,
        stride=stride,
        inertia=axis_inertia(plant, values, reference),
        free_gains=not controller.known,
        free_start=free_start,
    )


def _at_ticks(command: FloatArray, stride: int, rate: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Position, velocity and acceleration of the command at every tick up to the last sample."""
    from scipy.interpolate import CubicSpline

    coarse = np.arange(len(command)) * stride / rate
    spline = CubicSpline(coarse, command, axis=0)
    fine = np.arange((len(command) - 1) * stride + 1) / rate
    reference, qd, qdd = (np.ascontiguousarray(spline(fine, k)) for k in range(3))
    return reference, qd, qdd

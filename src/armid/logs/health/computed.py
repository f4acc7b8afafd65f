"""Torque that nobody measured: a controller's feed-forward, a reference, or a simulator gives the description's own torque back.

A model learnt from it is the description again, with errors near nothing on every motion, whatever the arm weighs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armid.logs.health.findings import finding, share
from armid.logs.health.order import carrying
from armid.logs.health.probe import Probe
from armid.logs.health.thresholds import COMPUTED, DECISIVE
from armid.logs.health.weight import WeightFit
from armid.logs.log import Channel
from armid.notes import Note, Severity

_FEWEST = 4
"""Weights and inertias that are as described: of masses that are known to 20 % so many are so by chance on one arm in 100,000."""


def computed_findings(view: Probe, fit: WeightFit) -> Iterator[Note]:
    """A warning where every joint has the described weight and inertia, no friction, and nothing else."""
    if not view.real or view.channel is Channel.CURRENT:
        return
    torque = np.maximum(fit.torque_spread, 1e-12)
    if np.any(np.maximum(fit.residual, fit.friction_spread) > COMPUTED * torque):
        return
    scales = np.concatenate([fit.weight[carrying(fit)], fit.inertia[fit.inertia_correlation > DECISIVE]])
    off = np.abs(scales - 1.0)
    if len(scales) < _FEWEST or np.any(off > COMPUTED):
        return
    yield finding(
        "torque-computed",
        Severity.WARNING,
        view.log.name,
        f"{view.channel.value} is what the description's own masses make of the motion, to {share(float(off.max()))} and without "
        "friction: no arm is built so, and no sensor reads so; a controller's model or a simulator computed it",
        "record what a sensor or a drive measures: this log says nothing of the arm that the description does not say",
    )

"""Log to Samples: one function, every step of it elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.logs.conditioning.grid import Span, noise_levels, resolved_settings
from armid.logs.conditioning.held import HeldGrid
from armid.logs.conditioning.settings import Conditioning
from armid.logs.health.refuse import refuse_errors
from armid.logs.log import Log, matched
from armid.logs.samples import Samples
from armid.robot.robot import Robot

__all__ = ["condition", "resolved_settings"]


def condition(log: Log, robot: Robot, settings: Conditioning | None = None) -> Samples:
    """Uniform samples with derivatives.

    Rows that are corrupt or repeat the one before are left out, the rest is cut at gaps and put on a uniform grid; the motion
    and the torque pass the same zero-phase low-pass; velocity and acceleration are derived; ends are trimmed; the
    rate is brought down to what the cut-off needs. A log that is conditioned more than once, or is too long for memory, is
    better opened as a `Recording`.

    Args:
        log: as read, and checked (`armid.check_log`) or not.
        robot: for the joint order.
        settings: see `Conditioning`; automatic where it leaves a choice.

    Raises:
        LogRefusedError: the log has errors that `settings.accept` does not name.
        InputError: nothing left to condition.
    """
    settings = settings or Conditioning()
    # Rows that are no measurements are left out one by one; arithmetic on them on the way must not raise.
    with np.errstate(all="ignore"):
        ordered = matched(log, robot)
        refuse_errors(ordered, settings.accept)
        grid, span = HeldGrid(lambda: ordered), Span(log.name)
        parts, notes = grid.evidence(settings, span), grid.notes(settings)
        resolved, chosen = resolved_settings(parts, settings)
        samples = grid.whole(resolved, span)
        return replace(
            samples,
            noise=noise_levels(parts),
            sources=(log.source,),
            notes=(*ordered.notes, *notes, *samples.notes, *chosen),
        )

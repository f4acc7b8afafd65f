"""An arm whose geometry was calibrated before: another chain, and recordings as corrected encoders would have made them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from armid.errors import InputError
from armid.kinematics.correction import read_correction
from armid.logs.encoders import corrected_log
from armid.logs.recording import Recording
from armid.robot.robot import Robot


class Calibrated:
    """An arm with its calibrated kinematics, and recordings as its corrected encoders would have made them.

    Args:
        nominal: as described.
        correction: file of a calibration.
        gravity: [m/s^2], from a levelled instrument, in `frame`; None when nobody gave it.
        frame: `base`, `sensor`, or `sensor:NAME` of a calibration with several.
    """

    def __init__(
        self, nominal: Robot, correction: Path, gravity: Sequence[float] | None = None, frame: str = "base"
    ) -> None:
        self._known = read_correction(correction, nominal)
        self.gravity = (
            gravity if gravity is None or frame == "base" else self._known.gravity(gravity, _named_sensor(frame))
        )
        self.robot = self._known.robot if self.gravity is None else self._known.robot.with_gravity(self.gravity)

    @property
    def without_gravity(self) -> Robot:
        """The calibrated arm under the description's gravity."""
        return self._known.robot

    def moved(self, recording: Recording) -> Recording:
        """What the calibration makes of a recording: encoder errors taken off."""
        return recording.changed(lambda log: corrected_log(log, self._known.model, self._known.values))


def _named_sensor(frame: str) -> str | None:
    """Name of the sensor whose frame is meant; None for the only one.

    Raises:
        InputError: neither `base` nor `sensor`.
    """
    word, _, name = frame.partition(":")
    if word != "sensor":
        raise InputError("--gravity-frame", repr(frame), "expected base, sensor, or sensor:NAME")
    return name or None

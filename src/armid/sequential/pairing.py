"""Which torque belongs to which motion: a recording stamps the two up to a tick apart.

A torque command that is held for a control period acts, on average, half a period after its stamp. Velocity and acceleration are
those of the stamp, so friction takes the blame: half a millisecond on a fast arm turns Coulomb friction of 0.5 N m into 0.9.
The shift is one number per recording and shows in what the model leaves over (`torque_lag`), so it is measured and taken out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.logs.health.lag import torque_lag
from armid.logs.health.probe import probe
from armid.logs.log import Channel, Log
from armid.logs.samples import Samples
from armid.outcome import Check
from armid.robot.robot import Robot

_SURE = 3.0
"""Standard deviations: a shift known less well is left in, since taking it out would add more than it mends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """How late torque is stamped against the motion of one recording.

    Args:
        log: name of the recording.
        seconds: positive when torque comes late [s].
        deviation: standard deviation of that [s].
        step: of the recording [s].
    """

    log: str
    seconds: float
    deviation: float
    step: float

    @property
    def of_stamping(self) -> bool:
        """Whether stamping alone explains it: no more than one step, as far as it is known."""
        return abs(self.seconds) - _SURE * self.deviation <= self.step

    @property
    def taken_out(self) -> float:
        """By how much torque is moved earlier [s]: the shift, if stamping explains it and it is known well enough."""
        return self.seconds if self.of_stamping and abs(self.seconds) > _SURE * self.deviation else 0.0

    @property
    def uncertainty(self) -> float:
        """What may still be between torque and motion [s]: a shift that was left in counts whole."""
        return self.deviation if self.taken_out else float(np.hypot(self.seconds, self.deviation))

    def check(self) -> Check:
        """Whether torque and motion belong together; more than a step apart they are on two clocks."""
        late, when = 1e3 * abs(self.seconds), "late" if self.seconds > 0.0 else "early"
        text = f"{self.log}: torque is stamped {late:.3g} +- {1e3 * self.deviation:.2g} ms {when} against the motion"
        if not self.of_stamping:
            told = f"--torque-delay-ms {1e3 * self.seconds:.3g}"
            text += f", more than a step of {1e3 * self.step:.3g} ms: align the clocks, or {told}"
        elif self.taken_out:
            text += "; taken out"
        else:
            text += ", which is not known well enough to be taken out"
        return Check(
            code="torque-paired",
            passed=self.of_stamping,
            value=self.seconds,
            limit=self.step,
            message=text,
            subject=self.log,
        )


def pairing_of(log: Log, robot: Robot, data: Samples, channel: Channel, *, locked: int) -> Pairing | None:
    """The shift between torque and motion of a recording; None when it is too short to say.

    Args:
        log: the recording, in the arm's order of joints.
        robot: the arm.
        data: the recording, conditioned without any shift.
        channel: of torque.
        locked: so many joints from the base stand still; their torque is the brake's.
    """
    found = torque_lag(probe(log, robot, channel, _without_motion(data, locked)))
    if found is None:
        return None
    return Pairing(log=log.name, seconds=found.seconds, deviation=found.deviation, step=step_of(log))


def step_of(log: Log) -> float:
    """[s] Between two rows of the recording, as a rule."""
    steps = np.diff(log.time)
    return float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0


def _without_motion(data: Samples, locked: int) -> Samples:
    """Samples in which the first joints stand still; what does not move is not looked at."""

    def still(values: FloatArray) -> FloatArray:
        out = values.copy()
        out[:, :locked] = 0.0
        return out

    return replace(data, qd=still(data.qd), qdd=still(data.qdd)) if locked else data

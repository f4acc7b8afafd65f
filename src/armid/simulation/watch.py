"""Looks at every tick of a motion for reasons to stop it."""

from __future__ import annotations

from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.notes import Note
from armid.simulation.controllers import Law
from armid.simulation.faults import ending_fault
from armid.simulation.motions import Reference
from armid.simulation.physics import Physics
from armid.simulation.plant import Plant


class Watch:
    """Looks at every tick for reasons to stop."""

    POSITION_SLACK = 0.02
    """[rad or m] An arm under control overshoots a limit by less than this."""
    SPEED_FACTOR = 5.0
    """A joint this many times faster than anything commanded, plus 10 rad/s, is out of control."""

    def __init__(self, plant: Plant, law: Law, reference: Reference, settings: Physics) -> None:
        robot = plant.robot
        self.plant, self.names = plant, robot.joint_names
        self.q_ref, self.time = reference.q, reference.time
        self.lower, self.upper = robot.limit("lower") - self.POSITION_SLACK, robot.limit("upper") + self.POSITION_SLACK
        self.reach = np.where(plant.locked, np.inf, settings.tracking_limit if law.tracks else np.inf)
        self.lowest = np.maximum(self.lower, reference.q - self.reach)
        self.highest = np.minimum(self.upper, reference.q + self.reach)
        self.speed = self.SPEED_FACTOR * float(np.abs(reference.qd).max()) + 10.0
        self.collisions = settings.collisions and bool(plant.model.ngeom)

    def fault(self, k: int, q: FloatArray, qd: FloatArray, data: Any) -> Note | None:
        """The reason to stop at tick k, or None."""
        # Written so that NaN fails every comparison.
        if (
            (q >= self.lowest[k]).all()
            and (q <= self.highest[k]).all()
            and np.abs(qd).max() <= self.speed
            and not (self.collisions and data.ncon)
            and np.isfinite(data.qacc).all()
        ):
            return None
        return self.named_fault(k, q, qd, data)

    def named_fault(self, k: int, q: FloatArray, qd: FloatArray, data: Any) -> Note:
        finite = np.isfinite(q) & np.isfinite(qd)
        if not finite.all() or not np.isfinite(data.qacc).all():
            name = self.names[int(np.argmin(finite))]
            return ending_fault(
                "diverged",
                f"joint {name} has no finite state (unstable gains, or too long a step: --control-rate-hz)",
                name,
            )
        if self.collisions and data.ncon:
            return self.collision(data)
        fast = int(np.argmax(np.abs(qd)))
        if abs(qd[fast]) > self.speed:
            return ending_fault(
                "diverged",
                f"joint {self.names[fast]} runs away at {qd[fast]:.3g} per s (unstable gains: raise --control-rate-hz, or "
                "give light joints a rotor with --rotor-ratio)",
                self.names[fast],
            )
        beyond = np.maximum(self.lower - q, q - self.upper)
        worst = int(np.argmax(beyond))
        if beyond[worst] > 0.0:
            return self.beyond_limits(k, worst, float(q[worst]))
        gap = np.abs(q - self.q_ref[k])
        worst = int(np.argmax(gap - self.reach))
        return ending_fault(
            "tracking-lost",
            f"joint {self.names[worst]} is {gap[worst]:.3g} away from its command "
            "(gains too low, torque limit reached, or a wrong model: try --controller computed-torque, a slower motion, or "
            "another --rotor-ratio)",
            self.names[worst],
        )

    def beyond_limits(self, k: int, joint: int, q: float) -> Note:
        """Where it is, where it may be and where it was sent [rad or m], and what keeps it within."""
        low, high = self.lower[joint] + self.POSITION_SLACK, self.upper[joint] - self.POSITION_SLACK
        text = (
            f"joint {self.names[joint]} left its limits: at {q:.4g}, allowed {low:.4g} to {high:.4g}, commanded "
            f"{self.q_ref[k, joint]:.4g} (follow closer with --controller computed-torque, move slower, or leave more room: "
            "armid design --margin)"
        )
        return ending_fault("position-limit", text, self.names[joint])

    def collision(self, data: Any) -> Note:
        bodies = self.plant.model.geom_bodyid[data.contact.geom[0]]
        links = (self.plant.robot.base, *self.plant.robot.link_names)
        one, other = (links[int(b)] if b < len(links) else "payload" for b in bodies)
        text = f"{one} touches {other} (plan around it: armid design, or a scenario without collisions)"
        return ending_fault("collision", text, one)

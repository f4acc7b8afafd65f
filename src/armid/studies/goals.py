"""The excitation of [Kolyubin2017], eq. 24, in its own setting: how far its goals are attained, and over which parameters.

Goals are a condition number of 35 and a mean torque reserve of 0.9 of the limit on the last two joints. By the letter (eqs. 18,
20) the condition number goes over all base parameters of model 2, 92 for one run, 102 for runs with and without the payload
together: no motion found here attains 35. Over the 44 essential parameters of table 4, which the work estimates, motions do. What
can be had of both goals at once is a front, traced by asking for one condition number after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.design.candidate import Workshop
from armid.design.excitation import ExcitationProblem
from armid.design.search import Budget, search
from armid.design.statement import DesignSettings, excitation_problem, families_of, with_payload
from armid.identifiability.base import BaseParameters
from armid.identifiability.expectation import excitation_inputs
from armid.identifiability.structure import structural_base
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.motions.basis import FourierBasis
from armid.motions.fourier import FourierTrajectory
from armid.motions.spline import SplineTrajectory
from armid.parameters.effects import Effects, PayloadRuns, effects_of
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.nominal_torque import NominalTorque
from armid.rows.torque import TorqueRows
from armid.scene.cell import cell_of
from armid.studies.stop_and_go import descended

ARM, CELL = "lwr4plus", "lwr4plus-excitation"
GOAL, RESERVE = 35.0, 0.9
"""[Kolyubin2017] section 6.2, trajectory B: condition number, and mean torque reserve of joints 6 and 7 over their limits."""

PERIOD, HARMONICS = 12.0, 15
"""[s] The work tries base periods of 10 to 30 s (its figures have 25) and does not give the number of harmonics; it only asks
that the highest stays below the joints' resonance. These reach 1.25 Hz."""

PAYLOAD_KG = 3.28
PAYLOAD_CENTRE = (0.1, 0.0, 0.05)
"""[m] From the flange. The work gives the mass, and says that the centre is off the axis of joint 7; not by how much."""

ESSENTIAL = (
    *(f"joint{j}.rotor_inertia" for j in (1, 2, 3, 5, 6, 7)),
    *(f"joint{j}.motor_viscous" for j in range(1, 8)),
    *(f"joint{j}.motor_coulomb" for j in (1, 2, 3, 5, 6, 7)),
    "joint7.motor_offset",
    *(f"joint{j}.coulomb" for j in (1, 2, 3, 4, 5, 7)),
    *(f"joint{j}.offset" for j in (2, 4, 5, 7)),
    *("link2.Ixx", "link2.Izz", "link2.my", "link4.Ixx", "link4.Izz", "link4.my", "link5.my", "link6.my"),
    *(f"payload.{name}" for name in ("Ixx", "Iyy", "Iyz", "my", "mz", "mass")),
)
"""[Kolyubin2017] table 4: the 44 essential parameters of model 2 in our names; its link 8 is the payload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalPoint:
    """One motion of eq. 24 and what it attains.

    Args:
        asked: condition number that was the goal.
        essential: whether the search counted the essential parameters alone.
        condition_number: over the base parameters of one run, in SI units.
        together: over the 102 base parameters of a run without and one with the payload.
        essentials: over the 44 of table 4, both runs together.
        reserve: mean torque reserve of the last two joints over their limits.
        feasible: within all limits, certified between samples.
    """

    asked: float
    essential: bool
    condition_number: float
    together: float
    essentials: float
    reserve: tuple[float, float]
    feasible: bool

    @property
    def attained(self) -> bool:
        """Whether both goals of the work are attained over its essential parameters."""
        return self.feasible and self.essentials <= GOAL and max(self.reserve) <= RESERVE


def model_two(payload: PayloadRuns = PayloadRuns.NONE) -> Effects:
    """Effects of the work's model 2: both torques, rotor inertias, friction and offset on either side."""
    plain = effects_of(friction="viscous,coulomb,offset", rotor_inertia=True, torques="both")
    return replace(plain, payload=payload)


def goal_point(
    asked: float = GOAL,
    *,
    essential: bool = True,
    period: float = PERIOD,
    harmonics: int = HARMONICS,
    starts: int = 1,
    seed: int = 0,
    stop_and_go: bool = False,
) -> GoalPoint:
    """The best motion for one pair of goals.

    Args:
        asked: condition number to attain beside the reserves.
        essential: count the essential parameters alone instead of all base parameters.
        period: [s].
        harmonics: of the Fourier series.
        starts: random starts.
        seed: of them.
        stop_and_go: descend from one start in which joints run at full speed or creep, instead of a search from random ones.
    """
    arm = with_payload(load_robot(ARM), PAYLOAD_KG, PAYLOAD_CENTRE)
    settings = DesignSettings(
        effects=model_two(),
        periods=(period,),
        harmonics=harmonics,
        margin=0.0,
        limits=frozenset({"position", "velocity", "torque"}),
        self_collision=False,
        goal_condition=asked,
        goal_reserve={"joint6": RESERVE, "joint7": RESERVE},
    )
    cell = cell_of(CELL)
    assert cell is not None
    problem, base, _ = excitation_problem(arm, settings, cell)
    if essential:
        problem = replace(problem, columns=_essential_columns(base))
    bases = families_of(arm, settings)
    if stop_and_go:
        best = descended(problem, FourierBasis(period, harmonics), seed)
    else:
        best = search(problem, bases, Budget(seconds=None, starts=starts, workers=1), seed=seed).best
    motion = Workshop(problem, bases, seed).trajectory(best)
    return _judged(problem, base, motion, asked=asked, essential=essential, feasible=best.feasible)


def _essential_columns(base: BaseParameters) -> tuple[int, ...]:
    """Columns of a loaded run that stand for the essential parameters: the payload is felt as the last link is."""
    last = [name.replace("payload.", "link7.") for name in ESSENTIAL]
    return tuple(int(i) for i, name in zip(base.independent, base.names, strict=True) if name in last)


def _judged(
    problem: ExcitationProblem,
    base: BaseParameters,
    motion: FourierTrajectory | SplineTrajectory,
    *,
    asked: float,
    essential: bool,
    feasible: bool,
) -> GoalPoint:
    """Condition numbers and reserves of a motion."""
    x = excitation_inputs(motion)
    A = evaluate_rows(Restricted(problem.rows, tuple(int(i) for i in base.independent)), x)
    together, names = _both_runs(load_robot(ARM), x)
    torque = np.abs(evaluate_rows(NominalTorque(problem.robot), x)[:, :, 0]).mean(axis=0)
    limits = problem.robot.limit("torque")
    reserve = 1.0 - torque[-2:] / limits[-2:]
    return GoalPoint(
        asked=asked,
        essential=essential,
        condition_number=float(np.linalg.cond(A.reshape(-1, len(base)))),
        together=float(np.linalg.cond(together)),
        essentials=float(np.linalg.cond(together[:, [names.index(name) for name in ESSENTIAL]])),
        reserve=(float(reserve[0]), float(reserve[1])),
        feasible=feasible,
    )


def _both_runs(robot: Robot, x: FloatArray) -> tuple[FloatArray, tuple[str, ...]]:
    """Base rows of the same motion without and with the payload, stacked, and the names of their columns."""
    effects = model_two(PayloadRuns.BOTH)
    sources = [TorqueRows(robot, effects, loaded=loaded) for loaded in (False, True)]
    base = structural_base(*sources, what="joint torque")
    columns = tuple(int(i) for i in base.independent)
    stacked = [evaluate_rows(Restricted(source, columns), x).reshape(-1, len(base)) for source in sources]
    return np.vstack(stacked), base.names

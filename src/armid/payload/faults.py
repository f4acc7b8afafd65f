"""What could be wrong with recordings of a load: the search of `identify`, on these recordings by themselves."""

from __future__ import annotations

from collections.abc import Sequence

from armid.estimation.run import Run
from armid.identification.faults import Fault
from armid.identification.faults_of_runs import faults_of_runs
from armid.identification.result import Result


def load_faults(known: Result, runs: Sequence[Run], *, in_newtons: bool) -> tuple[Fault, ...]:
    """Every fault that `identify` looks for, with its answer, but what a load itself is taken for.

    Arm and load are free: what bodies take up is no fault, and a motion that does not determine them decides none.

    Args:
        known: the arm.
        runs: with the load among their parameters, freed from what the result knows of the sensors.
        in_newtons: whether torques are in units of torque, as currents are not.
    """
    faults = faults_of_runs(
        known.robot,
        runs,
        recorded_velocity=False,
        cutoff_hz=known.conditioning.cutoff_hz,
        gains_known=bool(known.gains),
        in_newtons=in_newtons,
    )
    return tuple(fault for fault in faults if fault.kind != "payload")

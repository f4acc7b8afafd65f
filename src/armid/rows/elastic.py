"""Arms with elastic transmissions as sources of rows; [Gaz2014] eqs. 1-6, eq. 4 corrected.

Link and motor equations, theta the rotors' positions scaled to the joints:

    M(q) qdd + n(q, qd) = K (theta - q) = tau_J                      (1), (3)
    B thetadd + tau_J + tau_F = tau                                  (2)

*Two sensors* (q and theta): both are linear in the links' parameters, K, B and friction, eq. 6. *One sensor* (q only): theta is
eliminated by differentiating the link equation twice,

    tau = tau_J + B K^-1 tau_J'' + B qdd + tau_F,   tau_J'' = M q'''' + 2 M' q''' + M'' qdd + n''      (4)

which is linear in the links' parameters, their products with B_j / K_j joint by joint, and B, eq. 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import InputError
from armid.kernels.rigid import rigid_rows
from armid.kernels.source import Row
from armid.parameters.effects import Effects, TorqueSide
from armid.parameters.inertial import INERTIAL_NAMES
from armid.recursion.jets import Jet, JetScalars
from armid.recursion.scalars import Scalar, Scalars
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows
from armid.signals.differentiate import Differentiator, derivatives
from armid.signals.filters import LowPass, low_pass


def link_position(theta: npt.ArrayLike, joint_torque: npt.ArrayLike, stiffness: npt.ArrayLike) -> FloatArray:
    """Q = theta - K^-1 tau_J: where the links are, from the motors' encoders and the joint torque sensors.

    Args:
        theta: motor positions scaled to the joints [rad], shape [n_samples, n_joints].
        joint_torque: [N m], same shape.
        stiffness: [N m/rad], shape [n_joints]; infinite for a rigid joint.
    """
    K = np.asarray(stiffness, dtype=np.float64)
    if not (K > 0.0).all():
        raise InputError("stiffness", f"{K.tolist()}", "positive numbers; infinite where a joint is rigid")
    x = samples("theta", theta, len(K))
    return x - samples("joint torque", joint_torque, len(K)) / K


@dataclass(frozen=True)
class TwoSensorRows:
    """Rows of `[0; tau] = Y (pi, friction, B, K)`, [Gaz2014] eq. 6: two channels per joint.

    The link equation has no measured side: it says how the links' parameters and K hang together; the motor equation gives
    the scale.

    Args:
        robot: geometry and gravity.
        effects: friction; on the links' side and, with names `motor_*`, on the motors'.
    """

    robot: Robot
    effects: Effects = Effects()

    @cached_property
    def torque(self) -> TorqueRows:
        return TorqueRows(self.robot, replace(self.effects, torques=TorqueSide.BOTH))

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.torque.columns, *(f"joint{i + 1}.stiffness" for i in range(self.robot.n_joints)))

    @property
    def channels(self) -> tuple[str, ...]:
        return self.torque.channels

    @property
    def inputs(self) -> tuple[str, ...]:
        kinds = ("q", "qd", "qdd", "theta", "thetad", "thetadd")
        return tuple(f"{kind}{i + 1}" for kind in kinds for i in range(self.robot.n_joints))

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        n, p = self.robot.n_joints, len(self.torque.columns)
        q, theta = inputs[:n], inputs[3 * n : 4 * n]
        thetad, thetadd = inputs[4 * n : 5 * n], inputs[5 * n : 6 * n]
        links = self.torque.rows(inputs[: 3 * n], scalars)[:n]
        out: list[Row] = [{**row, p + i: q[i] - theta[i]} for i, row in enumerate(links)]
        for i in range(n):
            drive = self.torque.drive_row(i, thetad, thetadd, "motor_", scalars)
            out.append({**drive, p + i: theta[i] - q[i]})
        return out


@dataclass(frozen=True)
class OneSensorRows:
    """Rows of `tau = Y (pi, B, friction, rho_1 pi, ..., rho_n pi)`, rho = B / K; [Gaz2014] eqs. 4-5.

    Args:
        robot: geometry and gravity.
        effects: friction, on the motors' side.
        ratios: B / K of every joint [s^2] when known, shape [n]; then the products are absorbed and the rows are over pi
            alone. None keeps them apart.
    """

    robot: Robot
    effects: Effects = Effects()
    ratios: tuple[float, ...] | None = None

    @cached_property
    def torque(self) -> TorqueRows:
        return TorqueRows(self.robot, replace(self.effects, torques=TorqueSide.MOTOR))

    @property
    def columns(self) -> tuple[str, ...]:
        if self.ratios is not None:
            return self.torque.columns
        n = self.robot.n_joints
        products = (
            f"joint{j + 1}.ratio*link{i + 1}.{name}" for j in range(n) for i in range(j, n) for name in INERTIAL_NAMES
        )
        return (*self.torque.columns, *products)

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.columns)}

    @property
    def channels(self) -> tuple[str, ...]:
        return self.robot.joint_names

    @property
    def inputs(self) -> tuple[str, ...]:
        kinds = ("q", "qd", "qdd", "qddd", "qdddd")
        return tuple(f"{kind}{i + 1}" for kind in kinds for i in range(self.robot.n_joints))

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        n = self.robot.n_joints
        order = [inputs[k * n : (k + 1) * n] for k in range(5)]
        jets = [Jet(order[k][i], order[k + 1][i], order[k + 2][i]) for k in range(3) for i in range(n)]
        second = rigid_rows(self.robot, jets, JetScalars(scalars))
        out = []
        for j, row in enumerate(self.torque.rows(inputs[: 3 * n], scalars)):
            full = dict(row)
            for column, value in second[j].items():
                name = f"link{column // 10 + 1}.{INERTIAL_NAMES[column % 10]}"
                if self.ratios is None:
                    full[self.places[f"joint{j + 1}.ratio*{name}"]] = value.dd
                else:
                    place = self.places[name]
                    full[place] = full[place] + value.dd * scalars.constant(float(self.ratios[j]))
            out.append(full)
        return out


def four_derivatives(q: npt.ArrayLike, rate: float, cutoff: float, *, order: int = 6, name: str = "q") -> FloatArray:
    """Position and its first four derivatives side by side, by zero-phase low-pass and central differences.

    Args:
        q: uniform samples [rad or m], shape [n_samples, n].
        rate: [Hz].
        cutoff: of the low-pass [Hz]; each derivative multiplies noise by 2 pi cutoff.
        order: of the Butterworth filter.
        name: of the signal, for messages.

    Returns:
        Shape [n_samples, 5 n]; the first and last 1/cutoff seconds are not to be used.

    Raises:
        InputError: a cut-off above the Nyquist frequency, or a signal shorter than the filter.
    """
    x = np.asarray(q, dtype=np.float64)
    if not cutoff < 0.5 * rate:
        raise InputError(name, f"cut-off {cutoff:g} Hz at {rate:g} samples per second", f"below {0.5 * rate:g} Hz")
    filter = LowPass(rate, cutoff, order)
    check_long_enough(name, len(x), filter)
    smooth = low_pass(x, filter)
    first, second = derivatives(smooth, rate, Differentiator.CENTRAL_8)
    third, fourth = derivatives(second, rate, Differentiator.CENTRAL_8)
    return np.hstack([smooth, first, second, third, fourth])


def check_long_enough(name: str, count: int, filter: LowPass) -> None:
    """Refuses a signal shorter than three periods of the cut-off: nothing of it would be free of the filter's ends."""
    if count * filter.cutoff < 3.0 * filter.rate:
        raise InputError(name, f"{count / filter.rate:.3g} s of signal", f"at least {3.0 / filter.cutoff:.3g} s")

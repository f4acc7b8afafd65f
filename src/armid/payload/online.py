"""A load while the arm moves: the recursive estimator on what the identified arm does not explain.

The factor holds load and corrections of the arm, the arm's own covariance as prior of the corrections: from it follow the load of
the arm as it was identified, as off-line, and what the arm's uncertainty does to it. Samples of a smoothed stream are not
independent: each counts by its share of a correlation time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.estimation.least_squares import GaussianPrior
from armid.estimation.recursive.estimator import ChangeDetection, RecursiveEstimator
from armid.estimation.recursive.forgetting import Forgetting
from armid.information.information import triangular
from armid.information.solve import solve_factor
from armid.kernels.evaluate import Restricted
from armid.kernels.single import SingleRows
from armid.parameters.effects import Effects, PayloadRuns
from armid.payload.payload import Payload
from armid.payload.search import (
    COLUMNS,
    Arm,
    PayloadSearch,
    base_of_columns,
    correlation_matrix,
    deviations,
    sensitivity,
)
from armid.rows.torque import TorqueRows

_CORRELATION_TIME = 0.1
"""[s] Over which residuals remember: the window of the differentiator, and friction that is not quite as modelled."""

_LOAD_BELIEF = np.array([30.0, *[10.0] * 3, *[10.0] * 6])
"""[kg, kg m, kg m^2] Deviations of a load about which nothing is known: of no consequence, but for a start without infinities."""


class OnlinePayload:
    """Mass, centre and inertia of the load, sample by sample; a grasp or a release is noticed and restarts the estimate.

    Args:
        arm: identified without the load.
        effects: of that identification.
        rate: samples per second [Hz].
        forgetting: see `Forgetting`; never by default, since a change restarts the estimate.
        detection: see `ChangeDetection`.
        frame: the load is given in; the tip frame by default.
    """

    def __init__(
        self,
        arm: Arm,
        effects: Effects,
        *,
        rate: float,
        forgetting: Forgetting | None = None,
        detection: ChangeDetection | None = None,
        frame: str | None = None,
    ) -> None:
        self.arm, self.frame = arm, frame
        source = TorqueRows(arm.robot, replace(effects, payload=PayloadRuns.LOADED))
        known = arm.over(source.space)
        missing = [name for name in source.channels if name not in arm.estimate.sigma]
        if missing:
            raise InputError("result", f"no noise of {missing[0]}", "identify with the torques of this stream")
        self._settings = rate, forgetting, detection or ChangeDetection()
        self._source, self._columns = source, self._wanted(source.columns)
        self.estimator = self._started()
        own = tuple(int(i) for i in np.flatnonzero(known))
        self._arm_rows = SingleRows(Restricted(source, own))
        self._arm_values = known[list(own)][self._arm_rows.columns]
        self._channels = self._arm_rows.channels
        self._n = len(source.channels)

    def _wanted(self, columns: tuple[str, ...]) -> tuple[list[int], list[int]]:
        """Columns of the arm's corrections and of the load; and which of the arm's parameters the former are."""
        place = {name: i for i, name in enumerate(columns)}
        self._kept = [i for i, name in enumerate(self.arm.estimate.names) if name in place]
        return [place[self.arm.estimate.names[i]] for i in self._kept], [place[name] for name in COLUMNS]

    def _started(self) -> RecursiveEstimator:
        """An estimator that knows the arm as well as it was identified, and nothing of the load."""
        rate, forgetting, detection = self._settings
        own, load = self._columns
        C = np.asarray(self.arm.estimate.covariance)[np.ix_(self._kept, self._kept)]
        root = np.zeros((len(own) + len(load),) * 2)
        root[: len(own), : len(own)] = np.linalg.cholesky(np.linalg.inv(correlation_matrix(C))).T / deviations(C)
        root[len(own) :, len(own) :] = np.diag(1.0 / _LOAD_BELIEF)
        together = max(_CORRELATION_TIME * rate, 1.0) ** 0.5
        sigma = {name: together * s for name, s in self.arm.estimate.sigma.items()}
        return RecursiveEstimator(
            self._source,
            base_of_columns(self._source.columns, [*own, *load]),
            sigma,
            rate=rate,
            forgetting=forgetting,
            detection=detection,
            prior=GaussianPrior(np.zeros(len(root)), root, "identified arm"),
        )

    def update(self, inputs: FloatArray, torque: FloatArray, counted: npt.NDArray[np.bool_] | None = None) -> bool:
        """One sample: (q, qd, qdd) side by side and the measured torque. Returns whether the load changed.

        Args:
            inputs: shape [3 n].
            torque: shape [n_channels].
            counted: which channels count at this sample, see `RecursiveEstimator.update`.
        """
        packed = self._arm_rows(inputs)
        explained = np.bincount(self._channels, packed * self._arm_values, minlength=self._n)
        changed = self.estimator.update(inputs, torque - explained, counted)
        if changed:
            # The arm is what it was; only the load is another.
            self.estimator = self._started()
        return changed

    def payload(self) -> Payload:
        """The load as it is now.

        Raises:
            EstimationError: the motion so far does not show all of it.
        """
        n = len(self._columns[0])
        F = self.estimator.factor
        # The prior is in the block of the arm alone: the load's columns are sums over samples.
        solution = solve_factor(triangular(F[:, n:]), COLUMNS)
        values, inverse = solution.values, solution.inverse
        G = F[:-1, :-1].T @ F[:-1, :-1]
        S = sensitivity(G[n:, n:], G[n:, :n])
        C = np.asarray(self.arm.estimate.covariance)[np.ix_(self._kept, self._kept)]
        scale = self.arm.scale_deviation**2 * np.outer(values, values)
        covariance = np.asarray(inverse + S @ C @ S.T + scale, dtype=np.float64)
        load = Estimate(
            base=base_of_columns(self._source.columns, self._columns[1]),
            units=("",) * len(COLUMNS),
            values=values,
            covariance=covariance,
            covariance_kind="recursive",
            sigma=self.estimator.sigma,
            method="recursive least squares",
        )
        return PayloadSearch().possible(self.arm, load, covariance, self.frame)

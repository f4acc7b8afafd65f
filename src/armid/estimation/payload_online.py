"""A load while the arm moves: the recursive estimator on what the identified arm does not explain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.estimation.online import ChangeDetection, RecursiveEstimator
from armid.estimation.online_forgetting import Forgetting
from armid.estimation.payload import COLUMNS, Arm, Payload, PayloadSearch, chosen
from armid.experiments.torque import TorqueRows
from armid.kernels.evaluate import Restricted
from armid.kernels.single import SingleRows
from armid.parameters.effects import Effects, PayloadRuns


class OnlinePayload:
    """Mass, centre and inertia of the load, sample by sample; a grasp or a release is noticed and restarts the estimate.

    Args:
        arm: identified without the load.
        effects: of that identification.
        rate: samples per second [Hz].
        forgetting: see `Forgetting`.
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
        known = arm.over(source.columns)
        missing = [name for name in source.channels if name not in arm.estimate.sigma]
        if missing:
            raise InputError("result", f"no noise of {missing[0]}", "identify with the torques of this stream")
        columns = [source.columns.index(name) for name in COLUMNS]
        self.estimator = RecursiveEstimator(
            source,
            chosen(source.columns, columns),
            arm.estimate.sigma,
            rate=rate,
            forgetting=forgetting or Forgetting(10.0),
            detection=detection or ChangeDetection(),
        )
        own = tuple(int(i) for i in np.flatnonzero(known))
        self._arm_rows = SingleRows(Restricted(source, own))
        self._arm_values = known[list(own)][self._arm_rows.columns]
        self._channels = self._arm_rows.channels
        self._n = len(source.channels)

    def update(self, inputs: FloatArray, torque: FloatArray) -> bool:
        """One sample: (q, qd, qdd) side by side and the measured torque. Returns whether the load changed."""
        packed = self._arm_rows(inputs)
        explained = np.bincount(self._channels, packed * self._arm_values, minlength=self._n)
        return self.estimator.update(inputs, torque - explained)

    def payload(self) -> Payload:
        """The load as it is now.

        Raises:
            EstimationError: the motion so far does not show all of it.
        """
        estimate: Estimate = self.estimator.estimate()
        return PayloadSearch().possible(self.arm, estimate, np.asarray(estimate.covariance), self.frame)

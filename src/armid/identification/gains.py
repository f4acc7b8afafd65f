"""Drive gains [N m/A] from runs with and without a known payload, [Gautier2014].

The current of joint j obeys  i_j = kappa_j (A_j pi + tau_payload,j),  kappa_j = 1 / gain_j. Without a payload only pi / gain
is known; the torque of a payload with known mass and centre sets the scale, and shared inertial parameters carry it to joints
that hardly feel the payload. Bilinear in (pi, kappa): Gauss-Newton on the small factors of the channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.identifiability.base import BaseParameters
from armid.information.information import ChannelInformation, Information, triangular
from armid.information.solve import smallest_solution, solve_factor
from armid.information.status import EstimationError, Status


@dataclass(frozen=True, eq=False, kw_only=True)
class DriveGains:
    """Gains and the base parameters in torque units.

    Args:
        estimate: base parameters [SI], with joint covariance of the gains taken into account.
        channels: names of the joints.
        values: gain per joint [N m/A], shape [n].
        standard_deviations: shape [n].
        sigma: residual current per joint [A].
        iterations: of Gauss-Newton.
    """

    estimate: Estimate
    channels: tuple[str, ...]
    values: FloatArray
    standard_deviations: FloatArray
    iterations: int


def gain_values(gains: DriveGains | None) -> FloatArray | None:
    """What measured currents are multiplied by, shape [n_channels]; None where torque was measured."""
    return None if gains is None else gains.values


@dataclass(frozen=True, slots=True)
class DriveGainSearch:
    """Gauss-Newton on base parameters and inverse gains together.

    Args:
        iterations: at most so many.
        tolerance: largest relative change of a gain that counts as settled.
    """

    iterations: int = 50
    tolerance: float = 1e-8

    def fit(
        self, information: Information, base: BaseParameters, known: Mapping[str, float], units: tuple[str, ...] = ()
    ) -> DriveGains:
        """Args:
        information: of measured currents, over the standard parameters of arm and payload; runs with and without it.
        base: of both together.
        known: values of payload parameters that somebody weighed (`payload.mass`, perhaps its first moments) [SI].
        units: of the base parameters in torque units.

        Raises:
            EstimationError: the known parameters do not show in any current, or the iteration did not settle.
        """
        free = [i for i, name in enumerate(base.names) if name not in known]
        places = [base.names.index(name) for name in known if name in base.names]
        if not places:
            raise EstimationError(Status.RANK_DEFICIENT, "none of the known payload parameters shows in the currents")
        reference = np.array([known[base.names[i]] for i in places])
        rows = _known_last(information.select(base.independent), free, places, reference)
        sigma, kappa = self.start(rows)
        values, inverse, used, status = self.iterate(rows, sigma, kappa)
        if status is not Status.SOLVED:
            raise EstimationError(status, "drive gains")
        r, names = len(free), tuple(c.name for c in rows.channels)
        gains = 1.0 / values[r:]
        deviations = np.sqrt(np.diag(inverse)[r:]) * gains**2
        full, covariance = np.zeros(len(base)), np.zeros((len(base), len(base)))
        full[free], full[places] = values[:r], reference
        covariance[np.ix_(free, free)] = inverse[:r, :r]
        torque_sigma = {name: sigma[name] * abs(gains[k]) for k, name in enumerate(names)}
        estimate = Estimate(
            base=base,
            units=units or ("",) * len(base),
            values=full,
            covariance=covariance,
            covariance_kind="per-channel",
            sigma=torque_sigma,
            method="weighted least squares with drive gains",
            status=Status.SOLVED,
            iterations=used,
        )
        return DriveGains(
            estimate=estimate, channels=names, values=gains, standard_deviations=deviations, iterations=used
        )

    def start(self, rows: Information) -> tuple[dict[str, float], FloatArray]:
        """Each joint alone: current on its own columns and the known torque; the latter's coefficient is kappa."""
        sigma, kappa = {}, []
        for channel in rows.channels:
            solution = smallest_solution(channel.R, channel.z, rcond=1e-10)
            error = channel.R @ solution - channel.z
            energy = float(error @ error) + channel.residual_energy
            sigma[channel.name] = float(np.sqrt(energy / max(channel.count - len(solution), 1.0)))
            feels = int(channel.columns[-1]) == rows.n_parameters - 1
            kappa.append(float(solution[-1]) if feels else 0.0)
        # A joint that hardly feels the payload may get any sign alone; the iteration needs a positive start.
        typical = float(np.median([k for k in kappa if k > 0.0])) if any(k > 0.0 for k in kappa) else 0.1
        return sigma, np.array([k if 0.2 * typical < k < 5.0 * typical else typical for k in kappa])

    def iterate(
        self, rows: Information, sigma: dict[str, float], kappa: FloatArray
    ) -> tuple[FloatArray, FloatArray, int, Status]:
        """Alternating start, then Gauss-Newton; returns (values and kappas, covariance, iterations, status)."""
        r = rows.n_parameters - 1
        names = (*rows.parameters[:-1], *(f"gain of {channel.name}" for channel in rows.channels))
        pi = np.zeros(r)
        inverse = np.eye(r + len(kappa))
        for used in range(1, self.iterations + 1):
            J, e = _linearised(rows, sigma, pi, kappa, first=used == 1)
            step = smallest_solution(J, e, rcond=1e-12)
            pi, kappa = pi + step[:r], kappa + step[r:]
            if used > 1 and np.max(np.abs(step[r:] / kappa)) < self.tolerance:
                inverse = solve_factor(triangular(np.column_stack([J, e])), names).inverse
                return np.concatenate([pi, kappa]), inverse, used, Status.SOLVED
        return np.concatenate([pi, kappa]), inverse, self.iterations, Status.NOT_CONVERGED


def _known_last(rows: Information, free: Sequence[int], places: Sequence[int], reference: FloatArray) -> Information:
    """Free columns first, then one column with the torque of the known payload."""
    p = rows.n_parameters
    channels = []
    for channel in rows.channels:
        wide = np.zeros((len(channel.factor), p + 1))
        wide[:, [*channel.columns, p]] = channel.factor
        dense = np.column_stack([wide[:, list(free)], wide[:, list(places)] @ reference, wide[:, -1]])
        seen = np.flatnonzero(np.any(dense[:, :-1] != 0.0, axis=0))
        factor = triangular(dense[:, [*seen, dense.shape[1] - 1]])
        channels.append(ChannelInformation(channel.name, seen, factor, channel.count))
    return Information((*(rows.parameters[i] for i in free), "payload.known"), tuple(channels))


def _linearised(
    rows: Information, sigma: dict[str, float], pi: FloatArray, kappa: FloatArray, *, first: bool
) -> tuple[FloatArray, FloatArray]:
    """Jacobian and error of all channels' factors at (pi, kappa); the first step leaves the gains alone."""
    r = len(pi)
    extended = np.concatenate([pi, [1.0]])
    blocks, errors = [], []
    for k, channel in enumerate(rows.channels):
        R = channel.R / sigma[channel.name]
        tau = R @ extended[channel.columns]
        J = np.zeros((len(R), r + len(kappa)))
        inside = channel.columns < r
        J[:, channel.columns[inside]] = kappa[k] * R[:, inside]
        if not first:
            J[:, r + k] = tau
        blocks.append(J)
        errors.append(channel.z / sigma[channel.name] - kappa[k] * tau)
    return np.vstack(blocks), np.concatenate(errors)

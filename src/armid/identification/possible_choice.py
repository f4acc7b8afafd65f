"""Torque of a joint's position that possible bodies ask for: free parameters take it over, as bodies that cannot exist.

Families are chosen with base parameters free. Torque that goes with the angle of a joint and that no body makes (a cable or a
hose at the wrist, ripple of a gear) looks like weight, and on slow motions free parameters take it: nothing is left to explain,
and blocks left out of a poor motion, where free parameters run off, tell little. Beside bodies that can exist the same torque
stays in the residual. Where these fit worse than noise allows, it is tried beside them by the same rule: blocks left out must be
predicted better and agree on it, and all rows must be likelier.

Nothing else is tried here. Shapes of friction go with the speed, which no weight does; chosen beside possible bodies of poor
motions they win by luck. Sensors are faults that are looked for by themselves, and impossible bodies are often their mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.prior import Prior
from armid.estimation.eliminated import Eliminated
from armid.estimation.imperfections import FACTORS, PAYS, BlockFactors, Effect, falls, left_over
from armid.estimation.quantiles import chi_square_quantile
from armid.identification.imperfections import Choice, Weighed
from armid.information.information import triangular
from armid.information.status import EstimationError
from armid.rows.imperfections import Family

_LIKE_WEIGHT = (Family.POSITION_SINE, Family.POSITION_COSINE)
"""Families that are tried: torque of the joint's own angle."""

_ALLOWED = 0.99
"""Chance that noise makes possible bodies fit worse than free parameters by no more than is allowed."""

_TRIED = 2
"""Candidates, the likeliest beside the bodies found without them, that are fitted to every block left out."""


def beside_possible_bodies(choice: Choice) -> Weighed | None:
    """Imperfections with those that possible bodies ask for; None where they ask for nothing."""
    try:
        chosen = _PossibleChoice(choice).extended()
    except EstimationError:
        return None
    return None if chosen == choice.chosen else replace(choice, chosen=chosen).sized()


Picked = Sequence[tuple[Effect, float]]


@dataclass(frozen=True, eq=False)
class _PossibleChoice:
    """A choice of families beside possible bodies.

    Args:
        choice: with base parameters free.
    """

    choice: Choice

    @property
    def _blocks(self) -> BlockFactors:
        return self.choice.blocks

    @cached_property
    def _prior(self) -> Prior:
        return self.choice.search(self.choice.picked).prior(self.choice.noise)

    def extended(self) -> tuple[tuple[Effect, float, float], ...]:
        """The chosen families and those that pay beside possible bodies."""
        chosen = self.choice.chosen
        if not self._squeezed():
            return chosen
        errors = self.crossed(self.choice.picked)
        while True:
            picked = [(effect, factor) for effect, factor, _ in chosen]
            trials = [(self.crossed([*picked, own]), own) for own in self._likeliest(picked)]
            paying = [(left, own) for left, own in trials if falls(errors, left)]
            if not paying:
                return chosen
            left, (effect, factor) = min(paying, key=lambda pair: float(pair[0].sum()))
            chosen = (*chosen, (effect, factor, float(left.sum() / errors.sum())))
            errors = left

    def _squeezed(self) -> bool:
        """Whether possible bodies leave more of the training motion than noise allows, and more than would pay."""
        rows = self._blocks.whole.factor
        free = _squared(rows, *self._blocks.solution(self.choice.picked))
        possible = _squared(rows, *self._fit(rows, self.choice.picked))
        allowed = chi_square_quantile(_ALLOWED, float(len(self.choice.base)))
        return possible - free > max(allowed, (1.0 / PAYS - 1.0) * free)

    def crossed(self, picked: Picked) -> FloatArray:
        """Squared error of every block predicted by possible bodies of the others, in units of the noise, shape [n_blocks]."""
        factors = self._blocks.factors
        return np.array([_squared(own, *self._fit(self._without(k), picked)) for k, own in enumerate(factors)])

    def _without(self, k: int) -> FloatArray:
        """Triangular factor of all blocks but one."""
        return Eliminated.of(self._blocks.base, [f for i, f in enumerate(self._blocks.factors) if i != k]).factor

    def _fit(self, factor: FloatArray, picked: Picked) -> tuple[FloatArray, FloatArray]:
        """Base parameters of possible bodies and all imperfections, those not picked at zero, on the rows of a factor."""
        search, columns = self.choice.search(picked), _columns(picked)
        b = self._blocks.base
        seen = [*range(b), *(b + columns).tolist(), factor.shape[1] - 1]
        own = triangular(factor[:, seen])
        directions = search.resolved(own)
        marginal, step = search.eliminated(own, directions, np.zeros(directions.shape[1]))
        values = self.choice.base.values(search.consistent(marginal, self._prior))
        sizes = np.zeros(len(self._blocks.tolerances))
        sizes[columns] = directions @ step(values)
        return values, sizes

    def _likeliest(self, picked: Picked) -> list[tuple[Effect, float]]:
        """What makes all rows likelier beside the bodies found without it, the best first."""
        factor, b = self._blocks.whole.factor, self._blocks.base
        left = left_over(factor, *self._fit(factor, picked))
        Z = factor[:, b:-1]
        taken = {effect.family for effect, _ in picked}
        scores = []
        for effect in self.choice.effects:
            if effect.family in taken or effect.family not in _LIKE_WEIGHT:
                continue
            for own in FACTORS:
                D = Z[:, effect.columns] * (self._blocks.tolerances[effect.columns] * own)
                G, h = D.T @ D + np.eye(len(effect.columns)), D.T @ left
                score = 0.5 * float(h @ np.linalg.solve(G, h)) - 0.5 * float(np.linalg.slogdet(G)[1])
                scores.append((score, (effect, own)))
        best = sorted((pair for pair in scores if pair[0] > 0.0), key=lambda pair: -pair[0])
        return [own for _, own in best[:_TRIED]]


def _columns(picked: Picked) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.concatenate([np.empty(0, dtype=np.intp), *(effect.columns for effect, _ in picked)])


def _squared(factor: FloatArray, values: FloatArray, sizes: FloatArray) -> float:
    """Squared error of these on the rows of a factor."""
    left = left_over(factor, values, sizes)
    return float(left @ left)

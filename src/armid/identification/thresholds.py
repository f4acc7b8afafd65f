"""The numbers of the gate: what decides whether a result is to be trusted; docs/gate.md says what each condition means."""

from __future__ import annotations

from armid.logs.health.thresholds import LAG_SECONDS
from armid.thresholds import Threshold

RELATIVE_ERROR = Threshold(
    "largest-relative-error",
    0.15,
    "of the torque",
    "held-out torque, all joints stacked; [Halper2024] draws its band at 10 %, and unmodelled friction reaches 10 to 13 %",
)
UNEXPLAINED = Threshold(
    "no-better-than-zero",
    1.0,
    "of the torque",
    "held-out error of a joint at which predicting nothing would be as good",
)
GROWTH = Threshold(
    "largest-growth",
    2.5,
    "times the training error",
    "held-out error of a joint beyond which the training motion was memorised, not understood",
)
NEGLIGIBLE = Threshold(
    "negligible-error",
    0.05,
    "of the torque",
    "held-out error of a joint below which its growth does not matter: sign changes of velocity differ from motion to motion, "
    "and a fit to clean torque leaves almost nothing to grow from",
)
CONSISTENCY_COST = Threshold(
    "largest-consistency-cost",
    3.0,
    "times the error of free parameters",
    "what possible bodies may cost in torque; a wrong sign or mounting costs five and more",
)
NOTED_COST = Threshold(
    "notable-consistency-cost", 1.3, "times the error of free parameters", "from which on the cost is listed"
)
REVERSED = Threshold(
    "reversed-is-better",
    1.2,
    "times the error with gravity reversed",
    "error of possible bodies with gravity as described; the other way round by chance it is a few per cent",
)
MARGIN = Threshold(
    "smallest-margin",
    1e-11,
    "of the largest eigenvalue",
    "smallest pseudo-inertia eigenvalue of a body; less is lost when numbers are written and read again. The consistent estimate "
    "keeps a ten-thousandth of the prior body: above 1e-10",
)
SETTLING = Threshold(
    "settling-delay",
    0.5 * LAG_SECONDS,
    "s",
    "a torque delay below half the smallest lag that logs are warned of was not meant for one (a held command's half tick)",
)
TOLERATED_RATIO = Threshold(
    "tolerated-ratio",
    1.1,
    "times the other error",
    "up to which a model does not count as worse than the description: estimated parameters carry noise that a description which "
    "happens to be exact does not; a tenth is far more than that noise costs and far less than any mistake does",
)
COMPARISON_CONFIDENCE = Threshold(
    "comparison-confidence",
    0.99,
    "of all joints together",
    "with which one model must be worse than another to fail; each joint gets its share of the remaining per cent",
)
PRACTICAL_RANK = Threshold(
    "practical-rank",
    1e-4,
    "of the largest singular value",
    "of the column-scaled rows, below which a direction is not excited: useful motions stay above 5e-3, and this far down "
    "noise in the rows themselves outweighs the direction",
)
TURNED = Threshold(
    "notable-turn",
    20.0,
    "deg",
    "a direction of gravity this far from the description is another mounting, not a base out of level",
)
SHAPE_CONFIDENCE = Threshold(
    "shape-confidence",
    0.95,
    "of all joints together",
    "with which a shape of friction pays or harms; advice, not a gate",
)
FAR_APART = Threshold(
    "far-apart",
    3.0,
    "standard deviations",
    "of the difference, beyond which two results disagree about a parameter: one in 370 by chance",
)

THRESHOLDS = (
    RELATIVE_ERROR,
    UNEXPLAINED,
    GROWTH,
    NEGLIGIBLE,
    CONSISTENCY_COST,
    NOTED_COST,
    REVERSED,
    MARGIN,
    SETTLING,
    TOLERATED_RATIO,
    COMPARISON_CONFIDENCE,
    PRACTICAL_RANK,
    TURNED,
    SHAPE_CONFIDENCE,
    FAR_APART,
)
"""All of them, in the order of the conditions."""

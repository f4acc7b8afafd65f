"""Numbers that decide what a user is told about a calibration, each with its unit and reason."""

from __future__ import annotations

from armid.thresholds import Threshold

FRAMES_BY_CHANCE = Threshold(
    "frames-differ-by-chance",
    1e-3,
    "probability",
    "of the F statistic under common frames, below which files do not share a frame: of a hundred pairs of files one in ten "
    "studies is parted wrongly; on halves of UR10 series A and B by rows, base or elbow angle F stays at 0.2 to 3.3 of 4.4",
)
FRAMES_PLAINLY_DIFFER = Threshold(
    "frames-plainly-differ",
    3.0,
    "times the error with frames of their own",
    "a common frame that costs this much is refused even when it was asked for: an instrument that moved costs hundreds",
)

CHANGE_BY_CHANCE = Threshold(
    "frame-change-by-chance",
    1e-4,
    "probability",
    "over all places of a recording, in units of how consecutive blocks scatter: one recording in ten thousand is accused",
)
CHANGE_MATTERS = Threshold(
    "frame-change-matters",
    1.0,
    "times what stays unexplained",
    "a frame that moves further than the residuals left is a mistake of the recording; a smaller one is told",
)
PATTERN = Threshold(
    "residual-pattern",
    0.1,
    "of the residuals' variance",
    "explained by eight bins of a joint, of time or of the recording beyond chance: an error model is then worth a look",
)
PATTERN_BY_CHANCE = Threshold(
    "residual-pattern-by-chance",
    1e-3,
    "probability",
    "over all joints, time and the recording, of an F statistic of eight bins of noise: one recording in a thousand is said to "
    "follow something; of forty rows eight bins explain a tenth in one joint of six by chance",
)
BLOCKED_FOLDS = Threshold(
    "blocked-folds",
    1.5,
    "times the error of random folds",
    "consecutive rows kept aside together, and a paired t beyond chance; recordings at hand show 0.9 to 1.24, one whose "
    "joints move one at a time 3.1 without being beyond chance",
)

OVERFITTED = Threshold(
    "held-out-above-fitted",
    2.0,
    "times the error of the fit",
    "held-out error from which on the error after the fit is no measure of the arm: sqrt((n + p) / (n - p)) of n equations and "
    "p parameters is 1.4 for three equations each, and 2 for one and two thirds",
)

WRONG_SIGN = Threshold(
    "compliance-sign",
    0.01,
    "probability",
    "over all joints, of a compliance as far on the wrong side by chance: 2.9 standard deviations for six joints. A joint that "
    "rises under its load beyond that has another cause",
)
LARGEST_ECCENTRICITY = Threshold(
    "largest-eccentricity",
    5e-3,
    "rad",
    "once-per-turn error of a joint: encoders and gears of arms stay below 1 mrad, one badly mounted below 3",
)
BEYOND_RANGE = Threshold(
    "beyond-range",
    0.05,
    "of the calibrated range",
    "joint positions further out than this rest on extrapolation; less is the edge of a grid",
)

MOTION = Threshold(
    "motion",
    0.3,
    "of the distance between blocks",
    "distance in joint space to the nearest fitted configuration, of those kept aside at random over those kept aside in "
    "blocks: below it blocks are kept aside. Independent poses come to 0.97 to 1.02, recordings at hand to 0.63 and more, joints "
    "moved one after the other to 0.5; a path sampled at 18 places between turns to 0.15",
)
REPEATED = Threshold(
    "repeated-configurations",
    0.2,
    "of the held-out configurations",
    "stand where the fit has seen the arm: a mean with fewer of them is off by a few per cent",
)

CALIBRATION = (
    FRAMES_BY_CHANCE,
    FRAMES_PLAINLY_DIFFER,
    CHANGE_BY_CHANCE,
    CHANGE_MATTERS,
    PATTERN,
    PATTERN_BY_CHANCE,
    BLOCKED_FOLDS,
    OVERFITTED,
    WRONG_SIGN,
    LARGEST_ECCENTRICITY,
    BEYOND_RANGE,
    MOTION,
    REPEATED,
)
"""All of them."""

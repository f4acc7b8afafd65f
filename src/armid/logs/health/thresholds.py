"""Every number that decides what is said about a log, with its unit and the reason; `armid check --thresholds` prints it."""

from __future__ import annotations

from math import pi

from armid.thresholds import Threshold

_TABLE: list[Threshold] = []


def _threshold(name: str, value: float, unit: str, reason: str) -> float:
    """A number of the table."""
    _TABLE.append(Threshold(name, value, unit, reason))
    return value


# Clock.
MIN_ROWS = int(
    _threshold("rows-needed", 50, "rows", "with fewer no statistic means anything, and neither would an estimate")
)
BACKWARDS_ERROR = _threshold(
    "step-back-error",
    10.0,
    "ordinary steps",
    "a smaller step back is two packets swapped; a larger one is a restarted clock or two logs in one file",
)
OUT_OF_ORDER = _threshold(
    "steps-back-error", 0.01, "of the rows", "more steps back than this are no accident of a few packets"
)
DUPLICATES_ERROR = _threshold(
    "stamps-repeated-error", 0.3, "of the rows", "above it the clock does not tell the samples apart"
)
IRREGULAR = _threshold(
    "clock-irregular",
    0.02,
    "of the step, standard deviation",
    "real-time loops stay under one percent",
)
GAP = _threshold("gap", 10.0, "ordinary steps", "the default of conditioning, which cuts the log there")

# Numbers.
FEW = _threshold("rows-left-out", 0.01, "of the rows", "may be left out without asking")
ABSURD_MOTION = _threshold(
    "absurd-motion", 1e4, "rad or m, and per second", "no arm turns a thousand revolutions: damaged bytes"
)
ABSURD_TORQUE = _threshold("absurd-torque", 1e6, "N m, N or A", "no arm carries a meganewton metre: damaged bytes")
SPIKE = _threshold(
    "spike",
    12.0,
    "ordinary distances from the neighbours",
    "Gaussian noise never gets there; a flipped bit or a lost digit does",
)
SPIKE_JUMP = _threshold(
    "spike-alone",
    6.0,
    "distances between its neighbours, and of theirs",
    "neighbours that agree with each other: fast motion is not a spike",
)
SPIKE_SWING = _threshold(
    "spike-swing", 1.5, "steps around its neighbours", "the tip of a swing is approached by steps as large as itself"
)
USUAL = _threshold(
    "spike-ordinary", 0.98, "quantile of distances", "still ordinary: 2.5 standard deviations of Gaussian noise"
)
REVERSING = _threshold(
    "spike-reversal",
    0.05,
    "of a joint's largest speed",
    "friction changes over there, and may do so back and forth within a sample",
)
JUMP = _threshold(
    "spike-torque",
    1.0,
    "of a torque's range",
    "neither friction at a reversal nor a hard stop changes it by more; a corrupt packet does",
)
MANY = _threshold("spikes-error", 0.05, "of the rows", "from which on a channel is unusable, not just disturbed")
REPEATED = _threshold("repeated-rows", 0.005, "of the rows in motion", "from which on it is worth saying")
FREEZE_SECONDS = _threshold(
    "frozen-time", 0.25, "s", "no measurement stays the same to the last bit for so long while the arm moves"
)
FREEZE_SAMPLES = int(_threshold("frozen-rows", 20, "rows", "the same for slow logs"))
FREEZE_USUAL = _threshold(
    "frozen-unusual", 10.0, "ordinary runs of equal values", "a coarse channel repeats itself now and then"
)
FREEZE_CHANCE = _threshold(
    "frozen-chance",
    1e-3,
    "of clean logs",
    "in which chance holds a torque so long while its joint moves, by the geometric tail of its own runs of equal values",
)
FREEZE_REPEATS = _threshold(
    "frozen-repeats",
    0.05,
    "of the rows in motion",
    "with more that repeat the one before, a torque may stand still by rounding; it must have missed turns that noise gives",
)
LEAP = _threshold(
    "frozen-leap",
    3.0,
    "times the joint's largest speed in other rows",
    "at which a position leaves a value that it held, or steps between two rows: its encoder stood still or slipped, or rows are "
    "missing, and the joint did not move so",
)
COARSE = int(
    _threshold(
        "quantised", 100, "distinct values", "with fewer over its range, resolution limits what can be identified"
    )
)
USELESS = int(
    _threshold(
        "quantised-error",
        20,
        "distinct torques",
        "with fewer a step is more than a twentieth of the range: 1.5 % of noise that no filter takes out of slow motion",
    )
)
ZERO_SHARE = _threshold(
    "half-dead",
    0.05,
    "of the rows in which the joint moves",
    "with a torque of exactly one value: a sensor passes a value in a few rows, a channel that drops out comes back to it",
)
ZERO_UNUSUAL = _threshold(
    "half-dead-unusual",
    5.0,
    "times as often as the next most frequent value",
    "a coarse channel is at a value no more often than near it",
)
AT_LIMIT = _threshold("at-limit", 0.98, "of the torque limit", "drives hold a limit to about two percent")
BEYOND_LIMIT = _threshold(
    "beyond-limit", 1.02, "of the torque limit", "a torque that goes further is not held by that limit"
)
FLAT_SAMPLES = int(_threshold("flat-top", 5, "rows", "a smooth signal touches its extreme but once"))
PILED = _threshold(
    "piled-up",
    5,
    "times the rows at any of the next values",
    "at the extreme of a channel that is cut off; a coarse one that swings like a sine has 2.4 times as many",
)
SATURATED = _threshold("saturated", 0.005, "of the rows at a limit or on a flat top", "from which on it is said")
SATURATED_ERROR = _threshold("saturated-error", 0.05, "of the rows at a limit or on a flat top", "it spoils the fit")

# Motion.
STILL_ANGLE = _threshold("still-revolute", 0.05, "rad", "a joint that moves less shows neither inertia nor friction")
STILL_LENGTH = _threshold("still-prismatic", 0.02, "m", "a joint that moves less shows neither inertia nor friction")
REST_SHARE = _threshold(
    "at-rest",
    0.4,
    "of the rows",
    "in which a joint that moves otherwise stands still, from which on it is said: its friction is not known there",
)
REST_CHANGE = _threshold(
    "at-rest-change",
    0.01,
    "of the largest change of position over 0.2 s",
    "below which a joint stands still",
)
TURNS = _threshold(
    "turns",
    4.0 * pi,
    "rad",
    "two turns from zero: more than a jointed arm makes, while 12.6 degrees are quickly reached",
)
WIDE = _threshold("range-of-limits", 1.5, "of the range between limits", "no joint goes that far: other units")
OVER_LIMIT = _threshold("over-limit", 0.02, "rad or m", "calibration offsets and soft limits differ by about a degree")
FAR_OVER_LIMIT = _threshold(
    "far-over-limit", 0.2, "rad or m", "zero, sign or order of the joint is not the model's when it lasts"
)
FAR_SHARE = _threshold("far-over-limit-share", 0.1, "of the rows", "how long being far over a limit must last")
AGREES = _threshold(
    "velocity-agrees",
    0.9,
    "correlation with the derivative of position",
    "and one minus it is the tolerance of their ratio around one: noise and filters of recorders stay within",
)
SWAPPED = _threshold(
    "velocity-swapped", 0.95, "correlation with another joint", "only its own position is followed so closely"
)
SWAPPED_OWN = _threshold(
    "velocity-own", 0.8, "of the best correlation", "joints that move together follow each other nearly as well"
)
CLOCK_FACTOR = _threshold(
    "clock-factor", 5.0, "ratio of velocity and derivative, either way", "units of time are a thousand apart"
)
CLOCK_RATE = _threshold(
    "clock-rate",
    0.01,
    "recorded velocity over the derivative of position, from one",
    "up to which a clock is ordinary; sound recordings stay within a thousandth",
)
CLOCK_RATE_LARGE = _threshold(
    "clock-rate-large",
    0.03,
    "the same",
    "three times that: inertia is wrong by twice as much, and the recording must not be used uncorrected",
)
RATIO_CONFIDENCE = _threshold(
    "ratio-confidence", 5.0, "standard deviations", "beyond which a ratio of velocities is no chance"
)
RATIO_LEFT = _threshold(
    "ratio-left",
    0.05,
    "of the recorded velocity, unexplained by position with gain, lag and smoothing",
    "with more, noise in the positions could hide a quarter of a percent of the ratio",
)

# Torque against the nominal arm.
MIN_WEIGHT = _threshold("weight-spread", 0.05, "N m", "below it a joint says nothing about weight")
MIN_WEIGHT_SHARE = _threshold(
    "weight-share", 0.02, "of the largest joint's spread of weight", "below it errors of the nominal arm outweigh it"
)
DECISIVE = _threshold(
    "weight-decisive",
    0.7,
    "partial correlation with nominal weight",
    "from which on its sign is believed; real arms give 0.8 to 1.0 on joints that carry weight",
)
ABSENT = _threshold(
    "weight-absent", 0.3, "partial correlation with nominal weight", "below it weight is not in the torque"
)
COMPENSATED = _threshold(
    "weight-compensated", 0.2, "scale of weight over scale of inertia in a current", "below it the weight was taken out"
)
REMAINDER = _threshold(
    "weight-remainder",
    0.3,
    "of the nominal weight",
    "masses in a controller's model are wrong by less, so no more is left of the weight once subtracted",
)
FULL = _threshold("inertia-full", 0.5, "of the nominal inertia", "with less of it in the torque, its unit is wrong")
CURRENT_SCALE = _threshold("current-scale", 0.1, "A/(N m)", "what weight would be in the current of an ordinary drive")
VISIBLE = _threshold(
    "weight-visible",
    5.0,
    "weight over what is left unexplained",
    "more than ten where weight is missing; an arm on a wall taken for one on the floor gives two or three",
)
DOUBTFUL = _threshold(
    "unexplained-doubtful", 0.15, "of the torque, mean over joints", "from which on other orders of columns are tried"
)
LOST = _threshold(
    "unexplained-lost", 0.4, "of the torque, mean over joints", "from which on other directions of gravity are tried"
)
GOOD = _threshold("order-good", 0.9, "mean correlation with weight", "from which on an order of columns is believed")
HALVED = _threshold(
    "order-better", 0.6, "of what was unexplained", "correlation alone can be luck when the arm hardly moves"
)
GRAVITY_GAIN = _threshold("mounting-gain", 0.5, "of the unexplained torque", "what another gravity must explain")
GRAVITY_ANGLE = _threshold(
    "mounting-angle", 30.0, "deg", "a smaller turn is errors of the nominal masses, or a base out of level"
)
UNIT_DOUBT = _threshold(
    "unit-doubt", 2.5, "measured over nominal weight, either way", "descriptions err by up to a half"
)
UNIT_WRONG = _threshold("unit-wrong", 5.0, "measured over nominal weight, either way", "amperes and millinewton metres")
EXPLAINS = _threshold(
    "payload-explains",
    0.4,
    "of the unexplained power left",
    "recordings with a payload leave 0.2 to 0.3; errors of nominal masses leave 0.65 or more without one",
)
MIN_SHARE = _threshold("payload-share", 0.03, "of the arm's mass", "masses wrong by a third look like less")
MIN_JOINTS = int(_threshold("payload-joints", 4, "joints", "with fewer a wrong mass of any link looks like a payload"))
LAST_LINK = _threshold(
    "payload-last-link", 0.5, "of the last link's mass", "descriptions err by so much, and it looks like a payload"
)
DESCRIBED = _threshold(
    "payload-described",
    0.2,
    "of every mass, and of its radius of gyration",
    "at most, as a standard deviation: by which masses, centres of mass and inertias of a description are off",
)
PAYLOAD_ODDS = _threshold(
    "payload-odds",
    18.0,
    "logarithm",
    "by which a payload must be likelier than errors of such a description: simulated clean logs that pass the other limits gave "
    "9 at most (3 of 256, 16 arms, bodies up to 30 % off), 15 where every mass of an arm of four joints is off by 30 %; payloads "
    "of 2 % of the arm's mass and more gave 23 at least",
)
COMPUTED = _threshold(
    "torque-computed",
    0.01,
    "of the nominal weight and inertia, and of the torque",
    "by which every joint may differ from the description for its torque to be computed from it: masses differ by 20 % from arm "
    "to arm, and torque sensors and currents are not known to 1 %",
)

# Friction and clocks.
FRICTION_SIGN = _threshold(
    "friction-sign", 0.6, "partial correlation with direction", "real drives give 0.5 to 0.99, never minus that"
)
MIN_REVERSALS = int(
    _threshold(
        "friction-reversals", 4, "reversals", "friction is told from weight, which depends on where the joint is"
    )
)
FRICTIONLESS = _threshold("frictionless", 0.03, "friction over torque", "geared drives show 0.2 and more")
EXPLAINED = _threshold(
    "friction-explained", 0.1, "of a joint's torque unexplained", "with more, noise hides whether there is friction"
)
LAG_SECONDS = _threshold("lag", 0.005, "s", "a shorter lag does no harm to slow motion")
LAG_ERROR_SECONDS = _threshold("lag-error", 0.02, "s", "longer for certain, it spoils inertia and friction")
LAG_CONFIDENCE = _threshold("lag-confidence", 5.0, "standard deviations", "it must be known so well to be said")

THRESHOLDS = tuple(_TABLE)
"""The table, in the order of the checks."""

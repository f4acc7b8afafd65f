"""The numbers of the gate: what decides whether a result is to be trusted; docs/gate.md says what each condition means."""

from __future__ import annotations

from armid.consistency.plausible import THRESHOLDS as PLAUSIBLE_BODIES
from armid.identifiability.practical import PRACTICAL_RANK as _EXCITED
from armid.logs.health.thresholds import LAG_SECONDS
from armid.thresholds import Threshold

EXPLAINS_SOMETHING = Threshold(
    "explains-something",
    0.01,
    "of the training residual's energy",
    "from which on an undecidable fault has a row of its own on the screen; it decides what is printed, and no verdict",
)
JOINT_ERROR = Threshold(
    "joint-error",
    0.15,
    "of the joint's torque",
    "held-out error of a joint in motion; [Halper2024] draws its band at 10 %, and unmodelled friction reaches 10 to 13 %",
)
LIGHT_ERROR = Threshold(
    "light-joint-error",
    0.05,
    "of the arm's torque, all joints stacked",
    "what a joint that carries little may miss instead: its friction and the ripple of its sensor are of the size of the drive, "
    "not of the little torque it happens to carry",
)
UNEXPLAINED = Threshold(
    "joint-unexplained",
    0.5,
    "of the joint's torque",
    "beyond which no joint passes, however light: less than three quarters of the power of its torque is explained",
)
FLOOR_RATIO = Threshold(
    "noise-floor-ratio",
    1.5,
    "times the noise of the conditioned torque",
    "up to which an error is mostly noise (at least 4/9 of its power), and the joint is undetermined rather than wrong",
)
REST_SPEED = Threshold(
    "rest-speed",
    0.01,
    "of the joint's largest training speed",
    "below which a joint stands still; a designed motion spends one sample in a hundred there, in reversals",
)
REST_SECONDS = Threshold(
    "rest-time",
    0.2,
    "s",
    "for which a joint must be that slow to be at rest: reversals of ordinary motion pass in less",
)
STILL_SHARE = Threshold(
    "held-out-still",
    0.95,
    "of the samples",
    "of the held-out motion at rest, from which on a joint was not tested in motion",
)
MOVING_SECONDS = Threshold(
    "held-out-moving",
    5.0,
    "s",
    "of motion of a joint, with which it was tested however long it rests besides: errors are compared over blocks of a "
    "second, and of fewer than five of them little follows",
)
REPEAT_DISTANCE = Threshold(
    "repeat-distance",
    0.03,
    "of each joint's range",
    "within which two seconds of motion follow one another to count as the same: controllers repeat to a tenth of that, and "
    "another motion of three or more joints comes so near by chance in none of a thousand windows",
)
REPEATED_SHARE = Threshold(
    "repeated-share",
    0.5,
    "of the held-out windows that move",
    "that repeat the training motion, from which on its error is a training error",
)
BEYOND_SPEED = Threshold(
    "beyond-speed",
    1.2,
    "times the largest training speed",
    "from which on friction and velocity torques are extrapolated: 1.4 times the velocity torques",
)
BEYOND_POSITION = Threshold(
    "beyond-position",
    0.2,
    "of the joint's training range",
    "from which on positions are extrapolated",
)
LOAD_EXPLAINS = Threshold(
    "other-load-explains",
    0.5,
    "of the squared held-out error",
    "that a body on the flange must explain to be named as the reason",
)
GAIN_EXPLAINS = Threshold(
    "other-gain-explains",
    0.9,
    "of the squared held-out error",
    "that a gain or weight that is another there must explain to be named: planted ones explain 0.98 and more; far beyond its "
    "training motion a model predicts so badly that a gain of zero takes 0.53 away",
)
LOAD_MASS = Threshold(
    "other-load-mass", 0.05, "kg", "below which the change is a body placed or turned otherwise, not another one"
)
GROWTH = Threshold(
    "largest-growth",
    2.5,
    "times the training error",
    "held-out error of a joint beyond which the training motion was memorised, not understood",
)
NEGLIGIBLE = Threshold(
    "negligible-error",
    1.0 / 3.0,
    "of the joint's limit",
    "held-out error of a joint (5 % of its torque, more where it carries little) below which its growth does not matter: sign "
    "changes of velocity differ from motion to motion, and a fit to clean torque leaves almost nothing to grow from",
)
CONSISTENCY_COST = Threshold(
    "largest-consistency-cost",
    3.0,
    "times the error of free parameters",
    "what physically consistent parameters may cost in torque; a wrong sign or mounting costs five and more",
)
NOTED_COST = Threshold(
    "notable-consistency-cost", 1.3, "times the error of free parameters", "from which on the cost is listed"
)
REVERSED = Threshold(
    "reversed-is-better",
    1.2,
    "times the error with gravity reversed",
    "error of physically consistent parameters with gravity as described; the other way round by chance it is a few per cent",
)
MISTAKE_GAIN = Threshold(
    "mistake-gain",
    1.3,
    "times the error of physically consistent parameters without the mistake, multiplied over the joints",
    "from which on a sign, a swap or a quarter turn is found: true signs gave 1.8 and more on recordings of four arms, clean "
    "recordings at most 1.1. Errors below 1 % of a joint's torque (`negligible-beside-nominal`) count as that much",
)
MISTAKE_ODDS = Threshold(
    "mistake-odds",
    1e4,
    "times likelier, rows counted by how long residuals hold together and without those that parameters use up",
    "that a sign, a swap or a quarter turn must be to be found: some thirty are tried. An arm that hardly moves has fewer "
    "independent rows than parameters, and nothing is found on it",
)
TIED = Threshold(
    "mistake-tied",
    1.1,
    "times the error, multiplied over the joints",
    "within which two hypotheses are as good as each other, and the log cannot tell",
)
IMPLAUSIBLE = Threshold(
    "implausible-sensor",
    3.0,
    "times the base tolerance",
    "of a gain, zero, scale or clock in the model, where families are capped; clean recordings need up to 1.9, a gain of 1.3 "
    "planted in one of them 4.1",
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
NEGLIGIBLE_ERROR = Threshold(
    "negligible-beside-nominal",
    0.01,
    "of the joint's torque",
    "that a model may leave beyond the tolerated ratio without counting as worse than the description: one that is nearly exact "
    "leaves noise alone, of which any mistake of friction or of a sensor, however small, is more than a tenth. Torque sensors "
    "and currents are not known to 1 %; exported files are judged by the same figure",
)
COMPARISON_CONFIDENCE = Threshold(
    "comparison-confidence",
    0.99,
    "of all joints together",
    "with which one model must be worse than another to fail; each joint gets its share of the remaining per cent",
)
PRACTICAL_RANK = Threshold(
    "practical-rank",
    _EXCITED,
    "of the largest singular value",
    "of the column-scaled rows, below which a direction is not excited: useful motions stay above 5e-3, and this far down "
    "noise in the rows themselves outweighs the direction",
)
SET_ASIDE = Threshold(
    "largest-share-set-aside",
    1 / 3,
    "of the logs",
    "of several logs those that cannot be used are set aside; when more than a third are, a common cause (description, mapping, "
    "units) is likelier than that many separate accidents, and what is left deserves no more trust",
)
KEPT_ROWS = Threshold(
    "smallest-share-kept",
    0.5,
    "of the rows",
    "of several logs bad stretches are cut; one that would lose most of its rows is set aside as a whole: its sensors cannot "
    "be told from those that failed",
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
ROBUST_PAYS = Threshold(
    "robust-pays",
    0.95,
    "of the median error with weighted least squares",
    "on training blocks predicted by the others, below which `--method auto` takes huber: robust fits also follow the middle of "
    "noise with long tails, which friction makes too, and that is worth two or three per cent",
)
ROBUST_CHANCE = Threshold(
    "robust-chance",
    2.0,
    "standard deviations of the mean over blocks",
    "by which that must be beyond chance",
)
CUTOFF_SHARE = Threshold(
    "cutoff-share",
    0.5,
    "of the parameters",
    "that another cut-off may move by more than their noise would; beyond, intervals rest on what the model lacks. Advice, not a "
    "gate: intervals hold the move already",
)

FAULT_DEVIATIONS = Threshold(
    "fault-deviations",
    5.0,
    "standard deviations",
    "from zero, from which on a fault of a recording is beyond chance: some forty are looked at, and rows are counted by an "
    "autocorrelation that may be off by a factor of two",
)
FAULT_CONFIDENCE = Threshold(
    "fault-confidence",
    0.95,
    "of all candidates together",
    "by what leaving out a second of the motion after the other changes (Student's distribution, as many degrees of freedom as "
    "blocks less one), with which a fault must be beyond zero to be decisive: a hundred candidates are looked at, and the few "
    "blocks of a short recording hardly tell how much they differ",
)
FAULT_REPEATED = Threshold(
    "fault-repeated",
    0.5,
    "of its size",
    "that the held-out motion must not rule out, looked at by itself: sensors are the same in both. On 218 windows of clean "
    "recordings of five arms what only the training motion's own errors make up was there of another size, or of the other sign",
)
FAULT_SHARE = Threshold(
    "fault-share",
    0.05,
    "of the squared residual",
    "that a fault must explain to be named; several together explain less of what no single one does",
)

FAULT_PHASE = Threshold(
    "fault-phase",
    0.05,
    "of the period of the torque's cut-off",
    "up to which a delay is not told from friction that turns around late: a fiftieth of a turn of the fastest motion left",
)

FAULT_EXCLUDED = Threshold(
    "fault-excluded",
    2.0,
    "times its tolerance",
    "up to which the 95 % interval of a fault may reach for it to be excluded: what is twice as large as ordinary is then found, "
    "undecidable, or beyond the stated bound",
)
GOES_WITH = Threshold(
    "goes-with",
    0.3,
    "of the squared held-out residual",
    "that the training's mean residual by position, speed, acceleration or torque of a joint must take away for what is left of "
    "its torque to be said to go with it; it decides which words are printed, and no verdict",
)
DESCRIBED_SHARE = Threshold(
    "described-share",
    0.2,
    "of each body's mass, and half of that of its size",
    "by which a description is believed to be off, at least: 20 % from arm to arm are common ([Kolyubin2017]). Where the other "
    "parameters show a larger share, that one is taken",
)
PAYLOAD_SHARE = Threshold(
    "payload-share",
    0.01,
    "of the described mass of the arm",
    "from which on a body at the flange is worth naming: a tenth of what arms of that mass are made to carry",
)
GRAVITY_SHARE = Threshold(
    "gravity-share",
    0.05,
    "of the joint's largest gravity torque",
    "slow error up to which an arm may be held by its model where no Coulomb friction holds it: a hand corrects that much",
)
CONTACT_SHARE = Threshold(
    "contact-share",
    0.2,
    "of the joint's torque limit, or of its largest torque where no limit is given",
    "up to which a push may stay unseen: a drive that stops at a fifth of its torque has not yet crushed what it hit",
)
CONTACT_QUANTILE = Threshold(
    "contact-quantile",
    0.999,
    "of the held-out residuals of a joint",
    "that an alarm must lie above: what is left over by the model alone would raise it in one sample of a thousand",
)

THRESHOLDS = (
    EXPLAINS_SOMETHING,
    GRAVITY_SHARE,
    CONTACT_SHARE,
    CONTACT_QUANTILE,
    FAULT_DEVIATIONS,
    FAULT_CONFIDENCE,
    FAULT_REPEATED,
    FAULT_SHARE,
    FAULT_EXCLUDED,
    FAULT_PHASE,
    GOES_WITH,
    DESCRIBED_SHARE,
    PAYLOAD_SHARE,
    JOINT_ERROR,
    LIGHT_ERROR,
    UNEXPLAINED,
    FLOOR_RATIO,
    REST_SPEED,
    REST_SECONDS,
    STILL_SHARE,
    MOVING_SECONDS,
    REPEAT_DISTANCE,
    REPEATED_SHARE,
    BEYOND_SPEED,
    BEYOND_POSITION,
    LOAD_EXPLAINS,
    GAIN_EXPLAINS,
    LOAD_MASS,
    GROWTH,
    NEGLIGIBLE,
    CONSISTENCY_COST,
    NOTED_COST,
    REVERSED,
    MISTAKE_GAIN,
    MISTAKE_ODDS,
    TIED,
    IMPLAUSIBLE,
    MARGIN,
    SETTLING,
    TOLERATED_RATIO,
    NEGLIGIBLE_ERROR,
    COMPARISON_CONFIDENCE,
    PRACTICAL_RANK,
    TURNED,
    SET_ASIDE,
    KEPT_ROWS,
    SHAPE_CONFIDENCE,
    FAR_APART,
    CUTOFF_SHARE,
    ROBUST_PAYS,
    ROBUST_CHANCE,
    *PLAUSIBLE_BODIES,
)
"""All of them, in the order of the conditions."""

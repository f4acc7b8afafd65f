"""Every option that more than one verb has, declared once: one flag, one meaning, one sentence of help.

Words are refused with exit code 2 before any file is read: single ones by their enum or `Literal`, lists by `word_list`,
tolerances by `tolerance_list`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from armid.errors import ArmidError
from armid.parameters.effects import FRICTION_NAMES, FRICTION_SHAPES, PayloadRuns, TorqueSide

ProcessingWord = Literal["default", "halper2024", "khosla1985"]
FilterWord = Literal["butterworth", "critical"]
DifferentiatorWord = Literal[
    "central", "central-8", "least-squares", "least-squares-causal", "savitzky-golay", "spectral", "spline"
]
VelocityWord = Literal["auto", "position", "measured"]
ConsistencyWord = Literal["lmi", "log-cholesky", "eq3.53", "halper2024"]
RegulariserWord = Literal["pull-back", "entropic", "euclidean"]
MethodWord = Literal[
    "auto", "ols", "wls", "huber", "tukey", "ridge", "torque-error", "tls", "iv", "didim", "cloe", "ml"
]
EssentialWord = Literal["significance", "bic"]
ControllerWord = Literal["ur", "franka", "kuka-fri", "kuka-krl", "ros2", "csv"]


def word_list(known: Sequence[str], *, none: bool = True) -> Callable[[str], str]:
    """A parser of words with commas between them, of a fixed set; gives them as typed.

    Args:
        known: the words.
        none: whether there may be none of them: `none`, alone.
    """
    listed = (*known, "none") if none else tuple(known)

    def parse(text: str) -> str:
        words = [word.strip() for word in text.split(",") if word.strip()]
        if "none" in words and len(words) > 1:
            raise typer.BadParameter(f"{text!r}: 'none' stands alone")
        for word in words:
            if word not in listed:
                raise typer.BadParameter(f"no {word!r}; there are: {', '.join(listed)}")
        return text

    return parse


def tolerance_list(text: str) -> str:
    """A parser of base tolerances, such as `gain=2%,zero=0.5deg`; gives them as typed."""
    from armid.identification.tolerances import base_tolerances  # help does without

    try:
        base_tolerances(text)
    except ArmidError as error:
        raise typer.BadParameter(str(error).removeprefix("--tolerance: ")) from None
    return text


LoopOption = Annotated[
    Path | None,
    typer.Option(
        "--controller", metavar="FILE", help="Gains and rate of the recorded loop, for didim, cloe, ml and iv."
    ),
]
RobotArgument = Annotated[
    str, typer.Argument(metavar="ROBOT", help="URDF path, robot YAML path, or catalogue name (iiwa14, panda, ...).")
]
ResultArgument = Annotated[Path, typer.Argument(metavar="RESULT", help="Folder written by armid identify.")]
LogsArgument = Annotated[
    list[str], typer.Argument(metavar="LOG...", help="Recordings: any known format, or mapping files (.yaml).")
]

BaseLinkOption = Annotated[
    str | None, typer.Option("--base", metavar="LINK", help="Link of a URDF that stands still; its root by default.")
]
TipOption = Annotated[
    str | None,
    typer.Option("--tip", metavar="LINK", help="Where the arm ends; the end of the longest chain by default."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout; everything else on stderr.")]
OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where files are written.")]
OptionalOutOption = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where files are written.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]

FrictionOption = Annotated[
    str,
    typer.Option(
        "--friction",
        metavar="LIST",
        parser=word_list((*FRICTION_NAMES, *FRICTION_SHAPES)),
        help="Of viscous, coulomb, offset; and of asymmetric, stribeck, smooth, load, coupled; 'none' for none.",
    ),
]
LinearFrictionOption = Annotated[
    str,
    typer.Option(
        "--friction",
        metavar="LIST",
        parser=word_list(FRICTION_NAMES),
        help="Of viscous, coulomb, offset; 'none' for none.",
    ),
]
RotorOption = Annotated[bool, typer.Option("--rotor-inertia", help="Rotor inertias too (always so on the motor side).")]
PayloadRunsOption = Annotated[PayloadRuns, typer.Option("--payload", help="Which runs carried an unknown payload.")]
TorquesOption = Annotated[TorqueSide, typer.Option("--torques", help="Where torque was measured.")]
GravityOption = Annotated[
    str | None,
    typer.Option("--gravity", metavar="X,Y,Z", help="Gravity in the base frame [m/s^2]; the description's by default."),
]

DataRootOption = Annotated[
    Path | None, typer.Option("--data-root", metavar="DIR", help="Where mapping files find recordings.")
]
StepOption = Annotated[
    float | None, typer.Option("--step", metavar="SECONDS", help="Sampling step of files without a clock.")
]
CutoffOption = Annotated[
    float | None, typer.Option("--cutoff-hz", help="Low-pass on motion and torque; chosen by default.")
]
ProcessingOption = Annotated[
    ProcessingWord | None,
    typer.Option("--processing", help="Filters, averaging and differences of a published work, under one name."),
]
AverageOption = Annotated[
    bool, typer.Option("--average", help="Average the repetitions of a periodic motion; its period is found.")
]
PeriodOption = Annotated[
    float | None, typer.Option("--period-s", min=0.0, help="Period of the repetitions to average, where it is known.")
]
FilterOption = Annotated[
    FilterWord | None, typer.Option("--filter", help="Kind of the zero-phase low-pass; butterworth by default.")
]
FilterOrderOption = Annotated[
    int | None, typer.Option("--filter-order", min=1, max=40, help="Order of the low-pass, one way; 4 by default.")
]
DifferentiatorOption = Annotated[
    DifferentiatorWord | None,
    typer.Option("--differentiator", help="How velocity and acceleration come from position; central-8 by default."),
]
TorqueDelayOption = Annotated[
    float, typer.Option("--torque-delay-ms", help="How late torque is against the motion; it is moved back.")
]
VelocityOption = Annotated[VelocityWord, typer.Option("--velocity", help="Derived from position, or as recorded.")]
AcceptOption = Annotated[
    list[str] | None, typer.Option("--accept", metavar="CODE", help="Log error to accept; repeatable.")
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="local[:N]|tcp://HOST:PORT",
        help="Where the work runs: processes of this machine, or a Dask scheduler; here by default.",
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Stop at one unusable log among several instead of setting it aside."),
]
LimitsFileOption = Annotated[
    Path | None,
    typer.Option("--limits-file", metavar="FILE", help="Limits a URDF cannot hold, or narrower ones (YAML)."),
]
AccelerationOption = Annotated[
    str | None,
    typer.Option("--max-acceleration", metavar="LIST", help="rad/s^2 or m/s^2: one for all joints, or each."),
]
JerkOption = Annotated[
    str | None, typer.Option("--max-jerk", metavar="LIST", help="rad/s^3 or m/s^3: one for all joints, or each.")
]
TorqueLimitOption = Annotated[
    str | None, typer.Option("--max-torque", metavar="LIST", help="N m or N: one for all joints, or each.")
]
ClearanceOption = Annotated[
    float | None,
    typer.Option("--clearance-m", min=0.0, help="Distance kept between bodies; that of the cell, or 0.02, by default."),
]
SelfCollisionOption = Annotated[
    bool, typer.Option("--collisions/--no-collisions", help="Keep the arm clear of itself.")
]
CellOption = Annotated[
    str | None, typer.Option("--cell", metavar="CELL", help="Cell file, or the name of one that comes along.")
]
ControllerOption = Annotated[ControllerWord, typer.Option("--for", help="Whose program is written.")]
OptionalControllerOption = Annotated[
    ControllerWord | None, typer.Option("--for", help="Also write the program that plays it on this controller.")
]
PlayerRateOption = Annotated[
    float | None,
    typer.Option(
        "--player-rate-hz", help="Rate at which the controller takes points; its own by default (CB3 of UR: 125)."
    ),
]
FrameOption = Annotated[str | None, typer.Option("--frame", metavar="NAME", help="Which frame; the tip by default.")]

ConsistencyOption = Annotated[
    ConsistencyWord,
    typer.Option(
        "--consistency",
        help="How bodies are made physical: a convex program, the same smoothly refined, or [Halper2024]'s inequalities.",
    ),
]
RegulariserOption = Annotated[
    RegulariserWord, typer.Option("--regulariser", help="Kind of regularisation towards the prior.")
]
PriorWeightOption = Annotated[
    float,
    typer.Option("--prior-weight", help="Strength of the regularisation: 1 / (relative doubt of the prior bodies)^2."),
]
ImperfectionsOption = Annotated[
    str,
    typer.Option(
        "--imperfections",
        metavar="all|none|FAMILIES",
        help="Imperfections of sensors and friction that may enter the model: gain,delay,zero,... (docs/estimation.md).",
    ),
]
ToleranceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tolerance",
        metavar="FAMILY=SIZE",
        parser=tolerance_list,
        help="How large an imperfection may be, such as gain=2% or zero=0.5deg; repeatable.",
    ),
]
SensorsOption = Annotated[
    Path | None,
    typer.Option(
        "--sensors", metavar="FILE", help="sensors.yaml of an earlier result: undone in every recording first."
    ),
]
CorrectOption = Annotated[
    bool, typer.Option("--correct", help="Undo the faults that were found in the recordings, and say so.")
]
AllFaultsOption = Annotated[
    bool, typer.Option("--all-faults", help="Print every fault that was looked for, not only those that matter.")
]
BoundsOption = Annotated[
    Path | None,
    typer.Option(
        "--bounds",
        metavar="FILE|geometry",
        help="Known masses and centres of mass (docs/estimation.md), or just: mass within the links' shapes.",
    ),
]
ValidateOption = Annotated[
    list[str] | None, typer.Option("--validate", metavar="LOG", help="Held-out recording; repeatable.")
]
PriorOption = Annotated[
    Path | None,
    typer.Option(
        "--prior",
        metavar="RESULT|FLEET",
        help="Add the Information of an earlier result, or start from a fleet's spread.",
    ),
]
TorqueCutoffOption = Annotated[float | None, typer.Option("--torque-cutoff-hz", help="Another low-pass on torque.")]
FindGravityOption = Annotated[
    bool, typer.Option("--find-gravity", help="Estimate base tilt and mounting from the torque, and use them.")
]
EssentialOption = Annotated[
    bool,
    typer.Option(
        "--essential", help="Also list the parameters that are not essential, and what leaving each out costs."
    ),
]
ParametersOption = Annotated[
    Literal["consistent", "base", "essential"],
    typer.Option(
        "--parameters", help="Which values of the result: physically consistent, base, or essential parameters."
    ),
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep", metavar="NAMES", help="Base parameters that --essential leaves in; patterns too; repeatable."
    ),
]
DropOption = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="NAMES",
        help="Base parameters to leave out first, such as joint*.offset; what each costs is listed.",
    ),
]
_GRAVITY_FRAME_HELP = "Frame of --gravity; sensor: the levelled instrument that --correction was measured with."
GravityFrameOption = Annotated[
    str, typer.Option("--gravity-frame", metavar="base|sensor[:NAME]", help=_GRAVITY_FRAME_HELP)
]
CorrectionOption = Annotated[
    Path | None,
    typer.Option("--correction", metavar="FILE", help="Calibrated kinematics: correction.json of armid calibrate."),
]

"""Options of single experiments (`elastic`, `plan`, `recover`, `sequential`, `sweep`), each with its sentence of help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

ElasticJointOption = Annotated[
    list[str] | None, typer.Option("--joint", help="Joint to identify; by default every one whose link moves.")
]
ElasticMotorInertiaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--motor-inertia",
        metavar="JOINT=KGM2",
        help="Motor inertia that is known, times gear ratio squared; it is not fitted then.",
    ),
]
ElasticEccentricOption = Annotated[
    bool | None,
    typer.Option(
        "--eccentric/--centric",
        help="Fit an encoder error once per turn; by default where gravity does not load the joint.",
    ),
]
ElasticOneSensorOption = Annotated[
    bool, typer.Option("--one-sensor", help="Link encoders and motor torque only ([Gaz2014] eqs. 4-5).")
]
ElasticInstrumentsOption = Annotated[
    bool,
    typer.Option(
        "--instruments/--no-instruments",
        help="Columns of the rigid model as instruments, against the bias that encoder errors cause.",
    ),
]
ElasticCutoffHzOption = Annotated[
    float | None, typer.Option("--cutoff-hz", help="Low-pass on everything; 10, with one sensor 6.")
]
SequentialTorquesOption = Annotated[
    Literal["link", "motor"], typer.Option("--torques", help="Where torque was measured.")
]
SequentialFromNominalOption = Annotated[
    bool, typer.Option("--from-nominal", help="Start from the description's values instead of zero.")
]
SequentialStartOption = Annotated[
    Path | None, typer.Option("--start", metavar="FILE", help="Starting values: JSON, parameter name to number.")
]
SequentialPlanOption = Annotated[
    Path | None,
    typer.Option("--plan", metavar="DIR", help="Of `design --sequential`: says which joints are locked."),
]
SequentialLockedOption = Annotated[
    list[str] | None,
    typer.Option("--lock", metavar="JOINT", help="Joint that has to stand still in every recording; repeatable."),
]
SequentialHoldOption = Annotated[
    bool,
    typer.Option("--hold", help="What a stage found stays fixed in later ones, as in [Khosla1985]; for exact data."),
]
SequentialCommandedOption = Annotated[
    bool, typer.Option("--commanded", help="Output-error structure: the commanded motion instead of the measured.")
]
SequentialAsRecordedOption = Annotated[
    bool, typer.Option("--as-recorded", help="Recorded velocity and acceleration, unfiltered, sample by sample.")
]
SequentialVelocityOption = Annotated[
    Literal["position", "measured"], typer.Option("--velocity", help="Derived from position, or as recorded.")
]
SequentialTorqueDelayMsOption = Annotated[
    float | None,
    typer.Option("--torque-delay-ms", help="How late torque is against the motion; measured by default."),
]
SweepLogsArgument = Annotated[list[str] | None, typer.Argument(metavar="LOG...", help="One axis at one pose each.")]
SweepFrequencyHzOption = Annotated[
    list[float] | None, typer.Option("--frequency-hz", help="Frequency of the sines; found in the spectrum by default.")
]
SweepParametersOption = Annotated[
    bool, typer.Option("--parameters", help="Base parameters of the load-side inertia from all of them.")
]
SweepPredictOption = Annotated[
    Path | None,
    typer.Option("--predict", metavar="POSES", help="Inertias of all axes at these poses too (CSV q1..qn)."),
]
SweepPlanOption = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="POSES",
        help="Instead: write the motions for these poses (poses.json of `armid poses`, or CSV q1..qn).",
    ),
]
SweepAxisOption = Annotated[list[str] | None, typer.Option("--axis", help="With --plan: which joints; all by default.")]
SweepChirpOption = Annotated[bool, typer.Option("--chirp", help="With --plan: one chirp instead of sines.")]
SweepMinutesOption = Annotated[
    float | None,
    typer.Option("--minutes", help="With --plan: measuring time in all; 8 s per measurement by default."),
]
SweepTorqueNoisePercentOption = Annotated[
    float,
    typer.Option(
        "--torque-noise-percent", help="With --plan: torque noise per sample, in percent of the torque limit."
    ),
]
SweepRateHzOption = Annotated[float, typer.Option("--rate-hz", help="With --plan: rate of the recording.")]
RecoverSamplesArgument = Annotated[
    Path | None, typer.Argument(metavar="SAMPLES", help="Poses with gravity and inertia (npz or csv).")
]
RecoverValidateOption = Annotated[
    Path | None, typer.Option("--validate", metavar="SAMPLES", help="Other poses; the last sixth by default.")
]
RecoverAlongOption = Annotated[
    Path | None,
    typer.Option("--along", metavar="SAMPLES", help="Values read along a motion: all elements compared."),
]
RecoverMotionOption = Annotated[
    str | None,
    typer.Option("--motion", metavar="LOG", help="A motion with joint torque: predicted torque compared."),
]
RecoverToolOption = Annotated[
    Path | None, typer.Option("--tool", metavar="SAMPLES", help="The same arm with a tool: its mass and centre.")
]
RecoverCoefficientsOption = Annotated[
    bool, typer.Option("--coefficients", help="Every coefficient of g(q) and M(q) in the form of [Gaz2014], too.")
]
RecoverCutoffHzOption = Annotated[float, typer.Option("--cutoff-hz", help="Low-pass on the motion.")]
RecoverRotorInertiaOption = Annotated[
    bool, typer.Option("--rotor-inertia", help="The inertia matrix has the rotors on its diagonal.")
]
RecoverPlanOption = Annotated[
    int | None, typer.Option("--plan", min=1, metavar="N", help="Write N random poses to read at, and stop.")
]
PlanPathArgument = Annotated[
    Path, typer.Argument(metavar="PATH", help="Waypoints (CSV), tool line or arc (YAML), or a trajectory (JSON).")
]
PlanConfidenceOption = Annotated[
    float | None,
    typer.Option(help="Probability with which all torque limits hold, given the parameters' covariance; e.g. 0.99."),
]
PlanMarginOption = Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of every limit left unused.")]
PlanJerkOption = Annotated[bool, typer.Option("--jerk/--no-jerk", help="Respect jerk limits.")]
PlanCollisionsOption = Annotated[
    bool, typer.Option("--collisions/--no-collisions", help="Check the arm against itself.")
]
PlanLoadedOption = Annotated[
    bool, typer.Option("--loaded/--unloaded", help="Whether the arm carries the payload of the loaded runs.")
]
PlanPassiveOption = Annotated[
    str | None, typer.Option(metavar="JOINT", help="Draw the motion generator with this joint not driven.")
]
PlanPointsOption = Annotated[int, typer.Option(min=50, max=20000, help="Points of the path at which limits are kept.")]
PlanRateHzOption = Annotated[
    float, typer.Option("--rate-hz", min=1.0, max=10000.0, help="Sampling rate of the written files.")
]
PlanForceOption = Annotated[
    bool, typer.Option("--force", help="Plan with an untrusted result too; files are marked UNVALIDATED.")
]

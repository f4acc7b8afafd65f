"""Help of the verbs: options in groups, two examples each, and spellings of earlier versions that still work.

One table for all verbs, so that the same option stands in the same group everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

GROUPS: dict[str, tuple[str, ...]] = {
    "Model": (
        *("--friction", "--rotor-inertia", "--payload", "--torques", "--gravity", "--gravity-frame", "--find-gravity"),
        *("--correction", "--controller", "--payload-kg", "--payload-centre", "--quantity", "--measure", "--points"),
        *("--errors", "--model", "--terms", "--setups", "--sensor", "--frame", "--loaded", "--passive"),
    ),
    "Recordings": (
        *("--validate", "--prior", "--step", "--data-root", "--accept", "--side", "--format", "--topic", "--sensors"),
        *(
            "--correct",
            "--imperfections",
            "--tolerance",
            "--mapping",
            "--lengths",
            "--angles",
            "--orientation",
            "--log",
        ),
        *("--strict", "--trajectory", "--free", "--faults", "--all-faults", "--noise", "--commanded", "--as-recorded"),
    ),
    "Signals": (
        *("--cutoff-hz", "--torque-cutoff-hz", "--processing", "--average", "--period-s", "--filter", "--filter-order"),
        *("--differentiator", "--torque-delay-ms", "--velocity", "--rate-hz", "--control-rate-hz", "--bandwidth-hz"),
    ),
    "Estimation": (
        *("--method", "--essential", "--essential-by", "--consistency", "--regulariser", "--prior-weight", "--bounds"),
        *("--keep", "--drop"),
        *("--folds", "--enough", "--plain-loss", "--sigma-position-m", "--sigma-orientation-rad", "--confidence"),
    ),
    "Limits and surroundings": (
        *("--limits", "--limits-file", "--max-acceleration", "--max-jerk", "--max-torque", "--margin", "--jerk"),
        *("--cell", "--collisions", "--clearance-m", "--analytic-bounds", "--resonance-hz", "--start", "--home"),
        *("--reference", "--transitions", "--lock", "--hold", "--approach-seconds"),
    ),
    "Search": (
        *(
            "--search-seconds",
            "--starts",
            "--workers",
            "--cluster",
            "--resume",
            "--criterion",
            "--after",
            "--until",
            "--rank",
        ),
        *("--goal-condition", "--goal-reserve", "--goal-weights", "--sequential", "--pool", "--spread", "--count"),
    ),
    "The arm": ("--base", "--tip"),
    "Answer": ("--out", "--json", "--seed", "--for", "--player-rate-hz", "--latex", "--closed-form", "--force"),
}
"""Title of a group -> its options, of whatever verb."""

_FEW = 12
"""Options that need no groups."""

EXAMPLES: dict[str, tuple[str, str]] = {
    "inspect": (
        "armid inspect iiwa14 --friction viscous,coulomb",
        "armid inspect arm.urdf --quantity pose --out forms",
    ),
    "design": (
        "armid design arm.urdf --out motion",
        "armid design panda --cell cell.yaml --search-seconds 120 --seed 1 --out other",
    ),
    "poses": ("armid poses ur10e --for calibration", "armid poses mabi-max100 --for axis-inertia --cell mabi-max100"),
    "simulate": (
        "armid simulate panda motion/trajectory.json --out log",
        "armid simulate panda motion/trajectory.json --payload-kg 1.5 --fault torque-sign=panda_joint2",
    ),
    "calibrate": (
        "armid calibrate ur10e poses.csv --lengths mm --angles deg",
        "armid calibrate arm.urdf a.csv --validate b.csv --out calibrated",
    ),
    "compensate": (
        "armid compensate arm.urdf calibrated/correction.json targets.csv",
        "armid compensate arm.urdf calibrated/correction.json targets.csv --poses",
    ),
    "map": ("armid map arm.urdf log.csv", "armid map arm.urdf log.csv --no-input --out mapping"),
    "check": ("armid check arm.urdf log.csv", "armid check arm.urdf log.csv --faults"),
    "identify": (
        "armid identify arm.urdf log.csv --validate other.csv",
        "armid identify panda log.csv --rotor-inertia --bounds geometry --out identified",
    ),
    "fleet": (
        "armid fleet arms.csv --robot arm.urdf",
        "armid fleet 'data/{arm}/{date}/*.csv' --robot panda --out fleet",
    ),
    "validate": ("armid validate identified third.csv", "armid validate identified third.csv --out validation"),
    "export": ("armid export identified --to urdf", "armid export identified --to c --what observer --out code"),
    "report": ("armid report identified", "armid report identified --out pages"),
    "compare": ("armid compare monday tuesday", "armid compare monday tuesday friday --out pages"),
    "demo": ("armid demo", "armid demo panda --fault torque-sign --out demo-fault"),
    "study": ("armid study", "armid study lwr4plus --motion-seconds 25 --payload-kg 2 --out study"),
    "benchmark": (
        "armid benchmark tx40-birdy --methods ols,wls,iv",
        "armid benchmark arm.urdf --runs 50 --motion-seconds 10 --out benchmark",
    ),
    "plan": (
        "armid plan identified path.csv",
        "armid plan identified path.csv --confidence 0.99 --for ur --out motion",
    ),
    "program": (
        "armid program ur10e motion/trajectory.json --for ur",
        "armid program arm.urdf motion/trajectory.json --for ros2 --out player",
    ),
    "payload": ("armid payload identified carrying.csv", "armid payload identified carrying.csv --static"),
    "recover": ("armid recover lwr4plus controller.npz", "armid recover arm.urdf --plan --out poses"),
    "sweep": (
        "armid sweep mabi-max100 sweep1.csv sweep2.csv",
        "armid sweep arm.urdf --plan --minutes 20 --out motions",
    ),
    "sequential": (
        "armid sequential cmu-dd-arm2 link2.csv link1.csv",
        "armid sequential arm.urdf --plan --lock joint1 --out motions",
    ),
    "elastic": ("armid elastic arm.urdf log.csv", "armid elastic arm.urdf log.csv --joint joint2 --one-sensor"),
    "online": (
        "armid online identified --rate-hz 1000 < stream.jsonl",
        "armid online identified udp://127.0.0.1:4000 --rate-hz 1000 --follow --forget-s 60",
    ),
    "observe": (
        "armid observe identified log.csv --free free.csv",
        "armid observe identified log.csv --free free.csv --false-alarms-per-hour 0.1",
    ),
    "show": ("armid show panda", "armid show arm.urdf motion/trajectory.json --cell cell.yaml"),
}
"""Verb -> two lines to copy."""

EARLIER: dict[str, dict[str, str]] = {
    "design": {
        "--seconds": "--search-seconds",
        "--payload-mass": "--payload-kg",
        "--self-collision": "--collisions",
        "--no-self-collision": "--no-collisions",
    },
    "poses": {"--self-collision": "--collisions", "--no-self-collision": "--no-collisions"},
    "simulate": {"--payload-mass": "--payload-kg", "--mistake": "--fault"},
    "sequential": {"--locked": "--lock"},
    "study": {"--seconds": "--motion-seconds"},
    "benchmark": {"--seconds": "--motion-seconds"},
    "show": {"--seconds": "--close-after-seconds"},
}
"""Verb -> flag of earlier versions -> flag that means the same; one thing has one flag in every verb."""


def present_spelling(words: list[str]) -> list[str]:
    """A command line with the flags of today, whatever verb and version it was written for.

    Args:
        words: after `armid`.
    """
    verb = next((word for word in words if not word.startswith("-")), "")
    renamed = EARLIER.get(verb, {})
    out = []
    for word in words:
        flag, equals, value = word.partition("=")
        out.append(renamed.get(flag, flag) + equals + value)
    return out


def arrange(verb: str, command: Any) -> None:
    """Gives the options of a verb their groups and the help its examples."""
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    if len(options) > _FEW:
        for parameter in options:
            parameter.rich_help_panel = _group_of(parameter.opts)
    if verb in EXAMPLES:
        command.epilog = "\n\n".join(("Examples:", *(f"  {line}" for line in EXAMPLES[verb])))


def _group_of(flags: Iterable[str]) -> str | None:
    """Title of the group one of the flags belongs to; None for those of no group."""
    return next((title for title, members in GROUPS.items() if any(flag in members for flag in flags)), None)

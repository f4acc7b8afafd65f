"""`armid payload`: what the arm carries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import JsonOption
from armid.cli.output import EXIT_UNTRUSTED, console, emit, save_json, show_notes, verb
from armid.errors import InputError

if TYPE_CHECKING:
    from armid.arrays import FloatArray
    from armid.estimation.run import Run
    from armid.identification.result import Result
    from armid.logs.log import Channel, Log
    from armid.payload.payload import Arm, Payload


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("payload")(payload)


@verb
def payload(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="Folder of `armid identify`, without the load.")],
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help="Recordings with the load.")],
    static: Annotated[
        bool, typer.Option("--static", help="Use the poses at rest only: mass and centre of mass.")
    ] = False,
    online: Annotated[bool, typer.Option("--online", help="Sample by sample, as on a live stream.")] = False,
    frame: Annotated[str | None, typer.Option(help="Frame the load is given in; the tip by default.")] = None,
    gripper: Annotated[
        str | None,
        typer.Option(metavar="M,X,Y,Z[,IXX,IXY,IXZ,IYY,IYZ,IZZ]", help="Known body to subtract [kg, m, kg m^2]."),
    ] = None,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Let the drives' offsets differ from the result's.")
    ] = False,
    data_root: Annotated[
        Path | None, typer.Option("--data-root", metavar="DIR", help="Where mapping files find recordings.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where files are written.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Mass, centre of mass and inertia of what an identified arm carries.

    For example `armid payload identified loaded.csv`.
    """
    from armid.identification.result import load_result
    from armid.logs.read import ReadOptions, read_log
    from armid.payload.payload import Arm

    if static and online:
        raise InputError("--static", "given with --online", "one of them")
    known = load_result(result)
    if known.effects.shapes and (static or online or known.effects.load):
        words = ", ".join(known.effects.shapes)
        raise InputError(result, f"friction with {words}", "for this, identify the arm with viscous,coulomb,offset")
    # The joint that feels the load best sets the scale of all.
    scale = min((abs(deviation / gain) for gain, deviation in known.gains.values()), default=0.0)
    arm = Arm(known.robot, known.estimate, scale)
    read = [read_log(path, known.robot, options=ReadOptions(data_root=data_root)) for path in logs]
    if static:
        found = at_rest(arm, known, read, frame)
    elif online:
        found = streamed(arm, known, read, frame)
    else:
        found = moving(arm, known, read, frame, offsets=offsets)
    if gripper is not None:
        found = found.without(body_of(gripper))
    summary = as_dict(found)
    summary["files"] = save_json(summary, out, "payload.json")
    show(found)
    emit(summary, as_json=as_json)
    if any(note.severity.value == "error" for note in found.notes):
        raise typer.Exit(EXIT_UNTRUSTED)


def loaded_runs(known: Result, logs: list[Log]) -> list[Run]:
    """The recordings as runs with the load among the parameters, conditioned as the result's were."""
    from armid.estimation.recording import runs_of
    from armid.logs.conditioning import Conditioning, condition
    from armid.parameters.effects import PayloadRuns

    cutoff, order = known.conditioning.cutoff_hz, known.conditioning.filter_order
    settings = Conditioning(cutoff=float(cutoff), order=int(order or 4)) if cutoff else Conditioning()
    effects = replace(known.effects, payload=PayloadRuns.LOADED)
    runs: list[Run] = []
    for log in logs:
        samples = condition(log, known.robot, settings)
        gain = gains_of(known, log, str(samples.channel(effects.torques).value))
        runs += [run.with_measured(run.y * gain) for run in runs_of(samples, known.robot, effects, shapes=known.shapes)]
    return runs


def gains_of(known: Result, log: Log, channel: str) -> FloatArray:
    """Torque per unit of the channel, shape [n]: the identified drive gains for currents, one for torques."""
    import numpy as np

    if channel != "torque.current":
        return np.ones(known.robot.n_joints)
    if not known.gains:
        raise InputError(
            log.name,
            "motor currents, but the result has no drive gains",
            "identify with runs with and without a known payload",
        )
    return np.array([known.gains[name][0] for name in known.robot.joint_names])


def single_torque(known: Result, log: Log) -> Channel:
    """The torque of the side the arm was identified from.

    Raises:
        InputError: none, or a result of both sides.
    """
    from armid.logs.log import MEASURED_TORQUES, Channel
    from armid.logs.samples import MOTOR_SIDE
    from armid.parameters.effects import TorqueSide

    side = known.effects.torques
    if side not in (TorqueSide.LINK, TorqueSide.MOTOR):
        raise InputError("result", f"identified from {side.value} torques", "--static and --online take one side's")
    order = MEASURED_TORQUES if side is TorqueSide.LINK else (*MOTOR_SIDE, Channel.LINK_TORQUE)
    found = [channel for channel in order if channel in log]
    if not found:
        names = ", ".join(c.value for c in log.channels)
        raise InputError(log.name, f"no torque among {names}", "record joint torque, motor torque or current")
    return found[0]


def moving(arm: Arm, known: Result, logs: list[Log], frame: str | None, *, offsets: bool) -> Payload:
    from armid.payload.payload import PayloadSearch

    return PayloadSearch(offsets=offsets).fit(arm, loaded_runs(known, logs), frame=frame)


def at_rest(arm: Arm, known: Result, logs: list[Log], frame: str | None) -> Payload:
    import numpy as np

    from armid.logs.log import matched
    from armid.payload.static import Rest, poses_at_rest, static_payload

    found = []
    for log in logs:
        ordered = matched(log, known.robot)
        channel = single_torque(known, ordered)
        gain = gains_of(known, log, channel.value)
        rest = poses_at_rest(ordered, channel)
        found.append(Rest(rest.q, rest.torque * gain))
    together = Rest(np.vstack([r.q for r in found]), np.vstack([r.torque for r in found]))
    return static_payload(arm, known.effects, together, frame=frame)


def streamed(arm: Arm, known: Result, logs: list[Log], frame: str | None) -> Payload:
    """The recursive estimator over the samples one by one, derivatives from past samples only."""
    import numpy as np

    from armid.logs.log import Channel, matched
    from armid.payload.online import OnlinePayload
    from armid.signals.causal import CausalDifferentiator, LocalPolynomial

    log = matched(logs[0], known.robot)
    rate = 1.0 / float(np.median(np.diff(log.time)))
    polynomial = LocalPolynomial(rate, half_window=max(3, round(0.05 * rate)))
    n = known.robot.n_joints
    estimator = OnlinePayload(arm, known.effects, rate=rate, frame=frame)
    for one in logs:
        ordered = matched(one, known.robot)
        channel = single_torque(known, ordered)
        torque = ordered[channel] * gains_of(known, one, channel.value)
        differentiator = CausalDifferentiator(polynomial, n, n)
        for q, tau in zip(ordered[Channel.POSITION], torque, strict=True):
            state = differentiator.push(q, tau)
            if state is not None:
                estimator.update(*state, differentiator.one_way)
    return estimator.payload()


def body_of(text: str) -> FloatArray:
    """Ten parameters from mass, centre and optionally the inertia about the centre."""
    import numpy as np

    from armid.parameters.inertial import from_centre_of_mass, tensor

    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in (4, 10):
        raise InputError("--gripper", repr(text), "mass and centre (4 numbers), or with six inertias (10)")
    inertia = tensor(values[4:]) if len(values) == 10 else np.zeros((3, 3))
    return from_centre_of_mass(values[0], values[1:4], inertia)


def as_dict(found: Payload) -> dict[str, Any]:
    from armid.payload.formats import franka_set_load, kuka_load_data, ur_set_target_payload

    return {
        "mass": found.mass,
        "centre_of_mass": found.centre,
        "inertia": found.inertia,
        "standard_deviations": found.standard_deviations,
        "frame": found.frame,
        "inertia_separated": found.separated,
        "method": found.method,
        "kuka": kuka_load_data(found),
        "ur": ur_set_target_payload(found),
        "franka": franka_set_load(found),
        "notes": [note.as_dict() for note in found.notes],
    }


def show(found: Payload) -> None:
    """For people."""
    from armid.payload.formats import franka_set_load, kuka_load_data, ur_set_target_payload

    screen = console()
    spread = float(found.covariance[0, 0]) ** 0.5
    centre = ", ".join(f"{1e3 * x:.1f}" for x in found.centre)
    screen.print(f"mass {found.mass:.4f} kg +- {spread:.4f}, centre ({centre}) mm in {found.frame}")
    for row in found.inertia:
        screen.print("  inertia  " + "  ".join(f"{x:+.5f}" for x in row) + "  kg m^2")
    for text in (kuka_load_data(found), ur_set_target_payload(found), franka_set_load(found)):
        screen.print(f"  {text}", highlight=False, markup=False)
    show_notes(found.notes)

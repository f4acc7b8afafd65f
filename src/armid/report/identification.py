"""The report of an identification: verdict first, then everything needed to believe it or not."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from armid.identification.chosen import Parameters, standard_values
from armid.identification.combine import joint_errors
from armid.identification.faults import Answer, faults_table
from armid.identification.origins import CommandRecord, LogRecord
from armid.identification.records import CrossValidated
from armid.identification.result import Result
from armid.identification.result_tables import judged_errors, judged_share
from armid.identification.validate import Validation
from armid.outcome import Check
from armid.page import Block, Cell, Figure, Paragraph, Report, Section, Table
from armid.report import plots
from armid.report.bodies import bodies_section, consistency_section
from armid.report.files import files_section
from armid.report.first_screen import first_screen
from armid.report.friction import friction_section
from armid.report.health import health_figures
from armid.report.notes import note_tables
from armid.report.parameters import correlation_section, parameter_section
from armid.report.residuals import residual_section
from armid.report.torque import torque_section

_WEAK = 0.15
"""Relative standard deviation above which a bar is drawn in the other colour."""


def identification_report(result: Result) -> Report:
    """Sections of a result; load it with its traces."""
    held_out = 100 * result.relative_error.get("held_out", float("nan"))
    return Report(
        title=f"{result.described.name}: identified model",
        subtitle=f"{len(result.estimate)} base parameters, condition number {result.condition_number:.4g}, "
        f"held-out torque error {held_out:.2f} %",
        verdict=result.verdict,
        reasons=tuple(dict.fromkeys(result.reasons)),
        first=(first_screen(result),),
        sections=(
            torque_section(result),
            _faults_section(result),
            _health_section(result),
            _verdict_section(result),
            bodies_section(result),
            friction_section(result),
            parameter_section(result),
            _excitation_section(result),
            correlation_section(result),
            consistency_section(result),
            residual_section(result),
            _sensitivity_section(result),
            files_section(result),
            _measured_section(result),
            reproduce_section(result),
        ),
    )


def validation_report(answer: Validation) -> Report:
    """How a stored result does on other motion: errors per joint and every condition."""
    joints = tuple(
        (
            j.name,
            j.train.rmse,
            j.held_out.rmse,
            j.held_out.rmse_raw,
            plots.percent(j.held_out.relative),
            raw.held_out.rmse,
        )
        for j, raw in zip(answer.joints, answer.joints_raw, strict=True)
    )
    header = ("joint", "train", "held out", "held out, raw", "relative", "unconstrained")
    bars = Figure(
        "held-out",
        (
            {
                "type": "bar",
                "x": [j.name for j in answer.joints],
                "y": plots.short([j.held_out.rmse for j in answer.joints]),
            },
        ),
        plots.axes("", "held-out error [N m or N]", showlegend=False),
        height=300,
    )
    return Report(
        title=f"{answer.name}: tested on other motion",
        subtitle=f"held-out torque error {100 * answer.relative_error:.2f} %",
        verdict=answer.verdict,
        reasons=answer.reasons,
        sections=(
            Section("torque", "Torque on other motion", (Table(header, joints), bars, _check_table(answer.checks))),
        ),
    )


def _check_table(checks: Sequence[Check]) -> Table:
    """Every condition with its outcome."""
    return Table(
        ("condition", "about", "outcome", "in words"),
        tuple((c.code, c.subject, outcome(c), c.message) for c in checks),
        tuple("" if c.passed else ("bad" if c.decisive else "faint") for c in checks),
        caption="Every condition of the gate. A result is trusted when all decisive ones hold.",
    )


def _verdict_section(result: Result) -> Section:
    judged = judged_errors(result)
    joints = Table(
        ("joint", "train", "held out", "held out, raw", "relative", "unconstrained", "description"),
        tuple(
            (
                joint.name,
                joint.train.rmse,
                joint.held_out.rmse,
                joint.held_out.rmse_raw,
                plots.percent(judged_share(judged.get(joint.name))),
                raw.held_out.rmse,
                nominal.held_out.rmse,
            )
            for joint, nominal, raw in zip(result.joints, result.joints_nominal, result.joints_raw, strict=True)
        ),
        caption="Root mean square torque error of the identified model [N m, N for prismatic joints], low-passed at "
        f"{result.conditioning.torque_cutoff_hz or float('nan'):.3g} Hz; 'raw' is against the unfiltered torque, "
        "'relative' is the error in motion over the torque in motion, which is judged. The errors of the "
        "unconstrained estimate and of the description are held out too.",
    )
    return Section("verdict", "Errors and every condition", (joints, _check_table(result.checks)))


def _faults_section(result: Result) -> Section:
    """Every fault that was looked for: found, undecidable with what would decide it, or excluded beyond a bound."""
    if not result.suspects:
        return Section("faults", "What could be wrong", (Paragraph("Nothing was looked for in these recordings."),))
    found = [fault for fault in result.faults if fault.answer is Answer.FOUND]
    said = tuple(Paragraph(fault.sentence, "bad" if fault.large and not fault.corrected else "") for fault in found)
    none = (Paragraph("No fault was found among those that these recordings can decide."),)
    excluded = [fault for fault in result.faults if fault.answer is Answer.EXCLUDED]
    rest = [fault for fault in result.faults if fault.answer is not Answer.EXCLUDED]
    open_table = (
        (replace(faults_table(rest), caption="Found, and undecidable with what would decide it."),) if rest else ()
    )
    bounds = replace(faults_table(excluded), caption="Excluded beyond a bound.", folded=True)
    return Section("faults", "What could be wrong", (*(said or none), *open_table, *((bounds,) if excluded else ())))


def outcome(check: Check) -> str:
    if check.passed:
        return "✓ holds"
    return "✗ FAILS" if check.decisive else "noted"


def _measured_section(result: Result) -> Section:
    p = result.provenance
    inputs: list[tuple[Cell, ...]] = [("robot", p.robot.path, "", "", _fingerprint(p.robot.sha256))]
    for role, log in p.logs():
        span = f"{log.start_s:.2f} to {log.end_s:.2f} s"
        inputs += [(role, path, span, log.samples, _fingerprint(digest)) for path, digest in log.files]
    stated = {**result.conditioning.as_dict(), **p.settings}
    choices: list[tuple[Cell, ...]] = [(name.replace("_", " "), shown(value)) for name, value in stated.items()]
    choices += [("effects in the model", ", ".join(_effect_words(result)))]
    choices += [(f"version of {name}", str(value)) for name, value in p.versions.items()]
    choices += [("time", f"{result.seconds:.2f} s, peak memory {result.peak_memory_mb:.0f} MB")]
    if result.workers > 1:
        choices += [("workers", f"{result.workers}; pieces done again because one was lost: {result.retries}")]
    return Section(
        "measured",
        "What was measured",
        (
            Table(("", "file", "time", "samples", "sha256, first 16"), tuple(inputs)),
            Table(
                ("choice", "value"),
                tuple(choices),
                caption="Settings, with the choices made on the training motion.",
                folded=True,
            ),
        ),
    )


def _fingerprint(digest: str) -> str:
    return digest[:16]


def shown(value: Any) -> str:
    """A setting in a table."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(shown(item) for item in value)
    return "none" if value is None else str(value)


def _effect_words(result: Result) -> list[str]:
    e = result.effects
    words = [
        name.replace("_", " ") for name in (*e.friction, *e.shapes, *(["rotor_inertia"] if e.rotor_inertia else []))
    ]
    return ["links", *words, f"torque on the {e.torques.value} side", f"payload: {e.payload.value}"]


def _health_section(result: Result) -> Section:
    """Findings of the logs, and pictures of where the motion went, how fast, and how long it stood still."""
    notes = [note for note in result.notes if note.code != "poorly-identified"]
    sound: tuple[Block, ...] = (Paragraph("The checks of the logs found nothing to remark.", "good"),)
    return Section("health", "Data health", (*(note_tables(notes) or sound), *health_figures(result)))


def _excitation_section(result: Result) -> Section:
    e = result.estimate
    rsd = e.relative_standard_deviations
    order = np.argsort(rsd)
    figure = Figure(
        "excitation",
        (
            {
                "type": "bar",
                "x": [e.names[k] for k in order],
                "y": plots.short(100 * np.minimum(rsd[order], 10.0)),
                "marker": {"color": [plots.BLUE if rsd[k] <= _WEAK else plots.ORANGE for k in order]},
            },
        ),
        {
            "xaxis": {"tickangle": 90, "tickfont": {"size": 10}},
            "yaxis": {"type": "log", "dtick": 1, "title": {"text": "relative standard deviation [%]"}},
            "showlegend": False,
        },
        f"Sorted; orange is above {100 * _WEAK:.0f} %. A parameter can be uncertain simply because it is nearly zero: see its "
        "interval above.",
        height=380,
    )
    text = (
        f"Condition number {result.condition_number:.4g} in SI units, {result.condition_number_scaled:.4g} with columns scaled "
        f"to unit norm. {e.base.decision.reason}."
    )
    weak = e.poorly_identified["interval-holds-zero"]
    lines: list[Block] = [Paragraph(text), figure]
    if weak:
        lines.append(Paragraph("Not distinguishable from zero with 95 % confidence: " + ", ".join(weak) + ".", "faint"))
    return Section("excitation", "Excitation, and what stays weak", tuple(lines))


def _sensitivity_section(result: Result) -> Section:
    s = result.sensitivity
    rows: list[tuple[Cell, ...]] = [
        (f"cut-off {item.cutoff_hz:.3g} Hz", item.largest_shift, item.parameter or "not possible", None)
        for item in s.cutoff
    ]
    folds = s.cross_validation
    more = folds.folds if folds is not None and folds.motions > len(s.leave_one_out) else ()
    for what, items in (("without", s.leave_one_out), ("without motion", more)):
        for item in items:
            worst = plots.percent(max(item.relative_error.values())) if item.relative_error else None
            rows.append((f"{what} {item.name}", item.largest_shift, item.parameter, worst))
    if not rows:
        return Section("sensitivity", "Sensitivity", (Paragraph("Not examined in this run.", "faint"),))
    table = Table(
        ("change", "largest shift [standard deviations]", "of", "largest error on what was left out"),
        tuple(rows),
        caption="How far the base estimates move when a choice is made differently. A few standard deviations are normal.",
    )
    return Section("sensitivity", "Sensitivity", (table, *_fold_paragraphs(folds), *_essential_blocks(result)))


def _essential_blocks(result: Result) -> tuple[Block, ...]:
    """Which base parameters are essential, and what leaving out each of the others costs; nothing when not asked for."""
    found = result.sensitivity.essential
    if found is None:
        return ()
    rows: list[tuple[Cell, ...]] = [
        (step.name, step.statistic, step.p_value, step.bic_change, plots.percent(step.held_out_error - 1.0))
        for step in found.removals
    ]
    text = (
        f"{len(found.kept)} of {len(result.estimate)} base parameters are essential by {found.rule}: {found.stopped}."
    )
    header = ("removed, in this order", "F", "p value", "change of BIC", "held-out error grows by")
    caption = "Chosen on the training motion alone; held-out error of all removals so far only prices them."
    removed = Table(header, tuple(rows), caption=caption, folded=len(rows) > 12)
    return (Paragraph(text), removed, *_reduced_errors(result))


def _reduced_errors(result: Result) -> tuple[Block, ...]:
    """Held-out errors of the reduced model beside those of all base parameters; nothing without held-out motion."""
    if result.held_out_information is None:
        return ()
    errors = [
        joint_errors(result.held_out_information, None, standard_values(result, which))
        for which in (Parameters.ESSENTIAL, Parameters.BASE)
    ]
    rows = tuple(
        (
            few.name,
            few.train.rmse,
            plots.percent(few.train.relative),
            full.train.rmse,
            plots.percent(full.train.relative),
        )
        for few, full in zip(*errors, strict=True)
    )
    header = ("joint", "reduced [N m]", "relative", "all base parameters [N m]", "relative")
    caption = (
        "Held-out error of the reduced model. `armid validate --parameters essential` tests it on other recordings."
    )
    return (Table(header, rows, caption=caption),)


def _fold_paragraphs(folds: CrossValidated | None) -> tuple[Paragraph, ...]:
    """Cross-validation over motions in a sentence; nothing when the logs held one motion."""
    if folds is None:
        return ()
    errors = ", ".join(f"{name} {100 * error:.1f} %" for name, error in folds.relative_error.items())
    text = (
        f"{folds.motions} motions in {folds.k} folds, each predicted by the others (unconstrained estimate): {errors}."
    )
    return (Paragraph(text),)


def reproduce_section(result: Result) -> Section:
    """The command as it was typed; rebuilt from the settings for a result that a program made."""
    typed = result.provenance.typed
    if typed.line:
        lead = Paragraph(
            f"With the same files (hashes here and above) and armid {_armid_version(result)}, this repeats it, as it was typed:"
        )
        text = Paragraph(f"cd {shlex.quote(typed.folder)}\n{typed.line}", "code")
        return Section("reproduce", "How to reproduce", (lead, text, *_named_files(typed)))
    lead = Paragraph(
        "A program made this result, not a command. With the same files (hashes above) and the same versions, this command, "
        "rebuilt from the settings, comes nearest:"
    )
    after = Paragraph(
        "A prior, bounds, gravity or another method than the default must be given again; logs that a program prepared before "
        "(cut, averaged over periods) need the same preparation first.",
        "faint",
    )
    return Section("reproduce", "How to reproduce", (lead, Paragraph(command(result), "code"), after))


def _armid_version(result: Result) -> str:
    return result.provenance.versions.get("armid", "")


def _named_files(typed: CommandRecord) -> tuple[Table, ...]:
    """Files the command names beside robot and logs: bounds, a prior, a correction, a config file."""
    rows = tuple((path, _fingerprint(digest)) for path, digest in typed.files)
    return (Table(("other file of the command", "sha256, first 16"), rows),) if rows else ()


def command(result: Result) -> str:
    """A command line with the settings of an identification."""
    p, e, c = result.provenance, result.effects, result.conditioning
    train, held_out = (_log_words(logs) for logs in (p.train, p.held_out))
    words = ["armid", "identify", (p.robot.path or "ROBOT").removeprefix("catalogue:"), *train]
    if held_out != train:
        words += [word for log in held_out for word in ("--validate", log)]
    words += ["--friction", ",".join((*e.friction, *e.shapes)) or "none"]
    words += ["--rotor-inertia"] if e.rotor_inertia else []
    words += ["--payload", e.payload.value, "--torques", e.torques.value]
    for flag, value in (("--cutoff-hz", c.cutoff_hz), ("--torque-cutoff-hz", c.torque_cutoff_hz)):
        words += [flag, f"{value:.6g}"] if value else []
    words += ["--torque-delay-ms", f"{1e3 * c.torque_delay_s:.6g}"] if c.torque_delay_s else []
    words += ["--velocity", c.velocity]
    settings = p.settings
    words += ["--prior-weight", f"{settings['regulariser_weight']:g}"] if "regulariser_weight" in settings else []
    words += ["--seed", str(p.seed or 0)]
    return shlex.join(words)


def _log_words(logs: Sequence[LogRecord]) -> list[str]:
    """What to give on the command line for each log: its mapping file, or its own path."""
    words: list[str] = []
    for log in logs:
        mapping = log.reader.removeprefix("mapping ")
        words += [mapping] if mapping != log.reader else [path for path, _ in log.files]
    return list(dict.fromkeys(words))

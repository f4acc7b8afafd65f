"""A result on disk: `result.json` for people and programs, `result.npz` for numbers, `torque.npz` for figures.

They appear in the folder together: the result is either complete or not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.consistency.certificates import Certificates
from armid.consistency.consistent import ConsistentEstimate
from armid.consistency.prior import Prior
from armid.documents import digest, plain, read_arrays, read_json, write_arrays, write_json, write_text
from armid.errors import InputError
from armid.estimation.covariance import textbook_deviations
from armid.estimation.estimate import Estimate
from armid.estimation.fit_record import FitRecord
from armid.folders import answer_folder
from armid.identifiability.base import BaseParameters
from armid.identifiability.rank import RankDecision
from armid.identification.evidence import Evidence
from armid.identification.faults import Fault
from armid.identification.gate import checks_of
from armid.identification.origins import ResultProvenance
from armid.identification.records import FrictionShapes, Gain, ResolvedConditioning, Sensitivity
from armid.identification.result import Result
from armid.identification.sensor_file import sensor_text
from armid.identification.sensors import Imperfections
from armid.identification.stored_figures import figure_checks
from armid.identification.torque_error import JointErrors, number_or_nan
from armid.information.information import Information
from armid.information.status import Status
from armid.information.storage import classes_of, factors, restored_information
from armid.notes import Note, Severity
from armid.outcome import Check
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.robot.record import record, restored

_SCHEMA = "armid.result/2"
_FAMILY = "armid.result/"
_JSON_NAME = "result.json"
_ARRAYS_NAME = "result.npz"
_TRACES_NAME = "torque.npz"
RESULT_FILES = (_JSON_NAME, _ARRAYS_NAME, _TRACES_NAME)
"""What a result folder consists of."""
_SENSORS_NAME = "sensors.yaml"
_COURSE = "course"
"""Array of the course of the training motion; results from before lack it."""
_SEAL = "seal"
_TRACES_SEAL = "traces"
"""Digest of the arrays of figures, which are under the seal by it and need not be read with it; results from before lack it."""
_RUN_ONLY = ("seconds", "peak_memory_mb", "workers", "retries", "folder")
"""What differs between two runs of the same command: how long, how much memory, by whom, and where. The seal does not cover
it, so that the same question gives the same seal."""
_WHAT = "a result folder, the --out of armid identify"

Arrays = dict[str, npt.NDArray[Any]]


def write_result(result: Result, target: Path) -> tuple[Path, ...]:
    """Writes the folder, all or nothing; an earlier result there is replaced. Returns the files."""
    text, data = summary(result), arrays(result)
    sensors = "" if result.imperfections is None else sensor_text(result.imperfections)
    with answer_folder(target, "Result") as place:
        write_json(place / _JSON_NAME, {**text, _SEAL: seal(text, data)})
        write_arrays(place / _ARRAYS_NAME, data)
        if result.traces:
            write_arrays(place / _TRACES_NAME, result.traces)
        if sensors:
            write_text(place / _SENSORS_NAME, sensors)
    names = [
        _JSON_NAME,
        _ARRAYS_NAME,
        *([_TRACES_NAME] if result.traces else []),
        *([_SENSORS_NAME] if sensors else []),
    ]
    return tuple(target / name for name in names)


def summary(result: Result) -> dict[str, Any]:
    """Everything but the large arrays."""
    return {
        "schema": _SCHEMA,
        **result.as_dict(),
        "checks": [check.as_dict() for check in result.checks],
        "evidence": None if result.evidence is None else result.evidence.as_dict(),
        "relative_error": dict(result.relative_error),
        "joints_nominal": [joint.as_dict() for joint in result.joints_nominal],
        "estimate": _estimate_record(result.estimate, result.information),
        "consistent": _consistent_record(result.consistent),
        "certificates": asdict(result.certificates),
        "friction": None if result.friction is None else result.friction.as_dict(),
        "provenance": result.provenance.as_dict(),
        "effects": {
            **asdict(result.effects),
            "torques": result.effects.torques.value,
            "payload": result.effects.payload.value,
        },
        "robot": record(result.described),
        "counts": {
            name: {channel.name: channel.count for channel in information.channels}
            for name, information in (("information", result.information), ("held_out", result.held_out_information))
            if information is not None
        },
        "classes": classes_of(result.information),
        _TRACES_SEAL: digest({}, result.traces),
    }


def seal(text: Mapping[str, Any], data: Mapping[str, npt.ArrayLike]) -> str:
    """SHA-256 over the values of the summary and the bytes of the arrays: neither can be exchanged without the other.

    Args:
        text: the summary, as written or as read; a seal in it does not count, nor do time, memory and place of the run.
        data: the arrays.
    """
    return digest(_sealed(plain({key: value for key, value in text.items() if key != _SEAL})), data)


def _sealed(value: Any) -> Any:
    """The record without what belongs to the run alone, at every depth."""
    if isinstance(value, dict):
        return {key: _sealed(item) for key, item in value.items() if key not in _RUN_ONLY}
    if isinstance(value, list):
        return [_sealed(item) for item in value]
    return value


def _seal_checks(
    text: Mapping[str, Any], data: Mapping[str, npt.ArrayLike], traces: Mapping[str, npt.ArrayLike]
) -> tuple[Check, ...]:
    """One that fails when the files are not those that were written together; figures that nobody read are not looked at."""
    together = not traces or text.get(_TRACES_SEAL, digest({}, traces)) == digest({}, traces)
    if together and text.get(_SEAL) == seal(text, data):
        return ()
    names = f"{_JSON_NAME} or {_ARRAYS_NAME}" if together else _TRACES_NAME
    message = (
        f"{names} was changed, or the files do not belong together: what was judged is not what is here; identify again"
    )
    return (Check(code="seal", passed=False, value=1.0, limit=0.0, message=message),)


def _estimate_record(e: Estimate, information: Information) -> dict[str, Any]:
    textbook = textbook_deviations(information, e) / np.maximum(np.abs(e.values), 1e-300)
    columns = zip(
        e.names, e.units, e.values, e.standard_deviations, e.relative_standard_deviations, textbook, strict=True
    )
    return {
        "method": e.method,
        "status": e.status.value,
        "iterations": e.iterations,
        "covariance_kind": e.covariance_kind,
        "sigma": dict(e.sigma),
        "rank_reason": e.base.decision.reason,
        "rank_tolerance": e.base.decision.tolerance,
        "rank_gap": e.base.decision.gap,
        "parameters": [
            {
                "name": name,
                "unit": unit,
                "value": float(v),
                "standard_deviation": float(s),
                "relative_standard_deviation": float(r),
                "relative_standard_deviation_textbook": float(t),
                "terms": e.base.terms(k),
            }
            for k, (name, unit, v, s, r, t) in enumerate(columns)
        ],
        "poorly_identified": {rule: list(names) for rule, names in e.poorly_identified.items()},
        "notes": [note.as_dict() for note in e.notes],
        "provenance": e.provenance.as_dict(),
    }


def _consistent_record(c: ConsistentEstimate) -> dict[str, Any]:
    columns = zip(
        c.names,
        c.units,
        c.values,
        c.prior.values,
        c.standard_deviations,
        c.determined_by,
        c.data_share,
        strict=True,
    )
    return {
        "method": c.method,
        "regulariser": c.regulariser,
        "status": c.status.value,
        "iterations": c.iterations,
        "seconds": c.seconds,
        "chi_square": c.chi_square,
        "chi_square_free": c.chi_square_free,
        "prior_origin": dict(c.prior.origin),
        "parameters": [
            {
                "name": name,
                "unit": unit,
                "value": float(v),
                "prior": float(p),
                "standard_deviation": float(s),
                "determined_by": by,
                "data_share": float(share),
            }
            for name, unit, v, p, s, by, share in columns
        ],
        "notes": [note.as_dict() for note in c.notes],
    }


def arrays(result: Result) -> Arrays:
    """What JSON would only round or bloat."""
    base, c = result.estimate.base, result.consistent
    out: Arrays = {
        "values": result.estimate.values,
        "covariance": result.estimate.covariance,
        "independent": base.independent,
        "dependent": base.dependent,
        "K": base.K,
        "singular_values": base.decision.singular_values,
        "standard": c.values,
        "prior": c.prior.values,
        "prior_scale": c.prior.scale,
        "data_share": c.data_share,
        "alone": c.alone,
        "standard_deviations": c.standard_deviations,
        **factors(result.information, "information"),
    }
    if result.course is not None:
        out[_COURSE] = result.course.astype(np.float32)  # a micrometre of a metre, a microradian of a turn
    return out if result.held_out_information is None else out | factors(result.held_out_information, "held_out")


def read_result(folder: Path, *, traces: bool) -> Result:
    """A stored result; see `load_result`."""
    place = folder.parent if folder.name == _JSON_NAME else folder
    path = place / _JSON_NAME
    if not path.is_file():
        raise InputError(place, "not a result folder", "give the --out of armid identify")
    text = read_json(path, _WHAT)
    found = text.get("schema")
    if found != _SCHEMA:
        known = isinstance(found, str) and found.startswith(_FAMILY)
        raise InputError(path, f"schema {found!r}", f"this version reads {_SCHEMA}: identify again" if known else _WHAT)
    try:
        data = read_arrays(place / _ARRAYS_NAME, _WHAT)
        stored = place / _TRACES_NAME
        extra = read_arrays(stored, _WHAT) if traces and stored.exists() else {}
        return _restored_result(text, data, extra, str(place))
    except (InputError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(place, f"damaged result ({type(error).__name__}: {error})", "identify again") from None


def _restored_result(text: dict[str, Any], data: Arrays, traces: dict[str, FloatArray], where: str) -> Result:
    """The objects behind a stored summary."""
    consistent = _restored_consistent(text["consistent"], data)
    estimate = _restored_estimate(text["estimate"], data, consistent.names)
    k = text["certificates"]
    k["p_value"] = number_or_nan(k["p_value"])
    k["distance"] = inf if k["distance"] is None else k["distance"]
    effects = {
        **text["effects"],
        "torques": TorqueSide(text["effects"]["torques"]),
        "payload": PayloadRuns(text["effects"]["payload"]),
    }
    joints, raw, nominal = (
        tuple(JointErrors.from_dict(j) for j in text[key]) for key in ("joints", "joints_raw", "joints_nominal")
    )
    counts = text["counts"]
    information, held_out = (
        restored_information(
            data,
            name,
            consistent.names,
            tuple(counts[name]),
            tuple(counts[name].values()),
            measured=text.get("classes", {}),
        )
        if name in counts
        else None
        for name in ("information", "held_out")
    )
    if information is None:
        raise ValueError("no Information")
    stored = Result(
        described=restored(text["robot"], where),
        effects=Effects(**effects),
        estimate=estimate,
        consistent=consistent,
        certificates=Certificates(**k),
        joints=joints,
        joints_raw=raw,
        joints_nominal=nominal,
        relative_error={part: number_or_nan(value) for part, value in text["relative_error"].items()},
        condition_number=_unbounded(text["condition_number"]),
        condition_number_scaled=_unbounded(text["condition_number_scaled"]),
        information=information,
        held_out_information=held_out,
        checks=tuple(
            Check(**{**check, "value": number_or_nan(check["value"]), "limit": number_or_nan(check["limit"])})
            for check in text["checks"]
        ),
        evidence=None if text.get("evidence") is None else Evidence.from_dict(text["evidence"]),
        gains={name: Gain(**gain) for name, gain in text["gains"].items()},
        conditioning=ResolvedConditioning.from_dict(text["conditioning"]),
        sensitivity=Sensitivity.from_dict(text["sensitivity"]),
        provenance=ResultProvenance.from_dict(text["provenance"]),
        notes=_notes_of(text["notes"]),
        friction=None if text["friction"] is None else FrictionShapes.from_dict(text["friction"]),
        suspects=tuple(Fault.from_dict(fault) for fault in text.get("faults", ())),
        imperfections=_restored_imperfections(text.get("imperfections")),
        course=np.asarray(data[_COURSE], dtype=np.float64) if _COURSE in data else None,
        traces=traces,
        seconds=text["seconds"],
        peak_memory_mb=text["peak_memory_mb"],
        workers=text.get("workers", 1),
        retries=text.get("retries", 0),
    )
    sealed = _seal_checks(text, data, traces)
    return replace(stored, checks=(*sealed, *figure_checks(stored), *checks_of(stored)))


def _restored_imperfections(values: dict[str, Any] | None) -> Imperfections | None:
    return None if values is None else Imperfections.from_dict(values)


def _restored_estimate(e: dict[str, Any], data: Arrays, names: tuple[str, ...]) -> Estimate:
    decision = RankDecision(
        rank=len(data["independent"]),
        tolerance=e["rank_tolerance"],
        singular_values=data["singular_values"],
        gap=_unbounded(e["rank_gap"]),
        reason=e["rank_reason"],
    )
    base = BaseParameters(
        parameters=names, independent=data["independent"], dependent=data["dependent"], K=data["K"], decision=decision
    )
    return Estimate(
        base=base,
        units=tuple(p["unit"] for p in e["parameters"]),
        values=data["values"],
        covariance=data["covariance"],
        covariance_kind=e["covariance_kind"],
        sigma=e["sigma"],
        method=e["method"],
        status=Status(e["status"]),
        iterations=e["iterations"],
        notes=_notes_of(e["notes"]),
        provenance=FitRecord.from_dict(e["provenance"]),
    )


def _restored_consistent(c: dict[str, Any], data: Arrays) -> ConsistentEstimate:
    names = tuple(p["name"] for p in c["parameters"])
    prior = Prior(names=names, values=data["prior"], scale=data["prior_scale"], origin=c["prior_origin"], notes=())
    return ConsistentEstimate(
        names=names,
        units=tuple(p["unit"] for p in c["parameters"]),
        values=data["standard"],
        prior=prior,
        data_share=data["data_share"],
        alone=data.get("alone", np.ones(len(names))),
        standard_deviations=data["standard_deviations"],
        chi_square=c["chi_square"],
        chi_square_free=c["chi_square_free"],
        regulariser=c["regulariser"],
        status=Status(c["status"]),
        iterations=c["iterations"],
        seconds=c["seconds"],
        notes=_notes_of(c["notes"]),
        method=c["method"],
    )


def _unbounded(value: float | None) -> float:
    """A float; infinity for null."""
    return inf if value is None else float(value)


def _notes_of(items: list[dict[str, str]]) -> tuple[Note, ...]:
    return tuple(Note(i["code"], Severity(i["severity"]), i["message"], i["subject"]) for i in items)

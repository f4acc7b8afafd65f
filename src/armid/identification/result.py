"""What an identification leaves behind: one folder with `result.json`, `result.npz` and the held-out torque.

The folder is written beside its final place and renamed at the end: it is either complete or not there.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.certificates import Certificates
from armid.consistency.consistent import ConsistentEstimate
from armid.consistency.prior import Prior
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.estimation.torque_error import JointErrors, number
from armid.identifiability.base import BaseParameters
from armid.identifiability.rank import RankDecision
from armid.information.status import Status
from armid.notes import Note, Severity
from armid.outcome import Check
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import N_INERTIAL
from armid.robot.record import record, restored
from armid.robot.robot import Robot
from armid.rows.friction import Shapes

SCHEMA = "armid.result/1"
JSON_NAME = "result.json"
ARRAYS_NAME = "result.npz"
TRACES_NAME = "torque.npz"
MAX_JSON_BYTES = 50_000_000
PLAIN = (
    "condition_number",
    "condition_number_scaled",
    "conditioning",
    "sensitivity",
    "provenance",
    "seconds",
    "peak_memory_mb",
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """A finished identification.

    Args:
        robot: the arm it is about, as described.
        effects: what the model contains.
        estimate: base parameters without constraints.
        consistent: standard parameters of possible bodies.
        certificates: evidence of physicality.
        joints: errors of the consistent estimate; `joints_raw` of the unconstrained one; `joints_nominal` of the description.
        relative_error: all joints stacked, `train` and `held_out`, of the consistent estimate.
        condition_number: of the stacked base regressor, SI units; `condition_number_scaled` with unit columns.
        checks: every condition of the gate with its outcome.
        gains: drive gains per joint [N m/A] with standard deviations, when currents were identified.
        friction: of shapes beyond the linear one: what was found besides parameters, and whether it pays on held-out motion.
        conditioning: cut-offs, rate and the other resolved choices.
        sensitivity: how parameters and errors move with the cut-off and when a file is left out.
        provenance: inputs with hashes, versions, settings, seed.
        notes: of logs, estimation and consistency.
        traces: held-out torque for the report: arrays by name.
        seconds, peak_memory_mb: of the run.
    """

    robot: Robot
    effects: Effects
    estimate: Estimate
    consistent: ConsistentEstimate
    certificates: Certificates
    joints: tuple[JointErrors, ...]
    joints_raw: tuple[JointErrors, ...]
    joints_nominal: tuple[JointErrors, ...]
    relative_error: Mapping[str, float]
    condition_number: float
    condition_number_scaled: float
    checks: tuple[Check, ...]
    gains: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    conditioning: Mapping[str, Any] = field(default_factory=dict)
    sensitivity: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    traces: Mapping[str, FloatArray] = field(default_factory=dict)
    seconds: float = 0.0
    peak_memory_mb: float = 0.0
    friction: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("relative_error", "gains", "friction", "conditioning", "sensitivity", "provenance", "traces"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not to be trusted; empty when it is."""
        return tuple(check.message for check in self.checks if check.decisive and not check.passed)

    @property
    def verdict(self) -> str:
        return "untrusted" if self.reasons else "trusted"

    @property
    def standard(self) -> FloatArray:
        """Consistent standard parameters, in the order of the torque rows' columns."""
        return self.consistent.values

    @property
    def shapes(self) -> Shapes:
        """What its friction needs besides parameters, to build the same rows for other motion."""
        scales = tuple(float(item["value"]) for item in self.friction.get("scales", {}).values())
        return Shapes(tuple(self.conditioning.get("presliding") or ()), scales, self.friction.get("load"))

    def identified_robot(self) -> Robot:
        """The arm with the consistent bodies and the identified friction and rotor inertias; a payload is not part of it."""
        values = dict(zip(self.consistent.names, self.consistent.values, strict=True))
        inertial = np.array(self.robot.inertial)
        for body in self.consistent.bodies:
            if body.owner.startswith("link"):
                link = int(body.owner[4:]) - 1
                inertial[link * N_INERTIAL : (link + 1) * N_INERTIAL] = body.of(self.consistent.values)
        joints = []
        for i, joint in enumerate(self.robot.joints):
            found = {
                quantity: float(values[f"joint{i + 1}.{quantity}"])
                for quantity in ("rotor_inertia", "viscous", "coulomb", "offset")
                if f"joint{i + 1}.{quantity}" in values
            }
            joints.append(replace(joint, drive=replace(joint.drive, **found)))
        return replace(self.robot.with_inertial(inertial), joints=tuple(joints))


def save_result(result: Result, folder: str | Path) -> tuple[Path, ...]:
    """Writes the folder, all or nothing; an earlier result there is replaced. Returns the files."""
    target = Path(folder)
    with replacing(target) as place:
        (place / JSON_NAME).write_text(
            json.dumps(finite(summary(result)), indent=1, allow_nan=False) + "\n", encoding="utf-8"
        )
        np.savez_compressed(place / ARRAYS_NAME, **arrays(result))
        if result.traces:
            np.savez_compressed(place / TRACES_NAME, **dict[str, Any](result.traces))
    names = [JSON_NAME, ARRAYS_NAME, *([TRACES_NAME] if result.traces else [])]
    return tuple(target / name for name in names)


def check_replaceable(target: Path, *, marker: str = JSON_NAME, what: str = "result") -> None:
    """Refuses a folder that must not be replaced; asked early, before minutes go into what could not be kept.

    Raises:
        InputError: the target exists and is something else.
    """
    if target.exists() and not (target.is_dir() and ((target / marker).exists() or not any(target.iterdir()))):
        raise InputError(target, f"exists and is not a {what} folder", "choose another --out")


@contextmanager
def replacing(target: Path, *, marker: str = JSON_NAME, what: str = "result") -> Iterator[Path]:
    """A fresh folder beside the target that takes its place at the end, or vanishes if anything goes wrong.

    Args:
        target: the folder.
        marker: the file by which an earlier folder of the same kind is known.
        what: such a folder is called.

    Raises:
        InputError: the target exists and is something else.
    """
    check_replaceable(target, marker=marker, what=what)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise InputError(target, f"cannot be written: {error.strerror or error}") from None
    try:
        yield place
        place.chmod(0o755)
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
            target.replace(old)
            place.replace(target)
            shutil.rmtree(old)
        else:
            place.replace(target)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def summary(result: Result) -> dict[str, Any]:
    """Everything but the large arrays."""
    e, c = result.estimate, result.consistent
    return {
        "schema": SCHEMA,
        "verdict": result.verdict,
        "reasons": list(result.reasons),
        "checks": [asdict(check) for check in result.checks],
        "base_parameters": len(e),
        "condition_number": result.condition_number,
        "condition_number_scaled": result.condition_number_scaled,
        "relative_error": dict(result.relative_error),
        "joints": [j.as_dict() for j in result.joints],
        "joints_raw": [j.as_dict() for j in result.joints_raw],
        "joints_nominal": [j.as_dict() for j in result.joints_nominal],
        "estimate": {
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
                    "terms": e.base.terms(k),
                }
                for k, (name, unit, v, s, r) in enumerate(
                    zip(e.names, e.units, e.values, e.standard_deviations, e.relative_standard_deviations, strict=True)
                )
            ],
            "poorly_identified": {rule: list(names) for rule, names in e.poorly_identified.items()},
            "notes": [note.as_dict() for note in e.notes],
            "provenance": dict(e.provenance),
        },
        "consistent": {
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
                    "name": n,
                    "unit": u,
                    "value": float(v),
                    "prior": float(p),
                    "standard_deviation": float(s),
                    "determined_by": by,
                    "data_share": float(share),
                }
                for n, u, v, p, s, by, share in zip(
                    c.names,
                    c.units,
                    c.values,
                    c.prior.values,
                    c.standard_deviations,
                    c.determined_by,
                    c.data_share,
                    strict=True,
                )
            ],
            "notes": [note.as_dict() for note in c.notes],
        },
        "certificates": asdict(result.certificates),
        "gains": {name: list(pair) for name, pair in result.gains.items()},
        "friction": dict(result.friction),
        "conditioning": dict(result.conditioning),
        "sensitivity": dict(result.sensitivity),
        "provenance": dict(result.provenance),
        "notes": [note.as_dict() for note in result.notes],
        "effects": {
            **asdict(result.effects),
            "torques": result.effects.torques.value,
            "payload": result.effects.payload.value,
        },
        "robot": record(result.robot),
        "seconds": result.seconds,
        "peak_memory_mb": result.peak_memory_mb,
    }


def arrays(result: Result) -> dict[str, Any]:
    """What JSON would only round or bloat."""
    base, c = result.estimate.base, result.consistent
    return {
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
        "standard_deviations": c.standard_deviations,
    }


def load_result(folder: str | Path, *, traces: bool = False) -> Result:
    """A stored result.

    Args:
        folder: of the result, or its `result.json`.
        traces: also the held-out torque.

    Raises:
        InputError: not a result, damaged, or of another schema.
    """
    place = Path(folder)
    place = place.parent if place.name == JSON_NAME else place
    text = read_json(place)
    try:
        with np.load(place / ARRAYS_NAME, allow_pickle=False) as stored:
            data = {name: stored[name] for name in stored.files}
        extra = {}
        if traces and (place / TRACES_NAME).exists():
            with np.load(place / TRACES_NAME, allow_pickle=False) as stored:
                extra = {name: stored[name] for name in stored.files}
        return restored_result(text, data, extra, str(place))
    except (OSError, KeyError, TypeError, ValueError, IndexError, EOFError) as error:
        raise InputError(place, f"damaged result ({type(error).__name__}: {error})", "identify again") from None


def read_json(place: Path) -> dict[str, Any]:
    """The summary after checking the schema."""
    path = place / JSON_NAME
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise InputError(path, "larger than any result")
        text = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(place, f"not a result folder ({error})", "give the --out of armid identify") from None
    if not isinstance(text, dict) or text.get("schema") != SCHEMA:
        found = text.get("schema") if isinstance(text, dict) else None
        raise InputError(path, f"schema {found!r}", f"this version reads {SCHEMA}")
    return text


def restored_result(text: dict[str, Any], data: dict[str, Any], traces: dict[str, FloatArray], where: str) -> Result:
    """The objects behind a stored summary."""
    e, c, k = text["estimate"], text["consistent"], text["certificates"]
    names = tuple(p["name"] for p in c["parameters"])
    gap = e["rank_gap"]
    decision = RankDecision(
        rank=len(data["independent"]),
        tolerance=e["rank_tolerance"],
        singular_values=data["singular_values"],
        gap=float("inf") if gap is None else gap,
        reason=e["rank_reason"],
    )
    base = BaseParameters(
        parameters=names, independent=data["independent"], dependent=data["dependent"], K=data["K"], decision=decision
    )
    estimate = Estimate(
        base=base,
        units=tuple(p["unit"] for p in e["parameters"]),
        values=data["values"],
        covariance=data["covariance"],
        covariance_kind=e["covariance_kind"],
        sigma=e["sigma"],
        method=e["method"],
        status=Status(e["status"]),
        iterations=e["iterations"],
        notes=notes_of(e["notes"]),
        provenance=e["provenance"],
    )
    prior = Prior(names=names, values=data["prior"], scale=data["prior_scale"], origin=c["prior_origin"], notes=())
    consistent = ConsistentEstimate(
        names=names,
        units=tuple(p["unit"] for p in c["parameters"]),
        values=data["standard"],
        prior=prior,
        data_share=data["data_share"],
        standard_deviations=data["standard_deviations"],
        chi_square=c["chi_square"],
        chi_square_free=c["chi_square_free"],
        regulariser=c["regulariser"],
        status=Status(c["status"]),
        iterations=c["iterations"],
        seconds=c["seconds"],
        notes=notes_of(c["notes"]),
        method=c.get("method", "lmi"),
    )
    k["p_value"] = number(k.get("p_value"))
    k["distance"] = float("inf") if k["distance"] is None else k["distance"]
    effects = Effects(
        **{
            **text["effects"],
            "torques": TorqueSide(text["effects"]["torques"]),
            "payload": PayloadRuns(text["effects"]["payload"]),
        }
    )
    errors: dict[str, Any] = {
        key: tuple(JointErrors.from_dict(j) for j in text[key]) for key in ("joints", "joints_raw", "joints_nominal")
    }
    return Result(
        robot=restored(text["robot"], where),
        effects=effects,
        estimate=estimate,
        consistent=consistent,
        certificates=Certificates(**k),
        **errors,
        relative_error={part: number(value) for part, value in text["relative_error"].items()},
        checks=tuple(
            Check(**{**check, "value": number(check["value"]), "limit": number(check["limit"])})
            for check in text["checks"]
        ),
        gains={name: (pair[0], pair[1]) for name, pair in text["gains"].items()},
        notes=notes_of(text["notes"]),
        friction=text.get("friction", {}),
        traces=traces,
        **{key: text[key] for key in PLAIN},
    )


def notes_of(items: list[dict[str, str]]) -> tuple[Note, ...]:
    return tuple(Note(i["code"], Severity(i["severity"]), i["message"], i["subject"]) for i in items)


def finite(value: Any) -> Any:
    """The same with numbers JSON cannot hold as null."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return finite(value.tolist())
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value

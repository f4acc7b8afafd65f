"""Answers kept whole: every record in one as it was, and the same object again when it is loaded.

The files that `save` writes are for people and other programs, and each leaves something out. Beside them stand `answer.json`
and `answer.npz`: every record of the answer once, by its class and its fields, numbers to the last digit, arrays as arrays.
Nothing in them is executed: only dataclasses and enumerations of armid are made, from plain values. A digest over both says
whether they are what was written; what an answer may be used for rests on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.documents import digest, read_arrays, read_json, write_arrays, write_json
from armid.errors import ArmidError, InputError
from armid.expressions import expression_of, is_expression, plain_expression
from armid.folders import manifest

if TYPE_CHECKING:
    import numpy.typing as npt

SCHEMA = "armid.answer/1"
JSON_NAME, ARRAYS_NAME = "answer.json", "answer.npz"
_OTHER_LOADERS = {
    "result.json": "armid.identification.result:load_result",
    "calibration.json": "armid.calibration.stored:load_calibration",
}
"""Answers with files of their own that hold all of them; named, not imported: they are floors above."""
_WHAT = "an answer of armid, kept by save()"
_CLASS = re.compile(r"armid(?:\.[a-z][a-z0-9_]*)+:_?[A-Z][A-Za-z0-9]*")
"""`module:Class` of our own; nothing that begins with two underscores can be asked for."""


_CONTAINERS: dict[str, Callable[[Iterable[Any]], Any]] = {"list": list, "set": set, "frozenset": frozenset}


def write_answer(answer: Any, folder: str | Path) -> tuple[Path, Path]:
    """Keeps an answer in a folder, whole."""
    writer = _Writer()
    text = {"schema": SCHEMA, "kind": type(answer).__name__, "answer": writer.value(answer), "records": writer.records}
    place = Path(folder)
    return (
        write_json(place / JSON_NAME, {**text, "digest": digest(text, writer.arrays)}, indent=None),
        write_arrays(place / ARRAYS_NAME, writer.arrays),
    )


def load_answer(folder: str | Path) -> Any:
    """An answer that `save` kept: the same kind of object, with the same fields, verdict and figures.

    Of a result or a calibration it gives what `load_result` or `load_calibration` does; a log is read again by `read_log`.

    Args:
        folder: that `save` was given, or the `--out` of a verb.

    Raises:
        InputError: nothing is kept there, by another version, or it was changed since.
    """
    place = Path(folder)
    path = place / JSON_NAME
    for name, loader in _OTHER_LOADERS.items():
        if (place / name).is_file():
            module, _, function = loader.partition(":")
            return getattr(import_module(module), function)(place)
    if not path.is_file():
        raise _nothing_kept(place)
    text = read_json(path, _WHAT, schema=SCHEMA)
    arrays = read_arrays(place / ARRAYS_NAME, _WHAT)
    said = text.pop("digest", None)
    if said != digest(text, arrays):
        raise InputError(
            place, f"{JSON_NAME} or {ARRAYS_NAME} was changed, or they do not belong together", "ask again"
        )
    try:
        return _Reader(text["records"], arrays).value(text["answer"])
    except (ArmidError, KeyError, TypeError, ValueError, IndexError, AttributeError, ImportError) as error:
        hint = "it was kept by another version of armid: ask again"
        raise InputError(place, f"cannot be restored ({type(error).__name__}: {error})", hint) from None


def _nothing_kept(place: Path) -> InputError:
    """Why there is no answer to load, with what armid wrote there instead."""
    if not place.is_dir():
        return InputError(place, "no such folder", "give the folder that save() was given, or the --out of a verb")
    by = dict.fromkeys(written.by for written in manifest(place).values())
    if not by:
        return InputError(place, "holds nothing that armid wrote", "give the folder that save() was given")
    return InputError(
        place, f"holds files of {', '.join(by)}, which are not kept whole", "use its files, or ask again for the answer"
    )


class _Writer:
    """Values as plain ones; every record and every array once, however often it is referred to."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        self._known: dict[int, dict[str, Any]] = {}

    def value(self, value: Any) -> Any:
        if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
            return value
        if isinstance(value, float):
            return float(value) if isfinite(value) else {"float": repr(float(value))}
        if isinstance(value, complex):
            return {"complex": [self.value(value.real), self.value(value.imag)]}
        if isinstance(value, Enum):
            return {"enum": _class_name(type(value)), "name": value.name}
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return [self.value(item) for item in value]
        if isinstance(value, list | set | frozenset):
            kind = type(value).__name__
            return {kind: [self.value(item) for item in (value if kind == "list" else sorted(value))]}
        if isinstance(value, Mapping):
            return {"map": [[self.value(key), self.value(item)] for key, item in value.items()]}
        if isinstance(value, Path):
            return {"path": str(value)}
        return self._object(value)

    def _object(self, value: Any) -> dict[str, Any]:
        known = self._known.get(id(value))
        if known is not None:
            return known
        if hasattr(value, "dtype"):
            return self._array(value)
        if is_expression(value):
            return {"expression": plain_expression(value)}
        if isinstance(value, type) or not _is_record(type(value)):
            raise TypeError(f"a {type(value).__module__}.{type(value).__qualname__} cannot be kept")
        place = len(self.records)
        self._known[id(value)] = {"record": place}
        self.records.append({})
        kept = {name: self.value(item) for name, item in _fields_of(value).items()}
        self.records[place] = {"class": _class_name(type(value)), **kept}
        return {"record": place}

    def _array(self, value: Any) -> dict[str, Any]:
        import numpy as np  # loaded already by whoever made the array

        if isinstance(value, np.generic):
            return {"number": value.item(), "dtype": value.dtype.str}
        name = f"a{len(self.arrays)}"
        self.arrays[name] = value
        self._known[id(value)] = {"array": name}
        return {"array": name}


class _Reader:
    """The way back."""

    def __init__(self, records: list[dict[str, Any]], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._records, self._arrays = records, arrays
        self._made: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self.value(item) for item in value)
        if not isinstance(value, dict):
            return value
        match value:
            case {"record": int(place)}:
                return self._record(place)
            case {"array": str(name)}:
                array = self._arrays[name]
                array.flags.writeable = False
                return array
            case {"float": str(text)}:
                return float(text)
            case {"complex": [real, imaginary]}:
                return complex(self.value(real), self.value(imaginary))
            case {"enum": str(name), "name": str(member)}:
                return _class_of(name, Enum)[member]
            case {"map": list(pairs)}:
                return {self.value(key): self.value(item) for key, item in pairs}
            case {"list": list(items)} | {"set": list(items)} | {"frozenset": list(items)}:
                return _CONTAINERS[next(iter(value))](self.value(item) for item in items)
            case {"path": str(text)}:
                return Path(text)
            case {"expression": tree}:
                return expression_of(tree)
            case {"number": number, "dtype": str(kind)}:
                import numpy as np

                return np.dtype(kind).type(number)
        raise ValueError(f"unknown value {sorted(value)}")

    def _record(self, place: int) -> Any:
        if place not in self._made:
            record = dict(self._records[place])
            made = _class_of(record.pop("class"))
            own = {name: self.value(item) for name, item in record.items()}
            self._made[place] = made.of_kept(**own) if hasattr(made, "of_kept") else made(**own)
        return self._made[place]


def _is_record(kind: type) -> bool:
    """Whether things of this class are made from fields that it tells."""
    return is_dataclass(kind) or hasattr(kind, "kept_fields")


def _fields_of(record: Any) -> dict[str, Any]:
    """What a record is made from: its fields, or what it says itself when these are no plain values."""
    if hasattr(record, "kept_fields"):
        return dict(record.kept_fields())
    return {field.name: getattr(record, field.name) for field in fields(record) if field.init}


def _class_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class_of(name: str, above: type | None = None) -> Any:
    """A class of ours by its name.

    Raises:
        ValueError: it is not one that records are made of.
    """
    if not _CLASS.fullmatch(name):
        raise ValueError(f"{name!r} is no class of armid")
    module, _, own = name.partition(":")
    found = getattr(import_module(module), own)
    if not isinstance(found, type) or not (_is_record(found) if above is None else issubclass(found, above)):
        raise ValueError(f"{name!r} is no record")
    return found

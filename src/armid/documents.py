"""Files of our own: read with one kind of complaint, written whole or not at all.

Every JSON, YAML, text and array file that armid writes goes through here and `folders`: the new content is written beside its
place, flushed to the disk and renamed, so that a full disk or a killed process leaves the old file or none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.errors import InputError
from armid.folders import new_file as new_file
from armid.folders import settle

if TYPE_CHECKING:
    import numpy.typing as npt

_MAX_TEXT_BYTES = 50_000_000
"""Of any text file that is not a log: larger than every result, trajectory and pose list, small beside the memory."""


def plain(value: Any) -> Any:
    """Plain JSON values from arrays, paths, enums and tuples; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if isfinite(value) else None
    return str(value) if isinstance(value, Path) else value


def json_text(value: Any, *, indent: int | None = 1) -> str:
    """A value as JSON with a newline at its end; see `plain` for what becomes of numbers that are not finite."""
    return json.dumps(plain(value), indent=indent, allow_nan=False) + "\n"


def read_text(path: str | Path, what: str, *, most: int = _MAX_TEXT_BYTES) -> str:
    """The text of a file.

    Args:
        path: of a regular file.
        what: it should be, for the message (`a correction file`).
        most: bytes it may have.

    Raises:
        InputError: missing, not a regular file, too large, or not text.
    """
    path = Path(path)
    try:
        if not path.is_file():
            raise InputError(path, "is not a file" if path.exists() else "does not exist", f"expected {what}")
        settle(path.parent)
        if path.stat().st_size > most:
            raise InputError(path, f"{path.stat().st_size} bytes are more than {what} can have")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(path, "is not text in UTF-8", f"expected {what}") from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from None


_MOST_DIGITS = 18
"""Of a whole number in a file; what has more fits no counter of ours and would overflow a float."""


def _whole_number(text: str) -> int:
    if len(text.lstrip("-")) > _MOST_DIGITS:
        raise ValueError(f"a whole number of {len(text.lstrip('-'))} digits")
    return int(text)


def read_json(path: str | Path, what: str, *, schema: str = "", key: str = "schema") -> dict[str, Any]:
    """The object in a JSON file.

    Args:
        path: of the file.
        what: it should be, for the message.
        schema: the value its `key` must have; empty for any.
        key: under which files of this kind say what they are.

    Raises:
        InputError: not readable, not JSON, not an object, or of another schema.
    """
    text = read_text(path, what)
    try:
        value = json.loads(text, parse_int=_whole_number)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(path, f"not JSON ({reason})", f"expected {what}") from None
    if not isinstance(value, dict):
        raise InputError(path, f"holds a {type(value).__name__}", f"expected {what}")
    if schema and value.get(key) != schema:
        raise InputError(path, f"{key} {value.get(key)!r}", f"expected {what} of {schema!r}")
    return value


MAX_YAML_BYTES = 2_000_000
"""Of a YAML file: robots, cells, mappings and settings take a few kilobytes; meshes and data are separate files."""
MAX_YAML_DEPTH = 30
"""Levels of nesting; ours need six. Deeper text would exhaust the parser's stack."""
_MAX_YAML_NODES = 30_000
"""Values in a document; bounds the time a hostile file can take."""


def read_yaml(path: str | Path, what: str, *, as_text: bool = False) -> dict[str, Any]:
    """The mapping in a YAML file.

    Args:
        path: of the file.
        what: it should be, for the message.
        as_text: leave every value as it was written.

    Raises:
        InputError: not readable, not YAML as `yaml_values` takes it, or not a mapping.
    """
    content = yaml_values(read_text(path, what, most=MAX_YAML_BYTES), str(path), as_text=as_text)
    if not isinstance(content, dict):
        raise InputError(path, "not a mapping", f"expected {what}")
    return content


def yaml_values(text: str, where: str, *, as_text: bool = False) -> Any:
    """A YAML document as nested dicts, lists and plain values; nothing is constructed from it.

    Args:
        text: of the document.
        where: it stands, for messages.
        as_text: leave every value as it was written; else numbers, true and false, and empty values become those.

    Raises:
        InputError: empty, not YAML, too large, too deep, with anchors, tags or repeated keys; says the line.
    """
    import yaml  # only files in YAML need it

    if len(text.encode("utf-8", "replace")) > MAX_YAML_BYTES:
        raise InputError(where, f"larger than {MAX_YAML_BYTES} bytes", "such a file holds no meshes or data")
    loader = yaml.BaseLoader if as_text else yaml.SafeLoader
    try:
        reader = loader(text)
        reader.get_event = _checked_yaml_events(reader.get_event, where)  # type: ignore[method-assign]
        node = reader.get_single_node()
        if node is None:
            raise InputError(where, "empty file")
        _check_yaml_keys(node, where)
        return reader.construct_document(node)
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(
            where, f"not valid YAML{yaml_problem(error)}", "check indentation, colons and brackets"
        ) from None
    except (ValueError, OverflowError):  # a date that does not exist, an integer of thousands of digits
        raise InputError(where, "not valid YAML: a date or number that cannot be", "put text in quotes") from None


def yaml_problem(error: BaseException) -> str:
    """What the parser says and in which line, without the piece of the file it would show."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or ("nested too deeply" if isinstance(error, RecursionError) else "")
    # What stands in quotes comes from the file, unless it is a single character or a kind of token like <stream end>.
    said = re.sub(
        r"'([^']*)'|\"([^\"]*)\"",
        lambda m: m[0] if len(m[1] or m[2] or "") == 1 or m[0][1] == "<" else "...",
        str(problem),
    )
    return (f", line {mark.line + 1}" if mark is not None else "") + (f": {said}" if said else "")


def _checked_yaml_events(events: Callable[[], Any], where: str) -> Callable[[], Any]:
    """The same events, one at a time; refuses what can make a small file explode or mean two things: anchors, tags, deep nesting.

    Args:
        events: gives the next one.
        where: they stand, for messages.
    """
    import yaml

    depth = nodes = 0

    def checked() -> Any:
        nonlocal depth, nodes
        event = events()
        place = f"{where}, line {event.start_mark.line + 1}"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise InputError(place, "anchors and aliases (& and *) are not read", "write the value out")
        if len(digits := str(getattr(event, "value", "")).strip("+-")) > _MOST_DIGITS and digits.isdecimal():
            raise InputError(place, f"a whole number of {len(digits)} digits", "no quantity needs as many")
        if getattr(event, "tag", None) not in (None, "!"):
            raise InputError(place, f"tag {event.tag!r} is not read", "plain values only")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_YAML_DEPTH or nodes > _MAX_YAML_NODES:
            raise InputError(place, "nested too deeply" if depth > MAX_YAML_DEPTH else "too many values")
        nodes += 1
        return event

    return checked


def _check_yaml_keys(node: Any, where: str) -> None:
    """Refuses keys that are not plain text or stand twice in one mapping."""
    import yaml

    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_yaml_keys(item, where)
    elif isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            place = f"{where}, line {key.start_mark.line + 1}"
            if not isinstance(key, yaml.ScalarNode):
                raise InputError(place, "a key that is not plain text")
            if key.value in seen:
                raise InputError(place, f"key {key.value!r} appears twice", "keep one of them")
            seen.add(key.value)
            _check_yaml_keys(value, where)


def write_text(path: str | Path, text: str) -> Path:
    """Text as a file, whole or not at all."""
    with new_file(path, text=True) as file:
        file.write(text)
    return Path(path)


def write_json(path: str | Path, value: Any, *, indent: int | None = 1) -> Path:
    """A value as a JSON file, whole or not at all; see `plain`."""
    return write_text(path, json_text(value, indent=indent))


_LOOKED_AT = 1 << 16
"""Bytes of an array that say whether compressing it is of use."""

_WORTH_PACKING = 0.9
"""Of its size, down to which an array must shrink: measured numbers end in noise, which takes longest and shrinks least."""


def write_arrays(path: str | Path, arrays: Mapping[str, npt.ArrayLike]) -> Path:
    """Arrays as an npz file, whole or not at all; those that shrink are compressed."""
    import zipfile

    import numpy as np  # the command line reads and writes text before it needs arrays

    with new_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            values = np.asarray(array)
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED if _shrinks(values) else zipfile.ZIP_STORED
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
    return Path(path)


def _shrinks(values: npt.NDArray[Any]) -> bool:
    """Whether an array is worth compressing; by a piece from its middle when it is large."""
    import zlib

    flat = values.ravel(order="K")
    count = max(1, _LOOKED_AT // max(1, values.itemsize))
    middle = max(0, (flat.size - count) // 2)
    piece = flat[middle : middle + count].tobytes()
    return len(zlib.compress(piece, 1)) < _WORTH_PACKING * len(piece)


def read_arrays(path: str | Path, what: str) -> dict[str, npt.NDArray[Any]]:
    """Every array of an npz file; nothing is unpickled.

    Raises:
        InputError: missing, damaged, or holding objects.
    """
    import numpy as np

    path = Path(path)
    if not path.is_file():
        raise InputError(path, "does not exist" if not path.exists() else "is not a file", f"expected {what}")
    settle(path.parent)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except Exception as error:  # zipfile, zlib, struct and NumPy each have their own for a damaged file
        raise InputError(path, f"damaged ({_damage(error)})", f"expected {what}") from None
    if strange := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
        raise InputError(path, f"damaged ({strange[0]} is no array)", f"expected {what}")
    return arrays


def _damage(error: Exception) -> str:
    """What is wrong with an archive, without the piece of the file that NumPy would show."""
    import zipfile

    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, zipfile.BadZipFile | EOFError) else kind


def digest(values: Mapping[str, Any], arrays: Mapping[str, npt.ArrayLike]) -> str:
    """SHA-256 over the values of a document and the bytes of arrays beside it: neither can be exchanged without the other.

    Args:
        values: as they are written or as they were read.
        arrays: by name.
    """
    import hashlib

    import numpy as np

    found = hashlib.sha256(json.dumps(json.loads(json_text(values, indent=None)), sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


Decode = Callable[[dict[str, Any]], Any]
"""From the object in a file to what it stands for."""


def restored(path: str | Path, value: dict[str, Any], decode: Decode, what: str) -> Any:
    """What an object in a file stands for, with one complaint for everything that can be missing or of the wrong kind.

    Raises:
        InputError: names the field.
    """
    try:
        return decode(value)
    except KeyError as error:
        raise InputError(path, f"field {error} is missing", f"expected {what}") from None
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise InputError(path, f"a field is of the wrong kind ({error})", f"expected {what}") from None

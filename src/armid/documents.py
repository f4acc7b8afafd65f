"""Files of our own: read with one kind of complaint, written whole or not at all.

Every JSON, YAML, text and array file that armid writes goes through here: the new content is written beside its place, flushed
to the disk and renamed, so that a full disk or a killed process leaves the old file or none.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from armid.errors import InputError

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
        if path.stat().st_size > most:
            raise InputError(path, f"{path.stat().st_size} bytes are more than {what} can have")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(path, "is not text in UTF-8", f"expected {what}") from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from None


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
        value = json.loads(text)
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
        _check_yaml_events(yaml.parse(text, Loader=loader), where)
        reader = loader(text)
        node = reader.get_single_node()
        if node is None:
            raise InputError(where, "empty file")
        _check_yaml_keys(node, where)
        return reader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}, line {mark.line + 1}" if mark is not None else where
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InputError(place, f"not valid YAML: {problem}", "check indentation, colons and brackets") from None
    except ValueError as error:  # a date that does not exist
        raise InputError(where, f"not valid YAML: {error}", "put text in quotes") from None


def _check_yaml_events(events: Iterator[Any], where: str) -> None:
    """Refuses what can make a small file explode or mean two things: anchors, tags, deep nesting."""
    import yaml

    depth = 0
    for nodes, event in enumerate(events):
        place = f"{where}, line {event.start_mark.line + 1}"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise InputError(place, "anchors and aliases (& and *) are not read", "write the value out")
        if getattr(event, "tag", None) not in (None, "!"):
            raise InputError(place, f"tag {event.tag!r} is not read", "plain values only")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_YAML_DEPTH or nodes > _MAX_YAML_NODES:
            raise InputError(place, "nested too deeply" if depth > MAX_YAML_DEPTH else "too many values")


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


@contextmanager
def new_file(path: str | Path, *, text: bool = False) -> Iterator[IO[Any]]:
    """A file to write to that takes its place when complete, or vanishes if anything goes wrong.

    Args:
        path: where it will be; missing folders are created.
        text: for text in UTF-8, else for bytes.

    Raises:
        InputError: it cannot be written; what was there before is untouched.
    """
    path = Path(path)
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".tmp")
        with os.fdopen(handle, "w" if text else "wb", encoding="utf-8" if text else None) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except OSError as error:
        raise InputError(path, f"cannot be written: {error.strerror or error}") from None
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> Path:
    """Text as a file, whole or not at all."""
    with new_file(path, text=True) as file:
        file.write(text)
    return Path(path)


def write_json(path: str | Path, value: Any, *, indent: int | None = 1) -> Path:
    """A value as a JSON file, whole or not at all; see `plain`."""
    return write_text(path, json_text(value, indent=indent))


def write_arrays(path: str | Path, arrays: Mapping[str, npt.ArrayLike]) -> Path:
    """Arrays as a compressed npz file, whole or not at all."""
    import numpy as np  # the command line reads and writes text before it needs arrays

    with new_file(path) as file:
        np.savez_compressed(file, **{name: np.asarray(array) for name, array in arrays.items()})  # type: ignore[arg-type]
    return Path(path)


def read_arrays(path: str | Path, what: str) -> dict[str, npt.NDArray[Any]]:
    """Every array of an npz file; nothing is unpickled.

    Raises:
        InputError: missing, damaged, or holding objects.
    """
    import numpy as np

    path = Path(path)
    if not path.is_file():
        raise InputError(path, "does not exist" if not path.exists() else "is not a file", f"expected {what}")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except Exception as error:  # zipfile, zlib, struct and NumPy each have their own for a damaged file
        raise InputError(path, f"damaged ({type(error).__name__}: {error})", f"expected {what}") from None


def check_replaceable(target: Path, *, marker: str, what: str) -> None:
    """Refuses a folder that must not be replaced; asked early, before minutes go into what could not be kept.

    Args:
        target: the folder.
        marker: the file by which an earlier folder of the same kind is known.
        what: such a folder is called.

    Raises:
        InputError: the target exists and is something else.
    """
    if target.exists() and not (target.is_dir() and ((target / marker).exists() or not any(target.iterdir()))):
        raise InputError(target, f"exists and is not a {what} folder", "choose another --out")


@contextmanager
def replacing(target: Path, *, marker: str, what: str) -> Iterator[Path]:
    """A fresh folder beside the target that takes its place at the end, or vanishes if anything goes wrong.

    Args:
        target: the folder.
        marker: the file by which an earlier folder of the same kind is known.
        what: such a folder is called.

    Raises:
        InputError: the target exists and is something else, or cannot be written.
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
        _exchange(place, target)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _exchange(place: Path, target: Path) -> None:
    if not target.exists():
        place.replace(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
    target.replace(old)
    place.replace(target)
    shutil.rmtree(old)


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

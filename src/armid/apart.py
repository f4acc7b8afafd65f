"""Inputs and answers lie apart: what is read may not lie in the folder an answer goes to.

A folder of answers is written to again and again, cleared and passed on; a recording or a robot file inside it is one careless
step from being lost. Two inputs are in no danger: those in the folder one stands in, where files of both kinds naturally lie and
nothing foreign is ever replaced (`folders`), and those that armid itself wrote there and lists in the folder's manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from armid.errors import InputError
from armid.folders import MANIFEST, foreign, manifest, settle

_OUTPUT: ContextVar[Path | None] = ContextVar("output folder", default=None)


@contextmanager
def writing_to(folder: str | Path | None) -> Iterator[None]:
    """While this lasts, `refuse_beside_answers` knows where the answer will go; None for nowhere."""
    token = _OUTPUT.set(None if folder is None else Path(folder))
    try:
        yield
    finally:
        _OUTPUT.reset(token)


def refuse_beside_answers(path: str | Path) -> None:
    """For readers of recordings, which may be named in another file, such as a mapping.

    Raises:
        InputError: the file lies in the folder of `writing_to`.
    """
    folder = _OUTPUT.get()
    if folder is not None:
        refuse_inputs_within(folder, Path(path).rglob("*") if Path(path).is_dir() else [path])


def refuse_inputs_within(folder: str | Path | None, inputs: Iterable[object]) -> None:
    """Refuses inputs that lie in an output folder or below it, unless it is the folder one stands in or they are ours.

    Args:
        folder: the answer will be written to; None for nowhere.
        inputs: paths of files; names that are no path (of the catalogue) and other objects are passed over.

    Raises:
        InputError: names the file, the folder and what to do.
    """
    if folder is None or not Path(folder).is_dir() or Path(folder).resolve() == Path.cwd().resolve():
        return
    for one in inputs:
        if isinstance(one, str | Path) and _is_file(one) and _within(Path(one), Path(folder)) and not _ours(Path(one)):
            raise InputError(
                one,
                f"is an input, and lies in the output folder {folder}",
                f"choose an --out elsewhere; to have both in one place, say --out . in {folder}",
            )


def _is_file(path: str | Path) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # no name a file can have
        return False


def _within(path: Path, folder: Path) -> bool:
    """Whether a file stands below a folder, or is a link to one that does."""
    place = folder.resolve()
    return (path.parent.resolve() / path.name).is_relative_to(place) or path.resolve().is_relative_to(place)


def _ours(path: Path) -> bool:
    """Whether armid wrote the file, and nobody has changed it since."""
    settle(path.parent)
    listed = manifest(path.parent)
    return path.name == MANIFEST or (path.name in listed and not foreign(path, listed))

"""One command, watched: which files of armid it enters, how often the thread changes room, how often costly steps are repeated.

    python bench/walk.py SOURCE OUT VERB ARGUMENT...

runs `armid VERB ARGUMENT...` of the tree at SOURCE and writes what was seen to OUT as JSON. A script of its own, so that nothing
of armid is loaded before SOURCE stands first on the path.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

STEPS = {
    "structural base": (("identifiability/structure.py", "structural_rows"),),
    "log put on its grid": (("logs/conditioning/parts.py", "uniform_parts"),),
    "log conditioned": (
        ("logs/conditioning/held.py", "_conditioned"),
        ("logs/conditioning/held.py", "_conditioned_parts"),
        ("logs/conditioning/condition.py", "condition"),
    ),
}
"""Steps that are wanted once per log: the functions that really do each, newest first; the first that ran is counted. A function
that looks up what was computed before does not belong here, nor does a generator: it is entered once per value."""

QUESTION = "identification"
"""The room whose story an identify is."""


class Walk:
    """Calls of functions below one folder, as `sys.setprofile` reports them.

    What runs while a module is imported is left out: it is the same for every command and no part of the story.
    """

    def __init__(self, root: Path) -> None:
        self.root = str(root.resolve()) + "/"
        self.calls: Counter[tuple[str, str]] = Counter()
        """Per function (file below the root, name), in the order of first calls."""
        self.crossings: set[tuple[tuple[str, str], tuple[str, str]]] = set()
        """Distinct pairs of a function and a function of another room that it called."""
        self._files: dict[str, str] = {}
        self._thread = threading.local()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event not in ("call", "return"):
            return
        file = self._file(frame.f_code.co_filename)
        if not file:
            return
        stack = self._thread.__dict__.setdefault("stack", [])
        if event == "return":
            if stack:
                stack.pop()
            return
        importing = bool(stack and stack[-1][2]) or frame.f_code.co_name == "<module>"
        here = (file, function_of(frame.f_code.co_qualname))
        if not importing:
            # Frames inside a function are part of its story, but no further call of it.
            self.calls[here] += "<locals>" not in frame.f_code.co_qualname
            if stack and room(file) != room(stack[-1][0]):
                self.crossings.add((stack[-1][:2], here))
        stack.append((*here, importing))

    def _file(self, name: str) -> str:
        if name not in self._files:
            path = str(Path(name).resolve()) if name.endswith(".py") else ""
            self._files[name] = path.removeprefix(self.root) if path.startswith(self.root) else ""
        return self._files[name]

    def summary(self) -> dict[str, Any]:
        visited = [room(file) for file, _ in self.calls]
        packages = [name for name in visited if name]
        return {
            "files": len({file for file, _ in self.calls}),
            "functions": len(self.calls),
            "switches": sum(a != b for a, b in pairwise(packages)),
            "between": Counter(f"{a} -> {b}" for a, b in pairwise(packages) if a != b).most_common(),
            "hand_overs": sum(a == QUESTION != b for a, b in pairwise(packages)),
            "crossings": len([pair for pair in self.crossings if all(room(file) for file, _ in pair)]),
            "steps": {step: self._count(functions) for step, functions in STEPS.items()},
        }

    def _count(self, functions: tuple[tuple[str, str], ...]) -> int | None:
        counts = (
            sum(n for (file, name), n in self.calls.items() if file == at and name.split(".")[-1] == called)
            for at, called in functions
        )
        return next((count for count in counts if count), None)


def function_of(qualified: str) -> str:
    """The function that a reader sees: comprehensions and what is defined inside belong to the one around them.

    (From Python 3.12 on comprehensions have no frame of their own anyway.)
    """
    return qualified.partition(".<locals>")[0]


def room(file: str) -> str:
    """First-level package of a file; empty for a module of the ground floor, which belongs to no room."""
    first, slash, _ = file.partition("/")
    return first if slash else ""


def main(source: str, out: str, arguments: list[str]) -> None:
    sys.path.insert(0, source)
    import armid.cli

    root = Path(source) / "armid"
    if Path(armid.cli.__file__).resolve().parent.parent != root.resolve():
        sys.exit(f"walk: armid was loaded from {armid.cli.__file__}, not from {source}")
    walk = Walk(root)
    sys.argv = ["armid", *arguments]
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        armid.cli.main()
    except SystemExit as end:
        if end.code not in (None, 0, 3):
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    Path(out).write_text(json.dumps(walk.summary()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])

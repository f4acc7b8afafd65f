"""The house in numbers: how large the source is, how its rooms hang together, and what one `identify` walks through.

    python -m bench house [--source PATH] [--against PATH]

PATH is a folder that holds `armid/`; by default this repository's `src`. With `--against` another tree (an older release, checked
out elsewhere) stands beside it. Nothing of a tree is imported here: it is parsed, and identify runs in another process.
What each figure counts is said by its row of `COUNTED`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from bench.measure import table

SOURCE = Path(__file__).parents[1] / "src"
MANY_ARGUMENTS = 6
"""Positional arguments of a constructor from which on nobody knows which is which."""
ROWS = 20_000
"""Of the log that `identify` is watched on: 20 s at 1 kHz."""
MOST_SHOWN = 12
"""Pairs of rooms listed; those after them switch once or twice."""

COUNTED = {
    "files": "Python files",
    "lines": "their lines, blank ones included",
    "public classes and functions": "at the top of a module, without an underscore",
    "public constants": "assigned at the top of a module, without an underscore",
    "promised names": "what `import armid` offers: the keys of `_PUBLIC`",
    "rooms": "packages directly below `armid`",
    "package edges": "distinct ordered pairs of rooms of which one imports the other, wherever in a file the import stands",
    "class names defined twice": "public class names of which there is more than one definition",
    "fmt: skip": "lines kept from the formatter",
    "long constructions": f"calls of one of our classes with {MANY_ARGUMENTS} or more positional arguments",
    "longest verb file": "lines of the longest file in `cli` with a function of its own name",
    "files visited": "files of which at least one function runs during one identify; imports do not count",
    "functions visited": "distinct functions that run",
    "package switches": "functions in the order of their first call: how often the next one is in another room (a reader "
    "following the story turns the page that often); the ground floor is no room",
    "hand-overs": "of these switches the ones that leave `identification`: where the story itself passes on to another room",
    "crossing calls": "distinct pairs of a function and one of another room that it calls",
    "structural base": "times rows at random samples are evaluated for one: real computations, not look-ups",
    "log put on its grid": "times a log, or a part of it, is brought to even steps",
    "log conditioned": "passes over a log that filter and differentiate it: one for its health, its training and its held-out "
    "part, each row once, and one for each other cut-off that the sensitivity asks for",
}
"""What each row of the table counts."""


def modules(source: Path) -> dict[str, tuple[str, ast.Module]]:
    """Text and tree of every file, by its path below `armid`."""
    root = source / "armid"
    texts = {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*.py"))}
    if not texts:
        sys.exit(f"house: {source} holds no armid/")
    return {name: (text, ast.parse(text)) for name, text in texts.items()}


def public_names(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        else:
            continue
        yield from ((name, node) for name in names if not name.startswith("_"))


def promised(tree: ast.Module) -> int:
    tables = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)]
    named = {ast.unparse(node.targets[0]): node.value for node in tables}
    return len(named["_PUBLIC"].keys) if "_PUBLIC" in named else 0


def imported(tree: ast.Module) -> Iterator[str]:
    """First-level names below `armid` that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "armid":
            below = node.module.split(".")[1:]
            yield from below[:1] or [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("armid."))


def edges(files: dict[str, tuple[str, ast.Module]], rooms: set[str]) -> set[tuple[str, str]]:
    pairs = ((name.split("/")[0], other) for name, (_, tree) in files.items() for other in imported(tree))
    return {(a, b) for a, b in pairs if a != b and a in rooms and b in rooms}


def is_long_construction(node: ast.AST, classes: Container[str]) -> bool:
    if not isinstance(node, ast.Call) or len(node.args) < MANY_ARGUMENTS:
        return False
    return (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in classes


def is_verb(name: str, tree: ast.Module) -> bool:
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return name.startswith("cli/") and Path(name).stem in defined


def counted(source: Path) -> dict[str, object]:
    """Everything that can be read off the files."""
    files = modules(source)
    rooms = {name.split("/")[0] for name in files if "/" in name}
    public = [pair for _, tree in files.values() for pair in public_names(tree)]
    constants = sum(isinstance(node, ast.Assign | ast.AnnAssign) for _, node in public)
    nodes = [node for _, tree in files.values() for node in ast.walk(tree)]
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    verbs = {name: text.count("\n") for name, (text, tree) in files.items() if is_verb(name, tree)}
    longest = max(verbs, key=lambda name: verbs[name]) if verbs else ""
    return {
        "files": len(files),
        "lines": sum(text.count("\n") for text, _ in files.values()),
        "public classes and functions": len(public) - constants,
        "public constants": constants,
        "promised names": promised(files["__init__.py"][1]),
        "rooms": len(rooms),
        "package edges": len(edges(files, rooms)),
        "class names defined twice": sum(n > 1 for name, n in classes.items() if not name.startswith("_")),
        "fmt: skip": sum(text.count("# fmt: skip") for text, _ in files.values()),
        "long constructions": sum(is_long_construction(node, classes) for node in nodes),
        "longest verb file": f"{verbs.get(longest, 0)} ({Path(longest).stem})",
    }


def walk(source: Path, log: Path, folder: Path) -> dict[str, Any]:
    """What one `armid identify` of that tree does; it runs twice, so that kernels are in the cache when it is watched."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    for seen in (folder / "first.json", folder / "second.json"):
        run = [sys.executable, str(Path(__file__).with_name("walk.py")), str(source), str(seen)]
        arguments = ["identify", "panda", str(log), "--json", "--out", str(folder / "identified")]
        end = subprocess.run([*run, *arguments], capture_output=True, text=True, env=environment)
        if end.returncode:
            sys.exit(f"house: identify of {source} failed:\n{end.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(seen.read_text())
    return found


def walked(found: dict[str, Any]) -> dict[str, object]:
    return {
        "files visited": found["files"],
        "functions visited": found["functions"],
        "package switches": found["switches"],
        "hand-overs": found["hand_overs"],
        "crossing calls": found["crossings"],
        **{step: "-" if count is None else count for step, count in found["steps"].items()},
    }


def beside(title: str, titles: list[str], columns: list[dict[str, object]]) -> None:
    table(title, ["", *titles], [[row, *(column[row] for column in columns)] for row in columns[0]])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench house", description=__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path, default=SOURCE, help="folder that holds armid/")
    parser.add_argument("--against", type=Path, help="another one, shown before it")
    options = parser.parse_args(arguments or [])
    sources = [*([options.against] if options.against else []), options.source]
    titles = ["before", "now"] if options.against else ["now"]
    beside("The house", titles, [counted(source) for source in sources])
    with tempfile.TemporaryDirectory() as name:
        from bench.synthetic import write_npz

        folder = Path(name)
        log = folder / "log.npz"
        write_npz(log, ROWS, velocity=True)
        walks = [walk(source.resolve(), log, folder) for source in sources]
    title = f"One identify of one log ({ROWS} rows; position, velocity and torque of 7 joints; the last 40 % held out)"
    beside(title, titles, [walked(found) for found in walks])
    table("Where the switches are, now", ["from -> to", "switches"], walks[-1]["between"][:MOST_SHOWN])
    print("\n" + "\n".join(f"{row}: {meaning}" for row, meaning in COUNTED.items()))

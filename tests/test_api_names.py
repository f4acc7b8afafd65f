"""The promise of `import armid`, and the shape of what stands behind it."""

from __future__ import annotations

import ast
import builtins
import inspect
import pydoc
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import armid

SOURCE = Path(__file__).parents[1] / "src" / "armid"

MOST_POSITIONAL = 4
"""Fields that a record may have and still be made without naming them."""

POSITIONAL = {
    "page.Table": "header and rows come first, as in a table",
    "page.Figure": "name, data and layout come first, as Plotly takes them",
    "motions.fourier.FourierTrajectory": "the letters of its series in their order",
    "motions.trajectory.SampledTrajectory": "time and the three arrays of a motion in their order",
    "motions.limits.MotionLimits": "lower, upper, then one array per derivative and torque",
    "planning.reduced.ScalarDynamics": "the letters of its equation in their order",
    "scene.capsules.LinkCapsule": "what it belongs to, two ends and a radius",
    "design.search.Progress": "made in its own room alone",
    "information.information.ChannelInformation": "name, columns, factor and count in their order; the rest by name",
    "logs.health.weight.WeightFit": "columns of a table that is filled row by row",
}
"""Records with more fields that are made by position all the same, with the reason."""


@cache
def modules() -> dict[str, ast.Module]:
    return {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts): ast.parse(path.read_text())
        for path in sorted(SOURCE.rglob("*.py"))
    }


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                yield module, node


@pytest.mark.parametrize("name", sorted(armid._PUBLIC))
def test_a_promised_name_can_be_imported(name: str) -> None:
    assert getattr(armid, name) is not None


@pytest.mark.parametrize("name", sorted(armid._PUBLIC))
def test_a_promised_name_is_listed_and_explained(name: str) -> None:
    assert name in dir(armid)
    assert name in armid.__all__
    assert name in (armid.__doc__ or "")
    assert inspect.getdoc(getattr(armid, name))


def test_help_reads_like_a_table_of_contents() -> None:
    text = pydoc.plain(pydoc.render_doc(armid))
    contents = text.partition("DESCRIPTION")[2].partition("FUNCTIONS")[0]
    for title in ("Reading", "Planning ahead", "Learning", "Judging", "Using", "Rigid body", "Nouns"):
        assert f"    {title} " in contents


def test_completion_offers_the_promise_and_the_rooms() -> None:
    offered = {name for name in dir(armid) if not name.startswith("_")}
    assert offered == {*armid._PUBLIC, *armid._ROOMS}
    for room in armid._ROOMS:
        assert inspect.ismodule(getattr(armid, room))


@pytest.mark.parametrize("room", ["rows", "identifiability", "robot"])
def test_the_machine_room_is_one_level_down(room: str) -> None:
    package = getattr(armid, room)
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)


def test_no_public_class_is_defined_twice() -> None:
    places = defaultdict(list)
    for module, node in classes():
        if not node.name.startswith("_"):
            places[node.name].append(module)
    assert not {name: where for name, where in places.items() if len(where) > 1}


def test_a_file_of_errors_holds_exceptions_alone() -> None:
    known = {"ArmidError", *(name for name in vars(builtins) if name.endswith(("Error", "Exception")))}
    named = {node.name for _, node in classes() if node.name.endswith("Error")}
    for module, tree in modules().items():
        if module.split(".")[-1] != "errors":
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base) for base in node.bases}
                assert bases & (known | named), f"{module}.{node.name} is no exception"
            assert not isinstance(node, ast.FunctionDef), f"{module}.{getattr(node, 'name', '')} is no exception"


def is_dataclass(decorator: ast.expr) -> bool:
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(name, ast.Name) and name.id == "dataclass"


def keyword_only(decorator: ast.expr) -> bool:
    settings = decorator.keywords if isinstance(decorator, ast.Call) else []
    return any(s.arg == "kw_only" and isinstance(s.value, ast.Constant) and s.value.value for s in settings)


def test_large_records_are_made_by_name() -> None:
    found = set()
    for module, node in classes():
        fields = [x for x in node.body if isinstance(x, ast.AnnAssign) and "ClassVar" not in ast.unparse(x.annotation)]
        by_place = [d for d in node.decorator_list if is_dataclass(d) and not keyword_only(d)]
        if by_place and len(fields) > MOST_POSITIONAL:
            found.add(f"{module}.{node.name}")
    assert not found - POSITIONAL.keys(), "make them kw_only"
    assert not POSITIONAL.keys() - found, "no exception any more: take them off the list"


def test_pages_that_answers_name_exist() -> None:
    """They are named as `module:function`, so that no floor imports the one above: nothing else would notice a wrong one."""
    named = [m for path in SOURCE.rglob("*.py") for m in re.findall(r'"(armid\.[\w.]+):(\w+)"', path.read_text())]
    assert len(named) > 15
    for module, function in named:
        assert callable(getattr(import_module(module), function)), f"{module}:{function}"

"""What maintainers are told is true: rooms, files, links, nouns and versions are as the pages say."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

import armid

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "armid"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")])
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()

named_after = {"ids": lambda path: str(path.relative_to(ROOT))}


def section(text: str, title: str) -> str:
    """Everything below a heading, up to the next of its own level or above."""
    level = re.search(rf"^(#+) {title}$", text, flags=re.MULTILINE)
    assert level is not None, title
    rest = text[level.end() :]
    end = re.search(rf"^#{{1,{len(level.group(1))}}} ", rest, flags=re.MULTILINE)
    return rest[: end.start()] if end else rest


def rows(text: str) -> list[list[str]]:
    """Cells of the tables in a text, without their headings."""
    lines = [line.strip().strip("|").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line] for line in lines]


def rooms() -> set[str]:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    return packages | {path.stem for path in SOURCE.glob("*.py") if not path.stem.startswith("__")}


def classes() -> Counter[str]:
    """Public classes as `room.Name`, with the number of definitions."""
    found: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        found.update(
            f"{room}.{node.name}"
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        )
    return found


def test_every_room_is_described_and_no_other() -> None:
    described = [cells[0].strip("`") for cells in rows(section(ARCHITECTURE, "Rooms"))]
    assert sorted(described) == sorted(rooms())


def test_the_layer_test_knows_every_room() -> None:
    known = (ROOT / "tests" / "test_layers.py").read_text()
    assert not [room for room in rooms() if f'"{room}"' not in known]


def test_a_noun_of_the_glossary_is_a_class_of_its_room() -> None:
    defined = classes()
    nouns = [(noun.strip("`"), room.strip("`")) for noun, room, _ in rows(section(ARCHITECTURE, "Glossary"))]
    assert len(nouns) > 50
    assert not [f"{room}.{noun}" for noun, room in nouns if f"{room}.{noun}" not in defined]
    assert len({noun for noun, _ in nouns}) == len(nouns)


def test_promised_nouns_are_in_the_glossary() -> None:
    promised = {name for name in armid._PUBLIC if name[0].isupper() and not name.endswith("Estimator")}
    assert promised <= {noun.strip("`") for noun, *_ in rows(section(ARCHITECTURE, "Glossary"))}


def test_no_public_class_name_is_defined_twice() -> None:
    names = Counter(name.partition(".")[2] for name in classes().elements())
    assert not [name for name, count in names.items() if count > 1]


def test_functions_of_the_walk_exist() -> None:
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    called = {name for *_, by in rows_of_walk() for name in re.findall(r"`([\w.]+)`", by) if not name.endswith(".py")}
    assert len(called) > 12
    for name in called:
        assert re.search(rf"^\s*(?:def|class) {name.rpartition('.')[2]}\b", text, flags=re.MULTILINE), name


def rows_of_walk() -> list[list[str]]:
    lines = [line for line in section(ARCHITECTURE, "The walk of a log").splitlines() if line.startswith("| ")][1:]
    return [line.strip("| ").split(" | ") for line in lines]


@pytest.mark.parametrize("page", PAGES, **named_after)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = page.parent / file if file else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target


def anchors(page: Path) -> set[str]:
    """Of the headings of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, **named_after)
def test_files_that_are_mentioned_exist(page: Path) -> None:
    for name in re.findall(r"(?<![\w/.])((?:src|tests|bench|docs)/[\w./-]+\.\w+)", page.read_text()):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, **named_after)
def test_python_names_that_are_mentioned_exist(page: Path) -> None:
    for name in set(re.findall(r"`(armid(?:\.[A-Za-z_]\w*)+)(?:\([^`]*)?`", page.read_text())):
        assert name.endswith(".yaml") or exists(name), name


def exists(name: str) -> bool:
    """Whether a dotted name leads through modules to a module or an attribute, or is a promised one."""
    parts = name.split(".")
    if ".".join(parts[1:]) in armid._PUBLIC:
        return True
    place = armid
    for k, part in enumerate(parts[1:], start=1):
        dotted = ".".join(parts[: k + 1])
        if hasattr(place, "__path__") and find_spec(dotted) is not None:
            place = import_module(dotted)
        elif hasattr(place, part):
            place = getattr(place, part)
        else:
            return False
    return True


def test_the_version_is_in_one_place() -> None:
    own = SOURCE / "__init__.py"
    files = [*ROOT.glob("*.toml"), *ROOT.glob("*.cff"), ROOT / "Makefile", *PAGES, *SOURCE.rglob("*.py")]
    changelog = ROOT / "CHANGELOG.md"  # says which versions there were
    assert f'__version__ = "{armid.__version__}"' in own.read_text()
    assert not [path for path in files if path not in (own, changelog) and armid.__version__ in path.read_text()]


def test_citation_is_complete() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
    assert citation["license"] in (ROOT / "pyproject.toml").read_text()
    # Who cites gives the version that the program prints; a second copy of it would be forgotten.
    assert citation.get("version", armid.__version__) == armid.__version__


def test_works_are_cited_by_key() -> None:
    numbered = re.compile(r"\bseeds?[\s-]+0\d\d\b", flags=re.IGNORECASE)
    suffixes = {".py", ".md", ".yaml", ".yml", ".html", ".toml"}
    found = [
        path
        for folder in ("src", "docs", "tests", "bench")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in suffixes and numbered.search(path.read_text())
    ]
    assert not found


def test_workflow_runs_what_ci_runs() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert steps == ["bash .ci/run"]
    (python,) = [
        s["with"]["python-version"] for s in workflow["jobs"]["test"]["steps"] if "python" in s.get("uses", "")
    ]
    assert f">={python}" in (ROOT / "pyproject.toml").read_text()


def test_hooks_use_the_tools_of_the_environment() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    entries = {
        hook["id"]: hook["entry"] for repo in hooks["repos"] if repo["repo"] == "local" for hook in repo["hooks"]
    }
    assert {"ruff", "ruff-format", "mypy"} <= set(entries)
    assert all(entry.startswith(".venv/bin/") for entry in entries.values())


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), **named_after)
def test_issue_templates_are_forms(path: Path) -> None:
    form = yaml.safe_load(path.read_text())
    if path.stem == "config":
        assert "blank_issues_enabled" in form
        return
    assert {"name", "description", "body"} <= set(form)
    assert all({"type", "id", "attributes"} <= set(item) for item in form["body"])


@pytest.fixture
def house() -> object:
    sys.path.insert(0, str(ROOT))
    try:
        return import_module("bench.house")
    finally:
        sys.path.remove(str(ROOT))


def test_house_counts_a_small_tree(house, tmp_path: Path) -> None:
    root = tmp_path / "armid"
    for name, text in {
        "__init__.py": '_PUBLIC = {"A": "one.a", "run": "two.b"}\n',
        "one/__init__.py": "",
        "one/a.py": "LIMIT = 1.0\nclass A: ...\ndef helper(): ...\ndef _own(): ...\n",
        "two/b.py": "from armid.one.a import A\nclass A: ...\ndef run():\n    return A(1, 2, 3, 4, 5, 6)  # fmt: skip\n",
        "cli/run.py": "def run(app): ...\n\n\ndef f():\n    from armid.two.b import run\n",
        "cli/options.py": "\n" * 50,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert house.counted(tmp_path) == {
        "files": 6,
        "lines": 1 + 0 + 4 + 4 + 5 + 50,
        "public classes and functions": 6,
        "public constants": 1,
        "promised names": 2,
        "rooms": 3,
        "package edges": 2,
        "class names defined twice": 1,
        "fmt: skip": 1,
        "long constructions": 1,
        "longest verb file": "5 (run)",
    }


def test_walk_counts_first_calls_by_room(house, tmp_path: Path) -> None:
    walk = import_module("bench.walk").Walk(tmp_path)
    for name, text in {
        "one.py": "def ground(): ...\n",
        "a/one.py": "def first(second, ground):\n    ground()\n    second()\n    inner()\n    second()\ndef inner(): ...\n",
        "b/two.py": "def second(): ...\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    space: dict[str, object] = {}
    for path in sorted(tmp_path.rglob("*.py")):
        exec(compile(path.read_text(), str(path), "exec"), space)
    sys.setprofile(walk)
    try:
        space["first"](space["second"], space["ground"])  # type: ignore[operator]
    finally:
        sys.setprofile(None)
    found = walk.summary()
    # first (a), ground (no room), second (b), inner (a): two switches, and one function that calls into another room.
    assert (found["files"], found["functions"], found["switches"], found["crossings"]) == (3, 4, 2, 1)
    assert found["steps"]["structural base"] is None

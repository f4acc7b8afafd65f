"""Pages of the documentation that come from elsewhere: files of the repository, the command line, docstrings, thresholds.

MkDocs calls the `on_...` functions. Nothing is written into docs/: generated pages exist in the site only.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))  # MkDocs loads this file alone

import notebooks  # noqa: E402

COPIED = {
    "index.md": "README.md",
    "project/architecture.md": "ARCHITECTURE.md",
    "project/contributing.md": "CONTRIBUTING.md",
    "project/changelog.md": "CHANGELOG.md",
}
"""Page of the site -> file of the repository."""

GROUPS = {
    "Reading": ("load_robot", "map_log", "read_log", "check_log", "load_result", "load_calibration"),
    "Planning ahead": ("inspect", "design_motion", "choose_poses", "simulate", "show"),
    "Learning": (
        "identify",
        "identify_payload",
        "identify_sequential",
        "identify_transmission",
        "recover",
        "sweep",
        "calibrate",
        "OnlineEstimator",
    ),
    "Judging": ("validate", "compare"),
    "Using": ("observe", "plan_motion", "make_program", "compensate"),
}
"""Names of `armid` by what they are for; those of no group come last."""


def on_files(files: Files, config: Any) -> Files:
    """Adds the generated pages."""
    pages = {page: (ROOT / source).read_text(encoding="utf-8") for page, source in COPIED.items()}
    pages["reference/command-line.md"] = command_line()
    pages["reference/python.md"] = python_reference()
    pages["reference/thresholds.md"] = thresholds()
    for script in sorted((ROOT / "examples").glob("*.py")):
        pages[f"tutorials/{script.stem}.md"] = notebooks.page(script)
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links between files of the repository as links between pages of the site."""
    here = page.file.src_uri
    up = "../" * here.count("/")
    moved = {source: page_name for page_name, source in COPIED.items()}

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match.group(1), match.group(2), match.group(3) or ""
        name = target.removeprefix("../").removeprefix("../")
        if name in moved:
            return f"[{text}]({up}{moved[name]}{anchor})"
        if name.startswith("docs/") and not name.endswith("/"):
            return f"[{text}]({up}{name.removeprefix('docs/')}{anchor})"
        outside = name.split("/")[0] in (
            "src",
            "tests",
            "bench",
            "examples",
            "docs",
            "mappings",
            "robots",
            "LICENSE",
            ".github",
        )
        return text if outside else match.group(0)

    return re.sub(r"\[([^\]]*)\]\(([^)#:\s]+)(#[^)]*)?\)", link, markdown)


def command_line() -> str:
    """Every verb with its arguments and options, from the declarations themselves."""
    import typer.main

    from armid.cli import VERBS, application

    group = typer.main.get_command(application())
    parts = [
        "# Command line\n",
        "Every verb has `-h` and `--json`. Exit codes: 0 done, 1 failed, 2 usage, 3 not to be trusted.\n",
    ]
    for verb in VERBS:
        parts.append(_verb_text(verb, group.commands[verb]))  # type: ignore[attr-defined]
    return "\n".join(parts)


def _verb_text(verb: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    usage = " ".join(["armid", verb, *(p.metavar or (p.name or "").upper() for p in arguments)])
    lines = [f"## {verb}\n", f"{_plain(command.help or '')}\n", f"```\n{usage} [OPTIONS]\n```\n"]
    if options:
        lines += ["| option | default | meaning |", "|---|---|---|"]
        for option in options:
            names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
            default = (
                option.default if isinstance(option.default, str | int | float) and option.default is not None else ""
            )
            shown = "" if isinstance(option.default, bool) else f"`{default}`" if default != "" else ""
            lines.append(f"| {names} | {shown} | {_plain(option.help or '')} |")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def python_reference() -> str:
    """Every public name, by what it is for."""
    import armid

    grouped = {name for names in GROUPS.values() for name in names}
    rest = tuple(name for name in armid._PUBLIC if name not in grouped)
    parts = ["# Python\n", "`import armid` offers these names; they load when first used.\n"]
    for title, names in {**GROUPS, "Studies, rigid body, nouns": rest}.items():
        parts.append(f"## {title}\n")
        parts += [f"::: armid.{armid._PUBLIC[name]}.{name}\n" for name in names]
    return "\n".join(parts)


def thresholds() -> str:
    """The numbers that decide what a user is told."""
    from armid.calibration.thresholds import CALIBRATION
    from armid.identification import thresholds as of_results
    from armid.logs.health import thresholds as of_logs

    parts = ["# Thresholds\n", "Numbers that decide what a user is told. `armid check --thresholds` prints them.\n"]
    tables = {"Logs": of_logs.THRESHOLDS, "Results": of_results.THRESHOLDS, "Calibrations": CALIBRATION}
    for title, table in tables.items():
        parts.append(f"## {title}\n\n| name | value | unit | reason |\n|---|---|---|---|")
        parts += [f"| {t.name} | {t.value:g} | {_plain(t.unit)} | {_plain(t.reason)} |" for t in table]
        parts.append("")
    return "\n".join(parts)

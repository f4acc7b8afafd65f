"""The page of a result: what it holds, that it needs nothing else, and that a browser draws it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from armid.design.motion import Design
from armid.design.optimise import design_excitation
from armid.design.search import Budget
from armid.design.statement import DesignSettings
from armid.errors import InputError
from armid.estimation.torque_error import JointErrors, TorqueErrors
from armid.identification.records import ResultProvenance
from armid.identification.result import Result
from armid.page import Figure, Table
from armid.parameters.effects import Effects
from armid.report import plots
from armid.report.comparison import comparison_report
from armid.report.design import design_report
from armid.report.identification import command, identification_report
from armid.report.render import render, script_json, write_report
from armid.robot.load import load_robot
from support.identified import trusted, untrusted, urdf_file

SECTIONS = (
    "verdict",
    "measured",
    "health",
    "faults",
    "excitation",
    "torque",
    "friction",
    "parameters",
    "correlation",
    "consistency",
    "residuals",
    "sensitivity",
    "files",
    "reproduce",
)
HOSTILE = '</script><script>window.hostile=1</script><img src="x" onerror="window.hostile=2">'
SCRIPTS = 3
"""Of our page: the plotting library, the data, what draws them."""


class Page(HTMLParser):
    """What a browser would fetch or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data", "action"):
                self.references.append(value or "")
            if name == "id":
                self.ids.append(value or "")


@cache
def page() -> str:
    return render(identification_report(trusted()))


def test_sections_are_there_verdict_first() -> None:
    report = identification_report(trusted())
    assert tuple(report.anchors()) == SECTIONS
    assert set(SECTIONS) <= set(Page(page()).ids)
    assert page().index("✓ trusted") < page().index('id="verdict"')


def test_untrusted_says_why_at_the_top() -> None:
    text = render(identification_report(untrusted()))
    assert text.index("held-out torque error 40 %") < text.index('id="verdict"')
    assert "✗ untrusted" in text
    assert "✗ FAILS" in text


def test_nothing_is_fetched() -> None:
    parsed = Page(page())
    assert all(reference.startswith("#") for reference in parsed.references)
    assert not {"link", "iframe", "object", "embed", "img"} & set(parsed.tags)
    assert "default-src 'none'" in page()


def test_every_figure_has_data_and_a_place() -> None:
    report = identification_report(trusted())
    figures = [block for section in report.sections for block in section.blocks if isinstance(block, Figure)]
    assert len({figure.name for figure in figures}) == len(figures)
    for prefix in (
        "torque-",
        "friction-",
        "spectrum-",
        "autocorrelation-",
        "over-velocity-",
        "over-gravity-",
        "over-temperature-",
    ):
        assert any(figure.name.startswith(prefix) for figure in figures), prefix
    # The waist turns about the vertical and carries no weight.
    assert not any(figure.name == "over-gravity-run0-0" for figure in figures)
    assert all(figure.data for figure in figures)
    json.dumps([figure.data for figure in figures], allow_nan=False)


def test_parameters_stand_beside_nominal_with_intervals() -> None:
    section = next(s for s in identification_report(trusted()).sections if s.anchor == "parameters")
    table = section.blocks[0]
    assert isinstance(table, Table)
    rows = {row[0]: row for row in table.rows}
    assert len(rows) == len(trusted().estimate)
    _, value, low, high, nominal, *_ = rows["joint2.viscous"]
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert low < value < high  # type: ignore[operator]
    assert nominal == pytest.approx(1.2)
    assert any("Not identifiable" in getattr(block, "text", "") for block in section.blocks)


def test_command_repeats_the_settings() -> None:
    words = command(trusted())
    assert words.startswith(f"armid identify {urdf_file()}")
    assert "--friction viscous,coulomb,offset --rotor-inertia" in words
    assert f"--cutoff-hz {trusted().conditioning.cutoff_hz:.6g}" in words


def hostile() -> Result:
    joints = tuple(
        JointErrors(HOSTILE, TorqueErrors(0.1, 0.1, 0.1), TorqueErrors(0.1, 0.1, 0.1)) for _ in trusted().joints
    )
    checks = tuple(replace(check, message=HOSTILE, passed=False) for check in trusted().checks)
    robot = replace(trusted().described, name=HOSTILE)
    return replace(
        trusted(),
        joints=joints,
        checks=checks,
        described=robot,
        provenance=ResultProvenance(versions={HOSTILE: HOSTILE}),
    )


def test_hostile_names_stay_text() -> None:
    parsed = Page(render(identification_report(hostile())))
    assert parsed.tags.count("script") == SCRIPTS
    assert "img" not in parsed.tags
    assert all(reference.startswith("#") for reference in parsed.references)
    assert "</script" not in script_json({"a": HOSTILE, "b": "<!--"})
    assert json.loads(script_json([HOSTILE, "<!--"]).replace("\\!", "!")) == [HOSTILE, "<!--"]


def test_lines_keep_their_extremes_when_thinned() -> None:
    t = np.linspace(0.0, 27.0, 216_000)
    y = np.sin(t)
    y[123_456] = 9.0
    y[7] = -5.0
    x, thin = plots.envelope(t, y)
    assert len(x) <= plots.MOST_POINTS
    assert thin.max() == 9.0
    assert thin.min() == -5.0
    assert np.all(np.diff(x) > 0)


@cache
def long_seven_joint_result() -> Result:
    """The traces 27 s at 8 kHz of seven joints leave behind, on the small arm's parameters where those do not matter."""
    rng = np.random.default_rng(0)
    samples, n = 19_637, 7
    robot = load_robot("iiwa14")
    t = np.arange(samples) / 727.0
    q = np.sin(np.outer(t, rng.uniform(0.5, 3.0, n)))
    torque = 50.0 * np.cos(np.outer(t, rng.uniform(0.5, 3.0, n))) + rng.normal(size=(samples, n))
    traces = {
        "run0.time": t,
        "run0.inputs": np.hstack([q, np.gradient(q, t, axis=0), np.zeros_like(q), np.sign(q)]),
        "run0.measured": torque,
        "run0.consistent": torque + rng.normal(size=torque.shape),
        "run0.free": torque + rng.normal(size=torque.shape),
        "run0.temperature": 30.0 + q,
    }
    errors = TorqueErrors(1.0, 1.1, 0.02)
    joints = tuple(JointErrors(name, errors, errors) for name in robot.joint_names)
    base = trusted()
    names = tuple(name for name in base.consistent.names if name.startswith(("link1", "link2", "link3")))
    assert names
    return replace(base, described=robot, joints=joints, joints_raw=joints, joints_nominal=joints, traces=traces)


def test_a_long_log_stays_small(tmp_path: Path) -> None:
    path = write_report(identification_report(long_seven_joint_result()), tmp_path / "report.html")
    assert path.stat().st_size < 10_000_000
    assert oct(path.stat().st_mode)[-3:] == "644"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match="No space left"):
        write_report(identification_report(trusted()), tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def designed() -> Design:
    """A quick search for a small arm."""
    settings = DesignSettings(effects=Effects(viscous=True), periods=(5.0,), harmonics=3)
    return design_excitation(
        load_robot("cylindrical"), settings, budget=Budget(seconds=None, starts=1, workers=1), seed=0
    )


WATCH = """<script>
const problems = [];
const keep = text => { problems.push(String(text)); document.documentElement.dataset.problems = problems.join(" | "); };
window.addEventListener("error", e => keep(e.message || "resource"), true);
window.addEventListener("unhandledrejection", e => keep(e.reason));
document.addEventListener("securitypolicyviolation", e => keep("policy " + e.violatedDirective + " " + e.blockedURI));
console.error = keep;
const said = () => { document.documentElement.dataset.hostile = String(window.hostile); };
window.addEventListener("load", () => setTimeout(said, 100));
</script>"""
"""Added to a copy of the page so that its own DOM says what went wrong."""

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--virtual-time-budget=15000",
    "--window-size=1200,16000",
)


def browsed(text: str, folder: Path) -> str:
    """The document after a browser has run it."""
    assert CHROMIUM is not None
    file = folder / "watched.html"
    file.write_text(text.replace("<title>", WATCH + "<title>", 1))
    for attempt in range(3):
        profile = f"--user-data-dir={folder / f'profile{attempt}'}"
        command_line = [CHROMIUM, *FLAGS, profile, "--dump-dom", file.as_uri()]
        document = subprocess.run(command_line, capture_output=True, text=True, check=True, timeout=120).stdout
        # On a busy machine the browser's own clock may run out before the page has loaded: then it has said nothing yet.
        if "data-hostile=" in document:
            break
    return document


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("kind", ["identification with hostile names", "comparison", "design"])
def test_a_browser_draws_everything(kind: str, tmp_path: Path) -> None:
    report = {
        "comparison": lambda: comparison_report(["one", "two"], [trusted(), trusted()]),
        "design": lambda: design_report(designed()),
        "identification with hostile names": lambda: identification_report(hostile()),
    }[kind]()
    document = browsed(render(report), tmp_path)
    assert "data-problems" not in document, re.findall(r'data-problems="[^"]*"', document)
    assert 'data-hostile="undefined"' in document
    figures = [block.name for section in report.sections for block in section.blocks if isinstance(block, Figure)]
    drawn = re.findall(r'<div class="plot js-plotly-plot" id="figure-([^"]+)"', document)
    assert sorted(drawn) == sorted(figures)
    assert document.count('class="main-svg"') >= len(figures)

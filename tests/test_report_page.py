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
from armid.fleets.fleet import Fleet, summed_up
from armid.identification.compare import compare
from armid.identification.origins import STEP_SHARES, ResultProvenance
from armid.identification.result import Result
from armid.identification.torque_error import JointErrors, TorqueErrors
from armid.identification.uses import uses_of
from armid.notes import Note, Severity
from armid.observation.observe import Observation, observe
from armid.page import Report, Table
from armid.parameters.effects import Effects
from armid.report import plots
from armid.report.design import design_report
from armid.report.fleet import fleet_report
from armid.report.identification import command, identification_report
from armid.report.notes import note_tables
from armid.report.observation import observation_report
from armid.report.render import render, script_json, write_report
from armid.robot.load import load_robot
from support.contacts import bump, recorded
from support.fleet_visits import drawn_visits
from support.identified import RATE, trusted, untrusted, urdf_file

SECTIONS = (
    "torque",
    "faults",
    "health",
    "verdict",
    "bodies",
    "friction",
    "parameters",
    "excitation",
    "correlation",
    "consistency",
    "residuals",
    "sensitivity",
    "files",
    "measured",
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
    assert page().index("✓ trusted") < page().index('id="first"') < page().index('id="torque"')


def test_untrusted_says_why_at_the_top() -> None:
    text = render(identification_report(untrusted()))
    assert text.index("held-out torque error 40 %") < text.index('id="first"')
    assert "✗ untrusted" in text
    assert "✗ FAILS" in text


def test_nothing_is_fetched() -> None:
    parsed = Page(page())
    assert all(reference.startswith("#") for reference in parsed.references)
    assert not {"link", "iframe", "object", "embed", "img"} & set(parsed.tags)
    assert "default-src 'none'" in page()


def test_every_figure_has_data_and_a_place() -> None:
    report = identification_report(trusted())
    figures = report.figures()
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


def test_data_health_is_drawn() -> None:
    """Positions and speeds beside their limits, rest, and the steps of every clock from the shortest to the longest."""
    figures = {figure.name: figure for figure in identification_report(trusted()).figures()}
    assert {"coverage-position", "coverage-speed", "rest", "clock-steps"} <= set(figures)
    for line in figures["clock-steps"].data:
        assert line["x"] == [100 * share for share in STEP_SHARES]
        np.testing.assert_allclose(line["y"], 1e3 / RATE, rtol=1e-3)


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
    assert path.stat().st_size < 2_000_000
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
const said = () => {
  window.dispatchEvent(new Event("beforeprint"));
  document.documentElement.dataset.hostile = String(window.hostile);
};
window.addEventListener("load", () => setTimeout(said, 100));
</script>"""
"""Added to a copy of the page so that its own DOM says what went wrong, with everything drawn as for print."""

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


def worn_fleet() -> Fleet:
    """A fleet of arms with names that are no names, one of them worn, one visit refused."""
    done = drawn_visits(-0.5, -0.5, arms=6, name="<script>window.hostile=1</script>")
    for one in done[-3:]:
        one.values[1] += 30.0
    done[0] = replace(done[0], verdict="refused", reasons=("<b>torn</b>",))
    found = summed_up(done, joints=("shoulder",))
    assert [alarm.parameter for alarm in found.alarms] == ["joint1.coulomb"]
    return found


def pushed() -> Observation:
    """An arm that somebody leans on."""
    robot = load_robot("cylindrical")
    free = [recorded(robot, seconds=12.0, seed=seed) for seed in (1, 2)]
    return observe(robot, recorded(robot, seconds=12.0, seed=1, push=bump(12.0, 3, 1, 60.0, 5.0)), free=free)


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
@pytest.mark.parametrize("kind", ["identification with hostile names", "comparison", "design", "fleet", "observation"])
def test_a_browser_draws_everything(kind: str, tmp_path: Path) -> None:
    report = {
        "comparison": lambda: compare(trusted(), trusted()).page(),
        "design": lambda: design_report(designed()),
        "fleet": lambda: fleet_report(worn_fleet()),
        "observation": lambda: observation_report(pushed()),
        "identification with hostile names": lambda: identification_report(hostile()),
    }[kind]()
    document = browsed(render(report), tmp_path)
    assert "data-problems" not in document, re.findall(r'data-problems="[^"]*"', document)
    assert 'data-hostile="undefined"' in document
    figures = [figure.name for figure in report.figures()]
    drawn = re.findall(r'<div class="plot done" id="figure-([^"]+)"', document)
    assert sorted(drawn) == sorted(figures)
    assert document.count('class="drawn"') == len(figures)
    panels = [
        panel.count('text-anchor="end"')
        for figure in re.findall(r'id="figure-torque-.*?class="drawn"(.*?)</svg>', document, flags=re.DOTALL)
        for panel in re.findall(r"<g>(.*?)</g>", figure, flags=re.DOTALL)
    ]
    assert bool(panels) == kind.startswith("identification")
    assert all(labels >= 2 for labels in panels), "torque and residual can be read off their axes"


KNOWN_TRACES = {"scatter", "bar", "box", "heatmap", "scatter3d", "surface"}


def test_the_library_of_the_page_knows_every_kind_of_trace() -> None:
    kinds = {trace["type"] for figure in identification_report(trusted()).figures() for trace in figure.data}
    kinds |= {trace["type"] for figure in design_report(designed()).figures() for trace in figure.data}
    assert kinds <= KNOWN_TRACES
    library = page()
    assert all(f'"{kind}"' in library for kind in KNOWN_TRACES)


def cells(report: Report) -> dict[str, tuple[object, ...]]:
    """Rows of the first table of the first screen."""
    table = next(block for block in report.blocks() if isinstance(block, Table))
    return {str(row[0]): row for row in table.rows}


def test_the_first_screen_says_what_the_model_is_good_for() -> None:
    uses = cells(identification_report(trusted()))
    assert set(uses) == {"gravity compensation", "feed-forward", "simulation", "contact detection"}
    assert all(row[1] == "✓\u00a0yes" for row in uses.values()), uses
    assert all(any(c.isdigit() for c in str(row[2])) for row in uses.values())
    assert {row[1] for row in cells(identification_report(untrusted())).values()} == {"✗\u00a0no"}


def test_each_use_is_refused_for_its_own_reason() -> None:
    base = trusted()
    shifted = {key: value + 40.0 if key.endswith("measured") else value for key, value in base.traces.items()}
    uses = {use.name: use for use in uses_of(replace(base, traces=shifted))}
    assert not uses["gravity compensation"].allowed
    assert not uses["contact detection"].allowed
    assert uses["simulation"].allowed
    assert uses["feed-forward"].allowed
    negative = replace(base, certificates=replace(base.certificates, mass_matrix=-0.1, proven=False))
    assert [use.name for use in uses_of(negative) if not use.allowed] == ["simulation"]
    bare = uses_of(replace(base, traces={}))
    assert [use.allowed for use in bare] == [None, True, True, None]


@pytest.mark.parametrize(("repeated", "said"), [(0.67, "67 % of it repeats"), (1.0, "100 % of it repeats"), (0.0, "")])
def test_the_page_says_how_much_of_the_held_out_motion_is_a_test(repeated: float, said: str) -> None:
    result = trusted()
    assert result.evidence is not None
    known = replace(result, evidence=replace(result.evidence, repeated=repeated))
    section = next(s for s in identification_report(known).sections if s.anchor == "torque")
    text = getattr(section.blocks[0], "text", "")
    assert "used for any choice" not in text
    assert "Whether a fault counts as found it has helped to decide" in text
    assert said in text
    assert ("repeats" in text) is bool(said)


def test_masses_stand_beside_the_description_by_the_names_of_the_urdf() -> None:
    section = next(s for s in identification_report(trusted()).sections if s.anchor == "bodies")
    table = section.blocks[0]
    assert isinstance(table, Table)
    rows = {row[0]: row for row in table.rows}
    assert list(rows) == ["column", "upper", "fore", "total"]
    total = sum(float(rows[name][1]) for name in ("column", "upper", "fore"))  # type: ignore[arg-type]
    assert rows["total"][1] == pytest.approx(total)
    assert rows["upper"][2] == pytest.approx(4.0)


def test_many_notes_of_one_kind_become_one() -> None:
    notes = [Note("gap", Severity.WARNING, f"joint{k} is missing", f"joint{k}") for k in range(31)]
    first, every = note_tables([Note("other", Severity.INFO, "fine"), *notes])
    assert isinstance(first, Table)
    assert isinstance(every, Table)
    assert [row[1] for row in first.rows] == ["gap", "other"]
    assert "30 more" in str(first.rows[0][3])
    assert every.folded
    assert len(every.rows) == 32


LOOK = """<script>
const wait = ms => new Promise(done => setTimeout(done, ms));
const apart = (a, b, slack) =>
  a.right <= b.left + slack || b.right <= a.left + slack || a.bottom <= b.top + slack || b.bottom <= a.top + slack;
const BLOCKS = "h1,h2,h3,p,nav,.banner,.scroll,figure,.items,summary";
const beginning = e => e.textContent.slice(0, 30);
function crowded(page) {
  const out = [], shown = [...page.querySelectorAll(BLOCKS)].filter(e => e.offsetHeight && !e.closest(".tip"));
  for (let i = 0; i < shown.length; i++) for (const b of shown.slice(i + 1, i + 8)) {
    const a = shown[i];
    if (a.contains(b) || b.contains(a) || apart(a.getBoundingClientRect(), b.getBoundingClientRect(), 2)) continue;
    out.push("overlap " + beginning(a) + " / " + beginning(b));
  }
  return out;
}
function labels(svg) {
  const out = [], box = svg.getBoundingClientRect(), name = svg.getAttribute("aria-label");
  const texts = [...svg.querySelectorAll("text")], places = texts.map(t => t.getBoundingClientRect());
  places.forEach((p, i) => {
    const text = texts[i].textContent;
    if (p.left < box.left - 3 || p.right > box.right + 3 || p.bottom > box.bottom + 3) out.push("cut in " + name + ": " + text);
    for (let j = i + 1; j < places.length; j++)
      if (!apart(p, places[j], 3)) out.push("labels in " + name + ": " + text + " / " + texts[j].textContent);
  });
  return out;
}
function troubles(frame, width) {
  const page = frame.contentDocument, root = page.documentElement, out = [];
  if (root.dataset.problems) out.push("said " + root.dataset.problems);
  if (root.scrollWidth > width) out.push("wider than the screen: " + root.scrollWidth);
  if (frame.contentWindow.performance.getEntriesByType("resource").length) out.push("fetched something");
  for (const e of page.querySelectorAll("#first .scroll"))
    if (e.scrollWidth > e.clientWidth + 1) out.push("cut: " + beginning(e));
  const undrawn = [...page.querySelectorAll(".plot")].filter(n => !n.classList.contains("done")).length;
  if (undrawn) out.push(undrawn + " figures not drawn");
  return [...out, ...crowded(page), ...[...page.querySelectorAll("svg.drawn")].flatMap(labels)];
}
window.addEventListener("load", async () => {
  const found = [];
  for (const width of [1366, 1024, 400]) {
    const frame = document.createElement("iframe");
    frame.style.cssText = "border:0;height:2000px;width:" + width + "px";
    frame.srcdoc = JSON.parse(document.getElementById("page").textContent);
    await new Promise(done => { frame.onload = done; document.body.appendChild(frame); });
    frame.contentWindow.dispatchEvent(new Event("beforeprint"));
    await wait(50);
    found.push(...troubles(frame, width).slice(0, 8).map(text => width + ": " + text));
  }
  document.documentElement.dataset.found = found.join(" | ") || "nothing";
});
</script>"""
"""Shows a page at three widths with everything drawn and unfolded, and says what overlaps, is cut off or went wrong."""


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("kind", ["identification", "design", "fleet"])
def test_nothing_overlaps_at_any_width(kind: str, tmp_path: Path) -> None:
    report = {
        "identification": lambda: identification_report(trusted()),
        "design": lambda: design_report(designed()),
        "fleet": lambda: fleet_report(worn_fleet()),
    }[kind]()
    inner = render(report).replace("<title>", WATCH + "<title>", 1)
    host = f'<html><body><script type="application/json" id="page">{script_json(inner)}</script>{LOOK}</body></html>'
    file = tmp_path / "host.html"
    file.write_text(host)
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command_line = [str(CHROMIUM), *FLAGS, profile, "--dump-dom", file.as_uri()]
    document = subprocess.run(command_line, capture_output=True, text=True, check=True, timeout=120).stdout
    assert 'data-found="nothing"' in document, re.findall(r'data-found="[^"]*"', document)

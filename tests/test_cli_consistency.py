"""`armid identify` with every way to possible bodies, every pull, bounds files and shapes: what reaches result and report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.consistency.bounds import Bounds
from armid.consistency.bounds_file import read_bounds
from armid.consistency.physical import to_physical
from armid.consistency.places import CentreBox, CentreEllipsoid, CentreHull
from armid.errors import InputError, UnknownNameError
from armid.identification.result import load_result
from armid.parameters.inertial import to_centre_of_mass
from armid.report.identification import identification_report
from armid.robot.load import load_robot
from test_cli_identify import ROBOT, write_log

RUNNER = CliRunner()
SHAPES = (
    """
    geometry: [{capsule: {from: [0, 0, -0.15], to: [0, 0, 0.05], radius: 0.08}}]""",
    """
    geometry: [{box: {size: [0.5, 0.12, 0.12]}, xyz: [0.2, 0, 0.05]}]""",
    """
    geometry: [{cylinder: {from: [0, 0, 0.02], to: [0.25, 0, 0.02], radius: 0.05}}]""",
)


def shaped():
    """The test arm with one shape per link, each around its centre of mass."""
    lines = ROBOT.splitlines()
    inertial = [k for k, line in enumerate(lines) if "inertial:" in line]
    for k, shape in zip(reversed(inertial), reversed(SHAPES), strict=True):
        lines.insert(k + 1, shape.strip("\n"))
    return "\n".join(lines)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("consistency")
    (folder / "elbow.yaml").write_text(shaped())
    robot = load_robot(folder / "elbow.yaml")
    for k in (1, 2):
        write_log(folder / f"log{k}.csv", robot, k, seconds=10.0)
    return folder


def run(place, *args, out="result", code=0):
    words = ["identify", place / "elbow.yaml", place / "log1.csv", "--validate", place / "log2.csv", "--json"]
    outcome = RUNNER.invoke(application(), [str(a) for a in (*words, "--out", place / out, *args)])
    assert outcome.exit_code == code, outcome.stderr
    return (json.loads(outcome.stdout) if code in (0, 3) else {}), outcome.stderr


@pytest.mark.parametrize(
    ("args", "method", "regulariser"),
    [
        ((), "lmi", "pull-back 0.1"),
        (("--regulariser", "entropic", "--prior-weight", "0.5"), "lmi", "entropic 0.5"),
        (("--regulariser", "euclidean"), "lmi", "euclidean 0.1"),
        (("--consistency", "log-cholesky"), "log-cholesky", "pull-back 0.1"),
        (("--consistency", "eq3.53", "--prior-weight", "1"), "eq3.53", "pull-back 1"),
    ],
)
def test_the_way_reaches_result_json_and_report(place, args, method, regulariser):
    summary, words = run(place, *args)
    told = summary["consistency"]
    assert (told["method"], told["regulariser"], told["status"]) == (method, regulariser, "solved")
    assert summary["verdict"] == "trusted"
    assert summary["relative_error_held_out"] < 0.03
    assert 0.0 < told["mass_matrix_bound"] <= told["mass_matrix"]
    assert 0.0 <= told["p_value"] <= 1.0
    assert told["distance"] < told["distance_limit"]
    assert set(told["torque_cost"]) == {"waist", "shoulder", "elbow"}
    assert set(told["determined_by"].values()) == {"data", "both", "prior"}
    assert f"physically consistent by {method}" in words
    assert "(proven)" in " ".join(words.split())
    result = load_result(place / "result", traces=True)
    assert (result.consistent.method, result.consistent.regulariser) == (method, regulariser)
    assert result.certificates.mass_matrix_bound == told["mass_matrix_bound"]
    assert result.certificates.p_value == pytest.approx(told["p_value"])
    assert result.provenance.settings["consistency"] == (method)
    section = next(s for s in identification_report(result).sections if s.title == "Physical consistency")
    text = str(section)
    assert method in text
    assert "at every configuration" in text
    assert "p-value" in text


def test_mass_stays_within_the_shapes_on_request(place):
    summary, _ = run(place, "--bounds", "geometry", out="shapes")
    assert summary["consistency"]["method"] == "lmi"
    result = load_result(place / "shapes")
    c1, c2, c3 = (to_centre_of_mass(body.of(result.consistent.values))[1] for body in result.consistent.bodies)
    margin = 0.01 + 0.012  # the default margin, and what half-spaces stand off round shapes
    assert np.linalg.norm(c1[:2]) <= 0.08 + margin
    assert -0.23 - margin <= c1[2] <= 0.13 + margin
    assert np.all(np.abs(c2 - [0.2, 0.0, 0.05]) <= np.array([0.25, 0.06, 0.06]) + 0.01 + 1e-6)
    assert np.linalg.norm(c3[1:] - [0.0, 0.02]) <= 0.05 + margin
    assert summary["verdict"] == "trusted"
    free, _ = run(place)
    assert summary["relative_error_held_out"] < 1.1 * free["relative_error_held_out"]


def test_a_missing_mesh_stops_with_one_line_and_writes_nothing(place):
    text = shaped().replace("{box: {size: [0.5, 0.12, 0.12]}, xyz: [0.2, 0, 0.05]}", "{mesh: {path: gone.stl}}")
    (place / "meshed.yaml").write_text(text)
    outcome = RUNNER.invoke(
        application(),
        [
            "identify",
            *(str(place / n) for n in ("meshed.yaml", "log1.csv")),
            "--bounds",
            "geometry",
            "--out",
            str(place / "no"),
        ],
    )
    assert outcome.exit_code == 1
    assert "bounds of l2" in outcome.stderr
    assert "gone.stl: mesh file not found" in outcome.stderr
    assert len(outcome.stderr.strip().splitlines()) == 1
    assert not (place / "no").exists()


def test_results_of_earlier_versions_are_refused_with_what_to_do(place):
    run(place, out="early")
    path = place / "early" / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": "armid.result/1"}))
    with pytest.raises(InputError, match="identify again"):
        load_result(place / "early")


def test_bounds_are_told_in_words():
    assert Bounds().statements == ()
    assert Bounds(total_mass=(1.0, 2.0)).statements == (
        "total mass of the links at least 1 kg",
        "total mass of the links at most 2 kg",
    )


FILE = """
mass: {link1: [4, 9], l3: 3.3}
total_mass: [15, 16]
centre: {link2: [[0.1, -0.1, 0], [0.3, 0.1, 0.1]]}
ellipsoid: {link3: {centre: [0.1, 0, 0], semi_axes: [0.05, 0.05, 0.05]}}
geometry: {links: [link1], margin: 0.02, moments: false}
about_centre:
  link2: {centre: [[0.2, 0.01, 0.05], 0.005], inertia: [[0.022, 0, 0, 0.11, 0, 0.11], 0.003]}
inequalities: {ratio: 50, slender: {l2: x}, around_prior: 0.9}
"""


def test_a_bounds_file_says_all_that_is_known(place):
    path = place / "all.yaml"
    path.write_text(FILE)
    robot = load_robot(place / "elbow.yaml")
    bounds = read_bounds(path, robot)
    assert bounds.mass == {"link1": (4.0, 9.0), "link3": (3.3, 3.3)}
    assert bounds.total_mass == (15.0, 16.0)
    assert [type(p) for p in bounds.where["link2"]] == [CentreBox]
    assert [type(p) for p in bounds.where["link3"]] == [CentreEllipsoid]
    assert [type(p) for p in bounds.where["link1"]] == [CentreHull]
    assert bounds.knowledge[0].owner == "link2"
    assert np.isinf(bounds.knowledge[0].deviations[0])
    assert bounds.inequalities.slender == {"link2": 0}
    assert (bounds.inequalities.ratio, bounds.inequalities.around_prior) == (50.0, 0.9)
    summary, words = run(place, "--bounds", path, out="all")
    assert summary["consistency"]["method"] == "successive-lmi"
    result = load_result(place / "all")
    values = dict(zip(result.consistent.names, result.consistent.values, strict=True))
    assert values["link3.mass"] == pytest.approx(3.3, abs=1e-6)
    assert 15.0 - 1e-5 <= sum(values[f"link{i}.mass"] for i in (1, 2, 3)) <= 16.0 + 1e-5
    mu = to_physical(result.consistent.values, result.consistent.bodies)[list(result.consistent.bodies[1].columns)]
    assert np.all(np.abs(mu[4:] - [0.022, 0, 0, 0.11, 0, 0.11]) < 0.012)
    assert "decided by bounds" in " ".join(words.split())
    stated = result.provenance.settings["bounds"]
    assert {"mass of link3 3.3 kg", "total mass of the links at least 15 kg", "link2 about its centre of mass"} <= set(
        stated
    )


def test_the_example_of_the_documentation_is_a_bounds_file(tmp_path):
    text = (Path(__file__).parents[1] / "docs" / "estimation.md").read_text()
    example = next(block for block in text.split("```yaml\n")[1:] if "about_centre" in block).split("```")[0]
    (tmp_path / "bounds.yaml").write_text(example)
    bounds = read_bounds(tmp_path / "bounds.yaml", load_robot("iiwa14"))
    assert set(bounds.where) == {"link2", "link3", "link4"}
    assert bounds.inequalities.slender == {"link1": 2, "link2": 1}


def test_the_inequalities_of_the_file_hold_for_eq_3_53(place):
    path = place / "ineq.yaml"
    path.write_text("inequalities: {slender: {link2: x}, slender_ratio: 4}\n")
    run(place, "--bounds", path, "--consistency", "eq3.53", out="ineq")
    c = load_result(place / "ineq").consistent
    mu = to_physical(c.values, c.bodies)[list(c.bodies[1].columns)]
    assert min(mu[7], mu[9]) >= 4.0 * mu[4] - 1e-6
    _, words = run(place, "--bounds", "geometry", "--consistency", "log-cholesky", out="never", code=1)
    assert "no smooth coordinates" in words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mas: {}", "no key in .* named 'mas'"),
        ("mass: {link9: [1, 2]}", "no link named 'link9'"),
        ("mass: {link1: [2, 1]}", "lower bound comes first"),
        ("centre: {link1: [[0, 0, 1], [1, 1, 0]]}", "lower corner comes first"),
        ("ellipsoid: {link1: {centre: [0, 0, 0]}}", "expected centre and semi_axes"),
        ("ellipsoid: {link1: {centre: [0, 0, 0], semi_axes: [1, 1, 0]}}", "each is positive"),
        ("geometry: {link: [link1]}", "named 'link'"),
        ("geometry: {links: link1}", "expected a list of links"),
        ("geometry: {margin: -1}", "expected zero or more"),
        ("geometry: 3", "expected a mapping"),
        ("non_negative_drives: 1", "expected true or false"),
        ("about_centre: {link1: {mass: 3}}", "value and its standard deviation"),
        ("about_centre: {link1: {mass: [3, 0]}}", "is positive"),
        ("about_centre: {link1: {weight: [3, 1]}}", "named 'weight'"),
        ("inequalities: {slender: {link1: w}}", "expected x, y or z"),
        ("inequalities: {rato: 3}", "named 'rato'"),
        ("- 1", "not a mapping"),
        ("{", "not valid YAML, line 1"),
    ],
)
def test_mistakes_in_a_bounds_file_are_named(place, text, message):
    path = place / "bad.yaml"
    path.write_text(text)
    with pytest.raises((InputError, UnknownNameError), match=message):
        read_bounds(path, load_robot(place / "elbow.yaml"))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--consistency", "sdp"), "'sdp' is not one of 'lmi', 'log-cholesky', 'eq3.53', 'halper2024'"),
        (("--regulariser", "ridge"), "'ridge' is not one of 'pull-back', 'entropic', 'euclidean'"),
        (("--prior-weight", "0"), "expected a positive number"),
        (("--bounds", "nowhere.yaml"), "does not exist (expected a bounds file)"),
    ],
)
def test_words_that_do_not_exist_are_refused_with_those_that_do(place, args, message):
    _, words = run(place, *args, out="never", code=2 if "is not one of" in message else 1)
    assert message in " ".join(words.replace("│", " ").split())
    assert not Path(place / "never").exists()

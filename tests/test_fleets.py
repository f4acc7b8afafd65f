"""`armid fleet`: tables in, every arm identified, spread and changes out; what was interrupted goes on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.cli import application
from armid.errors import InputError
from armid.fleets import fleet as module
from armid.fleets.table import read_visits
from support.fleet_logs import write_fleet

ARMS, VISITS = 4, 3


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    write_fleet(folder, ARMS, VISITS, worn={2: ("joint2.coulomb", 2, 1.6)})
    return folder


@pytest.fixture(scope="module")
def found(place):
    (place / "r03" / "2026-03-02.csv").write_text("not a log\n")
    return armid.fleet(place / "fleet.csv", friction="viscous,coulomb,offset", out=place / "out")


def test_every_arm_and_date_has_its_verdict_and_bad_ones_are_not_in_the_statistics(found):
    assert len(found.visits) == ARMS * VISITS
    refused = [one for one in found.visits if one.verdict == "refused"]
    assert [(one.visit.arm, one.visit.date) for one in refused] == [("r03", "2026-03-02")]
    assert [note.subject for note in found.notes if note.code == "visit-not-used"] == ["r03, 2026-03-02"]
    assert {row.arm: row.used for row in found.arms} == {"r00": 3, "r01": 3, "r02": 3, "r03": 2}
    assert str(found.verdict) == "trusted"


def test_planted_wear_is_found_with_date_and_joint_and_nothing_else_is(found):
    alarms = {(one.arm, one.parameter, one.since) for one in found.alarms}
    assert alarms == {("r02", "joint2.coulomb", "2026-03-02")}
    (alarm,) = found.alarms
    assert alarm.low < 0.6 * 1.5 * 1.4
    assert alarm.high > 0.6 * 1.5 * 0.6
    assert found.joint_of(alarm.parameter) == "shoulder"


def test_spread_of_the_population(found):
    p = found.population
    assert p.arms == ARMS
    coulomb = [k for k, name in enumerate(p.names) if name.endswith("coulomb")]
    assert np.all(p.mean[coulomb] > 0.8)
    assert np.all((p.spread[coulomb] / p.mean[coulomb] > 0.02) & (p.spread[coulomb] / p.mean[coulomb] < 0.6))


def test_what_was_finished_is_not_done_again_and_the_answer_is_the_same(found, place, monkeypatch):
    asked = []
    real = module.identify_visit
    monkeypatch.setattr(module, "identify_visit", lambda task: asked.append(task) or real(task))
    kept = sorted((place / "out" / "visits").iterdir())
    kept[0].unlink()
    kept[1].write_text("torn {")
    again = armid.fleet(place / "fleet.csv", friction="viscous,coulomb,offset", out=place / "out")
    assert len(asked) == 2
    assert again.as_dict()["drift"] == found.as_dict()["drift"]
    np.testing.assert_array_equal(again.population.mean, found.population.mean)


def test_files_and_page(found, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    names = {path.name for path in found.save(tmp_path)}
    assert names == {
        "fleet.json", "population.json", "visits.parquet", "parameters.parquet", "spread.parquet", "drift.parquet"
    }  # fmt: skip
    assert parquet.read_table(tmp_path / "visits.parquet").num_rows == ARMS * VISITS
    stored = json.loads((tmp_path / "fleet.json").read_text())
    assert stored["drift"][0]["arm"] == "r02"
    page = found.report(tmp_path / "report.html").read_text()
    assert "Which arms need service" in page
    assert {"drift-0", "spread", "relative-spread"} <= set(found.figures())


def test_a_new_arm_with_a_short_log_starts_from_the_fleet(found, place, tmp_path):
    found.save(tmp_path / "fleet")
    write_fleet(tmp_path, 1, 2, seconds=3.0, noise=2.0, seed=77)
    logs = sorted((tmp_path / "r00").iterdir())
    words = {"friction": "viscous,coulomb,offset", "sensitivity": False, "imperfections": "none"}
    alone, pulled = (
        armid.identify(place / "elbow.yaml", logs[0], validate=logs[1], prior=prior, **words)
        for prior in (None, tmp_path / "fleet")
    )
    assert np.all(pulled.estimate.standard_deviations < alone.estimate.standard_deviations)
    assert "population of 4 arms" in pulled.estimate.method
    assert pulled.provenance.settings["population"] == 4
    with pytest.raises(InputError, match="other base parameters"):
        armid.identify(place / "elbow.yaml", logs[0], prior=tmp_path / "fleet", friction="viscous")


def test_the_command_gives_what_the_function_gives(found, place):
    line = [
        "fleet",
        str(place / "fleet.csv"),
        "--friction",
        "viscous,coulomb,offset",
        "--out",
        str(place / "out"),
        "--json",
    ]
    done = CliRunner().invoke(application(("fleet",)), line)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["drift"] == json.loads(json.dumps(found.as_dict()["drift"]))
    assert {"arms", "drift", "spread", "files", "workers", "retries"} <= set(told)


def test_tables_in_yaml_and_by_pattern_say_the_same(place, tmp_path):
    by_csv = read_visits(place / "fleet.csv")
    by_pattern = read_visits(f"{place}/{{arm}}/{{date}}.csv", place / "elbow.yaml")
    assert [(v.arm, v.date, v.logs) for v in by_pattern] == [(v.arm, v.date, v.logs) for v in by_csv]
    rows = "".join(f"  - {{arm: {v.arm}, date: {v.date}, logs: '{v.logs[0]}'}}\n" for v in by_csv)
    (tmp_path / "t.yaml").write_text(f"visits:\n{rows}")
    by_yaml = read_visits(tmp_path / "t.yaml", place / "elbow.yaml")
    assert [(v.arm, v.date, v.logs, v.robot) for v in by_yaml] == [(v.arm, v.date, v.logs, v.robot) for v in by_csv]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "no column arm, date, logs"),
        ("arm,date,robot,logs\n", "no visits"),
        ("arm,date,robot,logs\na,yesterday,panda,t.csv\n", r"line 2: date 'yesterday' .expected ISO"),
        ("arm,date,robot,logs\na,2026-01-01,panda,none*.csv\n", "no file matches none"),
        ("arm,date,robot,logs\n,2026-01-01,panda,t.csv\n", "arm empty"),
        ("arm,date,logs\na,2026-01-01,t.csv\n", "robot empty"),
        ("arm,date,robot,logs,colour\na,2026-01-01,panda,t.csv,red\n", "unknown field.s. colour"),
        ("arm,date,robot,logs\na,2026-01-01,panda,t.csv,,,x\n", "one beyond the last column"),
        ("name,when,file\na,2026-01-01,t.csv\n", "no column arm, date, logs .there are: name, when, file"),
        ("arm,date,robot,logs\na,02.03.2026,panda,t.csv\n", "date '02.03.2026' .expected ISO 8601"),
        ("arm,date,robot,logs\na,2026-13-02,panda,t.csv\n", "date '2026-13-02'"),
        ("arm,date,robot,logs\na,2026-01-02,panda,t.csv\na,2026/1/2,panda,t.csv\n", "twice"),
        ("arm,date,robot,logs,payload\na,2026-01-01,panda,t.csv,heavy\n", "payload"),
        ("arm,date,robot,logs\na,2026-01-01,panda,t.csv\na,2026-01-01,panda,t.csv\n", "twice"),
    ],
)
def test_mistakes_in_a_table_are_named(tmp_path, text, match):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(armid.ArmidError, match=match):
        read_visits(tmp_path / "t.csv")


def test_tables_as_spreadsheets_write_them(tmp_path):
    text = '\ufeffArm;Date ;robot;logs;remarks\r\na;2026/3/2;panda;t.csv;\r\n;;;;\r\nb;20260303;panda;"t.csv;u.csv";new\r\n'
    (tmp_path / "t.csv").write_bytes(text.encode())
    (tmp_path / "u.csv").write_text("")
    found = read_visits(tmp_path / "t.csv")
    assert [(v.arm, v.date, len(v.logs), v.remarks) for v in found] == [
        ("a", "2026-03-02", 1, ""),
        ("b", "20260303", 2, "new"),
    ]
    assert found[1].day - found[0].day == 1.0


def test_a_pattern_that_matches_nothing_says_what_was_looked_for(tmp_path):
    with pytest.raises(armid.ArmidError, match=r"no file matches .*/\*/\*\.csv"):
        read_visits(str(tmp_path / "{arm}" / "{date}.csv"), "panda")

"""What every answer can do, on a small answer of our own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from armid.errors import UnknownNameError
from armid.notes import Note, Severity
from armid.outcome import Check, InputFile, Listing, Outcome, Provenance, UntrustedError, Verdict, text_table
from armid.page import Figure, Paragraph, Report, Section, Table


@dataclass(frozen=True)
class Row:
    name: str
    value: float | None
    unit: str = "kg"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answer(Outcome):
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    _page = f"{__name__}:page"

    def _heading(self) -> str:
        return "elbow: 3 masses"

    def _tables(self) -> tuple[Table, ...]:
        return (
            Table(("link", "mass"), (("link1", 1.23456789), ("a link with a long name", 12.0)), caption="masses [kg]"),
        )

    def as_dict(self) -> dict[str, object]:
        return {"verdict": self.verdict}


def page(answer: Answer) -> Report:
    figure = Figure("torque-joint1", ({"x": [0, 1], "y": [2, 3], "type": "scatter"},), {"title": {"text": "torque"}})
    section = Section("torque", "Torque", (Paragraph("text"), figure))
    return Report(title="elbow", subtitle="", verdict=answer.verdict, reasons=answer.reasons, sections=(section,))


BAD = Check(code="held-out", passed=False, value=0.5, limit=0.15, message="held-out error 50 %")
WARNING = Check(code="cost", passed=False, value=2.0, limit=1.5, message="costs a little", decisive=False)
GOOD = Check(code="rank", passed=True, value=3.0, limit=3.0, message="all determined")


def test_one_failed_decisive_check_is_enough_and_a_warning_is_not():
    assert Answer(checks=(GOOD, WARNING)).verdict is Verdict.TRUSTED
    answer = Answer(checks=(GOOD, WARNING, BAD))
    assert answer.verdict == "untrusted"
    assert answer.reasons == ("held-out error 50 %",)
    with pytest.raises(UntrustedError, match="elbow: 3 masses is not to be trusted: held-out error 50 %"):
        answer.raise_if_untrusted()
    assert Answer(checks=(GOOD,)).raise_if_untrusted().verdict is Verdict.TRUSTED


def test_summary_has_tables_verdict_reasons_and_numbered_notes():
    note = Note("torque-lag", Severity.WARNING, "torque is 10 ms late", "joint3")
    text = Answer(checks=(GOOD, BAD, WARNING), notes=(note,)).summary()
    assert "untrusted\n  - held-out error 50 %\n  - costs a little" in text
    assert "[1] warning torque-lag (joint3): torque is 10 ms late" in text
    assert "1.235" in text
    assert "Notes:" not in Answer(notes=(note,)).summary(notes=False)


def test_repr_is_one_line_and_html_escapes():
    answer = Answer(checks=(BAD,), notes=(Note("x", Severity.INFO, "a < b"),))
    assert repr(answer) == "<Answer elbow: 3 masses, untrusted>"
    assert str(answer) == answer.summary()
    html = answer._repr_html_()
    assert "<td>1.235</td>" in html
    assert "a &lt; b" in html


def test_figures_of_the_page_are_the_plots():
    answer = Answer()
    assert answer.figures() == ("torque-joint1",)
    assert answer.plot("torque").layout.title.text == "torque"
    with pytest.raises(UnknownNameError, match="torque-joint1"):
        answer.plot("speed")


def test_the_report_is_written(tmp_path: Path):
    path = Answer(checks=(GOOD,)).report(tmp_path / "page.html")
    assert "torque-joint1" in path.read_text()


def test_no_number_of_a_table_is_cut_and_numbers_stand_right():
    table = Table(("name", "value"), (("a", 123456.0), ("long name", -0.000012345)), digits=6)
    lines = text_table(table).splitlines()
    assert lines[2].endswith("123456")
    assert lines[3].endswith("-1.2345e-05")
    assert len(lines[2]) == len(lines[3])
    assert text_table(Table(("a",), ((None,), (float("inf"),)))).splitlines()[2:] == ["  -", "inf"]


def test_rows_can_be_looked_up_sorted_and_listed():
    rows = Listing([Row("b", 2.0), Row("a", None), Row("c", 1.0)])
    assert rows["c"].value == 1.0
    assert [row.name for row in rows.sorted_by("value")] == ["c", "b", "a"]
    assert [row.name for row in rows.sorted_by("value", descending=True)] == ["b", "c", "a"]
    assert rows.as_dicts()[0] == {"name": "b", "value": 2.0, "unit": "kg"}
    assert len(rows[:2]) == 2
    assert "name" in str(rows)
    assert repr(rows) == "<3 rows: name, value, unit>"
    with pytest.raises(UnknownNameError, match="no row named 'd'"):
        rows["d"]


def test_rows_become_a_frame_when_pandas_is_there():
    pandas = pytest.importorskip("pandas")
    frame = Listing([Row("b", 2.0), Row("a", 1.0)]).to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc["a", "value"] == 1.0


def test_provenance_says_versions_and_files():
    record = Provenance(inputs=(InputFile("arm.urdf", "0" * 64, "robot"),), seed=3).as_dict()
    assert record["versions"]["armid"]
    assert record["inputs"][0]["role"] == "robot"

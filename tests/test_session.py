"""The session of the README from start to finish: `import armid` and nothing deeper."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import armid

README = Path(__file__).parents[1] / "README.md"
MASS = 1.5
"""[kg] carried in the session."""


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """The names that the README's program leaves behind, run in an empty folder."""
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    folder = tmp_path_factory.mktemp("session")
    names: dict[str, object] = {"folder": folder}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(program, "README.md", "exec"), names)
    return names


def test_the_result_is_trusted_and_says_so_in_one_line(session):
    result = session["result"]
    assert result.verdict is armid.Verdict.TRUSTED
    assert "\n" not in repr(result)
    assert "trusted" in repr(result)
    assert result.summary().startswith("panda: 64 base parameters")
    assert "<table>" in result._repr_html_()


def test_files_are_there_and_read_back(session):
    folder = session["folder"]
    assert (folder / "report.html").stat().st_size > 1e5
    assert armid.load_robot(folder / "identified.urdf").n_joints == 7
    stored = armid.load_result(folder / "identified")
    assert stored.verdict == session["result"].verdict
    assert [row.value for row in stored.parameters] == [row.value for row in session["result"].parameters]
    assert list((folder / "motion-log").glob("*.csv"))


def test_parameters_are_rows_to_sort(session):
    rows = session["result"].parameters.sorted_by("value", descending=True)
    assert rows[0].value == max(row.value for row in session["result"].parameters)
    assert session["result"].parameters["joint1.viscous"].unit == "N m s/rad"


def test_figures_and_plain_values(session):
    result = session["result"]
    assert result.plot("torque").data
    assert json.loads(json.dumps(result.as_dict(), default=str))["verdict"] == "trusted"
    assert result.provenance.versions["armid"] == armid.__version__


def test_information_adds_up_and_the_same_log_twice_is_refused(session):
    both, result, again = session["both"], session["result"], session["again"]
    assert both.information.count == pytest.approx(result.information.count + again.information.count)
    with pytest.raises(armid.InputError, match="log"):
        _ = both + result


def test_the_payload_is_found(session):
    low, high = session["load"].interval("mass")
    assert low < MASS < high or abs(session["load"].mass - MASS) < 0.01 * MASS
    assert session["load"].verdict == "trusted"


def test_inspection_counts(session):
    found = armid.inspect(session["robot"], friction="viscous,coulomb")
    assert found.as_dict()["base_parameters"] == 57
    assert found.as_dict()["standard_parameters"] == 84


def test_help_is_a_table_of_contents():
    for name in armid.__all__:
        assert getattr(armid, name) is not None
        assert name in armid.__doc__ or name == "__version__", name

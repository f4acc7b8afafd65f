"""Answers kept whole: every kind of value comes back as it was, and nothing but our own records is ever made."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

from armid.answers import ARRAYS_NAME, JSON_NAME, load_answer, write_answer
from armid.documents import digest, read_arrays, write_json, write_text
from armid.errors import InputError
from armid.folders import answer_folder
from armid.identification.compare import compare
from armid.identification.result import load_result
from armid.inspection.inspect import inspect
from armid.notes import Note, Severity
from armid.outcome import Listing, Outcome
from armid.payload.payload import Payload
from support.identified import trusted
from support.planar import planar_arm


def kept(value: Any, folder: Path) -> Any:
    """A value through the files, inside a record that takes anything."""
    payload = Payload(frame=value, inertial=np.arange(10.0), covariance=np.eye(10), separated=True, method="test")
    write_answer(payload, folder)
    return load_answer(folder).frame


def test_numbers_come_back_to_the_last_bit(tmp_path: Path) -> None:
    numbers = (0.1, -0.0, 5e-324, 1e308, inf, -inf, 1.5 - 2e-300j, 7, True, None, "text", np.float32(0.1))
    back = kept(numbers, tmp_path)
    assert back == numbers
    assert [type(x) for x in back] == [type(x) for x in numbers]
    assert isnan(kept(nan, tmp_path))


def test_containers_keep_their_kind_and_their_order(tmp_path: Path) -> None:
    value = {"b": [1, (2, {"x"})], "a": frozenset({1.5}), (1, "two"): Path("folder/file")}
    back = kept(value, tmp_path)
    assert back == value
    assert list(back) == list(value)


def test_rows_of_records_come_back_as_rows(tmp_path: Path) -> None:
    rows = Listing([Note("one", Severity.INFO, "first"), Note("two", Severity.ERROR, "second")])
    back = kept(rows, tmp_path)
    assert type(back) is Listing
    assert tuple(back) == tuple(rows)


def test_an_array_that_is_shared_is_kept_once_and_stays_shared(tmp_path: Path) -> None:
    array = np.arange(6.0).reshape(2, 3)
    first, second, whole = kept((array, array, np.array([True, False])), tmp_path)
    assert first is second
    np.testing.assert_array_equal(first, array)
    assert whole.dtype == np.bool_
    assert not first.flags.writeable
    assert len(read_arrays(tmp_path / ARRAYS_NAME, "arrays")) == 4


def test_closed_forms_come_back_equal(tmp_path: Path) -> None:
    a, q = sympy.symbols("a"), sympy.Symbol("q1", real=True)
    form = (
        sympy.Rational(2, 3) * a**2 * sympy.cos(q) + sympy.sqrt(3) * sympy.sin(2 * q) - sympy.pi + sympy.Float("0.25")
    )
    assert kept(form, tmp_path) == form
    with pytest.raises(TypeError, match="cannot be kept"):
        kept(sympy.gamma(a), tmp_path)


def test_an_inspection_is_the_same_with_all_its_closed_forms(tmp_path: Path) -> None:
    found = inspect(planar_arm(), friction="viscous")
    found.save(tmp_path)
    again = load_answer(tmp_path)
    assert again.terms == found.terms
    assert again.latex() == found.latex()
    assert again.as_dict() == found.as_dict()


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"class": "os:system"}, "no class of armid"),
        ({"class": "armid.__main__:Main"}, "no class of armid"),
        ({"class": "armid.documents:Path"}, "no record"),
        ({"class": "armid.payload.payload:Payload", "unknown": 1}, "unexpected keyword"),
    ],
)
def test_nothing_but_records_of_ours_is_made(tmp_path: Path, record: dict[str, Any], said: str) -> None:
    """Even where somebody knew how to write the digest."""
    kept("frame", tmp_path)
    text = json.loads((tmp_path / JSON_NAME).read_text())
    text.pop("digest")
    text["records"][0] = record
    write_json(tmp_path / JSON_NAME, {**text, "digest": digest(text, read_arrays(tmp_path / ARRAYS_NAME, ""))})
    with pytest.raises(InputError, match=said):
        load_answer(tmp_path)


def test_what_is_missing_or_exchanged_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds nothing that armid wrote"):
        load_answer(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        load_answer(tmp_path / "nowhere")
    with answer_folder(tmp_path / "page", "page report.html"):
        write_text(tmp_path / "page" / "report.html", "a page")
    with pytest.raises(InputError, match=r"holds files of page report.html, which are not kept whole"):
        load_answer(tmp_path / "page")
    kept("one", tmp_path / "one")
    kept("two", tmp_path / "two")
    (tmp_path / "one" / JSON_NAME).write_bytes((tmp_path / "two" / JSON_NAME).read_bytes())
    assert load_answer(tmp_path / "one").frame == "two"
    np.savez(tmp_path / "one" / ARRAYS_NAME, a0=np.arange(10.0) + 1e-12, a1=np.eye(10))
    with pytest.raises(InputError, match="do not belong together"):
        load_answer(tmp_path / "one")


def test_every_answer_with_a_folder_of_its_own_loads_by_one_function(tmp_path: Path) -> None:
    result = trusted()
    result.save(tmp_path / "result")
    assert load_answer(tmp_path / "result").as_dict() == load_result(tmp_path / "result").as_dict()
    compared = compare(result, result)
    compared.save(tmp_path / "compared")
    assert load_answer(tmp_path / "compared").summary() == compared.summary()


def test_a_dictionary_of_an_answer_can_become_json() -> None:
    payload = Payload(frame="tool", inertial=np.ones(10), covariance=np.diag([np.inf] * 10), separated=True, method="x")
    text = json.dumps(payload.as_dict(), allow_nan=False)
    assert json.loads(text) == payload.as_dict()
    assert payload.as_dict()["standard_deviations"]["mass"] is None


class _Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class _Own(Outcome):
    colour: _Colour = _Colour.RED
    hidden: int = field(default=3, init=False)


def test_what_is_not_ours_cannot_be_kept_unnoticed(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="cannot be kept"):
        kept(object(), tmp_path)
    write_answer(_Own(), tmp_path)
    with pytest.raises(InputError, match="no class of armid"):
        load_answer(tmp_path)

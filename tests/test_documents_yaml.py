"""The one reader of YAML: plain values or text, and nothing that can surprise."""

from __future__ import annotations

from pathlib import Path

import pytest

from armid.documents import MAX_YAML_BYTES, MAX_YAML_DEPTH, read_yaml, yaml_values
from armid.errors import InputError


def test_values_are_plain_or_left_as_written() -> None:
    text = "a: [1, 2.5, true]\nb: {c: 010, d: no}\n"
    assert yaml_values(text, "x") == {"a": [1, 2.5, True], "b": {"c": 8, "d": False}}
    assert yaml_values(text, "x", as_text=True) == {"a": ["1", "2.5", "true"], "b": {"c": "010", "d": "no"}}


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: &x 1\nb: *x\n", "line 1: anchors and aliases"),
        ("a: !!python/object:os.system {}\n", "tag"),
        ("a: 1\na: 2\n", "line 2: key 'a' appears twice"),
        ("b:\n  - {c: 1, c: 2}\n", "key 'c' appears twice"),
        ("? [1, 2]\n: 3\n", "not plain text"),
        ("a: [1, 2\n", "not valid YAML"),
        ("", "empty file"),
        ("[" * (MAX_YAML_DEPTH + 1) + "]" * (MAX_YAML_DEPTH + 1), "nested too deeply"),
        ("[" + "1," * 40_000 + "]", "too many values"),
        ("x" * (MAX_YAML_BYTES + 1), "larger than"),
    ],
)
def test_what_is_refused(text: str, problem: str, as_text: bool) -> None:
    with pytest.raises(InputError, match=problem):
        yaml_values(text, "file.yaml", as_text=as_text)


def test_a_date_that_does_not_exist_is_refused_in_a_line() -> None:
    with pytest.raises(InputError, match="not valid YAML"):
        yaml_values("a: 2024-13-45\n", "file.yaml")


def test_a_file_must_hold_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "list.yaml"
    path.write_text("- 1\n")
    with pytest.raises(InputError, match=r"not a mapping .expected a scenario"):
        read_yaml(path, "a scenario")
    with pytest.raises(InputError, match="does not exist"):
        read_yaml(tmp_path / "none.yaml", "a scenario")


def test_what_the_parser_says_is_whole_without_words_of_the_file() -> None:
    with pytest.raises(InputError) as refused:
        yaml_values("joints: [a\n", "arm.yaml")
    assert "line 2: expected ',' or ']', but got '<stream end>'" in str(refused.value)
    with pytest.raises(InputError) as refused:
        yaml_values("key: 'it''s' secret\n", "arm.yaml")
    assert "secret" not in str(refused.value)

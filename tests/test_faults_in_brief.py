"""What could be wrong, in brief: nothing that matters is folded, nothing is lost, and it fits a screen."""

from __future__ import annotations

import pytest

from armid.identification.faults import Answer, Fault
from armid.identification.faults_in_brief import brief_tables, matters
from armid.outcome import text_table

JOINTS = tuple(f"shoulder_joint_{k}" for k in range(1, 8))


def _gain(joint: str, estimate: float, deviation: float, answer: Answer, **more: object) -> Fault:
    size = {"estimate": estimate, "standard_deviation": deviation, "unit": "1", "tolerance": 0.05}
    ends = {"low": estimate - 2 * deviation, "high": estimate + 2 * deviation}
    return Fault(kind="gain", joint=joint, answer=answer, **size, **ends, **more)  # type: ignore[arg-type]


def _screen(faults: list[Fault]) -> str:
    return "\n\n".join(text_table(table) for table in brief_tables(faults))


def test_found_comes_first_then_what_may_be_there_then_a_line_per_kind() -> None:
    remedy = "carry a weighed payload in a second recording (--payload both)"
    faults = [_gain(name, 0.0, 0.001 * k, Answer.EXCLUDED) for k, name in enumerate(JOINTS[:5], start=1)]
    faults.append(_gain(JOINTS[5], 0.3, 0.2, Answer.UNDECIDABLE, experiment=remedy))
    faults.append(_gain(JOINTS[6], 0.3, 0.01, Answer.FOUND, words="gain: 0.77"))
    lines = _screen(faults).splitlines()
    found = next(k for k, line in enumerate(lines) if "gain: 0.77" in line)
    open_one = next(k for k, line in enumerate(lines) if "undecidable" in line)
    bounds = next(k for k, line in enumerate(lines) if "0.2 to 1 %" in line)
    assert found < open_one < bounds
    assert lines[bounds].endswith("gain 0.2 to 1 %")
    assert "of every joint that is not listed above" in lines[bounds - 2]


@pytest.mark.parametrize(
    ("estimate", "deviation", "explains", "own_row"),
    [(0.01, 0.2, 0.0, False), (0.3, 0.4, 0.0, False), (0.3, 0.2, 0.0, True), (0.01, 0.2, 0.02, True)],
)
def test_an_undecidable_fault_has_a_row_when_it_may_be_there_or_explains_something(
    estimate: float, deviation: float, explains: float, own_row: bool
) -> None:
    assert matters(_gain("joint1", estimate, deviation, Answer.UNDECIDABLE, explains=explains)) is own_row


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_every_fault_is_named_in_whole_words_and_no_line_is_wider_than_the_screen(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    kinds = ("gain", "zero", "slow-drift")
    faults = [
        Fault(kind=kind, joint=name, unit="1", tolerance=0.05, experiment=f"an experiment for the {kind} " * 4)
        for kind in kinds
        for name in JOINTS[:4]
    ]
    faults += [_gain(name, 0.0, 0.001, Answer.EXCLUDED) for name in JOINTS[4:]]
    faults.append(_gain(JOINTS[0], 0.3, 0.01, Answer.FOUND, words="torque: {gain: {shoulder_joint_1: 0.77}} " * 3))
    text = _screen(faults)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    assert all(name in words for name in (*JOINTS[:4], *kinds))
    assert all(f"{kind} of {', '.join(JOINTS[:4])}: an experiment for the {kind}" in words for kind in kinds[1:])
    assert f"gain of {', '.join(JOINTS[:4])}: an experiment" in words
    assert words.endswith("- gain 0.2 %")


def test_a_row_keeps_numbers_with_their_units_and_names_with_their_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = [_gain(name, 0.3, 0.2, Answer.UNDECIDABLE, experiment="carry a weighed payload " * 4) for name in JOINTS]
    starts = {line.split("  ")[0] for line in _screen(rows).splitlines()}
    assert {f"gain of {name}" for name in JOINTS[:6]} <= starts | {f"gain of {rest}" for rest in starts}
    assert "1 less likely ones are listed below" in " ".join(_screen(rows).split())
    assert "+30 %" in _screen(rows)
    assert "(95 %: -10 %" in _screen(rows)


def test_joints_that_no_answer_is_known_of_are_not_said_to_be_bounded() -> None:
    faults = [_gain(name, 0.0, 0.001, Answer.EXCLUDED) for name in JOINTS[:3]]
    faults += [Fault(kind="zero", joint=name, experiment="look") for name in JOINTS]
    assert f"gain 0.2 % of {', '.join(JOINTS[:3])}" in " ".join(_screen(faults).split())


def test_an_arm_of_seven_sound_joints_takes_less_than_half_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row each took 110 lines of a clean recording."""
    monkeypatch.setenv("COLUMNS", "120")
    kinds = [f"kind-{k}" for k in range(30)]
    experiment = "repeat the same motion with another load; or look at its sensor, or compare with another arm"
    faults = [
        Fault(
            kind=kind,
            joint=name,
            unit="1",
            tolerance=0.05,
            estimate=0.01,
            standard_deviation=0.01,
            low=-0.01,
            high=0.03,
            answer=Answer.UNDECIDABLE if sound else Answer.EXCLUDED,
            experiment=f"{kind}: {experiment}" if sound else "",
            explains=0.02 if sound else 0.0,
        )
        for k, kind in enumerate(kinds)
        for j, name in enumerate(f"joint{j}" for j in range(1, 8))
        for sound in ((j + k) % 7 == 0 and k < 20,)
    ]
    assert len(_screen(faults).splitlines()) < 45


def test_nothing_found_is_said() -> None:
    assert "nothing was found" in _screen([_gain("joint1", 0.0, 0.001, Answer.EXCLUDED)])

"""What to do next: decisive faults, reasons and other faults before what is undecidable, and no promise that is not kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from armid.identification.faults import Answer, Fault
from armid.page import Items
from armid.report.identification import identification_report
from armid.report.next_steps import next_steps
from support.identified import trusted, untrusted


def test_three_things_to_do_next() -> None:
    for result in (trusted(), untrusted()):
        items = next(block for block in identification_report(result).blocks() if isinstance(block, Items))
        assert len(items.items) == 3
        assert len(set(items.items)) == 3
    assert "40 %" in next(next_steps(untrusted()))


def _found(kind: str, words: str = "", *rivals: str) -> Fault:
    return Fault(
        kind=kind,
        joint="shoulder",
        estimate=-0.4,
        standard_deviation=0.01,
        low=-0.42,
        high=-0.38,
        unit="1",
        tolerance=0.05,
        answer=Answer.FOUND,
        words=words,
        rivals=rivals,
    )


_GAIN = "torque: {gain: {shoulder: 1.67}}"


@pytest.mark.parametrize(
    ("fault", "undone"),
    [
        (_found("gain", _GAIN), f"`{_GAIN}` in the mapping, or `--correct`."),
        (_found("gain", _GAIN, "x", "y"), f"`{_GAIN}` in the mapping (unless it is x or y, which explains as much)."),
        (_found("length", "xyz 0.4 -> 0.5 m"), "`xyz 0.4 -> 0.5 m` in the description."),
        (_found("weight"), ": `--correct`."),
        (_found("torque-sign", "torque: {sign: {}}"), "in the mapping."),
        (_found("crosstalk from waist"), "nothing undoes it"),
        (_found("slow-drift"), "nothing undoes it"),
        (_found("position torque", "a cable, or lengths"), "): a cable, or lengths."),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else "",
)
@pytest.mark.parametrize("large", [True, False])
def test_what_was_found_comes_before_what_is_undecidable_and_promises_only_what_is_undone(
    fault: Fault, undone: str, large: bool
) -> None:
    open_one = Fault(kind="scale", joint="waist", explains=0.9, experiment="a larger range")
    for result in (trusted(), untrusted()):
        steps = list(next_steps(replace(result, suspects=(open_one, replace(fault, large=large)))))[:3]
        (step,) = (step for step in steps if fault.name in step)
        assert undone in step
        assert ("--correct" in step) is ("--correct" in undone)
        assert not any("scale of waist" in earlier for earlier in steps[: steps.index(step)])

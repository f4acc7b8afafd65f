"""Table 6.2 of [RWTH2021]: axes that depend on no unknown length come out as printed; a wrong function would not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.studies.rwth import COMMON, COUNTS, PUBLISHED, PoseTable, table_of_poses

FEW = (3000, 3000, 3000, 3000, 3000, 2)


@pytest.fixture(scope="module")
def found() -> PoseTable:
    return table_of_poses(poses=FEW)


def test_counts_and_the_axes_without_lengths_are_the_printed_ones(found: PoseTable) -> None:
    assert (*found.counts, found.common) == (*COUNTS, COMMON)
    for choice in found.choices:
        assert choice.axes[4:] == pytest.approx(PUBLISHED[4:], rel=0.01)
        assert choice.axes[3] == pytest.approx(PUBLISHED[3], rel=0.25)  # joint 5's range is not printed
    assert found.verdict == "trusted"


def test_columns_of_length_one_bracket_the_printed_total(found: PoseTable) -> None:
    narrow, wide = found.choices
    assert wide.scaled_total < 10.0068 < narrow.scaled_total
    assert wide.scaled_total < wide.scaled_start
    assert narrow.scaled_total <= narrow.total


@pytest.mark.parametrize("axis", [4, 5])
def test_an_axis_that_is_not_as_printed_is_not_trusted(found: PoseTable, axis: int) -> None:
    axes = tuple(float(x) for x in np.array(found.choices[0].axes) * np.where(np.arange(6) == axis, 1.05, 1.0))
    wrong = replace(found, choices=(replace(found.choices[0], axes=axes), found.choices[1]))
    assert wrong.verdict == "untrusted"
    assert replace(found, common=33).verdict == "untrusted"

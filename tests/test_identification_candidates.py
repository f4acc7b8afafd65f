"""Candidates for what is wrong with a recording: which are as good as each other, and the words that undo them."""

from __future__ import annotations

from armid.identification.candidates import possible_size, tied, undoing_words
from armid.rows.imperfections import Family, Imperfection

GAIN = Imperfection(family=Family.GAIN, joint=0, part="", unit="1", tolerance=0.05, scale=0.0, linear=())


def test_the_best_candidate_is_as_good_as_itself_even_when_it_leaves_more_than_there_was() -> None:
    assert tied(1.0, 1.2, 1.2)
    assert not tied(1.0, 0.1, 0.9)


def test_what_reads_nothing_or_the_opposite_is_not_to_be_multiplied_by_ten() -> None:
    assert undoing_words(GAIN, possible_size(GAIN, -1.7), ("a",)) == "torque: {sign: {a: -1}}, or another unit"
    assert undoing_words(GAIN, 0.25, ("a",)) == "torque: {gain: {a: 0.8}}"

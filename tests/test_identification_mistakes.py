"""Discrete mistakes planted in a recording are named; a clean one raises no alarm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from armid.arrays import FloatArray
from armid.estimation.recording import runs_of
from armid.identification import hypotheses as tried
from armid.identification.angle_torque import beside_angles, beside_own_angle
from armid.identification.faults import Answer
from armid.identification.hypotheses import not_tried, signs
from armid.identification.metrics import nominal_standard
from armid.identification.mistakes import _answers, _rms, _Score
from armid.identification.pipeline import run_identification
from armid.identification.possible_errors import channel_errors
from armid.identification.result import Result, load_result
from armid.identification.settings import Identification
from armid.information.information import Information
from armid.logs import Channel
from armid.logs.conditioning import Conditioning, condition
from armid.outcome import Verdict
from armid.robot.load import load_robot
from support.identified import EFFECTS, log, trusted, urdf_file

SIGNS = ("torque-sign", "position-sign", "mirrored")
Q, TAU = Channel.POSITION, Channel.LINK_TORQUE
Columns = dict[Channel, FloatArray]


def identified(change: Callable[[Columns], None]) -> Result:
    """Both recordings with the same mistake, as a user would have them."""
    robot = load_robot(str(urdf_file()))
    logs = []
    for seed in (3, 5):
        clean = log(robot, trusted().robot, seed=seed)
        channels = {name: np.array(values) for name, values in clean.channels.items()}
        change(channels)
        logs.append(replace(clean, channels=channels, notes=()))
    return run_identification(robot, logs[:1], logs[1:], Identification(effects=EFFECTS, sensitivity=False))


def reversed_columns(*channels: Channel, joint: int) -> Callable[[Columns], None]:
    def change(columns: Columns) -> None:
        for channel in channels:
            columns[channel][:, joint] *= -1.0

    return change


def exchanged(*channels: Channel) -> Callable[[Columns], None]:
    def change(columns: Columns) -> None:
        for channel in channels:
            columns[channel][:, [1, 2]] = columns[channel][:, [2, 1]]

    return change


@pytest.mark.parametrize("joint", [0, 1, 2])
@pytest.mark.parametrize(
    ("kind", "channels"), [("torque-sign", (TAU,)), ("position-sign", (Q,)), ("mirrored", (Q, TAU))]
)
def test_a_reversed_sign_is_named(kind: str, channels: tuple[Channel, ...], joint: int) -> None:
    result = identified(reversed_columns(*channels, joint=joint))
    # A reversed sign may look like faults of other sensors too; of signs one is named.
    found = [fault for fault in result.faults if fault.answer is Answer.FOUND and fault.kind in SIGNS]
    name = result.described.joint_names[joint]
    if joint == 0 and kind == "mirrored":
        # A standing arm turned the other way round its vertical axis is another arm, nearly as possible; never silently trusted.
        assert result.suspects or result.verdict is Verdict.UNTRUSTED
        return
    assert result.verdict is Verdict.UNTRUSTED
    assert [fault.joint for fault in found] == [name]
    if not (joint == 0 and kind == "position-sign"):
        # Round a vertical axis a reversed position and a reversed torque are the same but for coupling.
        assert found[0].kind == kind
    assert any(check.code == "fault" and found[0].words in check.message for check in result.checks)


@pytest.mark.parametrize(("kind", "channels"), [("torques-swapped", (TAU,)), ("swapped", (Q, TAU))])
def test_exchanged_joints_are_named(kind: str, channels: tuple[Channel, ...]) -> None:
    result = identified(exchanged(*channels))
    found = [fault for fault in result.faults if fault.answer is Answer.FOUND and "swapped" in fault.kind]
    assert [fault.kind for fault in found] == [f"{kind} with elbow"]
    assert result.verdict is Verdict.UNTRUSTED


def test_an_encoder_a_quarter_turn_off_is_not_trusted() -> None:
    """On this planar arm turned bodies explain nearly all of it; they are just no bodies of these links."""

    def change(columns: Columns) -> None:
        columns[Q][:, 1] += 0.5 * np.pi

    assert identified(change).verdict is Verdict.UNTRUSTED


def test_a_clean_recording_raises_no_alarm() -> None:
    assert not [fault for fault in trusted().faults if fault.answer is Answer.FOUND and fault.large]


def test_answers_are_kept_with_the_result(tmp_path: Path) -> None:
    result = identified(reversed_columns(TAU, joint=1))
    result.save(tmp_path / "r")
    again = load_result(tmp_path / "r")
    assert [f.sentence for f in again.faults] == [f.sentence for f in result.faults]
    assert "fault" in [check.code for check in again.checks if not check.passed]
    assert "What could be wrong" in [section.title for section in again.page().sections]


def scored(own: FloatArray, other: FloatArray, *, rows: float = 100.0, repeated: bool = True) -> _Score:
    """The sign of the first joint's torque with these errors as it is, and without the mistake."""
    flipped = next(signs(load_robot("ur10e")))
    return _Score(mistake=flipped, own=own, other=other, rows=rows, repeated=repeated)


@pytest.mark.parametrize(("other", "named"), [(0.5, True), (0.52, True), (0.7, False)], ids=("equal", "tied", "worse"))
def test_mistakes_that_explain_as_much_are_named_beside_the_one_found(other: float, named: bool) -> None:
    """Of a wrist that is symmetric the sign of its torque and the direction in which it counts look the same."""
    torque, position, _ = (next(s for s in signs(load_robot("ur10e")) if s.kind == kind) for kind in SIGNS)
    own, without = np.ones(6), np.array([0.5, 1.0, 1.0, 1.0, 1.0, 1.0])
    scores = [
        _Score(mistake=torque, own=own, other=without, rows=100.0),
        _Score(mistake=position, own=own, other=np.where(without < 1.0, other, 1.0), rows=100.0),
    ]
    found, *rest = _answers(scores)
    assert (found.kind, found.answer) == ("torque-sign", Answer.FOUND)
    assert (f"position-sign of {position.joint}" in found.rivals) is named
    assert [(f.kind, f.answer) for f in rest] == [("position-sign", Answer.UNDECIDABLE)] * named


def test_few_independent_rows_decide_nothing() -> None:
    """The same ratio of errors is a sign on a long motion and chance on an arm that hardly moves."""
    ratios = np.array([1.8, 1.0, 1.0, 1.0, 1.0, 1.0])
    many, few = (scored(ratios, np.ones(6), rows=rows) for rows in (40.0, 4.0))
    assert many.found
    assert not few.found
    assert few.tied
    assert [fault.answer for fault in _answers([few])] == [Answer.UNDECIDABLE]


def test_what_the_held_out_motion_does_not_show_is_undecidable() -> None:
    """However likely a sign is on the training motion: what a short motion leaves unexplained asks for one, too."""
    score = scored(np.full(6, 2.0), np.ones(6), repeated=False)
    assert not score.found
    assert [fault.answer for fault in _answers([score])] == [Answer.UNDECIDABLE]


def test_a_sign_reversed_in_the_training_motion_alone_is_not_undone_in_words_but_never_trusted() -> None:
    """The held-out motion contradicts it: which of the two recordings is wrong, nobody knows."""
    robot = load_robot(str(urdf_file()))
    clean, other = (log(robot, trusted().robot, seed=seed) for seed in (3, 5))
    channels = {name: np.array(values) for name, values in clean.channels.items()}
    reversed_columns(TAU, joint=2)(channels)
    spoiled = replace(clean, channels=channels, notes=())
    result = run_identification(robot, [spoiled], [other], Identification(effects=EFFECTS, sensitivity=False))
    assert result.verdict is Verdict.UNTRUSTED
    assert not [f for f in result.faults if f.answer is Answer.FOUND and f.kind in SIGNS]


def test_directions_of_coupled_drives_are_listed_asnot_tried() -> None:
    """Of the TX40 the last two drives are coupled; the others are tried like those of any arm."""
    robot = load_robot("tx40")
    tried = {(h.kind, h.joint) for h in signs(robot)}
    listed = {(fault.kind, fault.joint) for fault in not_tried(robot)}
    every = {(kind, joint) for kind in ("position-sign", "mirrored") for joint in robot.joint_names}
    assert listed == {(kind, joint) for kind in ("position-sign", "mirrored") for joint in robot.joint_names[-2:]}
    assert every - listed == {own for own in tried if own[0] != "torque-sign"}
    assert not not_tried(load_robot("ur10e"))


@pytest.mark.parametrize(("joint", "answer"), [(0, Answer.FOUND), (5, Answer.UNDECIDABLE)])
def test_a_mistake_must_explain_its_own_joint(joint: int, answer: Answer) -> None:
    """What the model lacks of another joint, a cable there, is better explained by many another geometry."""
    errors = np.ones(6)
    errors[joint] = 4.0
    assert [fault.answer for fault in _answers([scored(errors, np.ones(6))])] == [answer]


@pytest.mark.parametrize(("beside", "answer"), [(2.0, Answer.FOUND), (1.02, Answer.UNDECIDABLE)])
def test_what_a_cable_explains_as_well_is_undecidable(beside: float, answer: Answer) -> None:
    """Beside torque that goes with the joints' angles a mistake must explain as much as is asked of it without."""
    ratios = np.array([2.5, 1.0, 1.0, 1.0, 1.0, 1.0])
    score = replace(scored(ratios, np.ones(6)), beside=((ratios, np.ones(6)), (beside * np.ones(6), np.ones(6))))
    assert [fault.answer for fault in _answers([score])] == [answer]


def test_torque_that_goes_with_angles_is_not_in_the_rows_beside_it() -> None:
    """A cable along its own joint leaves the rows beside own angles as they were; one along others those beside all angles."""
    robot = load_robot(str(urdf_file()))
    (run,) = runs_of(condition(log(robot, robot, seed=3), robot, Conditioning(cutoff=10.0)), robot, EFFECTS)
    q = run.inputs[:, : robot.n_joints]
    own, others = np.array(run.y), np.array(run.y)
    own[:, 2] += 3.0 * np.sin(q[:, 2]) - 2.0 * np.cos(q[:, 2])
    others[:, 2] += 3.0 * np.sin(q[:, 1]) - 2.0 * np.cos(q[:, 0])

    def left(rows: Callable[..., Information], y: FloatArray) -> FloatArray:
        return channel_errors(rows([replace(run, y=y)]), nominal_standard(robot, run.source.columns))

    as_it_is = left(beside_own_angle, run.y)
    np.testing.assert_allclose(left(beside_own_angle, own), as_it_is, rtol=1e-6)
    assert left(beside_own_angle, others)[2] > 10.0 * as_it_is[2]
    np.testing.assert_allclose(left(beside_angles, others), left(beside_angles, run.y), rtol=1e-6)


@pytest.mark.parametrize(("ratio", "said"), [(0.8, 0), (0.95, 1), (1.05, 1), (1.2, 1)])
def test_what_fits_better_though_not_enough_to_be_found_is_undecidable(ratio: float, said: int) -> None:
    """Between as good and found there is no gap in which nothing is said."""
    score = scored(np.array([ratio, 1.0, 1.0, 1.0, 1.0, 1.0]), np.ones(6))
    assert [fault.answer for fault in _answers([score])] == [Answer.UNDECIDABLE] * said


def test_every_reversed_motion_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Position alone and position with torque share their rows, and a torque alone needs none."""
    seen = []
    undone = tried._undone
    monkeypatch.setattr(tried, "_undone", lambda run, undo: seen.append(undo) or undone(run, undo))
    identified(lambda columns: None)
    assert len(seen) == len(set(seen)) == 3


@pytest.mark.parametrize(
    ("own", "other", "answer"),
    [(0.003, 0.002, Answer.UNDECIDABLE), (0.002, 0.003, Answer.UNDECIDABLE), (0.05, 0.002, Answer.FOUND)],
)
def test_errors_that_are_small_enough_speak_for_nothing(own: float, other: float, answer: Answer) -> None:
    """Of a joint explained to a hundredth of its torque, 100 N m here, no ratio tells a sign; nor does one exclude it."""

    def errors(own_joint: float) -> FloatArray:
        channels = [
            SimpleNamespace(count=4.0, error_energy=lambda _, e=e: 4.0 * (100.0 * e) ** 2) for e in (own_joint, 0.02)
        ]
        return _rms(SimpleNamespace(channels=channels), np.zeros(1), np.array([1.0, 1.0]))

    score = scored(errors(own), errors(other))
    assert [fault.answer for fault in _answers([score])] == [answer]

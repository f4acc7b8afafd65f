"""The first screen of an identification: what may be done with the model, its error, the arm, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator

from armid.identification.result import Result
from armid.identification.result_tables import judged_errors, judged_share
from armid.identification.uses import uses_of
from armid.page import Figure, Items, SideBySide, Table
from armid.report import plots
from armid.report.bodies import arm_figure
from armid.report.next_steps import next_steps

_STEPS = 3
"""Things to do next that the first screen names."""
_HIGHEST = 150.0
"""Top of the chart of errors [%]: a description can be wrong by more, and would flatten every other bar."""


def first_screen(result: Result) -> SideBySide:
    """Uses and next steps on the left, errors and the arm on the right."""
    steps = Items("Three things to do next", tuple(next_steps(result))[:_STEPS], numbered=True)
    return SideBySide(((_uses_table(result), steps), (error_chart(result), arm_figure(result.robot, height=270))))


def _uses_table(result: Result) -> Table:
    """Each use with yes or no and the figure that decides it."""
    words = {True: "✓\u00a0yes", False: "✗\u00a0no", None: "? unknown"}
    tones = {True: "yes", False: "no", None: "faint"}
    uses = uses_of(result)
    return Table(
        ("may it be used for", "", "because, on held-out motion"),
        tuple((use.name, words[use.allowed], use.figure) for use in uses),
        tuple(tones[use.allowed] for use in uses),
    )


def error_chart(result: Result) -> Figure:
    """Held-out error in motion of every joint over its torque, as it is judged, beside the description's."""
    names = [joint.name for joint in result.joints]
    judged = judged_errors(result)
    found = [100 * judged_share(judged.get(name)) for name in names]
    described = [share * times for share, times in zip(found, _described_times(result), strict=True)]
    bars = tuple(
        {"type": "bar", "x": names, "y": plots.short(values, 3), "name": name, "marker": {"color": colour}}
        for name, values, colour in (("description", described, plots.GREY), ("identified", found, plots.BLUE))
    )
    layout = plots.axes("", "error [% of torque]", barmode="group", title={"text": "Held-out torque error per joint"})
    beyond = [f"{name} {value:.0f} %" for name, value in zip(names, described, strict=True) if value > _HIGHEST]
    if beyond:
        layout["yaxis"]["range"] = [0.0, _HIGHEST]
    caption = f"Beyond the chart, with the description: {', '.join(beyond)}." if beyond else ""
    return Figure("errors", bars, layout, caption, height=220)


def _described_times(result: Result) -> Iterator[float]:
    """Held-out error of the description over that of the result, joint by joint, in motion where that is known."""
    compared = () if result.evidence is None else result.evidence.against_nominal
    moving = {one.name: one.rmse_other / one.rmse for one in compared if one.rmse > 0.0}
    for joint, nominal in zip(result.joints, result.joints_nominal, strict=True):
        whole = nominal.held_out.rmse / joint.held_out.rmse if joint.held_out.rmse else float("nan")
        yield moving.get(joint.name, whole)

"""What files of each format would hold of an identified arm, and how well they would predict."""

from __future__ import annotations

from armid.export.formats import Format
from armid.export.judged import drives_of, file_errors
from armid.export.losses import HELD, PLAIN_URDF, losses
from armid.identification.result import Result
from armid.page import Paragraph, Section, Table


def files_section(result: Result) -> Section:
    """One row per format: held-out error of the file, for plain readers of it, and what it drops."""
    rows = []
    for target, held in HELD.items():
        if target in (Format.C, Format.MATLAB):
            continue  # the same as Python
        plain = PLAIN_URDF if target is Format.URDF else held
        found = file_errors(result, drives_of(result.robot, *held), plain=drives_of(result.robot, *plain))
        file, plainly = (float("nan"), float("nan")) if found is None else (100 * found.file, 100 * found.plain)
        dropped = "; ".join(losses(result, result.robot, target)) or "nothing"
        name = "python, c, matlab" if target is Format.PYTHON else target.value
        rows.append((name, file, plainly, dropped))
    return Section(
        "files",
        "What files hold",
        (
            Paragraph(
                "Formats drop what they have no place for. Held-out torque error [%] of a file as written, and for programs that "
                "do not read its extensions; `armid export` reads every file back, prints the same and refuses one that "
                "predicts a joint worse than the description."
            ),
            Table(("format", "error [%]", "plainly read [%]", "not in it"), tuple(rows)),
        ),
    )

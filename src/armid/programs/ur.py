"""Universal Robots: a URScript player and an RTDE recorder."""

from __future__ import annotations

import numpy as np

from armid.programs.wanted import Wanted, commented, numbers, readme, template

_CB3_RATE_HZ = 125.0
"""Of the CB3 series; e-series controllers run at 500 Hz."""

_OUTPUTS = (
    ("timestamp", "DOUBLE"),
    ("actual_q", "VECTOR6D"),
    ("actual_qd", "VECTOR6D"),
    ("actual_current", "VECTOR6D"),
    ("target_q", "VECTOR6D"),
    ("target_moment", "VECTOR6D"),
    ("joint_temperatures", "VECTOR6D"),
    ("output_int_register_0", "INT32"),
)
"""RTDE output fields; the register tells when the program plays the motion at full speed."""


def files(wanted: Wanted) -> dict[str, str]:
    """`play.script`, `recipe.xml`, `record.py` and how to use them."""
    rate = wanted.rate_hz
    recipe = "\n".join(f'    <field name="{name}" type="{kind}"/>' for name, kind in _OUTPUTS)
    names = "\n".join(f'    ("{name}", "{kind}"),' for name, kind in _OUTPUTS)
    series = "CB3" if rate == _CB3_RATE_HZ else "e-series"
    return {
        "play.script": _script(wanted),
        "recipe.xml": f'<?xml version="1.0"?>\n<rtde_config>\n  <recipe key="out">\n{recipe}\n  </recipe>\n</rtde_config>\n',
        "record.py": template("rtde_record.py.txt", fields=names, rate=f"{rate:.5g}"),
        "README.md": readme("README_ur.md", wanted, series=series),
    }


def _script(wanted: Wanted) -> str:
    """URScript; one call per knot interval, whole ticks each."""
    knots, tick = wanted.knots, 1.0 / wanted.rate_hz
    calls = []
    for k in range(len(knots.time) - 1):
        ticks = round((knots.time[k + 1] - knots.time[k]) / tick)
        arrays = ", ".join(f"[{numbers(np.asarray(x[i]))}]" for i in (k, k + 1) for x in (knots.q, knots.qd, knots.qdd))
        calls.append(f"    armid_segment({ticks}, speed, {arrays})")
    return template(
        "play.script",
        facts=commented(wanted.facts(), "  #"),  # a controller takes a script that begins with its def
        tick=f"{tick:.6f}",
        start=numbers(wanted.start),
        approach=f"{wanted.approach_speed:.4f}",
        dry_run=f"{wanted.dry_run:.3f}",
        dry_percent=f"{100 * wanted.dry_run:.0f}",
        segments="\n".join(calls),
    )

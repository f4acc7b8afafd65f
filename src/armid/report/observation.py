"""The page about an observation: external torque of every joint against its level, and the contacts."""

from __future__ import annotations

import numpy as np

from armid.observation.observe import Observation
from armid.page import Figure, Report, Section
from armid.report.judged import judged_page
from armid.report.plots import BLUE, GREY, ORANGE, axes, envelope, line


def observation_report(seen: Observation) -> Report:
    """Everything the page shows."""
    t = seen.motion.time
    figures = []
    for j, name in enumerate(seen.robot.joint_names):
        data = [line(*envelope(t, np.asarray(seen.external[:, j])), "external torque", BLUE)]
        for sign in (1.0, -1.0):
            data.append(line(*envelope(t, sign * seen.threshold[:, j]), "level", GREY, dash="dash"))
        marked = [c for c in seen.contacts if name in c.joints]
        for contact in marked:
            ends = np.array([contact.begins, contact.ends]) - seen.motion.delay
            data.append(line(ends, np.zeros(2), "contact", ORANGE))
        caption = f"{len(marked)} contacts seen in this joint." if marked else "No contact seen in this joint."
        figures.append(
            Figure(f"external-{name}", tuple(data), axes("time [s]", f"{name} [N m or N]"), caption, 220, half=True)
        )
    return judged_page(
        seen,
        f"{seen.robot.name}: what pushed the arm",
        seen._heading(),
        Section("contacts", "Contacts", seen._tables()),
        Section("traces", "External torque", tuple(figures)),
    )

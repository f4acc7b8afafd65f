"""[Kolyubin2017]'s kinematic experiment under compliance and eccentricity that a rigid model does not know.

One line per disturbance of every joint. `moves` is how far the disturbance displaces the tool, `rigid` what geometry and
zeros fitted at 17 optimised poses leave on 200 fresh ones, `bound` what they leave when fitted at 1000 poses without
noise (no rigid model is better), `with terms` the same 17 poses with eccentricity and compliance among the unknowns.
Run: python -m bench replica
"""

from __future__ import annotations

import numpy as np

from armid.studies.replica import PUBLISHED, Disturbance, replica_table

COMPLIANCES = (0.0, 10e-6, 20e-6, 30e-6, 50e-6, 100e-6)
ECCENTRICITIES = (0.0, 0.1e-3, 0.3e-3, 0.5e-3)


def told(e) -> str:
    return f"{1e3 * e.mean:5.2f} {1e3 * e.largest:5.2f} {np.degrees(e.turned):6.3f}"


def main() -> None:
    print(
        "LWR4+ with the deviations of table 2, 60 um and 0.2 mrad of noise; mean mm, max mm, mean deg on 200 fresh poses"
    )
    print(f"published for the real arm: {told(PUBLISHED)}")
    print(
        "urad/(N m)  mrad   moves   rigid, 17 poses       bound                 with terms            / predicted  below"
    )
    cases = [Disturbance(c, e) for e in ECCENTRICITIES for c in COMPLIANCES]
    for row in replica_table(cases):
        d = row.disturbance
        print(
            f"{1e6 * d.compliance:10.0f} {1e3 * d.eccentricity:5.1f} {1e3 * row.displacement:7.2f}   {told(row.rigid)}"
            f"   {told(row.bound)}   {told(row.modelled)}   {row.modelled.mean / row.predicted:7.2f}"
            f"      {'yes' if row.rigid.below_published else 'no'}"
        )


if __name__ == "__main__":
    main()

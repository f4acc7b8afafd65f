# %% [markdown]
# # Which arm needs service?
#
# Four arms of one kind are recorded on three dates. They differ by 20 % from one another, as arms do, and from March on the second joint of one
# of them turns harder than it did.

# %%
from dataclasses import replace
from pathlib import Path

import numpy as np

import armid
from armid.simulation.variation import varied

robot = armid.load_robot("trio.urdf")
motion = armid.design_motion(robot, period=10, seconds=None, starts=1, workers=1, seed=0)
rng = np.random.default_rng(0)
rows = ["arm,date,robot,logs"]
for arm in ("north", "east", "south", "west"):
    real = varied(robot, 0.2, rng)
    for month in ("01", "02", "03"):
        if (arm, month) == ("south", "03"):
            joint = real.joints[1]
            stiff = replace(joint, drive=replace(joint.drive, coulomb=joint.drive.coulomb + 2.0))
            real = replace(real, joints=(real.joints[0], stiff, *real.joints[2:]))
        log = armid.simulate(real, motion.trajectory, seed=len(rows)).log
        log.save(Path("recordings") / f"{arm}-{month}.npz")
        rows.append(f"{arm},2026-{month}-01,trio.urdf,recordings/{arm}-{month}.npz")
Path("fleet.csv").write_text("\n".join(rows) + "\n")

# %% [markdown]
# ## Every arm on every date
#
# `cluster="local"` would use all cores; finished visits are kept in `out`, so that next month only the new ones are identified.

# %%
fleet = armid.fleet("fleet.csv", out="fleet")
fleet

# %% [markdown]
# ## What changed, since when

# %%
for alarm in fleet.alarms:
    print(
        f"{alarm.arm}, {fleet.joint_of(alarm.parameter)}: {alarm.parameter} {alarm.change:+.2f} {alarm.unit} since {alarm.since}"
    )
fleet.save("fleet")
fleet.report("fleet/report.html")

# %% [markdown]
# ## A new arm of the kind
#
# A short recording of another arm starts from what the others have in common.

# %%
other = varied(robot, 0.2, rng)
short = armid.simulate(other, motion.trajectory, seed=99).log
result = armid.identify(robot, short, prior="fleet")
result

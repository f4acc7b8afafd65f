# %% [markdown]
# # Where the joints really are
#
# A tracker watches the tool at a few poses; lengths, angles and encoder zeros follow from it. What counts is the error at poses that
# were not used.

# %%
from pathlib import Path

import numpy as np

import armid

robot = armid.load_robot("trio.urdf")

# %% [markdown]
# ## What a tracker would say of an arm that is not quite as described
#
# Here the real arm is the same file with a forearm 3 mm longer, an elbow 1 mm off and a shoulder turned by 0.2 degrees. On a real cell
# `armid poses ROBOT --for calibration` chooses where to stand, and the tracker or camera writes the poses.

# %%
text = Path("trio.urdf").read_text()
misbuilt = text.replace('xyz="0.4 0 0"', 'xyz="0.403 0.001 0"').replace("-1.5707963", "-1.5742870")
Path("misbuilt.urdf").write_text(misbuilt)
Path("cell.yaml").write_text("tracker: {position_noise: 1.0e-4, orientation_noise: 1.0e-3}\n")
postures = np.random.default_rng(0).uniform(-1.5, 1.5, (60, robot.n_joints))
seen = armid.simulate("misbuilt.urdf", postures, record="tracker", scenario="cell.yaml", seed=0)
files = seen.save("measured")
poses = next(path for path in files if path.name.startswith("poses"))
poses.name

# %% [markdown]
# ## Calibrate

# %%
found = armid.calibrate(robot, poses)
print(found.verdict)
found

# %% [markdown]
# ## Use it: the corrected arm, and targets that are reached

# %%
found.save("calibrated")
better = found.robot
print(better.n_joints, "joints, corrected")

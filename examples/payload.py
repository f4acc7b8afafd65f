# %% [markdown]
# # What is the arm carrying?
#
# Once an arm is identified, a motion with something in its hand says how heavy it is and where its centre of mass lies.

# %%
import numpy as np

import armid
from armid.simulation.variation import varied

robot = armid.load_robot("trio.urdf")
real = varied(robot, 0.2, np.random.default_rng(0))
motion = armid.design_motion(robot, period=10, seconds=None, starts=1, workers=1, seed=0)
other = armid.design_motion(robot, period=10, seconds=None, starts=1, workers=1, seed=1)
empty = armid.simulate(real, motion.trajectory, seed=1).log
test = armid.simulate(real, other.trajectory, seed=2).log
result = armid.identify(robot, empty, validate=test)
result.verdict

# %% [markdown]
# ## The same motion, carrying 1.5 kg

# %%
carrying = armid.simulate(real, motion.trajectory, payload_mass=1.5, seed=3).log
load = armid.identify_payload(result, carrying)
low, high = load.interval("mass")
print(f"{load.mass:.3f} kg, 95 % from {low:.3f} to {high:.3f}")
load

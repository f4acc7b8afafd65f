# %% [markdown]
# # Your first arm
#
# From a URDF whose masses are wrong to a model that predicts the torque of a motion it has never seen. The arm is a small one with three
# joints, so that every step takes a second or two; with your own URDF the steps are the same.

# %%
import numpy as np

import armid
from armid.simulation.variation import varied

robot = armid.load_robot("trio.urdf")  # as its drawing says; your own file goes here
print(robot.joint_names)

# %% [markdown]
# ## What can be identified?
#
# Torque does not show every mass and inertia by itself, only certain combinations: the *base parameters*.

# %%
seen = armid.inspect(robot)
seen

# %% [markdown]
# ## A motion that shows them
#
# Within every limit of the URDF, and a second one to test on.

# %%
motion = armid.design_motion(robot, period=10, seconds=None, starts=1, workers=1, seed=0)
other = armid.design_motion(robot, period=10, seconds=None, starts=1, workers=1, seed=1)
print(f"condition number {motion.condition_number:.0f}, {motion.verdict}")

# %% [markdown]
# ## Play it, record it
#
# On a real arm: `armid program` writes a player for its controller, and any CSV with time, positions and torques will do. Here an
# embedded robot plays it, whose links are about 20 % off their description.

# %%
real = varied(robot, 0.2, np.random.default_rng(0))
log = armid.simulate(real, motion.trajectory, seed=1).log
test = armid.simulate(real, other.trajectory, seed=2).log
log

# %% [markdown]
# ## Identify, and test on the other motion

# %%
result = armid.identify(robot, log, validate=test)
print(result.verdict, f"{100 * result.relative_error['held_out']:.1f} % of the torque is not explained")
result

# %%
result.plot("errors")  # beside the description's error; result.figures() lists the others

# %% [markdown]
# ## Use it

# %%
result.report("report.html")  # the page to show around
result.export("identified.urdf")  # refused when the verdict is untrusted
torque = armid.inverse_dynamics(result.robot, [0.1, 0.2, 0.3], [0.0, 0.5, 0.0], [1.0, 0.0, 0.0])
print("torque [N m]:", np.round(torque, 2))

# %% [markdown]
# # A motion worth recording
#
# The same model, the same noise: how well parameters come out is decided by the motion. `design_motion` searches for one that shows
# every base parameter and stays within every limit.

# %%
import armid

robot = armid.load_robot("trio.urdf")
quick = armid.design_motion(robot, period=5, seconds=None, starts=1, workers=1, seed=0)
longer = armid.design_motion(robot, period=15, seconds=None, starts=1, workers=1, seed=0)
for name, motion in (("5 s", quick), ("15 s", longer)):
    print(f"{name}: condition number {motion.condition_number:.0f}, {motion.verdict}")

# %% [markdown]
# ## How much of each limit it uses

# %%
longer

# %% [markdown]
# ## Take it to the robot
#
# Files for any controller; `armid program MOTION --for ur|kuka|franka|ros2` writes the player as well.

# %%
files = longer.save("motion")
print(*sorted(path.name for path in files), sep="\n")

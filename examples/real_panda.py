# %% [markdown]
# # From a real robot's log
#
# A public recording of a Franka Emika Panda (joint torque sensors). What is particular to the file, its columns and units, stands in a
# small mapping file; `armid map` drafts one for a table of your own. Set `ARMID_DATA` to the folder that holds `dynamics/`.

# %%
from pathlib import Path

import armid

mapping = Path("../docs/mappings/panda.yaml")
log = armid.read_log(mapping, "panda")
log

# %% [markdown]
# ## Identify
#
# The last 40 % of the recording are held out: no part of them is used for any choice.

# %%
result = armid.identify("panda", mapping)
print(result.verdict, f"{100 * result.relative_error['held_out']:.2f} % held-out error")
result

# %% [markdown]
# ## What could be wrong with this recording?

# %%
for fault in result.faults[:5]:
    print(fault.sentence)

# %%
result.plot("torque")

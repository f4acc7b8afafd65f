"""The small dense solve of `armid.information.solve`, under the name by which estimators know it."""

from armid.information.solve import channel_energies, channel_leverages, channel_sigmas, solve_factor

__all__ = ["channel_energies", "channel_leverages", "channel_sigmas", "solve_factor"]

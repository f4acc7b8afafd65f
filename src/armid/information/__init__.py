"""What experiments tell, as small triangular factors that add up: `accumulate` rows, `solve` for parameters."""

from armid.information.accumulate import FactorMethod, accumulate
from armid.information.information import ChannelInformation, Information, total
from armid.information.solve import Solution, belief, solve

__all__ = [
    "ChannelInformation",
    "FactorMethod",
    "Information",
    "Solution",
    "accumulate",
    "belief",
    "solve",
    "total",
]

"""Words for what may be wrong with an arm's geometry; free of NumPy, so that the command line knows them before it starts."""

from __future__ import annotations

from enum import StrEnum


class UnknownGeometry(StrEnum):
    """Which constants of the links are unknown."""

    COMPLETE = "complete"
    """Three translations and three rotations in front of every joint; identifiability makes it minimal."""
    MDH = "mdh"
    """alpha, a, theta, d of modified Denavit-Hartenberg frames ([Kolyubin2017] eq. 2)."""
    DH = "dh"
    """theta, d, a, alpha of standard Denavit-Hartenberg frames."""
    HAYATI = "hayati"
    """Modified Denavit-Hartenberg with a rotation about y where consecutive axes are (nearly) parallel [Hayati1985]."""
    NONE = "none"
    """The links are as described; only frames and joint terms are fitted."""


class Term(StrEnum):
    """What may be wrong between a drive's reading and the joint's position."""

    OFFSET = "offset"
    GAIN = "gain"
    ECCENTRICITY = "eccentricity"
    COUPLING = "coupling"
    COMPLIANCE = "compliance"

"""Franka: a libfranka player and logger in C++, and the same on pylibfranka."""

from __future__ import annotations

from armid.programs.wanted import Wanted, commented, knot_table, limit_values, readme, template


def files(wanted: Wanted) -> dict[str, str]:
    """`play.cpp`, `motion.hpp`, `motion.txt`, `CMakeLists.txt`, `play.py` and how to use them."""
    shared = limit_values(wanted)
    return {
        "play.cpp": template("franka_play.cpp", facts=commented(wanted.facts(), "//"), **shared),
        "motion.hpp": template("motion.hpp", **shared),
        "motion.txt": knot_table(wanted.knots),
        "CMakeLists.txt": template("franka_CMakeLists.txt"),
        "play.py": template("franka_play.py.txt", facts=commented(wanted.facts(), "#"), **shared),
        "README.md": readme("README_franka.md", wanted),
    }

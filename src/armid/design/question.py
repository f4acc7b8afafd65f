"""Everything a design depends on, to recognise the same question when it is asked again."""

from __future__ import annotations

from typing import Any

from armid.design.search import Budget, Search
from armid.design.statement import DesignSettings
from armid.identification.result import Result
from armid.motions.trajectory_files import input_of
from armid.outcome import InputFile
from armid.robot.geometry import Mesh
from armid.robot.robot import Robot
from armid.scene.cell import Cell


def design_question(
    robot: Robot,
    settings: DesignSettings,
    cell: Cell | None,
    budget: Budget,
    seed: int,
    *,
    resume: Search | None,
    after: Result | None,
) -> dict[str, Any]:
    """What was asked, for `UnfinishedWork`; the number of processes is left out, which changes no motion.

    Args:
        robot: with the limits and the payload that were asked for.
        settings: what is asked.
        cell: what surrounds the arm.
        budget: how long to search.
        seed: of everything random.
        resume: an earlier search to go on from.
        after: a result whose knowledge the motion adds to.
    """
    return {
        "robot": robot,
        "meshes": mesh_files(robot),
        "settings": settings,
        "cell": cell,
        "seconds": budget.seconds,
        "starts": budget.starts,
        "seed": seed,
        "resume": None if resume is None else [(c.start, c.family, c.coefficients) for c in resume.pool],
        "after": None if after is None else _known_by(after),
    }


def mesh_files(robot: Robot) -> list[tuple[InputFile, ...]]:
    """The files with the shapes of an arm, each with its hash."""
    bodies = (robot.geometry, *(link.geometry for link in robot.links))
    meshes = [g.shape.path for geometry in bodies for g in geometry if isinstance(g.shape, Mesh)]
    return [input_of(path, "mesh") for path in meshes]


def _known_by(result: Result) -> dict[str, Any]:
    """What a design takes from an earlier result."""
    estimate = result.estimate
    return {
        "parameters": estimate.names,
        "covariance": estimate.covariance,
        "sigma": estimate.sigma,
        "rate": result.conditioning.rate_hz,
        "inputs": result.provenance.as_dict(),
    }

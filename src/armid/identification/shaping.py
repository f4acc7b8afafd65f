"""Friction beyond the linear one: its shape settled on the training motion, its worth shown on held-out motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.covariance import Covariance
from armid.estimation.determined import described_structure, structure_of
from armid.estimation.estimate import Estimate
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import Run, information_of
from armid.estimation.run_maker import RunMaker, choice_runs
from armid.estimation.runs import lengths_of
from armid.identification.comparison import BLOCK_SECONDS, compared_blocks
from armid.identification.data import Data
from armid.identification.fit import Fit
from armid.identification.friction import Build, FrictionSearch, ShapeFit, rigid_part, scale_deviations
from armid.identification.gains import DriveGains, gain_values
from armid.identification.metrics import CONSISTENT, predicted
from armid.identification.moving import made_to_learn
from armid.identification.records import FrictionShapes, Measured, ShapeWorth
from armid.identification.sensors import corrected_runs
from armid.identification.settings import Identification
from armid.identification.thresholds import SHAPE_CONFIDENCE
from armid.identification.turning import best_turning, turning_options
from armid.logs.samples import Samples
from armid.notes import Note, Severity
from armid.outcome import Check
from armid.parameters.effects import FRICTION_NAMES, FRICTION_SHAPES, Effects
from armid.robot.robot import Robot
from armid.rows.friction import Shapes

_BLOCKS = 16
"""Into which a short held-out motion is cut for that comparison."""
_CORRELATED = 40.0
"""Samples: conditioned torque keeps ten samples per period of the cut-off, and residuals hold together for a few periods."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Shaping:
    """Shapes of friction as settled on the training motion.

    Args:
        data: runs whose rows hold them.
        shapes: scales, presliding, load.
        build: training motion in memory with other shapes.
        notes: what a reader must know.
    """

    data: Data
    shapes: Shapes
    build: Build
    notes: tuple[Note, ...] = ()

    def widened(self, estimate: Estimate, covariance: Covariance) -> tuple[Estimate, tuple[float, ...]]:
        """The estimate with what uncertain scales add to its covariance, and the deviations of the scales."""
        if not self.shapes.scales:
            return estimate, ()
        return scale_deviations(self.build, self.build(self.shapes), self.shapes, estimate, covariance)


def shaped(robot: Robot, data: Data, settings: Identification, plain: Fit, gains: DriveGains | None) -> Shaping:
    """Runs with the shapes of friction that the settings ask for.

    Args:
        robot: as the runs have it.
        data: with linear friction.
        settings: with shapes among the effects.
        plain: fit of the data as they are.
        gains: of the drives, when currents were measured.

    Raises:
        InputError: an earlier result without these shapes.
    """
    effects = settings.effects

    def build(shapes: Shapes) -> tuple[Run, ...]:
        return tuple(_freed(choice_runs(robot, data.choice, effects, shapes, gain_values(gains)), data))

    if settings.prior is not None:
        if settings.prior.effects.shapes != effects.shapes:
            raise InputError("--prior", "its result has other friction", "use the same --friction")
        shapes = settings.prior.shapes
        notes: tuple[Note, ...] = ()
    else:
        found = searched(build, _start_of(data, effects, plain), effects, data.choice, presliding=settings.presliding)
        shapes, notes = found.shapes, _shape_notes(found)
    maker = RunMaker(
        robot=robot, effects=effects, shapes=shapes, conditioning=data.conditioning, gains=gain_values(gains)
    )
    train, held_out = (_freed(runs, data) for runs in made_to_learn(maker, data.recordings, data.workers).runs)
    fresh = replace(
        data,
        train=train,
        held_out=held_out,
        shapes=shapes,
        structural=structure_of(build(shapes)),
        intended=described_structure(train, settings.described),
        notes=_settled_notes(data, shapes),
    )
    return Shaping(data=fresh, shapes=shapes, build=build, notes=notes)


def _freed(runs: Sequence[Run], data: Data) -> Sequence[Run]:
    """Runs without what a sensor file says of the sensors."""
    return runs if data.imperfections is None else corrected_runs(runs, data.imperfections)


def _start_of(data: Data, effects: Effects, plain: Fit) -> Shapes:
    """Where the search starts. Presliding as found with linear friction stays only where it has nothing to do with the shape."""
    n, turns = len(data.presliding), _turns(effects)
    presliding = (0.0,) * n if turns else data.presliding
    widths = () if turns else data.shapes.widths
    return Shapes(presliding, (), rigid_part(plain.estimate) if effects.load else None, widths)


def _turns(effects: Effects) -> bool:
    """Whether a shape acts where friction turns around: near standstill, or where another drive turns."""
    return effects.has_scale or effects.coupled


def searched(build: Build, start: Shapes, effects: Effects, choice: Sequence[Samples], *, presliding: bool) -> ShapeFit:
    """Scales and load, then how friction turns around given these, then both together where that found something.

    A smooth sign and friction that turns around over a distance or a range of velocity describe the same thing: with the former
    the latter are not looked for, nor is a range beside the scale of another shape.
    """
    first = FrictionSearch().fit(build, start)
    if effects.smooth or not (presliding and _turns(effects)):
        return first
    options = [option for option in turning_options(choice) if not (effects.has_scale and option.widths)]
    found = best_turning(options, _noise_with(build, first, options))
    if not any((*found.presliding, *found.widths)):
        return first
    widths = found.widths if any(found.widths) else ()
    return FrictionSearch().fit(build, replace(start, presliding=found.presliding, widths=widths))


def _noise_with(build: Build, found: ShapeFit, options: Sequence[Shapes]) -> FloatArray:
    """Residual noise with the shapes found, friction turning around in each of these ways, shape [n_options, n_joints]."""
    sigma = []
    for option in options:
        rows = information_of(build(replace(found.shapes, presliding=option.presliding, widths=option.widths)))
        sigma.append(list(WeightedLeastSquares().fit(rows, found.estimate.base).sigma.values()))
    return np.maximum(np.array(sigma), 1e-12)


def _shape_notes(found: ShapeFit) -> tuple[Note, ...]:
    if found.converged:
        return ()
    text = f"the shape of friction had not settled after {found.iterations} iterations: it hardly shows in this motion"
    return (Note("friction-shape", Severity.WARNING, text),)


def _settled_notes(data: Data, shapes: Shapes) -> tuple[Note, ...]:
    """Notes of the data, without what was said about presliding before it changed."""
    if (shapes.presliding, shapes.widths) == (data.presliding, data.shapes.widths):
        return data.notes
    return tuple(note for note in data.notes if note.code not in ("presliding", "friction-width"))


def friction_record(
    settings: Identification, shaping: Shaping, fit: Fit, plain_data: Data, plain: Fit, deviations: Sequence[float]
) -> FrictionShapes:
    """What was found besides the parameters, the friction parameters by joint, and whether it pays on held-out motion.

    Args:
        settings: with the shapes asked for.
        shaping: as settled.
        fit: with the shapes; `plain`, `plain_data` with linear friction.
        deviations: of the velocity scales.
    """
    joints = shaping.data.choice[0].joints
    shapes = shaping.shapes
    scales = {name: Measured(shapes.scales[k], deviations[k]) for k, name in enumerate(joints) if shapes.scales}
    worth, linear = _paying(shaping.data, fit, plain_data, plain)
    return FrictionShapes(
        shapes=settings.effects.shapes,
        scales=scales,
        load=None if shapes.load is None else dict(shapes.load),
        joints={
            name: {
                **_friction_values(fit.estimate, k),
                **({"friction_velocity": scales[name]} if scales else {}),
            }
            for k, name in enumerate(joints)
        },
        held_out=worth,
        relative_error_held_out_linear=linear,
    )


def _friction_values(estimate: Estimate, joint: int) -> dict[str, Measured]:
    """Friction parameters of one joint as the data have them."""
    quantities = (*FRICTION_NAMES, *(q for word in FRICTION_SHAPES for q in FRICTION_SHAPES[word]))
    found = {}
    for parameter, v, s in zip(estimate.base.leading, estimate.values, estimate.standard_deviations, strict=True):
        if parameter.of_joint and parameter.body == joint and parameter.quantity in quantities:
            found[parameter.quantity] = Measured(float(v), float(s))
    return found


def _paying(data: Data, fit: Fit, plain_data: Data, plain: Fit) -> tuple[tuple[ShapeWorth, ...], float | None]:
    """Held-out error per channel beside that with linear friction, and the stacked relative error of the latter."""
    if not len(data.held_out):
        return (), None
    seconds = _block_seconds(data.held_out)
    mine = predicted(data.held_out, {CONSISTENT: fit.consistent.values}, seconds=seconds)
    linear = predicted(plain_data.held_out, {CONSISTENT: plain.consistent.values}, seconds=seconds)
    better, worse = (
        compared_blocks(a.blocks[CONSISTENT], b.blocks[CONSISTENT], tolerated=1.0, confidence=SHAPE_CONFIDENCE.value)
        for a, b in ((linear, mine), (mine, linear))
    )
    rows = tuple(
        ShapeWorth(name=a.name, rmse=a.rmse_other, rmse_linear=a.rmse, pays=a.worse, harms=b.worse)
        for a, b in zip(better, worse, strict=True)
    )
    return rows, linear.sums[CONSISTENT].stacked_relative()


def _block_seconds(runs: Sequence[Run]) -> float:
    """A second, or less where the held-out motion is short; never less than what the low-pass holds together."""
    first = runs[0]
    return min(BLOCK_SECONDS, max(sum(lengths_of(runs)) / first.rate / _BLOCKS, _CORRELATED / first.rate))


def paying_check(record: FrictionShapes) -> tuple[Check, ...]:
    """Whether more friction parameters were worth having; never decisive: the result itself is judged by its own errors."""
    rows = record.held_out
    if not rows:
        return ()
    good, bad = [row.name for row in rows if row.pays], [row.name for row in rows if row.harms]
    words = ", ".join(record.shapes)
    text = f"{words}: held-out error smaller than with linear friction, beyond chance, on {len(good)} of {len(rows)} joints"
    if bad:
        text += f", larger on {', '.join(bad)}"
    if not good or bad:
        text += "; leave out what does not pay"
    return (
        Check(
            code="friction-shape-pays",
            passed=bool(good) and not bad,
            value=len(good),
            limit=1.0,
            message=text,
            decisive=False,
        ),
    )

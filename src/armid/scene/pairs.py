"""Which pairs of links are checked, by what, and at which distance.

Three things make a pair of links impossible to keep apart though the real arm does so all day: capsules that are much larger
than the shapes (then the shapes decide), shapes that overlap by construction (then the pair is left out), and shapes that are
always nearer than the margin (then the pair has a margin of its own). All three are seen at random poses, and said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.motions.limits import motion_limits
from armid.notes import Note, Severity
from armid.robot.geometry import Capsule, Geometry, Sphere
from armid.scene.capsules import LinkCapsule
from armid.scene.hull_distances import HullDistances
from armid.scene.scene import Scene

_SAMPLED_POSES = 2000
"""Poses at which capsules are looked at."""

_SHAPE_POSES = 300
"""Poses at which shapes are looked at: a hundred times slower, and a share of them is known to 3 %."""

_ALWAYS = 0.99
"""A pair that overlaps in this share of all poses belongs together by construction."""

_OFTEN = 0.05
"""For a link and the next but one of which nothing finer than a capsule is known: overlapping this often means that capsules
are too
coarse for the joint between them, whose own limits keep the real bodies apart."""

_MOSTLY = 0.5
"""The same for shapes: nobody builds an arm whose own limits let next neighbours collide in most poses, so their hulls are
too coarse.
Arms whose next neighbours do collide within their limits (UR: +-360 degrees) do so in up to 0.35 of the poses."""

_COARSE = 0.02
"""A pair of capsules nearer than the margin in more than this share of the poses is looked at by its shapes."""

_KEPT = 0.25
"""A margin that is kept in less than this share of all poses leaves no room to move, ..."""

_ROOM = 0.1
"""... and so does one that they keep by less than this share of it: neighbours that are never more than a hair farther apart
than the margin would have every motion drawn in until certificates resolve the hair. It is reduced ..."""

_SHARE_OF_DISTANCE = 0.5
"""... to this share of the least distance where the pair never touches, otherwise of the distance that is kept in `_KEPT` of the
poses: a pair that its own joints keep apart shall not take poses from them."""

_TOUCHING = 1e-3
"""[m]; nearer than this counts as touching: hulls of meshes are no better, and half of next to nothing is no margin."""


@dataclass(frozen=True, eq=False)
class _Look:
    """Distances of one pair at sampled poses [m], shape [k], and whether its shapes were asked."""

    distance: FloatArray
    by_shapes: bool


def settle_pairs(scene: Scene) -> Scene:
    """The scene with every pair of links left out, decided by shapes, or given a margin of its own, as need be; with notes.

    Obstacles are never left out: an arm that always touches one stands in an impossible cell.

    Args:
        scene: with all pairs of links that are not neighbours, and nothing else.
    """
    if not len(scene):
        return scene
    looks, hulls = _looks(scene)
    table = scene.table.copy()
    dropped = np.zeros(len(scene), dtype=np.bool_)
    reduced: dict[str, float] = {}
    for k, look in enumerate(looks):
        table[k, 4] = float(look.by_shapes)
        if _overlaps_by_construction(scene, k, look):
            dropped[k] = True
        elif (margin := _own_margin(look.distance, float(table[k, 3]))) is not None:
            table[k, 3] = margin
            reduced[scene.names[k]] = min(margin, reduced.get(scene.names[k], margin))
    left_out = [k for k in range(len(scene)) if dropped[k]]
    nothing_left = bool(dropped.all()) and len({_links(scene, k) for k in left_out}) > 1
    return replace(
        scene,
        table=table[~dropped],
        names=tuple(name for name, gone in zip(scene.names, dropped, strict=True) if not gone),
        notes=scene.notes + _notes([scene.names[k] for k in left_out], reduced, nothing_left=nothing_left),
        hulls=hulls if table[~dropped, 4].any() else None,
        left_out=frozenset(_links(scene, k) for k in left_out),
    )


def _looks(scene: Scene) -> tuple[list[_Look], HullDistances | None]:
    """Distances of every pair at random poses: by shapes where capsules may be too coarse."""
    limits, _ = motion_limits(scene.robot)
    q = np.random.default_rng(0).uniform(limits.lower, limits.upper, size=(_SAMPLED_POSES, scene.robot.n_joints))
    distance = scene.clearances(q) + scene.table[:, 3]
    near = (distance < scene.table[:, 3]).mean(axis=0) > _COARSE
    coarse = [k for k in range(len(scene)) if near[k] and _has_shapes(scene, k)]
    if not coarse:
        return [_Look(distance[:, k], by_shapes=False) for k in range(len(scene))], None
    # Capsules without a shape are never asked for: a ball keeps their place.
    hulls = HullDistances(tuple((c.link, _ball() if c.shape is None else c.shape) for c in scene.capsules))
    asked = np.zeros(len(scene))
    asked[coarse] = 1.0
    table = scene.table.copy()
    table[:, 4] = asked
    by_shapes = replace(scene, table=table, hulls=hulls).clearances(q[:_SHAPE_POSES]) + scene.table[:, 3]
    return [
        _Look(by_shapes[:, k], by_shapes=True) if asked[k] else _Look(distance[:, k], by_shapes=False)
        for k in range(len(scene))
    ], hulls


def _ball() -> Geometry:
    return Geometry(Sphere(0.01))


def _has_shapes(scene: Scene, k: int) -> bool:
    """Whether shapes can say more than capsules about a pair: both have one, and not both are capsules."""
    a, b = (scene.capsules[int(i)] for i in scene.table[k, 1:3])
    return a.shape is not None and b.shape is not None and not (a.exact and b.exact)


def _links(scene: Scene, k: int) -> tuple[int, int]:
    """The two links of a pair, the lower one first."""
    a, b = (scene.capsules[int(i)].link for i in scene.table[k, 1:3])
    return min(a, b), max(a, b)


def _overlaps_by_construction(scene: Scene, k: int, look: _Look) -> bool:
    low, high = _links(scene, k)
    often = _OFTEN if any(_is_stand_in(scene.capsules[int(i)]) for i in scene.table[k, 1:3]) else _MOSTLY
    return bool((look.distance < 0.0).mean() >= (often if high - low == 2 else _ALWAYS))


def _is_stand_in(capsule: LinkCapsule) -> bool:
    """Whether nothing finer than a capsule is known of a body: assumed, or described as one."""
    return capsule.assumed or capsule.shape is None or isinstance(capsule.shape.shape, Capsule)


def _own_margin(distance: FloatArray, margin: float) -> float | None:
    """A smaller margin for a pair that keeps the common one in too few poses [m]; None when the common one will do."""
    reached = float(np.quantile(distance, 1.0 - _KEPT))
    if reached >= (1.0 + _ROOM) * margin:
        return None
    least = float(distance.min())
    return _SHARE_OF_DISTANCE * (least if least > _TOUCHING else max(reached, 0.0))


def _notes(dropped: list[str], reduced: dict[str, float], *, nothing_left: bool) -> tuple[Note, ...]:
    notes = []
    if nothing_left:
        text = (
            "shapes of links overlap in almost all poses, for every pair of them: nothing keeps the arm clear of itself; are its "
            "shapes larger than it is (meshes in another unit), or in the wrong place? armid show draws them"
        )
        notes.append(Note("contacts-unchecked", Severity.WARNING, text))
    if dropped:
        text = f"not checked, since their shapes overlap by construction: {'; '.join(dict.fromkeys(dropped))}"
        notes.append(Note("contact-ignored", Severity.INFO, text))
    if reduced:
        each = "; ".join(f"{name} {margin:.4f} m" for name, margin in reduced.items())
        text = f"nearer than the margin in almost all poses, checked at a smaller one: {each}"
        notes.append(Note("margin-reduced", Severity.INFO, text))
    return tuple(notes)

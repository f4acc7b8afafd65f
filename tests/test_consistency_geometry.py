"""Mass within a link's shapes: enclosures against point-in-hull tests, merged parts, mesh files, estimates inside and outside."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay

from armid.consistency.bounds import Bounds, CentreBox
from armid.consistency.consistent import Consistency
from armid.consistency.enclosure import (
    _SPIRAL_DEPTHS,
    MOST_HALF_SPACES,
    Solid,
    bounding_shapes,
    enclosure,
    hull_points,
    solid_of,
    spiral_depth,
    support,
)
from armid.consistency.geometry_bounds import GeometryBounds
from armid.consistency.prior import Prior, nominal_prior
from armid.consistency.regularisers import PullBack
from armid.errors import InputError, UnknownNameError
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import information_of
from armid.information.status import EstimationError, Status
from armid.parameters.inertial import from_centre_of_mass, pseudo_inertia, to_centre_of_mass
from armid.robot import Link
from armid.robot.elementary import rotation_from_rpy
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from armid.robot.load import load_robot
from armid.robot.meshes import MeshError, vertices
from armid.robot.urdf.arm import parse_urdf
from support.elbow import case

RNG = np.random.default_rng(0)


def pose(*, rpy=(0.3, -0.7, 1.1), xyz=(0.1, -0.2, 0.3)):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rotation_from_rpy(*rpy), xyz
    return T


def inside(shape, count=4000):
    """Random points of a shape in its own frame, many of them on its surface."""
    rng = np.random.default_rng(1)
    d = rng.normal(size=(count, 3))
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    r = rng.uniform(0.8, 1.0, size=(count, 1))
    match shape:
        case Box(size):
            return rng.uniform(-0.5, 0.5, size=(count, 3)) * size
        case Sphere(radius):
            return radius * r * d
        case Capsule(radius, length):
            return radius * r * d + np.outer(rng.uniform(-0.5, 0.5, count) * length, [0, 0, 1])
        case Cylinder(radius, length):
            turn = rng.uniform(0, 2 * np.pi, count)
            return np.column_stack(
                [
                    radius * r[:, 0] * np.cos(turn),
                    radius * r[:, 0] * np.sin(turn),
                    rng.uniform(-0.5, 0.5, count) * length,
                ]
            )


SHAPES = (Box((0.1, 0.2, 0.3)), Sphere(0.12), Capsule(0.05, 0.3), Cylinder(0.07, 0.2))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("margin", [0.0, 0.02])
def test_every_point_of_a_shape_is_enclosed(shape, margin):
    T = pose()
    around = enclosure([solid_of(Geometry(shape, T), margin)])
    points = inside(shape) @ T[:3, :3].T + T[:3, 3]
    d = RNG.normal(size=points.shape)
    points = points + margin * d / np.linalg.norm(d, axis=1, keepdims=True)
    assert len(around.offsets) <= MOST_HALF_SPACES
    assert np.all(points @ around.normals.T <= around.offsets + 1e-12)
    assert np.all(np.linalg.norm((points - around.centre) @ around.A.T, axis=1) <= 1.0 + 1e-12)
    along = points @ around.slabs[:, :3].T
    assert np.all((along >= around.slabs[:, 3] - 1e-12) & (along <= around.slabs[:, 4] + 1e-12))
    # And not much else: half-spaces stand off by no more than they say.
    assert around.excess < 0.2 * 0.12


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: type(s).__name__)
def test_the_support_function_is_that_of_the_shape(shape):
    T = pose()
    d = RNG.normal(size=(50, 3))
    reach = support([solid_of(Geometry(shape, T))], d)
    sampled = np.max(d @ (inside(shape, 60000) @ T[:3, :3].T + T[:3, 3]).T, axis=1)
    # Sampled points reach almost to the surface and never beyond it.
    assert np.all(sampled <= reach + 1e-12)
    assert np.all(sampled > reach - 0.03 * np.linalg.norm(d, axis=1))


def test_few_facets_are_met_exactly_and_points_outside_the_hull_are_told_from_those_inside():
    corners = np.array([[0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0, 0, 0.4], [0.2, 0.2, 0.1]], dtype=float)
    around = enclosure([Solid(corners, np.array([0.0, 0, 1]), 0.0, 0.0)])
    assert around.excess <= 1e-3
    points = RNG.uniform(-0.1, 0.5, size=(5000, 3))
    in_hull = Delaunay(corners).find_simplex(points) >= 0
    within = np.all(points @ around.normals.T <= around.offsets + 1e-12, axis=1)
    assert not np.any(in_hull & ~within)
    # Those accepted wrongly are nearer to the hull than the excess says.
    hull = ConvexHull(corners).equations
    off = np.max(points @ hull[:, :3].T + hull[:, 3], axis=1)
    assert np.all(off[within] <= around.excess + 1e-9)


def test_hulls_with_many_facets_get_a_bounded_number_of_half_spaces_that_contain_them():
    cloud = RNG.normal(size=(5000, 3))
    cloud *= [0.05, 0.08, 0.2] / np.linalg.norm(cloud, axis=1, keepdims=True)
    assert len(ConvexHull(cloud).equations) > 100
    points = hull_points(cloud)
    few, more = (enclosure([Solid(points, np.eye(3)[2], 0.0, 0.0)], most=k) for k in (12, 60))
    for around in (few, more):
        assert np.all(cloud @ around.normals.T <= around.offsets + 1e-12)
    assert len(few.offsets) == 12
    assert len(more.offsets) <= 60
    assert more.excess < few.excess


def test_a_flat_shape_leaves_room_for_a_body():
    sheet = np.array([[0, 0, 0.1], [0.2, 0, 0.1], [0, 0.2, 0.1], [0.2, 0.2, 0.1]], dtype=float)
    around = enclosure([Solid(sheet, np.eye(3)[2], 0.0, 0.0)])
    assert np.all(sheet @ around.normals.T <= around.offsets)
    assert np.any(around.normals @ [0.1, 0.1, 0.15] > around.offsets)


URDF = """
<robot name="merged">
  <link name="base"/>
  <joint name="j1" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1"/></joint>
  <link name="arm">
    <visual><geometry><sphere radius="0.9"/></geometry></visual>
    <collision><origin xyz="0 0 0.1"/><geometry><box size="0.1 0.1 0.2"/></geometry></collision>
  </link>
  <joint name="f" type="fixed"><parent link="arm"/><child link="tool"/><origin xyz="0.5 0 0"/></joint>
  <link name="tool"><visual><origin xyz="0 0.2 0"/><geometry><sphere radius="0.05"/></geometry></visual></link>
</robot>
"""


def test_parts_fixed_to_a_link_bound_it_too_and_visible_shapes_count_only_where_nothing_else_is():
    (link,) = parse_urdf(URDF).links
    shapes = bounding_shapes(link)
    assert [type(g.shape) for g in shapes] == [Box, Sphere], "the arm's own visible ball does not count"
    around = enclosure([solid_of(g) for g in shapes])
    for point in ([0.05, 0.05, 0.2], [0.5, 0.25, 0.0], [0.25, 0.1, 0.05]):
        assert np.all(around.normals @ point <= around.offsets + 1e-9)
    assert np.any(around.normals @ [0.0, 0.5, 0.0] > around.offsets)


def stl(points, faces):
    facets = b"".join(struct.pack("<12fH", 0, 0, 0, *points[f].ravel(), 0) for f in faces)
    return b"\0" * 80 + struct.pack("<I", len(faces)) + facets


DAE = """<?xml version="1.0"?><COLLADA xmlns="x" version="1.4.1"><asset><unit meter="0.001"/></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="a" count="{n}">{numbers}</float_array></source>
<source id="q"><float_array id="b" count="3">9 9 9</float_array></source>
<vertices id="v"><input semantic="POSITION" source="#p"/><input semantic="NORMAL" source="#q"/></vertices>
</mesh></geometry></library_geometries>
<library_nodes><node id="shared"><rotate>0 0 1 90</rotate><instance_geometry url="#g"/></node></library_nodes>
<library_visual_scenes><visual_scene id="s"><node>
<matrix>1 0 0 100  0 1 0 0  0 0 1 0  0 0 0 1</matrix><scale>2 2 2</scale><instance_node url="#shared"/>
</node></visual_scene></library_visual_scenes></COLLADA>"""


def test_mesh_formats_give_the_same_hull_and_collada_nodes_place_their_geometry(tmp_path):
    points = RNG.normal(size=(30, 3)).astype(np.float32).astype(float) * 0.1
    hull = ConvexHull(points)
    (tmp_path / "a.stl").write_bytes(stl(points, hull.simplices))
    lines = "".join(f"vertex {p[0]!r} {p[1]!r} {p[2]!r}\n" for f in hull.simplices for p in points[f].tolist())
    (tmp_path / "b.stl").write_text(f"solid x\n{lines}endsolid x\n")
    (tmp_path / "c.obj").write_text("".join(f"v {p[0]!r} {p[1]!r} {p[2]!r}\n" for p in points.tolist()))
    # Back through scale 2, a quarter turn about z and 100 mm along x.
    local = (points * 1000 - [100, 0, 0]) / 2 @ np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    numbers = " ".join(repr(x) for x in local.ravel().tolist())
    (tmp_path / "d.dae").write_text(DAE.format(n=local.size, numbers=numbers))
    directions = RNG.normal(size=(40, 3))
    expected = np.max(directions @ points.T, axis=1)
    for name in ("a.stl", "b.stl", "c.obj", "d.dae"):
        solid = solid_of(Geometry(Mesh(str(tmp_path / name))))
        assert np.allclose(solid.support(directions), expected, atol=1e-6), name


def test_collada_that_leads_nowhere_or_into_itself_is_refused(tmp_path):
    path = tmp_path / "x.dae"
    for text, why in (
        ("<robot/>", "expected <COLLADA>"),
        (DAE.format(n=3, numbers="1 2 3").replace("#shared", "#gone"), "gone"),
        (DAE.format(n=3, numbers="1 2 3").replace('url="#g"/>', 'url="#g"/><instance_node url="#shared"/>'), "nested"),
        ("<COLLADA>", "not well-formed"),
    ):
        path.write_text(text)
        with pytest.raises(MeshError, match=why):
            vertices(Mesh(str(path)))


def test_a_missing_mesh_is_named_with_its_link_and_what_to_try(tmp_path):
    text = URDF.replace('<box size="0.1 0.1 0.2"/>', '<mesh filename="package://cell/gone.stl"/>')
    (tmp_path / "arm.urdf").write_text(text)
    robot = load_robot(tmp_path / "arm.urdf")
    with pytest.raises(InputError, match=r"bounds of arm: package://cell/gone.stl: mesh file not found .*links:"):
        GeometryBounds().apply(robot)


def test_meshes_of_a_package_beside_the_description_are_found_and_scaled(tmp_path):
    points = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float) * [50, 40, 100]
    folder = tmp_path / "cell" / "meshes"
    folder.mkdir(parents=True)
    (folder / "arm.stl").write_bytes(stl(points, ConvexHull(points).simplices))
    mesh = '<mesh filename="package://cell/meshes/arm.stl" scale="0.001 0.001 0.001"/>'
    (tmp_path / "cell" / "arm.urdf").write_text(URDF.replace('<box size="0.1 0.1 0.2"/>', mesh))
    bounds = GeometryBounds(margin=0.0, moments=False).apply(load_robot(tmp_path / "cell" / "arm.urdf"))
    (hull,) = bounds.where["link1"]
    for x, inside_it in (([0.049, 0.039, 0.199], True), ([0.05, 0.06, 0.25], False), ([0.5, 0.24, 0.0], True)):
        assert bool(np.all(hull.normals @ x <= hull.offsets + 1e-9)) is inside_it


def test_links_without_shapes_are_noted_and_none_at_all_is_an_error():
    robot = load_robot("panda")
    bare = replace(robot, links=(Link("bare"), *robot.links[1:]))
    bounds = GeometryBounds().apply(bare)
    assert "link1" not in bounds.where
    assert bounds.notes[0].code == "geometry-missing"
    assert "bare" in bounds.notes[0].message
    with pytest.raises(InputError, match="no shapes on"):
        GeometryBounds().apply(replace(robot, links=tuple(Link(link.name) for link in robot.links)))
    assert set(GeometryBounds(links=("link3", robot.links[4].name)).apply(robot).where) == {"link3", "link5"}
    with pytest.raises(UnknownNameError, match="link9"):
        GeometryBounds(links=("link9",)).apply(robot)
    with pytest.raises(InputError, match="margin"):
        GeometryBounds(margin=-0.1)


@pytest.fixture(scope="module")
def arm():
    return case(5, count=800)


def mesh_links(arm, folder: Path, half=0.06):
    """Every link as a random mesh around the true centre of mass, given as an STL file."""
    links = []
    for i, link in enumerate(arm.robot.links):
        centre = to_centre_of_mass(link.inertial)[1]
        points = centre + half * RNG.uniform(-1.0, 1.0, size=(40, 3)) * [1.0, 1.3, 1.6]
        (folder / f"{i}.stl").write_bytes(stl(points, ConvexHull(points).simplices))
        links.append(replace(link, geometry=(Geometry(Mesh(str(folder / f"{i}.stl"))),)))
    return replace(arm.robot, links=tuple(links))


def noisy(arm, sigma, seed):
    run = arm.run(np.random.default_rng(seed).normal(size=arm.clean.shape) * sigma)
    information = information_of([run])
    estimate = WeightedLeastSquares().fit(information, arm.base)
    return information.weighted({name: 1.0 / s for name, s in estimate.sigma.items()})


def centres(estimate):
    return {body.owner: to_centre_of_mass(body.of(estimate.values))[1] for body in estimate.bodies}


def test_estimates_outside_the_shapes_are_brought_inside_by_the_bounds(arm, tmp_path):
    robot = mesh_links(arm, tmp_path)
    weighted = noisy(arm, np.array([5.0, 2.0, 0.5]), 1)
    # A prior whose centres are half a metre off: where data are weak the estimate follows it out of the shapes.
    values = np.array(nominal_prior(robot, arm.source.columns).values)
    for body in nominal_prior(robot, arm.source.columns).bodies:
        mass, centre, I = to_centre_of_mass(body.of(values))
        values[list(body.columns)] = from_centre_of_mass(mass, centre + np.array([0.3, -0.3, 0.3]), I)
    prior = Prior(names=arm.source.columns, values=values, scale=np.ones(len(values)), origin={})
    units = arm.source.space.units
    free = Consistency(PullBack(1.0)).fit(weighted, units, prior)
    bound = Consistency(PullBack(1.0), GeometryBounds(margin=0.0).apply(robot)).fit(weighted, units, prior)
    outside = 0
    for i, link in enumerate(robot.links):
        points = vertices(link.geometry[0].shape)
        hull = ConvexHull(points)
        off = [np.max(hull.equations[:, :3] @ centres(e)[f"link{i + 1}"] + hull.equations[:, 3]) for e in (free, bound)]
        outside += off[0] > 0.01
        # Independent check: the hull of the file's own vertices, up to the accuracy of the half-spaces.
        excess = enclosure([solid_of(g) for g in bounding_shapes(link)]).excess
        assert off[1] <= excess + 1e-6
        box = points.max(axis=0) - points.min(axis=0)
        mass, _, I = to_centre_of_mass(bound.bodies[i].of(bound.values))
        # No body of this mass within the mesh can turn harder than one with all its mass at the ends of the mesh.
        assert np.linalg.eigvalsh(I)[-1] <= mass * (box @ box)
    assert outside >= 1
    assert bound.is_physical
    assert any(note.code == "bounds-active" and "its shapes" in note.message for note in bound.notes)
    assert bound.chi_square >= free.chi_square - 1e-6


def test_bounds_that_hold_anyway_change_nothing(arm, tmp_path):
    robot = mesh_links(arm, tmp_path, half=3.0)
    weighted = noisy(arm, np.array([0.5, 0.2, 0.05]), 2)
    prior = nominal_prior(robot, arm.source.columns)
    units = arm.source.space.units
    free = Consistency(PullBack(0.1)).fit(weighted, units, prior)
    bound = Consistency(PullBack(0.1), GeometryBounds().apply(robot)).fit(weighted, units, prior)
    assert np.allclose(free.values, bound.values, atol=1e-5 * np.abs(free.values).max())
    assert not [note for note in bound.notes if note.code == "bounds-active"]


def test_a_centre_asked_for_outside_the_shapes_is_a_contradiction_that_names_both(arm, tmp_path):
    robot = mesh_links(arm, tmp_path)
    bounds = GeometryBounds(links=("link2",), moments=False).apply(
        robot, Bounds(where={"link2": (CentreBox(np.full(3, 2.0), np.full(3, 2.1)),)}, mass={"link1": (1.0, 9.0)})
    )
    weighted = noisy(arm, np.array([0.5, 0.2, 0.05]), 2)
    message = "exclude each other: centre of mass of link2 in its box; centre of mass of link2 within its shapes:"
    with pytest.raises(EstimationError, match=message) as caught:
        Consistency(PullBack(0.1), bounds).fit(
            weighted, arm.source.space.units, nominal_prior(robot, arm.source.columns)
        )
    assert caught.value.status is Status.INFEASIBLE


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: type(s).__name__)
def test_any_mass_within_a_shape_satisfies_its_bounds(shape):
    """Point clouds inside the shape as bodies: no statement of the bounds may exclude them."""
    T = pose()
    robot = load_robot("panda")
    link = replace(robot.links[0], geometry=(Geometry(shape, T),))
    places = GeometryBounds(margin=0.0).places(link)
    points = inside(shape, 400) @ T[:3, :3].T + T[:3, 3]
    for seed in range(40):
        rng = np.random.default_rng(seed)
        chosen = points[rng.choice(len(points), size=rng.integers(1, 12))]
        w = rng.uniform(0.0, 2.0, len(chosen))
        lifted = np.column_stack([chosen, np.ones(len(w))])
        P = (lifted.T * w) @ lifted
        Sigma = P[:3, :3]
        ten = np.concatenate([[P[3, 3]], P[:3, 3], (np.trace(Sigma) * np.eye(3) - Sigma)[np.triu_indices(3)]])
        assert np.allclose(pseudo_inertia(ten), P)
        for place in places:
            assert np.all(place.rows() @ ten >= -1e-12)


def test_depths_of_spirals_are_those_of_their_hulls() -> None:
    for count, depth in _SPIRAL_DEPTHS.items():
        assert depth == pytest.approx(spiral_depth(count), rel=1e-12)

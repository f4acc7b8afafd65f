"""Vertices of Collada files (.dae), placed by the nodes of their scene."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armid.arrays import FloatArray
from armid.parameters.inertial import skew
from armid.robot.urdf.xml_tree import XmlElement, decoded, parse_xml

_MAX_NODES = 10_000
"""Nodes may instantiate nodes: a file can ask for more copies than memory holds."""
_MAX_DEPTH = 64
"""Of nodes within nodes; a node that contains itself ends here."""


class Document:
    """A parsed file with its elements by identifier."""

    def __init__(self, data: bytes) -> None:
        text = decoded(data, "Collada file")
        self.bytes = text.encode("utf-8")
        self.root = parse_xml(text, "Collada file")
        self.known = {e.attributes["id"]: e for e in _walk(self.root) if "id" in e.attributes}
        self.visited = 0

    def target(self, element: XmlElement, attribute: str) -> XmlElement:
        """What `#name` leads to."""
        name = element.attributes.get(attribute, "").removeprefix("#")
        if name not in self.known:
            raise ValueError(f"<{element.tag}> points to {name!r}, which is not there")
        return self.known[name]

    def numbers(self, element: XmlElement) -> FloatArray:
        """The numbers an element holds as text."""
        return np.array(self.bytes[element.start_end : element.close].split(), dtype=np.float64)

    def positions(self, geometry: XmlElement) -> FloatArray:
        """Vertex positions of a geometry in its own frame, shape [n, 3]."""
        found = []
        for vertices in (e for e in _walk(geometry) if e.tag == "vertices"):
            for item in vertices.all("input"):
                if item.attributes.get("semantic") == "POSITION":
                    found += [self.numbers(a) for a in _walk(self.target(item, "source")) if a.tag == "float_array"]
        return np.concatenate([array.reshape(-1, 3) for array in found]) if found else np.empty((0, 3))

    def placed(self, node: XmlElement, T: FloatArray, depth: int = 0) -> Iterator[FloatArray]:
        """Points below a node, its transforms applied in the order written."""
        self.visited += 1
        if self.visited > _MAX_NODES or depth > _MAX_DEPTH:
            raise ValueError(f"more than {_MAX_NODES} nodes, or nested deeper than {_MAX_DEPTH}")
        for child in node.children:
            if child.tag in ("matrix", "translate", "rotate", "scale"):
                T = T @ _transform(child.tag, self.numbers(child))
            elif child.tag == "instance_geometry":
                points = self.positions(self.target(child, "url"))
                yield points @ T[:3, :3].T + T[:3, 3]
            elif child.tag == "node":
                yield from self.placed(child, T, depth + 1)
            elif child.tag == "instance_node":
                yield from self.placed(self.target(child, "url"), T, depth + 1)


def _transform(tag: str, values: FloatArray) -> FloatArray:
    """One transform element of a node, shape [4, 4]."""
    T = np.eye(4)
    if tag == "matrix":
        return values.reshape(4, 4)
    if tag == "translate":
        T[:3, 3] = values
    elif tag == "scale":
        T[:3, :3] = np.diag(values)
    else:
        T[:3, :3] = _rotation_about(values[:3] / np.linalg.norm(values[:3]), np.radians(float(values[3])))
    return T


def _rotation_about(axis: FloatArray, angle: float) -> FloatArray:
    """Rodrigues' formula for a unit axis; angle [rad]."""
    K = skew(axis)
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


def _walk(element: XmlElement) -> Iterator[XmlElement]:
    """The element and everything below it."""
    yield element
    for child in element.children:
        yield from _walk(child)


def dae_vertices(data: bytes) -> FloatArray:
    """Vertices of a Collada file in metres, shape [n, 3].

    Nodes of the scene place geometries; without a scene every geometry counts where it is. `up_axis` is not applied,
    as viewers of URDF files do not: descriptions are written for what they show.

    Raises:
        ValueError: not Collada, or references that lead nowhere.
    """
    document = Document(data)
    if document.root.tag != "COLLADA":
        raise ValueError(f"the root element is <{document.root.tag}>, expected <COLLADA>")
    unit = next((e for e in _walk(document.root) if e.tag == "unit"), None)
    scale = float(unit.attributes.get("meter", 1.0)) if unit is not None else 1.0
    scenes = [e for e in _walk(document.root) if e.tag == "visual_scene"]
    parts = [points for scene in scenes[:1] for points in document.placed(scene, np.eye(4))]
    if not parts:
        parts = [document.positions(e) for e in _walk(document.root) if e.tag == "geometry"]
    return scale * np.concatenate(parts) if parts else np.empty((0, 3))

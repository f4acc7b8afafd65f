"""XML as a tree of elements that know where they stand in the text.

Strict: no document type, no entities, bounded size and depth, nothing fetched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from armid.errors import RobotError

_MAX_BYTES = 20_000_000
"""The largest published URDFs are below 2 MB."""
_MAX_DEPTH = 64
"""A URDF needs six levels; Gazebo extensions about ten."""
_MAX_ELEMENTS = 200_000
"""Bounds the memory a hostile file can take."""

_DECLARED = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
_LATE_DECLARATION = re.compile(r"((?:\s|<!--.*?-->)+)(<\?xml[^>]*\?>)", re.DOTALL)
"""White space or comments before the declaration: not XML by the letter, though written by hand and read by other programs."""
_READABLE = {"utf-8", "utf8", "ascii", "us-ascii", "iso-8859-1", "latin-1", "iso-8859-15", "windows-1252", "cp1252"}


def decoded(data: bytes, where: str) -> str:
    """The text of a file: UTF-8, or the encoding an XML declaration names. What stands before the declaration goes behind it."""
    if b"\x00" in data:
        raise RobotError(where, "not text: it holds zero bytes", "expected a URDF or YAML file saved as UTF-8")
    content = data.removeprefix(b"\xef\xbb\xbf")
    match = _DECLARED.match(content.lstrip())
    encoding = match.group(1).decode().lower() if match else "utf-8"
    if encoding not in _READABLE:
        raise RobotError(where, f"encoding {encoding!r} is not read", "save the file as UTF-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise RobotError(where, f"not {encoding} text (byte {error.start})", "save the file as UTF-8") from None
    late = _LATE_DECLARATION.match(text)
    return text if late is None else late.group(2) + late.group(1) + text[late.end() :]


@dataclass(eq=False, kw_only=True)
class XmlElement:
    """One element.

    Args:
        tag, attributes: as written.
        line: where it starts, 1-based.
        start, start_end: bytes of its start tag in the UTF-8 text, `start_end` exclusive.
        close: byte where its end tag starts; not meaningful for `<a/>`.
        children: elements inside it, in order; text between them is not kept.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    start: int
    start_end: int
    close: int = -1
    children: list[XmlElement] = field(default_factory=list)

    def all(self, tag: str) -> list[XmlElement]:
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> XmlElement | None:
        return next((child for child in self.children if child.tag == tag), None)


def parse_xml(text: str, where: str) -> XmlElement:
    """The root element.

    Raises:
        RobotError: not well-formed XML, a document type or entity declaration, too large, too deep.
    """
    if not text.strip():
        raise RobotError(where, "empty file")
    data = text.encode("utf-8", "replace")
    if len(data) > _MAX_BYTES:
        raise RobotError(where, f"larger than {_MAX_BYTES} bytes", "is this a robot description?")
    return _Builder(data, where).build()


class _Builder:
    """Collects elements from expat's events."""

    def __init__(self, data: bytes, where: str) -> None:
        self.data, self.where = data, where
        self.stack: list[XmlElement] = []
        self.root: XmlElement | None = None
        self.count = 0
        # The declaration's encoding no longer applies: the bytes are UTF-8 by now.
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._entity

    def build(self) -> XmlElement:
        try:
            self.parser.Parse(self.data, True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise RobotError(
                f"{self.where}, line {error.lineno}", f"not well-formed XML: {reason}", _hint(self.data)
            ) from None
        if self.root is None:
            raise RobotError(self.where, "no XML element")
        return self.root

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        line = self.parser.CurrentLineNumber
        if len(self.stack) >= _MAX_DEPTH or self.count > _MAX_ELEMENTS:
            deep = len(self.stack) >= _MAX_DEPTH
            problem = "nested too deeply" if deep else f"too many elements, more than {_MAX_ELEMENTS}"
            raise RobotError(f"{self.where}, line {line}", problem, "a URDF needs six levels" if deep else "one robot?")
        start = self.parser.CurrentByteIndex
        element = XmlElement(
            tag=tag, attributes=attributes, line=line, start=start, start_end=_tag_end(self.data, start)
        )
        if self.stack:
            self.stack[-1].children.append(element)
        else:
            self.root = element
        self.stack.append(element)

    def _end(self, _tag: str) -> None:
        self.stack.pop().close = self.parser.CurrentByteIndex

    def _doctype(self, name: str, *_: object) -> NoReturn:
        raise RobotError(
            f"{self.where}, line {self.parser.CurrentLineNumber}",
            f"document type declaration {name!r}",
            "remove <!DOCTYPE ...>: it is never needed and can hide entities",
        )

    def _entity(self, name: str, *_: object) -> NoReturn:
        raise RobotError(
            f"{self.where}, line {self.parser.CurrentLineNumber}", f"entity declaration {name!r}", "write the text out"
        )


def _tag_end(data: bytes, start: int) -> int:
    """Byte after the `>` that closes the start tag at `start`; `>` inside quotes does not count."""
    quote = 0
    for i in range(start, len(data)):
        c = data[i]
        if quote:
            quote = 0 if c == quote else quote
        elif c in b"\"'":
            quote = c
        elif c == 0x3E:
            return i + 1
    return len(data)


def _hint(data: bytes) -> str:
    if b"<" not in data[:1000]:
        return "is this a URDF file?"
    if b"${" in data or b"xacro:" in data:
        return "this looks like xacro: expand it first with `xacro robot.xacro > robot.urdf`"
    return "check the tags around that line"

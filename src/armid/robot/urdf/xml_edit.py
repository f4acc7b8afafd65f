"""Changes to an XML text that leave every other byte as it was."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from armid.robot.urdf.quoting import escaped
from armid.robot.urdf.xml_tree import XmlElement


@dataclass
class Edits:
    """Collects changes to elements of one text, then applies them all.

    Args:
        text: the original.
    """

    text: str
    _attributes: dict[int, tuple[XmlElement, dict[str, str]]] = field(default_factory=dict)
    _children: dict[int, tuple[XmlElement, list[list[str]]]] = field(default_factory=dict)
    _last: list[tuple[XmlElement, list[str]]] = field(default_factory=list)

    def set(self, element: XmlElement, attribute: str, value: str) -> None:
        """Give an attribute a value, whether it was there or not."""
        self._attributes.setdefault(element.start, (element, {}))[1][attribute] = value

    def add(self, parent: XmlElement, lines: list[str]) -> None:
        """Put a new child, given as lines, before the other children of an element."""
        self._children.setdefault(parent.start, (parent, []))[1].append(lines)

    def append(self, parent: XmlElement, lines: list[str]) -> None:
        """Put lines after the other children of an element that is not empty, normally the outermost one."""
        self._last.append((parent, lines))

    def apply(self) -> str:
        data = self.text.encode("utf-8")
        newline = "\r\n" if "\r\n" in self.text else "\n"
        for parent, lines in self._last:
            block = "".join(f"  {line}{newline}" for line in lines).encode("utf-8")
            data = data[: parent.close] + block + data[parent.close :]
        starts = sorted({*self._attributes, *self._children}, reverse=True)
        # From the end to the start, so that earlier positions stay valid.
        for start in starts:
            element = (self._attributes.get(start) or self._children[start])[0]
            tag = data[element.start : element.start_end].decode("utf-8")
            for attribute, value in self._attributes.get(start, (element, {}))[1].items():
                tag = _with_attribute(tag, attribute, value)
            blocks = self._children.get(start, (element, []))[1]
            if blocks:
                tag = _with_children(tag, element, blocks, newline + _indentation(data, element))
            data = data[: element.start] + tag.encode("utf-8") + data[element.start_end :]
        return data.decode("utf-8")


def _with_attribute(tag: str, attribute: str, value: str) -> str:
    """A start tag with the attribute set; its quotes and the space around it stay."""
    quoted = escaped(value)
    pattern = re.compile(rf"(?<=\s){re.escape(attribute)}(\s*=\s*)(\"[^\"]*\"|'[^']*')")
    if pattern.search(tag):
        return pattern.sub(lambda m: f'{attribute}{m.group(1)}"{quoted}"', tag, count=1)
    closing = "/>" if tag.endswith("/>") else ">"
    head = tag.removesuffix(closing)
    return f'{head.rstrip()} {attribute}="{quoted}"{closing}'


def _with_children(tag: str, element: XmlElement, blocks: list[list[str]], indent: str) -> str:
    """A start tag followed by new children, each line after `indent` (a line break and white space).

    `<a/>` becomes `<a> ... </a>`.
    """
    inner = "".join(f"{indent}  {line}" for lines in blocks for line in lines)
    if tag.endswith("/>"):
        return f"{tag.removesuffix('/>').rstrip()}>{inner}{indent}</{element.tag}>"
    return tag + inner


def _indentation(data: bytes, element: XmlElement) -> str:
    """The white space between the start of the element's line and the element."""
    line = data[data.rfind(b"\n", 0, element.start) + 1 : element.start].decode("utf-8")
    return line if not line.strip() else ""

"""Text as it may stand in XML. The library's module is loaded when first needed: it brings a network client with it."""

from __future__ import annotations


def quoteattr(text: str) -> str:
    """A value of an attribute, in quotes."""
    from xml.sax import saxutils

    return saxutils.quoteattr(text)


def escaped(text: str) -> str:
    """A value between double quotes."""
    from xml.sax import saxutils

    return saxutils.escape(text, {'"': "&quot;"})

"""armid lets a robot arm learn its own body from its own measurements.

Public names load when first used, so that `import armid` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "ArmidError": "armid.errors",
    "Effects": "armid.parameters.effects",
    "Information": "armid.information.information",
    "Robot": "armid.robot.robot",
    "accumulate": "armid.information.accumulate",
    "load_robot": "armid.robot.load",
}


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'armid' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])

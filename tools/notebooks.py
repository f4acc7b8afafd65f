"""Percent scripts of examples/ as notebooks, as pages of the site, and as cells to run.

A cell begins with `# %%`; one with `# %% [markdown]` is text behind `# `. `python tools/notebooks.py FOLDER` writes notebooks.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
_NO_COMMENT = 2
"""Characters of `# ` before a line of text."""


@dataclass(frozen=True)
class NotebookCell:
    """One cell: its text, and whether it is prose."""

    text: str
    prose: bool


def cells_of(script: Path) -> list[NotebookCell]:
    """The cells of a percent script, in order.

    Args:
        script: path of it.
    """
    out: list[NotebookCell] = []
    for part in script.read_text(encoding="utf-8").split("# %%")[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            lines = [line[_NO_COMMENT:] for line in body.strip().splitlines()]
            out.append(NotebookCell("\n".join(lines), True))
        else:
            out.append(NotebookCell(body.strip(), False))
    return out


def notebook(script: Path) -> str:
    """The script as a Jupyter notebook, without outputs."""
    cells = []
    for number, cell in enumerate(cells_of(script)):
        source = cell.text.splitlines(keepends=True)
        common = {"id": f"cell-{number}", "metadata": {}, "source": source}
        more = (
            {"cell_type": "markdown"} if cell.prose else {"cell_type": "code", "execution_count": None, "outputs": []}
        )
        cells.append({**common, **more})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1) + "\n"


def page(script: Path) -> str:
    """The script as a page of the site."""
    parts = [cell.text if cell.prose else f"```python\n{cell.text}\n```" for cell in cells_of(script)]
    source = f"Run it: `python examples/{script.name}` in `examples/`, or as a notebook after `make notebooks`."
    return "\n\n".join([parts[0], source, *parts[1:]]) + "\n"


def main() -> None:
    """Writes every notebook into a folder."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES
    folder.mkdir(parents=True, exist_ok=True)
    for script in sorted(EXAMPLES.glob("*.py")):
        (folder / f"{script.stem}.ipynb").write_text(notebook(script), encoding="utf-8")


if __name__ == "__main__":
    main()

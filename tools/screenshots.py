"""The pictures of pages in the documentation, made anew: `python tools/screenshots.py [NAME...]`, with Chromium and Pillow.

Every page is written by a verb or an example, so that the pictures show what a reader gets.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "pages"
WIDTH, HEIGHT = 1366, 1000
COLOURS = 256
"""Of a palette: a picture then has some tens of kilobytes."""
MOST_BYTES = 150_000
PAGES: dict[str, tuple[str, str]] = {
    "report": ("armid demo --out demo", "demo/report.html"),
    "observe": (
        "armid observe demo/result demo/validation_log.csv --free demo/training_log.csv --out observed",
        "observed/report.html",
    ),
    "design": ("armid design trio.urdf --starts 1 --seed 0 --out design", "design/design.html"),
    "calibration": ("python calibration.py", "calibrated/report.html"),
    "fleet": ("python fleet.py", "fleet/report.html"),
    "benchmark": (
        "armid benchmark tx40-birdy --runs 3 --methods ols,wls,iv --noise standard --out benchmark",
        "benchmark/report.html",
    ),
}
"""Name of a picture -> the command, run in a copy of `examples/` after those before it, and the page it writes."""


_DRAW_ALL = "<script>addEventListener('load', () => nodes.forEach(draw))</script>"
"""Figures are drawn when they come into view, which a picture does not wait for."""


def picture(page: Path, *, dark: bool = False, width: int = WIDTH) -> bytes:
    """The first screen of a page as PNG, with few colours.

    Args:
        page: HTML file.
        dark: as a reader sees it who prefers dark pages.
        width: of the window [pixels].
    """
    from PIL import Image

    browser = next(found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name)))
    with tempfile.TemporaryDirectory() as folder:
        file, copy = Path(folder) / "page.png", Path(folder) / "page.html"
        copy.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{_DRAW_ALL}</body>"), encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        flags += ["--hide-scrollbars", "--virtual-time-budget=8000", f"--window-size={width},{HEIGHT}"]
        flags += ["--blink-settings=preferredColorScheme=0"] if dark else []
        command = [browser, *flags, f"--user-data-dir={folder}/profile", f"--screenshot={file}", copy.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
        out = io.BytesIO()
        Image.open(file).convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(out, "PNG", optimize=True)
    return out.getvalue()


def main() -> None:
    """Makes the pictures of the named pages, or of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*PAGES, []])
    parser.add_argument(
        "--work", type=Path, help="folder to run the commands in; pages that are there are not made again"
    )
    asked = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as fresh:
        work = (asked.work or Path(fresh)).resolve()
        shutil.copytree(ROOT / "examples", work, dirs_exist_ok=True)
        for name in asked.names or PAGES:
            command, page = PAGES[name]
            if not (work / page).exists():
                tool, *words = command.split()
                subprocess.run([str(Path(sys.executable).parent / tool), *words], cwd=work, check=False)
            data = picture(work / page)
            assert len(data) < MOST_BYTES, f"{name}: {len(data)} bytes"
            (OUT / f"{name}.png").write_bytes(data)
            sys.stdout.write(f"{name}: {len(data) // 1000} kB\n")


if __name__ == "__main__":
    main()

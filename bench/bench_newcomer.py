"""A newcomer's walk: from the first line of the README to a first identified arm, in minutes.

Read is the README from its top to the end of "On your own arm", typed are the install line and the commands of that section, run
are these commands on the small arm of the examples. The robot itself is not counted: an embedded one, whose bodies are 20 % off
their description, plays both motions and logs them. What is run is counted by the clock, so let nothing else run.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.measure import table

ROOT = Path(__file__).parents[1]
WORDS_A_MINUTE = 200
"""Read with care: ordinary prose is read at 240."""
LETTERS_A_MINUTE = 200
"""Typed by somebody who thinks: forty words a minute."""
MOST_MINUTES = 10.0
INSTALL = "pip install 'armid[all]'"


def walked(readme: str) -> tuple[int, list[str]]:
    """Words up to the end of the commands for one's own arm, and these commands as they are typed.

    Args:
        readme: its text.
    """
    read, _, _ = readme.partition("\n## From Python")
    block = re.search(r"## On your own arm\n+```\n(.*?)```", read, flags=re.DOTALL)
    if block is None or INSTALL not in read:
        sys.exit("the README has no commands for one's own arm, or another install line")
    lines = [re.sub(r" +", " ", line.partition("#")[0]).strip() for line in block[1].splitlines()]
    return len(read.split()), [line for line in lines if line.startswith("armid ")]


def minutes_of(readme: str) -> tuple[float, float]:
    """Minutes of reading and of typing."""
    words, commands = walked(readme)
    letters = sum(len(line) + 1 for line in (INSTALL, *commands))
    return words / WORDS_A_MINUTE, letters / LETTERS_A_MINUTE


def run(command: str, folder: Path) -> float:
    """Seconds a command takes; the walk ends where one fails."""
    began = time.perf_counter()
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stderr}")
    return time.perf_counter() - began


def played(name: str, seed: int, folder: Path) -> None:
    """The motion in folder `name`, played by an embedded robot and logged."""
    run(f"armid simulate arm.urdf {name}/trajectory.json --variation 0.2 --seed {seed} --out played-{name}", folder)
    shutil.copy(folder / f"played-{name}" / "log.csv", folder / ("log.csv" if name == "motion" else f"{name}.csv"))


def main() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    words, commands = walked(readme)
    reading, typing = minutes_of(readme)
    rows: list[tuple[object, ...]] = [(f"reading {words} words", reading), ("typing", typing)]
    with TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copy(ROOT / "examples" / "trio.urdf", folder / "arm.urdf")
        for command in commands:
            if command.startswith("armid check"):
                played("motion", 1, folder)
                played("other", 1, folder)
            rows.append((command, run(command, folder) / 60.0))
    total = sum(float(str(minutes)) for _, minutes in rows)
    shown = [(what, f"{float(str(minutes)):.1f}") for what, minutes in (*rows, ("together", total))]
    table("From the README to a first identified arm", ("step", "minutes"), shown)
    sys.exit(0 if total < MOST_MINUTES else f"more than {MOST_MINUTES:g} minutes")


if __name__ == "__main__":
    main()

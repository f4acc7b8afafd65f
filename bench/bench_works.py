"""The long commands of docs/works: each with its seconds, exit code and the lines that the pages quote.

Run: python -m bench works [--quick] [--rotors | --rotor-noise | --coefficients]
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from armid.logs.conditioning import VelocitySource
from armid.studies.khosla import ReplaySensors, replay_khosla
from bench.gaz_coefficients import coefficient_rules
from bench.works_friction import rotor_noise, rotors, sequential_friction

ROOT = Path(__file__).parents[1]
TABLE = r"<!-- file: {}.txt -->\n```text\n(.*?)```"
QUOTED = re.compile(
    r"condition number|^inertia |M_1_1 |held-out torque error|within 5 %|goals|coefficients|trusted|processed"
    r"|as printed|^catalogue|half a turn"
)


def run(folder: Path, *words: str) -> None:
    """One command, and the lines of its output that are quoted."""
    began = perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "armid", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    print(f"$ armid {' '.join(words)}\n  exit {done.returncode}, {perf_counter() - began:.0f} s")
    for line in (done.stdout if done.returncode in (0, 3) else done.stderr).splitlines():
        if QUOTED.search(line) or done.returncode not in (0, 3):
            print(f"  {line[:160]}")


def halper(folder: Path, *, quick: bool) -> None:
    """Table A.1 in 20 and 27 s, eq. 3.55, processing beside the default on another motion."""
    page = (ROOT / "docs" / "works" / "halper2024.md").read_text(encoding="utf-8")
    for name, repetitions in (("a1", 2 if quick else 5), ("a2", 2)):
        table = re.search(TABLE.format(name), page, re.DOTALL)
        assert table is not None
        (folder / f"{name}.txt").write_text(f"duration: 27\nrepetitions: {repetitions}\n" + table[1])
    plain = ("iiwa14", "--friction", "viscous,coulomb")
    run(folder, "inspect", *plain, "--trajectory", "a1.txt")
    search = ("--starts", "1" if quick else "2", "--seconds", "0", "--workers", "1")
    run(folder, "design", "iiwa14", "--preset", "halper2024", *search, "--out", "d")
    run(folder, "simulate", "iiwa14", "a1.txt", "--rate-hz", "200", "--out", "run")
    run(folder, "simulate", "iiwa14", "a2.txt", "--rate-hz", "200", "--out", "other")
    identify = ("identify", "iiwa14", "run/log.csv", "--validate", "other/log.csv", *plain[1:])
    run(folder, "check", "iiwa14", "run/log.csv", "--processing", "halper2024")
    run(folder, *identify, "--processing", "halper2024", "--out", "as-halper")
    run(folder, *identify, "--out", "default")


def khosla(*, quick: bool) -> None:
    """How the agreement of the four experiments depends on time, sensors and friction."""
    cases = {
        "as [Khosla1985], 10 s": replay_khosla,
        "20 s": lambda: replay_khosla(seconds=20.0),
        "10 s, torque as stamped": lambda: replay_khosla(torque_delay=0.0),
        "10 s, tachometer of 1e-3 rad/s": lambda: replay_khosla(velocity=VelocitySource.MEASURED),
        "10 s, 14-bit resolvers": lambda: replay_khosla(sensors=ReplaySensors(bits=14)),
        "10 s, torque of 12 bits": lambda: replay_khosla(sensors=ReplaySensors(torque_bits=12)),
        "10 s, friction of the catalogue": lambda: replay_khosla(friction=1.0),
        "40 s, friction, links held": lambda: replay_khosla(seconds=40.0, friction=1.0, hold=True),
    }
    print(
        "| replay | within 5 % of their size | largest spread over size | beyond 5 % of their own value |\n|---|---|---|---|"
    )
    for name, case in list(cases.items())[: 2 if quick else None]:
        found = case()
        beyond = sorted(found.beyond(0.05).items(), key=lambda item: -item[1])[:5]
        words = ", ".join(f"{n} {100 * r:.0f} %" for n, r in beyond) or "-"
        largest = 100 * float((found.spread / found.size).max())
        print(f"| {name} | {found.agreeing} of {len(found.base)} | {largest:.2g} % | {words} |", flush=True)


def others(folder: Path, *, quick: bool) -> None:
    """Poses of [RWTH2021], the model inside a controller, goals of [Kolyubin2017]."""
    poses = ("poses", "mabi-max100", "--for", "axis-inertia", "--cell", "mabi-max100")
    run(folder, "study", "rwth2021", "--out", "table62")
    for method in ("target", "best"):
        run(folder, *poses, "--method", method, "--out", f"poses-{method}")
    run(folder, "recover", "lwr4-dh", "--plan", "200" if quick else "1200", "--out", "plan")
    run(folder, "simulate", "lwr4-dh", "plan/postures.csv", "--record", "controller-model", "--out", "controller")
    run(folder, "recover", "lwr4-dh", "controller/controller.npz", "--coefficients", "--out", "recovered")
    (folder / "q6.yaml").write_text("format: armid-limits/1\njoints:\n  joint6: {lower: -1.5708, upper: 1.5708}\n")
    visible = (
        "--frame",
        "led_fixture",
        "--cell",
        "lwr4plus-tracker",
        "--limits-file",
        "q6.yaml",
        "--method",
        "exchange",
    )
    run(folder, "poses", "lwr4plus", "--for", "calibration", *visible, "--out", "poses-visible")
    search = ("--starts", "1", "--seconds", "0", "--workers", "1")
    run(folder, "design", "lwr4plus", "--preset", "kolyubin2017", *search, "--out", "goals")


def main(arguments: Sequence[str] = ()) -> None:
    quick = "--quick" in arguments
    if "--rotor-noise" in arguments:
        rotor_noise()
        return
    if "--coefficients" in arguments:
        coefficient_rules(quick=quick)
        return
    if "--rotors" in arguments:
        rotors(quick=quick)
        return
    with tempfile.TemporaryDirectory() as place:
        halper(Path(place), quick=quick)
        others(Path(place), quick=quick)
    khosla(quick=quick)
    sequential_friction(quick=quick)
    rotors(quick=quick)
    coefficient_rules(quick=quick)


if __name__ == "__main__":
    main(sys.argv[1:])

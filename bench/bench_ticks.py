"""Time per tick of exported code: `armid export --to c|python --what observer|feedforward|gravity`, one core.

    python -m bench ticks

C is compiled with `cc -O2`, and called from C on samples that change at every tick; the best of several runs, and the slowest
thousandth of single ticks, which is what a controller has to wait for on a machine with other work.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

from armid.export.formats import CodeContent, What
from armid.export.source_code import Language, source_code
from armid.robot.load import load_robot
from armid.robot.robot import Robot

BUDGET = 5.0
"""[us] for seven joints in C."""

ARMS = ("panda", "iiwa14", "ur10e", "cylindrical")

_CALLS = {
    What.OBSERVER: "arm_observer_update(&observer, q[k], qd[k]); sum += observer.external[0];",
    What.FEEDFORWARD: "arm_feedforward(q[k], qd[k], qdd[k], out); sum += out[0];",
    What.GRAVITY: "arm_gravity(q[k], out); sum += out[0];",
}


def main() -> None:
    if shutil.which("cc") is None:
        print("no C compiler on this machine")
        return
    print(
        f"## Time of one tick [us], code as exported; budget {BUDGET:g} us for seven joints in C (python -m bench ticks)"
    )
    print(f"{'arm':14s}{'joints':>7s}  {'what':12s}{'C':>8s}{'C, 99.9 %':>11s}{'Python':>9s}")
    for name in ARMS:
        robot = load_robot(name)
        for what in _CALLS:
            best, slow = in_c(robot, what)
            print(f"{name:14s}{robot.n_joints:7d}  {what:12s}{best:8.2f}{slow:11.2f}{in_python(robot, what):9.0f}")


def in_c(robot: Robot, what: What) -> tuple[float, float]:
    """Best mean and 99.9th percentile of a tick [us]."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        for file, text in source_code(robot, Language.C, content=CodeContent(what)).items():
            (place / file).write_text(text)
        (place / "main.c").write_text(_main_c(robot.n_joints, what))
        subprocess.run(["cc", "-O2", "-o", "ticks", "main.c", f"arm_{what}.c", "-lm"], cwd=place, check=True)
        told = subprocess.run(["./ticks"], cwd=place, check=True, capture_output=True, text=True).stdout
    best, slow, _ = (float(word) for word in told.split())
    return best, slow


def _main_c(n: int, what: What) -> str:
    observer = "arm_observer observer; arm_observer_init(&observer);" if what is What.OBSERVER else ""
    return f"""#define _POSIX_C_SOURCE 199309L
#include "arm_{what}.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define SAMPLES 4096
#define RUNS 20
static double q[SAMPLES][{n}], qd[SAMPLES][{n}], qdd[SAMPLES][{n}], single[SAMPLES * RUNS];
static double now(void) {{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return 1e6 * t.tv_sec + 1e-3 * t.tv_nsec; }}
static int compare(const void *a, const void *b) {{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}}
int main(void) {{
  double sum = 0.0, best = 1e9, out[{n}] = {{0}};
  {observer}
  for (int k = 0; k < SAMPLES; k++) for (int i = 0; i < {n}; i++) {{
    q[k][i] = sin(0.004 * (i + 1) * k); qd[k][i] = cos(0.004 * (i + 1) * k); qdd[k][i] = -q[k][i];
  }}
  for (int run = 0; run < RUNS; run++) {{
    const double start = now();
    for (int k = 0; k < SAMPLES; k++) {{ {_CALLS[what]} }}
    const double each = (now() - start) / SAMPLES;
    if (each < best) best = each;
  }}
  for (int j = 0; j < SAMPLES * RUNS; j++) {{
    const int k = j % SAMPLES;
    const double start = now();
    {_CALLS[what]}
    single[j] = now() - start;
  }}
  qsort(single, SAMPLES * RUNS, sizeof(double), compare);
  printf("%g %g %g\\n", best, single[(int)(0.999 * SAMPLES * RUNS)], sum + out[0]);
  return 0;
}}
"""


def in_python(robot: Robot, what: What) -> float:
    """Best mean of a tick [us], standard library only."""
    with TemporaryDirectory() as folder:
        ((file, text),) = source_code(robot, Language.PYTHON, content=CodeContent(what)).items()
        path = Path(folder) / file
        path.write_text(text)
        specification = importlib.util.spec_from_file_location("ticks", path)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
    states = [[x.tolist() for x in state] for state in np.random.default_rng(0).normal(size=(500, 3, robot.n_joints))]
    call = module.Observer().update if what is What.OBSERVER else getattr(module, what)
    count = {What.OBSERVER: 2, What.FEEDFORWARD: 3, What.GRAVITY: 1}[what]
    best = np.inf
    for _ in range(3):
        start = process_time()
        for state in states:
            call(*state[:count])
        best = min(best, (process_time() - start) / len(states))
    return 1e6 * float(best)


if __name__ == "__main__":
    main()

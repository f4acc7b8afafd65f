"""The momentum observer as source code: the same arithmetic as `MomentumObserver`, with a fixed number of operations per tick.

A tick keeps the last samples in a ring laid down twice, so that every window is one piece of memory; fits one polynomial to the
window (value, velocity, velocity at both ends); evaluates the model once; and follows with the observer's time constant.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from armid.arrays import FloatArray
from armid.observation.residuals import rest_speed, smoothing
from armid.robot.robot import Robot

MODEL = "observer_model"
"""Name of the generated torque that the observer calls."""


def _weights(rate_hz: float) -> FloatArray:
    """Rows of a window: value, velocity, velocity at its start and at its end, shape [4, width]."""
    polynomial = smoothing(rate_hz)
    return np.vstack([polynomial.weights[:2], polynomial.slopes])


def _decay(rate_hz: float, bandwidth_hz: float) -> float:
    return float(np.exp(-2.0 * np.pi * bandwidth_hz / rate_hz))


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(repr(float(x)) for x in values)


def observer_summary(rate_hz: float, bandwidth_hz: float) -> tuple[str, ...]:
    """What a reader of the code must know."""
    delay = 1e3 * smoothing(rate_hz).delay
    return (
        f"Momentum observer for {rate_hz:g} samples a second, bandwidth {bandwidth_hz:g} Hz; late by {delay:g} ms besides.",
        "external: torque [N m or N] that somebody else gives.",
        "band: what friction of joints that stand or turn back may hide of it.",
        "Only what is beyond the band counts. After a missing sample, or one that is not finite, it starts over.",
    )


def observer_c_declarations(robot: Robot, name: str, rate_hz: float) -> str:
    """The observer's memory and its two functions, for the header."""
    n, width = robot.n_joints, smoothing(rate_hz).width
    return f"""// Memory of the observer; external and band are its answer.
typedef struct {{
  double ring[{2 * width}][{2 * n}];
  double before[{n}], external[{n}], band[{n}];
  int place, count;
}} {name}_observer;

// Start, and start over after a missing sample.
void {name}_observer_init({name}_observer *observer);

// One sample: positions [rad or m] and measured torque [N m or N].
// 1: external and band are known; 0: the window is not full; -1: a number is not finite, the observer starts over.
int {name}_observer_update({name}_observer *observer, const double q[{n}], const double torque[{n}]);
"""


def observer_c(robot: Robot, name: str, rate_hz: float, bandwidth_hz: float) -> str:
    """The two functions."""
    n, weights = robot.n_joints, _weights(rate_hz)
    rows = ",\n".join(f"  {{{_numbers(row)}}}" for row in weights.T)
    width = weights.shape[1]
    return f"""// Value, velocity, velocity at the start and at the end of a window.
static const double WEIGHTS[{width}][4] = {{
{rows}}};
static const double REST_SPEED[{n}] = {{{_numbers(rest_speed(robot))}}};
static const double COULOMB[{n}] = {{{_numbers(robot.drive("coulomb"))}}};
static const double DECAY = {_decay(rate_hz, bandwidth_hz)!r};
static const double RATE = {float(rate_hz)!r};

void {name}_observer_init({name}_observer *observer) {{
  *observer = ({name}_observer){{.place = 0}};
}}

int {name}_observer_update({name}_observer *observer, const double q[{n}], const double torque[{n}]) {{
  for (int i = 0; i < {n}; i++) {{
    if (!isfinite(q[i]) || !isfinite(torque[i])) {{
      {name}_observer_init(observer);
      return -1;
    }}
  }}
  double *low = observer->ring[observer->place], *high = observer->ring[observer->place + {width}];
  for (int i = 0; i < {n}; i++) {{
    low[i] = high[i] = q[i];
    low[{n} + i] = high[{n} + i] = torque[i];
  }}
  observer->place = (observer->place + 1) % {width};
  if (observer->count <= {width}) observer->count++;
  if (observer->count < {width}) return 0;
  double x[{2 * n}] = {{0}}, v[{n}] = {{0}}, start[{n}] = {{0}}, end[{n}] = {{0}};
  for (int k = 0; k < {width}; k++) {{
    const double *sample = observer->ring[observer->place + k];
    const double *w = WEIGHTS[k];
    for (int i = 0; i < {2 * n}; i++) x[i] += w[0] * sample[i];
    for (int i = 0; i < {n}; i++) {{
      v[i] += w[1] * sample[i];
      start[i] += w[2] * sample[i];
      end[i] += w[3] * sample[i];
    }}
  }}
  double moving[{n}], change[{n}], model[{n}], hidden[{n}];
  for (int i = 0; i < {n}; i++) {{
    const int forward = v[i] > 0 && start[i] > 0 && end[i] > 0;
    const int backward = v[i] < 0 && start[i] < 0 && end[i] < 0;
    const int resting = !(forward || backward) || fabs(v[i]) < REST_SPEED[i];
    moving[i] = resting ? 0.0 : v[i];
    hidden[i] = resting ? COULOMB[i] : 0.0;
    change[i] = (v[i] - observer->before[i]) * RATE;
    observer->before[i] = v[i];
  }}
  if (observer->count == {width}) return 1;  // no velocity before this one
  {name}_{MODEL}(x, moving, change, model);
  for (int i = 0; i < {n}; i++) {{
    observer->external[i] = DECAY * observer->external[i] + (1.0 - DECAY) * (model[i] - x[{n} + i]);
    observer->band[i] = DECAY * observer->band[i] + (1.0 - DECAY) * hidden[i];
  }}
  return 1;
}}
"""


def observer_python(robot: Robot, rate_hz: float, bandwidth_hz: float) -> str:
    """The observer as a class on lists of numbers."""
    n, weights = robot.n_joints, _weights(rate_hz)
    rows = ",\n    ".join(f"({_numbers(row)})" for row in weights)
    return f'''# Value, velocity, velocity at the start and at the end of a window.
_WEIGHTS = (
    {rows},
)
_REST_SPEED = ({_numbers(rest_speed(robot))},)
_COULOMB = ({_numbers(robot.drive("coulomb"))},)
_DECAY = {_decay(rate_hz, bandwidth_hz)!r}
_RATE = {float(rate_hz)!r}
_WIDTH = {weights.shape[1]}


class Observer:
    """External torque of a live arm, one sample after the other: `external` and `band` [N m or N]."""

    def __init__(self):
        self.reset()

    def reset(self):
        """Start over, after a missing sample."""
        self.external, self.band = [0.0] * {n}, [0.0] * {n}
        self._before, self._window = None, []

    def update(self, q, torque):
        """One sample: positions [rad or m] and measured torque [N m or N].

        True: external and band are known; False: the window is not full, or a number was not finite and it starts over.
        """
        if not all(map(isfinite, (*q, *torque))):
            self.reset()
            return False
        self._window = [*self._window[1 - _WIDTH :], (*q, *torque)]
        if len(self._window) < _WIDTH:
            return False
        columns = list(zip(*self._window))
        x = [sum(map(mul, _WEIGHTS[0], column)) for column in columns]
        v, start, end = ([sum(map(mul, row, column)) for column in columns[:{n}]] for row in _WEIGHTS[1:])
        before, self._before = self._before, v
        if before is None:
            return True
        one_way = [min(s) > 0 or max(s) < 0 for s in zip(v, start, end)]
        moves = [one_way[i] and abs(v[i]) >= _REST_SPEED[i] for i in range({n})]
        moving = [v[i] if moves[i] else 0.0 for i in range({n})]
        change = [(v[i] - before[i]) * _RATE for i in range({n})]
        model = {MODEL}(x, moving, change)
        for i in range({n}):
            hidden = 0.0 if moves[i] else _COULOMB[i]
            self.external[i] = _DECAY * self.external[i] + (1.0 - _DECAY) * (model[i] - x[{n} + i])
            self.band[i] = _DECAY * self.band[i] + (1.0 - _DECAY) * hidden
        return True
'''

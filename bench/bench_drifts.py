"""What an on-line estimator that knows its arm says of sensors, friction and load that change: `python -m bench drifts`.

Arms of the catalogue with other bodies and friction, identified from 30 s; streams of positions and torques by Pinocchio. First
streams in which nothing changes, of other motions, rates and noise; then one change each, half way through 70 s (friction grows
from begin to end): when it is named, beyond doubt or as the likeliest cause, and what size is said.
"""

from __future__ import annotations

from support.drifting import Change, gain, late, load, offset, rubbing, watched, zero

ARMS = ("iiwa14", "panda", "ur10e", "lwr4plus")
QUIET = (
    {"seed": 50, "derivatives": True},
    {"seed": 51, "rate": 250.0},
    {"seed": 52, "size": 0.5, "period": 7.0},
    {"seed": 53, "rate": 250.0, "size": 0.15, "period": 15.0},
    {"seed": 54, "rate": 500.0, "seconds": 30.0},
)
"""Streams in which nothing changes."""

CHANGES: tuple[tuple[str, Change], ...] = (
    ("zero of joint 2 by 3.5 deg", zero(1, 3.5)),
    ("zero of joint 4 by -6 deg", zero(3, -6.0)),
    ("gain of joint 2 by -20 %", gain(1, -0.2)),
    ("gain of joint 4 by -20 %", gain(3, -0.2)),
    ("offset of joint 2 by 12 N m", offset(1, 12.0)),
    ("friction of joint 4 by half", rubbing(3, 0.5)),
    ("all torques 15 ms late", late(None, 0.015)),
    ("torque of joint 2 15 ms late", late(1, 0.015)),
    ("load of 1 kg", load(1.0)),
)


def main() -> None:
    said, runs = 0, 0
    for arm in ARMS:
        for specimen, noise in ((0, 0.05), (10, 0.2)):
            for stream in QUIET:
                runs += 1
                said += bool(watched(arm, arm=specimen, noise=noise, **{"seconds": 40.0, **stream}).drifts)
    print(f"nothing changes: a drift is said in {said} of {runs} streams")
    for arm in ARMS[:3]:
        for what, change in CHANGES:
            online = watched(arm, change, rate=250.0, seconds=70.0)
            print(f"{arm:8s} {what:30s} {online.state().verdict.value}")
            for note in online.drifts:
                print(f"{'':10s}{note.message}")


if __name__ == "__main__":
    main()

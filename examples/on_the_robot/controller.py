"""A simulated controller on the loopback: plays `trajectory.csv` on an embedded robot and sends what its sensors say.

    python controller.py ROBOT trajectory.csv udp://127.0.0.1:5005 [--push 4] [--seed 0]

One JSON line per datagram and sample, as a few lines in any controller's language would send them. With `--push` somebody leans on
the second joint with so many N m for half a second in the middle of the motion. The arm under it is another specimen than the one
described; nobody but this file knows it.
"""

from __future__ import annotations

import argparse
import json
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

import armid
from armid.logs.log import Channel, Log
from armid.motions.trajectory_files import load_trajectory
from armid.simulation.variation import varied

RATE = 200.0
"""[Hz] of the samples."""

FASTER = 10.0
"""Than real time: nobody waits for a simulated arm."""


def played(robot: str, trajectory: str | Path, *, push: float = 0.0, seed: int = 0) -> Log:
    """What the sensors saw along a motion."""
    motion = load_trajectory(Path(trajectory))
    specimen = varied(armid.load_robot(robot), 0.2, np.random.default_rng(0))
    log = armid.simulate(specimen, motion, rate_hz=RATE, seed=seed).log
    hand = np.zeros((len(log.time), len(log.joints)))
    middle = log.time[0] + 0.5 * (log.time[-1] - log.time[0])
    # A stiff arm hardly moves when it is pushed: its drives give that much less.
    hand[(log.time >= middle) & (log.time < middle + 0.5), 1] = push
    channel = log.torques[0]
    channels = {Channel.POSITION: log[Channel.POSITION], channel: log[channel] - hand}
    return Log(name=log.name, joints=log.joints, time=log.time, channels=channels)


def send(log: Log, target: str) -> int:
    """Every sample as one datagram, evenly; how many."""
    url = urlsplit(target)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        begin = time.monotonic()
        for k, line in enumerate(lines(log)):
            out.sendto(line.encode(), (url.hostname, url.port))
            time.sleep(max(0.0, begin + (k + 1) / (FASTER * RATE) - time.monotonic()))
        out.sendto(b"", (url.hostname, url.port))  # the end
    return len(log.time)


def lines(log: Log) -> list[str]:
    """Samples by joint name, one JSON object each."""
    rows = zip(log.time, log[Channel.POSITION], log[log.torques[0]], strict=True)
    return [
        json.dumps(
            {
                "time": t,
                "position": dict(zip(log.joints, q.tolist(), strict=True)),
                "torque": dict(zip(log.joints, tau.tolist(), strict=True)),
            }
        )
        for t, q, tau in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robot")
    parser.add_argument("trajectory")
    parser.add_argument("target")
    parser.add_argument("--push", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    log = played(options.robot, options.trajectory, push=options.push, seed=options.seed)
    print(f"{send(log, options.target)} samples sent to {options.target}")


if __name__ == "__main__":
    main()

"""From a design to a watched arm, against a simulated controller on the loopback.

    python from_design_to_observe.py [FOLDER]

Design a motion, write the program that plays it, let the controller play it and record what it sends, identify, record motion without
contact, then watch the arm live while somebody leans on it. On a real arm the controller's side is `program/README.md`.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from pathlib import Path

import controller

import armid
from armid.logs.live.stream import open_stream
from armid.observation.live import LiveObservation, observe_stream
from armid.robot.robot import Robot

ROBOT = str(Path(__file__).parents[1] / "trio.urdf")


def free_address() -> str:
    """A port of the loopback that nobody uses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        return f"udp://127.0.0.1:{taken.getsockname()[1]}"


def record(robot: Robot, motion: Path, file: Path, seed: int) -> Path:
    """A recorder: every sample of a live stream as a line of a file that `armid` reads as a log."""
    address = free_address()
    samples = open_stream(address, robot, rate_hz=controller.RATE)
    log = controller.played(ROBOT, motion, seed=seed)
    sender = threading.Thread(target=controller.send, args=(log, address))
    sender.start()
    with file.open("w", encoding="utf-8") as out:
        for s in samples:
            out.write(json.dumps({"time": s.time, "position": s.q.tolist(), "torque": s.torque.tolist()}) + "\n")
    sender.join()
    print(f"{file.name}: {samples.received} samples, {samples.lost} lost")
    assert samples.lost == 0
    return file


def main(folder: Path) -> LiveObservation:
    robot = armid.load_robot(ROBOT)
    motions = []
    for seed, name in enumerate(("first", "second")):
        design = armid.design_motion(
            robot, period=10, repeat=2, home=[0.0] * 3, seconds=None, starts=1, workers=1, seed=seed
        )
        program = armid.make_program(robot, design.trajectory, "csv", rate_hz=controller.RATE)
        program.save(folder / name)
        motions.append(folder / name / "trajectory.csv")
    logs = [record(robot, motion, folder / f"{motion.parent.name}.jsonl", k) for k, motion in enumerate(motions)]
    result = armid.identify(robot, logs[0], validate=logs[1])
    print(f"{result.verdict}, {100 * result.relative_error['held_out']:.1f} % of the held-out torque is not explained")
    result.save(folder / "identified")

    quiet = [record(robot, motion, folder / f"quiet{k}.jsonl", 10 + k) for k, motion in enumerate(motions)]
    address = free_address()
    pushed = controller.played(ROBOT, motions[1], push=4.0, seed=20)
    sender = threading.Thread(target=controller.send, args=(pushed, address))

    def tell(said: dict[str, object]) -> None:
        """The controller begins when somebody listens."""
        print(said)
        if said["event"] == "watching":
            sender.start()

    seen = observe_stream(result, address, free=[str(q) for q in quiet], rate_hz=controller.RATE, tell=tell)
    sender.join()
    assert seen.received == len(pushed.time)
    print(seen.summary())
    return seen


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "on_the_robot"))

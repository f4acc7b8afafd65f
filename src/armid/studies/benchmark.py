"""`armid.benchmark`: Monte-Carlo of estimation methods on one simulated arm, beside the bounds no method can pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np

from armid.apart import refuse_inputs_within
from armid.arrays import FloatArray
from armid.closed_loop.bodies import fitting_bodies
from armid.closed_loop.bound import loop_bound, torque_bound
from armid.closed_loop.fit import LoopMethod, LoopRecord, fit_loop, torque_rows
from armid.closed_loop.loop import LoopDivergedError
from armid.cluster.workers import open_workers
from armid.consistency.prior import nominal_prior
from armid.documents import read_json, write_json
from armid.errors import ArmidError, InputError, UnknownNameError
from armid.estimation.estimate import NORMAL_95, Estimate
from armid.identification.aids import aids_of
from armid.identification.fit import fitted
from armid.identification.identify import identify
from armid.identification.prepare import prepared
from armid.identification.settings import Identification, Method
from armid.logs.log import Channel, Log
from armid.logs.recording import open_recording
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.studies.protocol import EFFECTS, LOG_RATE, NOISE, Protocol
from armid.threads import one_blas_thread
from armid.words import word_list

SCHEMA = "armid.benchmark/1"
FILTERED = "wls-birdy"
"""Weighted least squares on motion filtered as [Leboutet2021] does: zero-phase Butterworth of order 4 at 50 Hz on the position,
central differences twice, raw torque, 50 samples trimmed at either end."""
WHOLE = "identify"
"""What `armid identify` answers without options: imperfections of sensors and friction beside the parameters, torque paired with
its tick, intervals with all of it; a recording of the other motion is held out, and the description is wrong by 15 %."""
LOOP_METHODS = tuple(method.value for method in LoopMethod)
METHODS = (WHOLE, "ols", FILTERED, "wls", "huber", "tukey", "tls", "iv", *LOOP_METHODS)
_BEATEN = 0.7
"""An efficiency below this says that the bound is wrong: with ten runs of fifty parameters it scatters by less than 0.1."""
_TRIMMED = 50

Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class BenchmarkRun:
    """One method on one recording.

    Args:
        method, noise, run: which.
        values: base values, shape [r]; not numbers when the method failed.
        deviations: standard deviations it claims, shape [r].
        torque_error: of the torque along another motion without noise, relative.
        position_error: of that motion simulated again with the values, relative to its deviation from its mean.
        cpu_seconds: of the estimate, conditioning included.
        failure: in words; empty when it went well.
    """

    method: str
    noise: str
    run: int
    values: FloatArray
    deviations: FloatArray
    torque_error: float
    position_error: float
    cpu_seconds: float
    failure: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "method": self.method,
            "noise": self.noise,
            "run": self.run,
            "values": self.values.tolist(),
            "deviations": self.deviations.tolist(),
            "torque_error": self.torque_error,
            "position_error": self.position_error,
            "cpu_seconds": self.cpu_seconds,
            "failure": self.failure,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRow:
    """One method at one level of noise.

    Args:
        method, noise: which.
        runs, failed: how many, and how many of them gave nothing.
        parameter_error: mean of 2 |b - b0| / (|b| + |b0|) over base parameters and runs.
        torque_error, position_error: root mean square over the runs.
        efficiency: root mean square of the error over the bound's deviation; 1 is as good as possible.
        bound: `loop` for methods that know the controller, `torque` for the others.
        coverage: share of 95 % intervals that hold the truth.
        cpu_seconds: median.
    """

    method: str
    noise: str
    runs: int
    failed: int
    parameter_error: float
    torque_error: float
    position_error: float
    efficiency: float
    bound: str
    coverage: float
    cpu_seconds: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Benchmark(Outcome):
    """A Monte-Carlo comparison.

    Args:
        robot: the arm.
        truth: its base values, shape [r].
        names: of them.
        bounds: smallest deviations by noise and kind, shape [r] each.
        runs: all of them.
        checks, provenance: as of every answer.
        workers, retries: of the cluster.
    """

    _page: ClassVar[str] = "armid.report.benchmark:benchmark_page"

    robot: Robot
    truth: FloatArray
    names: tuple[str, ...]
    bounds: Mapping[str, Mapping[str, FloatArray]]
    runs: tuple[BenchmarkRun, ...]
    checks: tuple[Check, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    workers: int = 1
    retries: int = 0

    @cached_property
    def rows(self) -> tuple[BenchmarkRow, ...]:
        """One per noise and method, in the order they were run."""
        pairs = dict.fromkeys((run.noise, run.method) for run in self.runs)
        return tuple(self._row(noise, method) for noise, method in pairs)

    def _row(self, noise: str, method: str) -> BenchmarkRow:
        own = [run for run in self.runs if (run.noise, run.method) == (noise, method)]
        good = [run for run in own if not run.failure]
        kind = bound_kind(method)
        if not good:
            return BenchmarkRow(
                method=method,
                noise=noise,
                runs=len(own),
                failed=len(own),
                bound=kind,
                cpu_seconds=float(np.median([run.cpu_seconds for run in own])),
                **dict.fromkeys(
                    ("parameter_error", "torque_error", "position_error", "efficiency", "coverage"), float("nan")
                ),
            )
        values, deviations = (np.array([getattr(run, name) for run in good]) for name in ("values", "deviations"))
        error = values - self.truth
        size = 0.5 * (np.abs(values) + np.abs(self.truth))
        return BenchmarkRow(
            method=method,
            noise=noise,
            runs=len(own),
            failed=len(own) - len(good),
            parameter_error=float(np.mean(np.abs(error) / np.maximum(size, 1e-300))),
            torque_error=_rms([run.torque_error for run in good]),
            position_error=_rms([run.position_error for run in good]),
            efficiency=_rms(error / self.bounds[noise][kind]),
            bound=kind,
            coverage=float(np.mean(np.abs(error) <= NORMAL_95 * deviations)),
            cpu_seconds=float(np.median([run.cpu_seconds for run in own])),
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "robot": self.robot.name,
            "base_parameters": len(self.truth),
            "rows": [{name: getattr(row, name) for name in BenchmarkRow.__slots__} for row in self.rows],
            "bounds": {
                noise: {kind: dict(zip(self.names, v.tolist(), strict=True)) for kind, v in kinds.items()}
                for noise, kinds in self.bounds.items()
            },
            "truth": dict(zip(self.names, self.truth.tolist(), strict=True)),
            "verdict": self.verdict,
            "reasons": self.reasons,
            "checks": [check.as_dict() for check in self.checks],
            "workers": self.workers,
            "retries": self.retries,
        }

    def _heading(self) -> str:
        most = max((row.runs for row in self.rows), default=0)
        return f"{self.robot.name}: {len(self.truth)} base parameters, {most} runs per method and level of noise"

    def _tables(self) -> tuple[Table, ...]:
        return (benchmark_table(self.rows),)

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `benchmark.json` and `report.html`."""
        folder = Path(folder)
        return write_json(folder / "benchmark.json", self.as_dict()), self.report(folder / "report.html")


def benchmark_table(rows: Sequence[BenchmarkRow]) -> Table:
    """One line per noise and method."""
    header = (
        "noise",
        "method",
        "runs",
        "failed",
        "d_beta %",
        "d_tau %",
        "d_q %",
        "error / bound",
        "bound",
        "cover %",
        "CPU s",
    )
    body = tuple(
        (
            row.noise,
            row.method,
            row.runs,
            row.failed,
            100.0 * row.parameter_error,
            100.0 * row.torque_error,
            100.0 * row.position_error,
            row.efficiency,
            row.bound,
            100.0 * row.coverage,
            row.cpu_seconds,
        )
        for row in rows
    )
    caption = (
        "d_beta: mean symmetric relative error of base parameters; d_tau, d_q: torque and simulated position of another motion; "
        "error / bound: 1 is the Cramer-Rao bound, of an estimator that knows the loop or sees position and torque only"
    )
    return Table(header, body, caption=caption, digits=3)


def bound_kind(method: str) -> str:
    """Which bound a method is held against."""
    return "loop" if method in LOOP_METHODS else "torque"


@one_blas_thread
def benchmark(
    robot: str | Path | Robot,
    *,
    methods: str | Sequence[str] = METHODS,
    noise: str | Sequence[str] = tuple(NOISE),
    runs: int = 10,
    seconds: float = 10.0,
    out: str | Path | None = None,
    seed: int = 0,
    cluster: Any = None,
    progress: Progress = lambda _: None,
) -> Benchmark:
    """Compares methods on recordings of a simulated arm under its joint controller.

    The arm, simulated with finer steps than any method uses, follows a random motion of twenty harmonics; the noise of its
    encoders is fed back. Methods that need starting values get those of possible bodies wrong by 15 % ([Leboutet2021]).

    Args:
        robot: a path, a name of the catalogue (`tx40-birdy`, `rv2sq` come with their controllers), or a loaded robot.
        methods: of `METHODS`; words with commas, or a list of them.
        noise: of `low`, `standard`, `high`; the same.
        runs: recordings per level of noise.
        seconds: of each.
        out: folder in which every finished run is kept at once; started again, only what is missing is run.
        seed: of motion, noise and starts; the same seed gives the same numbers.
        cluster: where recordings are made and estimated: `local[:N]`, an address, a Dask client; None for here.
        progress: told in words what is being done.

    Raises:
        UnknownNameError: a word that does not exist.
        InputError: nothing to run, an arm without bodies, or a folder with runs of other settings.
    """
    methods, noise = word_list("methods", methods), word_list("noise", noise)
    for what, given, known in (("method", methods, METHODS), ("level of noise", noise, tuple(NOISE))):
        for word in given:
            if word not in known:
                raise UnknownNameError(what, word, known)
    if runs < 1 or not seconds > 0.0 or not methods or not noise:
        raise InputError("benchmark", "nothing to run", "give at least one run, method and level of noise")
    refuse_inputs_within(out, [robot])
    arm = robot if isinstance(robot, Robot) else load_robot(robot)
    protocol = Protocol(arm, seconds, seed)
    shelf = _Shelf(None if out is None else Path(out) / "runs", protocol)
    count, retries = 1, 0
    if cluster is not None:
        recordings = [(level, run) for level in noise for run in range(runs)]
        count, retries = _on_cluster(shelf, recordings, methods, cluster, progress)
    done = []
    for level in noise:
        for run in range(runs):
            log: Log | None = None
            for method in methods:
                stored = shelf.get(level, run, method)
                if stored is None:
                    progress(f"{level}, run {run + 1} of {runs}, {method}")
                    log = log or protocol.log(level, run)
                    stored = shelf.put(_one(protocol, log, level, run, method))
                done.append(stored)
    progress("bounds")
    bounds = {level: _bounds(protocol, level, methods) for level in noise}
    answer = Benchmark(
        robot=arm,
        truth=protocol.truth,
        names=protocol.plant.base.names,
        bounds=bounds,
        runs=tuple(done),
        workers=count,
        retries=retries,
    )
    settings = {"methods": list(methods), "noise": list(noise), "runs": runs, "seconds": seconds}
    return replace(
        answer, checks=_checks(answer.rows), provenance=Provenance(settings={"robot": arm.name, **settings}, seed=seed)
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordingTask:
    """One recording of a benchmark and the methods to try on it."""

    key: str
    robot: Robot
    seconds: float
    seed: int
    noise: str
    run: int
    methods: tuple[str, ...]


_AT_HAND: dict[str, Protocol] = {}
"""The protocol that this process worked by last, by the key of its benchmark."""


def recording_runs(task: RecordingTask) -> list[BenchmarkRun]:
    """All methods on one recording, on a worker of a cluster."""
    if task.key not in _AT_HAND:
        _AT_HAND.clear()
        _AT_HAND[task.key] = Protocol(task.robot, task.seconds, task.seed)
    protocol = _AT_HAND[task.key]
    log = protocol.log(task.noise, task.run)
    return [_one(protocol, log, task.noise, task.run, method) for method in task.methods]


def _on_cluster(
    shelf: _Shelf, recordings: Sequence[tuple[str, int]], methods: Sequence[str], cluster: Any, progress: Progress
) -> tuple[int, int]:
    """Puts what is missing on the shelf; workers, and pieces of work that were done again."""
    protocol, key = shelf.protocol, uuid4().hex
    tasks = [
        RecordingTask(
            key=key,
            robot=protocol.robot,
            seconds=protocol.seconds,
            seed=protocol.seed,
            noise=level,
            run=run,
            methods=left,
        )
        for level, run in recordings
        if (left := tuple(method for method in methods if shelf.get(level, run, method) is None))
    ]
    with open_workers(cluster, progress=progress) as workers:
        for _, found in workers.map(recording_runs, tasks, label="recordings"):
            for run in found:
                shelf.put(run)
        return workers.count, workers.retries


def _checks(rows: Sequence[BenchmarkRow]) -> tuple[Check, ...]:
    out = []
    for row in rows:
        about = f"{row.method}, {row.noise} noise"
        beaten = row.efficiency < _BEATEN
        text = f"{about}: error {row.efficiency:.2f} of the bound" + (": the bound cannot be right" if beaten else "")
        out.append(
            Check(
                code="bound-not-beaten",
                passed=not beaten,
                value=row.efficiency,
                limit=_BEATEN,
                message=text,
                subject=about,
            )
        )
        out.append(
            Check(
                code="runs-finished",
                passed=not row.failed,
                value=float(row.failed),
                limit=0.0,
                message=f"{about}: {row.failed} of {row.runs} runs failed",
                subject=about,
                decisive=False,
            )
        )
    return tuple(out)


def _bounds(protocol: Protocol, level: str, methods: Sequence[str]) -> dict[str, FloatArray]:
    """Smallest deviations, of the kinds that the methods are held against."""
    position, torque = (np.full(protocol.robot.n_joints, x) for x in NOISE[level])
    motion, truth = protocol.training, protocol.truth
    out = {}
    for kind in dict.fromkeys(bound_kind(method) for method in methods):
        covariance = (
            loop_bound(motion, truth, position, torque, seed=protocol.seed)
            if kind == "loop"
            else torque_bound(motion, truth, position, torque, seed=protocol.seed)
        )
        out[kind] = np.sqrt(np.diag(covariance))
    return out


def _one(protocol: Protocol, log: Log, level: str, run: int, method: str) -> BenchmarkRun:
    """One method on one recording; a refusal is a result too."""
    started = time.process_time()
    failure = ""
    try:
        values, deviations = estimate_of(protocol, log, level, run, method)
    except (ArmidError, np.linalg.LinAlgError) as problem:
        failure = " ".join(str(problem).split()) or type(problem).__name__
        values = deviations = np.full(len(protocol.truth), np.nan)
    spent = time.process_time() - started
    torque, position = (float("nan"),) * 2 if failure else _validated(protocol, values)
    return BenchmarkRun(
        method=method,
        noise=level,
        run=run,
        values=values,
        deviations=deviations,
        torque_error=torque,
        position_error=position,
        cpu_seconds=spent,
        failure=failure,
    )


def estimate_of(protocol: Protocol, log: Log, level: str, run: int, method: str) -> tuple[FloatArray, FloatArray]:
    """Base values and the deviations a method claims for them."""
    if method == WHOLE:
        return _answered(protocol, log, level, run)
    if method in LOOP_METHODS:
        return _in_loop(protocol, log, run, LoopMethod(method))
    if method == FILTERED:
        return _filtered(protocol, log)
    return _identified(protocol, log, Method(method))


def _in_loop(protocol: Protocol, log: Log, run: int, method: LoopMethod) -> tuple[FloatArray, FloatArray]:
    plant = protocol.plant
    record = LoopRecord(protocol.training, log[Channel.POSITION], log[Channel.LINK_TORQUE])
    bodies = fitting_bodies(plant.base, nominal_prior(protocol.robot, plant.source.columns))
    fit = fit_loop([record], protocol.wrong_start(run), method, bodies, seed=1000 + run)
    return fit.values, np.sqrt(np.diag(fit.covariance))


def _identified(protocol: Protocol, log: Log, method: Method) -> tuple[FloatArray, FloatArray]:
    """As `armid identify` estimates, the whole recording for training."""
    robot = protocol.robot
    settings = Identification(
        effects=EFFECTS, method=method, controller=protocol.controller if method is Method.INSTRUMENTAL else None
    )
    recording = open_recording(log, robot, check=False)
    data = prepared(robot, [recording], [], settings)
    aids = aids_of(robot, [recording], data.train, data.conditioning, settings, torque=Channel.LINK_TORQUE)
    fit = fitted(robot, data.train, settings, structural=data.structural, intended=data.intended, aids=aids)
    return _base_values(protocol, fit.estimate)


def _answered(protocol: Protocol, log: Log, level: str, run: int) -> tuple[FloatArray, FloatArray]:
    """See `WHOLE`."""
    other = protocol.held_out_log(level, run)
    return _base_values(protocol, identify(protocol.wrong_robot(run), log, validate=other, effects=EFFECTS).estimate)


def _base_values(protocol: Protocol, estimate: Estimate) -> tuple[FloatArray, FloatArray]:
    """An estimate in the arm's own base parameters; its deviations are unknown where it has others."""
    if estimate.base.names == protocol.plant.base.names:
        return estimate.values, estimate.standard_deviations
    unknown = np.full(len(protocol.truth), np.inf)
    return protocol.plant.base.values(estimate.standard), unknown


def _filtered(protocol: Protocol, log: Log) -> tuple[FloatArray, FloatArray]:
    """See `FILTERED`."""
    from scipy.signal import butter, sosfiltfilt

    q = sosfiltfilt(butter(4, 50.0, fs=LOG_RATE, output="sos"), log[Channel.POSITION], axis=0)
    qd = np.gradient(q, 1.0 / LOG_RATE, axis=0)
    inputs = np.hstack([q, qd, np.gradient(qd, 1.0 / LOG_RATE, axis=0)])[_TRIMMED:-_TRIMMED]
    torque = log[Channel.LINK_TORQUE][_TRIMMED:-_TRIMMED]
    rows = torque_rows(protocol.training, inputs)
    r = rows.shape[2]
    free = np.linalg.lstsq(rows.reshape(-1, r), torque.reshape(-1), rcond=None)[0]
    sigma = np.sqrt(np.mean((torque - rows @ free) ** 2, axis=0))
    A = (rows / sigma[:, None]).reshape(-1, r)
    values = np.linalg.lstsq(A, (torque / sigma).reshape(-1), rcond=None)[0]
    return values, np.sqrt(np.diag(np.linalg.inv(A.T @ A)))


def _validated(protocol: Protocol, values: FloatArray) -> tuple[float, float]:
    """Relative errors of torque and re-simulated position along the other motion, without noise."""
    motion, truth = protocol.validation, protocol.truth
    real = motion.simulate(truth)
    rows = torque_rows(motion, real.motion)
    torque = float(np.linalg.norm(rows @ (values - truth)) / np.linalg.norm(rows @ truth))
    try:
        again = motion.simulate(values).position
    except LoopDivergedError:
        return torque, float("inf")
    spread = np.linalg.norm(real.position - real.position.mean(axis=0))
    return torque, float(np.linalg.norm(again - real.position) / spread)


@dataclass(frozen=True)
class _Shelf:
    """Where finished runs are kept.

    Args:
        folder: None keeps nothing.
        protocol: whose runs these are.
        held: runs of now.
    """

    folder: Path | None
    protocol: Protocol
    held: dict[tuple[str, int, str], BenchmarkRun] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.folder is None:
            return
        path = self.folder / "settings.json"
        if path.exists():
            if read_json(path, "settings of a benchmark", schema=SCHEMA).get("fingerprint") != self.fingerprint:
                raise InputError(
                    self.folder, "holds runs of another arm, duration or seed", "choose another --out, or empty it"
                )
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(path, {"schema": SCHEMA, "fingerprint": self.fingerprint})

    @cached_property
    def fingerprint(self) -> str:
        """Of everything that decides the numbers of a run but noise, number and method."""
        controller = self.protocol.controller
        digest = sha256(f"{self.protocol.robot.name} {self.protocol.seconds} {self.protocol.seed}".encode())
        for array in (self.protocol.truth, self.protocol.training.reference[::100], controller.gains):
            digest.update(np.ascontiguousarray(np.round(array, 12)).tobytes())
        return digest.hexdigest()

    def get(self, noise: str, run: int, method: str) -> BenchmarkRun | None:
        """A run that is finished."""
        if (noise, run, method) in self.held:
            return self.held[noise, run, method]
        if self.folder is None or not self._path(noise, run, method).exists():
            return None
        path = self._path(noise, run, method)
        stored = read_json(path, "a run of a benchmark", schema=SCHEMA)
        try:
            count = len(self.protocol.truth)
            return BenchmarkRun(
                method=str(stored["method"]),
                noise=str(stored["noise"]),
                run=int(stored["run"]),
                values=_numbers(stored["values"], count),
                deviations=_numbers(stored["deviations"], count),
                torque_error=_number(stored["torque_error"]),
                position_error=_number(stored["position_error"]),
                cpu_seconds=_number(stored["cpu_seconds"]),
                failure=str(stored["failure"]),
            )
        except (TypeError, ValueError, KeyError):
            raise InputError(path, "not a run of this benchmark", "delete it; it is then run again") from None

    def put(self, run: BenchmarkRun) -> BenchmarkRun:
        """The run, kept: whole or not at all."""
        self.held[run.noise, run.run, run.method] = run
        if self.folder is not None:
            write_json(self._path(run.noise, run.run, run.method), run.as_dict(), indent=None)
        return run

    def _path(self, noise: str, run: int, method: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{noise}-{run:04d}-{method}.json"


def _number(value: Any) -> float:
    """A stored number; what is not finite is stored as null."""
    return float("nan") if value is None else float(value)


def _numbers(values: Sequence[Any], count: int) -> FloatArray:
    out = np.array([_number(value) for value in values])
    if out.shape != (count,):
        raise ValueError(count)
    return out


def _rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values))))

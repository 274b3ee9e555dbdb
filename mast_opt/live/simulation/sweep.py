"""Sweeps: a trace under several policies, at several loads, with several seeds, as many runs at a time as there is room
for. What has been run is kept, so that an interrupted sweep goes on where it stopped."""

import csv
import hashlib
import io
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from mast_opt.core.errors import Interrupted, UsageError
from mast_opt.core.limits import MOST_DOCUMENT_BYTES, read_regular
from mast_opt.core.parallel import in_parallel
from mast_opt.core.worker_processes import WorkerLost, WorkerProcesses
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.loop.place_metrics import place_metrics
from mast_opt.live.simulation.kernel import POLICIES as ORDER_ONLY
from mast_opt.live.simulation.run import ENGINE_POLICIES, policy_names, run_trace
from mast_opt.live.simulation.traces.trace import JobTrace
from mast_opt.live.simulation.variants import digest_of, variant
from mast_opt.planner.io.atomic import new_file

SEED = "seed"
"""Parameter of a policy that follows the seed of a sweep unless it is given."""
SECOND_MS = 1000


CONFIDENCE = 0.95
ROUNDING = 1e-12
"""Differences between seeds, relative to the mean, that are those of floating-point sums."""


@dataclass(frozen=True)
class Window:
    """Window of time in which a run counts."""

    warm_up_s: float = 0.0
    until_s: float | None = None


@dataclass(frozen=True)
class Cell:
    """One run of a sweep."""

    policy: str
    load: float
    seed: int
    params: tuple[tuple[str, str], ...] = ()
    slow: tuple[str, ...] = ()
    """Slow paths that are on."""
    window: Window = Window()

    @property
    def label(self) -> str:
        """Name of a sweep's run in messages and files."""
        return f"{self.policy}-load{self.load:g}-seed{self.seed}"


@dataclass(frozen=True)
class CellResult:
    """The figures of a run."""

    cell: Cell
    metrics: Mapping[str, Any]


def cells_of(
    policies: Sequence[str],
    loads: Sequence[float],
    seeds: Sequence[int],
    params: Mapping[str, str],
    slow: Sequence[str],
    window: Window,
) -> tuple[Cell, ...]:
    """Every run of a sweep, by policy, load and seed.

    Args:
        params: parameters of all policies and of slow paths, or of one policy where the name begins with that policy
            and a point.
        slow: slow paths that are on.

    Raises:
        UsageError: a name that is no policy's, or a parameter of a policy that is not in the sweep.
    """
    known = policy_names()
    for policy in policies:
        if policy not in ORDER_ONLY:
            ENGINE_POLICIES.named(policy, also=ORDER_ONLY)
    for name in params:
        owner = name.partition(".")[0]
        if owner in known and owner not in policies:
            raise UsageError(f"parameter {name} is of a policy that the sweep does not have: {', '.join(policies)}")
    return tuple(
        Cell(policy, load, seed, _params_of(policy, seed, params), tuple(slow), window)
        for policy, load, seed in product(policies, loads, seeds)
    )


def _params_of(policy: str, seed: int, given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Parameters of a sweep's run: those for all policies, those of its own, and the seed."""
    others = tuple(f"{name}." for name in policy_names() if name != policy)
    own = {name.removeprefix(f"{policy}."): value for name, value in given.items() if not name.startswith(others)}
    fields = ENGINE_POLICIES[policy].params.__dataclass_fields__ if policy in ENGINE_POLICIES else {}
    if SEED in fields:
        own.setdefault(SEED, str(seed))
    return tuple(sorted(own.items()))


def run_sweep(
    trace: JobTrace,
    cells: Sequence[Cell],
    folder: Path | None,
    *,
    processes: int,
    cancel: threading.Event,
    on_done: Callable[[CellResult, bool], None],
) -> list[CellResult]:
    """The results of all cells that are done when it ends, in the order of the cells.

    Args:
        folder: where each is kept as soon as it is done; what is there already for the same trace, cell and version of
            mast-opt is not run again. None: nothing is kept.
        processes: runs at a time, each in a process of its own; 0 for one after the other in this one.
        cancel: set it from any thread to end the sweep; runs under way are dropped.
        on_done: called for each result, with whether it was there already. Not in the calling thread.

    Raises:
        InputError: a result cannot be written.
        UsageError, InstanceError: a policy cannot run the trace, or a parameter is wrong.
    """
    digest = digest_of(trace)
    found: dict[Cell, CellResult] = {}
    for cell in cells:
        there = None if folder is None else _stored(folder, cell, digest)
        if there is not None:
            found[cell] = there
            on_done(there, True)
    left = [cell for cell in cells if cell not in found]
    if left and not cancel.is_set():
        size = max(min(processes, len(left)), 1)
        with WorkerProcesses(size) if processes else nullcontext() as workers:

            def done(cell: Cell) -> None:
                result = _result(workers, trace, cell, cancel)
                if result is not None:
                    if folder is not None:
                        _store(folder, result, digest)
                    found[cell] = result
                    on_done(result, False)

            in_parallel(done, left, size, cancel)
    return [found[cell] for cell in cells if cell in found]


def _result(workers: WorkerProcesses | None, trace: JobTrace, cell: Cell, cancel: threading.Event) -> CellResult | None:
    """The result of a sweep's run, which is made here if its worker is lost; None where the sweep was cancelled."""
    try:
        if workers is not None:
            with suppress(WorkerLost):
                return CellResult(cell, workers.run(run_cell, (trace, cell), cancel.is_set))
        return None if cancel.is_set() else CellResult(cell, run_cell((trace, cell), cancel))
    except Interrupted:
        return None


def run_cell(task: tuple[JobTrace, Cell], cancel: threading.Event) -> dict[str, Any]:
    """The metrics of one run of a trace. Raises Interrupted once ``cancel`` is set."""
    trace, cell = task
    window = cell.window
    until_ms = None if window.until_s is None else round(window.until_s * SECOND_MS)
    jobs = variant(trace, cell.load, cell.seed)
    given = dict(cell.params)
    done = run_trace(jobs, cell.policy, given, slow=cell.slow, until_ms=until_ms, stop=cancel.is_set)
    if cancel.is_set() or not done.complete:
        raise Interrupted(f"interrupted in {cell.label}")
    since_ms = round(window.warm_up_s * SECOND_MS) if window.warm_up_s else None
    last_ms = None if until_ms is None else max(until_ms, int(done.rows.at_ms[-1]))
    found = metrics(done.rows, since_ms, last_ms, impossible=done.impossible).to_dict()
    if cell.policy in ENGINE_POLICIES:
        found.update(place_metrics(done.events(), since_ms or 0, last_ms).to_dict())
    return found


def _key(cell: Cell, digest: str) -> str:
    """Key of a sweep's stored result: equal for equal runs of the same trace and versions."""
    package = ENGINE_POLICIES.package(cell.policy)
    facts = json.dumps([asdict(cell), digest, version("mast-opt"), *([package] if package else [])], sort_keys=True)
    return hashlib.blake2b(facts.encode(), digest_size=16).hexdigest()


def _file(folder: Path, cell: Cell) -> Path:
    """File of a sweep's result in its folder."""
    return folder / "runs" / f"{cell.label}.json"


def _stored(folder: Path, cell: Cell, digest: str) -> CellResult | None:
    """The stored result of a sweep's run; None where there is none, or one of another trace or version."""
    try:
        stated = json.loads(read_regular(_file(folder, cell), MOST_DOCUMENT_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(stated, dict) or stated.get("key") != _key(cell, digest):
        return None
    found = stated.get("metrics")
    return CellResult(cell, found) if isinstance(found, dict) else None


def _store(folder: Path, result: CellResult, digest: str) -> None:
    """Store the result of a sweep's run in its file."""
    stated = {"key": _key(result.cell, digest), **asdict(result.cell), "metrics": result.metrics}
    with new_file(_file(folder, result.cell)) as partial:
        partial.write_text(json.dumps(stated, indent=1) + "\n", encoding="utf-8", newline="\n")


@dataclass(frozen=True)
class Row:
    """A figure of a policy at a load, over all seeds."""

    policy: str
    load: float
    metric: str
    seeds: int
    """Number of seeds for which there is a figure."""
    mean: float
    low: float | None
    """None for a single seed, which says nothing about the interval."""
    high: float | None


def table_of(results: Sequence[CellResult]) -> tuple[Row, ...]:
    """The rows of a sweep's table, by policy and load in the order of the results. Where a figure is missing for a
    seed, the others count.

    The interval is Student's for the mean of independent seeds.
    """
    groups: dict[tuple[str, float], dict[str, list[float]]] = {}
    for result in results:
        group = groups.setdefault((result.cell.policy, result.cell.load), {})
        for name, value in numbers_in(result.metrics).items():
            group.setdefault(name, []).append(value)
    return tuple(
        _row(policy, load, metric, values)
        for (policy, load), group in groups.items()
        for metric, values in group.items()
    )


def numbers_in(stated: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Name → number of a run's figures, those inside as ``queue_s.mean``."""
    found: dict[str, float] = {}
    for name, value in stated.items():
        if isinstance(value, Mapping):
            found.update(numbers_in(value, f"{prefix}{name}."))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found[f"{prefix}{name}"] = float(value)
    return found


def _row(policy: str, load: float, metric: str, values: Sequence[float]) -> Row:
    """Row of a sweep's table: the mean of a metric over seeds, with its confidence interval by Student's t."""
    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return Row(policy, load, metric, count, mean, None, None)
    if max(values) - min(values) <= ROUNDING * abs(mean):
        return Row(policy, load, metric, count, mean, mean, mean)
    half = float(student.ppf((1 + CONFIDENCE) / 2, count - 1) * np.std(values, ddof=1) / np.sqrt(count))
    return Row(policy, load, metric, count, mean, mean - half, mean + half)


def csv_text(rows: Sequence[Row]) -> str:
    """The table of a sweep as CSV, numbers by the shortest decimal that means the same."""
    text = io.StringIO(newline="")
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(Row.__dataclass_fields__)
    lines.writerows([getattr(row, name) for name in Row.__dataclass_fields__] for row in rows)
    return text.getvalue()

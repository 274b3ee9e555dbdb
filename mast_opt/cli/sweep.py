"""Sweeps of ``mast-opt simulate``: lists of policies, seeds and loads on the command line."""

import json
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.interrupt import Interrupt
from mast_opt.cli.invocation import Answer, Console, Run
from mast_opt.core.errors import InputError, UsageError
from mast_opt.core.solve_result import Event
from mast_opt.live.simulation.run import unread
from mast_opt.live.simulation.sweep import Cell, CellResult, Row, csv_text, run_sweep, table_of
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace
from mast_opt.live.simulation.warm_up import warm_up_simulation
from mast_opt.planner.io.atomic import check_writable, new_file

ValueT = TypeVar("ValueT")

CSV, JSON, RUNS = "results.csv", "results.json", "runs"
MOST_SEEDS = 10_000
SHOWN = ("queue_s.mean", "queue_s.p95", "waiting", "impossible", "allocation", "starved")
_RANGE = re.compile(r"([0-9]{1,9})\.\.([0-9]{1,9})")


def grid_of(policy: str, load: str, seed: str) -> tuple[tuple[str, ...], tuple[float, ...], tuple[int, ...]]:
    """Policies, loads and seeds of a command line. Raises UsageError where they are no lists."""
    return _unique("--policy", policy.split(",")), _loads(load), _seeds(seed)


def _loads(text: str) -> tuple[float, ...]:
    """Loads of a sweep from a list with commas. Raises UsageError."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < value < float("inf") for value in found):
        raise UsageError(f"--load {text}: expected numbers above 0, as in --load 0.5,1,1.2")
    return _unique("--load", found)


def _seeds(text: str) -> tuple[int, ...]:
    """Seeds of a sweep from a list with commas, or a range. Raises UsageError."""
    found: list[int] = []
    for part in text.split(","):
        if between := _RANGE.fullmatch(part):
            first, last = int(between[1]), int(between[2])
            if last - first >= MOST_SEEDS:
                raise UsageError(f"--seed {text}: expected at most {MOST_SEEDS:,} seeds")
            found += range(first, last + 1)
        elif part.isascii() and part.isdigit() and len(part) < 10:
            found.append(int(part))
        else:
            raise UsageError(
                f"--seed {text}: expected whole numbers or ranges of them, as in --seed 1..10 or --seed 1,4"
            )
    if not found:
        raise UsageError(f"--seed {text}: there is no seed in it; expected the smaller one first, as in --seed 1..10")
    return _unique("--seed", found)


def _unique(option: str, values: Sequence[ValueT]) -> tuple[ValueT, ...]:
    """Values of a sweep's option. Raises UsageError for one that is there twice."""
    if len(set(values)) < len(values):
        raise UsageError(f"{option}: expected each value once")
    return tuple(values)


def compile_for(run: Run, policies: Sequence[str]) -> None:
    """Compile what these policies need, or load it, before the clock of the runs begins."""
    run.hear_compiler()
    with run.phase("compile", "compiling, once"):
        warm_up_simulation(policies)


def sweep(
    run: Run,
    path: Path,
    cells: Sequence[Cell],
    out: Path | None,
    *,
    processes: int | None,
    force: bool,
) -> Answer:
    """Every run of a sweep, and the table of their figures.

    Raises:
        UsageError: ``force``, as a sweep replaces nothing.
        InputError: the folder holds something else, or cannot be written.
    """
    if force:
        raise UsageError("a sweep keeps what is there and adds what is missing; leave out --force")
    with run.phase("read", f"reading {path}"):
        trace = read_trace(path)
    run.record.update(kind="job-trace", name=trace.name)
    for cell in {cell.policy: cell for cell in cells}.values():
        run.warn(unread(trace, cell.policy, dict(cell.params), cell.slow), strict=False)
    if out is not None:
        _check_folder(out)
        check_writable(out)
    compile_for(run, list(dict.fromkeys(cell.policy for cell in cells)))
    size = processes or os.cpu_count() or 1
    with Interrupt(run, "every run that is complete") as interrupt, run.phase("solve"):
        results = _watched(run, trace, cells, out, size, interrupt.cancel)
        stopped = interrupt.happened
    rows = table_of(results)
    if out is not None:
        _write(out, rows)
    missing = len(cells) - len(results)
    run.record.update(
        sweep={"runs": len(results), "missing": missing, "results": [asdict(row) for row in rows]},
        out=None if out is None else str(out),
    )
    if stopped:
        run.record["error"] = f"interrupted; {missing} of {len(cells)} runs are missing"

    def show(console: Console) -> None:
        _show(console, trace.name, rows, results, missing, out)

    return Answer(Exit.INTERRUPTED if stopped else Exit.OK, show)


def _check_folder(out: Path) -> None:
    """Raises InputError where something stands that is no earlier sweep."""
    if not out.exists():
        return
    names = sorted(entry.name for entry in out.iterdir()) if out.is_dir() else [out.name]
    if not out.is_dir() or any(name not in (CSV, JSON, RUNS) for name in names):
        raise InputError(f"{out} is no folder of an earlier sweep; choose another path")


def _watched(
    run: Run,
    trace: JobTrace,
    cells: Sequence[Cell],
    out: Path | None,
    size: int,
    cancel: threading.Event,
) -> list[CellResult]:
    """The results, with a line of progress while it takes long."""
    from mast_opt.planner.report.terminal.progress import Progress

    began, lock = time.perf_counter(), threading.Lock()
    done, earlier = 0, 0
    with Progress(run.err, "simulating") as progress:

        def count(result: CellResult, there: bool) -> None:
            nonlocal done, earlier
            with lock:
                done, earlier = done + 1, earlier + there
                elapsed, new = time.perf_counter() - began, done - earlier
                left = f", {elapsed / new * (len(cells) - done):.0f} s left" if new else ""
                progress(Event(elapsed, None, None, f"{done} of {len(cells)} runs{left}"))

        results = run_sweep(
            trace,
            cells,
            out,
            processes=size,
            cancel=cancel,
            on_done=count,
        )
    run.record["runs"] = {"there already": earlier, "new": done - earlier}
    return results


def _write(out: Path, rows: Sequence[Row]) -> None:
    """Write the table of a sweep to its folder."""
    for name, text in ((CSV, csv_text(rows)), (JSON, json.dumps([asdict(row) for row in rows], indent=1) + "\n")):
        with new_file(out / name) as partial:
            partial.write_text(text, encoding="utf-8", newline="\n")


def _show(
    console: Console, name: str, rows: Sequence[Row], results: Sequence[CellResult], missing: int, out: Path | None
) -> None:
    """Print the table of a sweep, and how many runs are missing."""
    from mast_opt.live.reports.content import SHARES, metric_words
    from mast_opt.planner.report.terminal.sections import print_words, show_table

    seeds = len({result.cell.seed for result in results})
    short = f"; {missing:,} are missing" if missing else ""
    print_words(console, f"{name}: {len(results):,} runs, {seeds:,} seeds{short}")
    by_run: dict[tuple[str, float], Mapping[str, Row]] = {}
    for row in rows:
        by_run[row.policy, row.load] = {**by_run.get((row.policy, row.load), {}), row.metric: row}
    heads = ("policy", "load", *(metric_words(metric.replace(".", "_")) for metric in SHOWN))
    lines = [
        (policy, f"{load:g}", *(_amount(found.get(metric), share=metric in SHARES) for metric in SHOWN))
        for (policy, load), found in by_run.items()
    ]
    show_table(console, "Mean over seeds ± half of the 95% interval", heads, lines)
    if out is not None:
        print_words(console, f"All figures are in {out / CSV}.")


def _amount(row: Row | None, *, share: bool) -> str:
    """A figure of a sweep's table as text, with its confidence interval."""
    from mast_opt.core.wording import percent, plain

    if row is None:
        return "–"
    text = (lambda value: percent(value, 1)) if share else plain
    return text(row.mean) if row.high is None else f"{text(row.mean)} ± {text(row.high - row.mean)}"

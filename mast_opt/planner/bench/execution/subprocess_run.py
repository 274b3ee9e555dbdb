"""Run of a benchmark in a process of its own, on processors of its own, which is killed when it is far too late."""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mast_opt.planner.bench.execution.environment import commit
from mast_opt.planner.bench.results.store import Ended
from mast_opt.planner.bench.suites.suite import Trial

PATIENCE_S = 120.0
"""Seconds for start, reading and work of a solver after its time limit, before the process is killed."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")


def run_child(trial: Trial, plan_folder: Path | None = None, *, patience_s: float = PATIENCE_S) -> dict[str, Any]:
    """Make the run in a process of its own and return its record.

    The process gets as many processors as the trial has threads and may use no other. A crash and a process that is
    killed after twice the time limit and ``patience_s`` are results too. Temporary files of the run are in its own
    folder, which is removed whatever its end.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        trial_file, result_file = Path(folder) / "trial", Path(folder) / "result.json"
        trial_file.write_bytes(pickle.dumps(trial))
        words = [sys.executable, "-m", "mast_opt.planner.bench.execution.worker", trial_file, result_file]
        words += [plan_folder] if plan_folder is not None else []
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        settings = {**dict.fromkeys(_THREADS, str(trial.threads)), "TMPDIR": str(scratch)}
        sources = commit()
        began = time.perf_counter()
        with (Path(folder) / "errors").open("w+", encoding="utf-8", errors="replace") as errors:
            process = subprocess.Popen(
                [str(word) for word in words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, **settings},
                start_new_session=True,
                preexec_fn=_pin(trial.threads),
            )
            late = _wait(process, 2 * trial.time_limit_s + patience_s)
            wall_s = time.perf_counter() - began
            errors.seek(0)
            last = errors.read().strip().splitlines()[-1:]
        written = _record_in(result_file)
        if late:
            record: dict[str, Any] = {"status": Ended.TIMEOUT.value, "error": f"killed after {wall_s:.0f} s"}
        elif written is not None:
            record = written
        else:
            record = {"status": Ended.CRASHED.value, "error": f"{_end(process.returncode)}: {' '.join(last)}"}
    record["runtime_s"] = {**record.get("runtime_s", {}), "wall": wall_s}
    record["commit"] = sources
    record["pinned"] = hasattr(os, "sched_setaffinity")
    return record


def _record_in(file: Path) -> dict[str, Any] | None:
    """Record that a run wrote; None if the run ended before it was complete."""
    try:
        written: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return written


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Wait for the end of a benchmark's run; True if the process had to be killed. An interrupt kills it too, and is
    passed on.
    """
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        return True
    except BaseException:
        _kill(process)
        raise
    return False


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process of a benchmark's run with everything that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _pin(threads: int) -> Callable[[], None] | None:
    """Function that pins a run's process to ``threads`` processors; None if the system cannot do so."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    processors = sorted(os.sched_getaffinity(0))[:threads]

    def pin() -> None:
        os.sched_setaffinity(0, processors)

    return pin


def _end(code: int) -> str:
    """End of a run's process in words: its exit code or signal."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"

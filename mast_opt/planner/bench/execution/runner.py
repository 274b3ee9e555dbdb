"""Loop over the trials of a suite: each one without a result runs, and each result is kept as soon as it is there."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mast_opt.core.errors import InputError
from mast_opt.planner.bench.execution.environment import commit, machine, versions
from mast_opt.planner.bench.execution.subprocess_run import PATIENCE_S, run_child
from mast_opt.planner.bench.results import best_known
from mast_opt.planner.bench.results.store import Ended, Result, append, file_of, key_of, load, used_by
from mast_opt.planner.bench.suites.instances import Program, Stored
from mast_opt.planner.bench.suites.suite import Suite, Trial
from mast_opt.planner.solving.auto_strategy import AUTO
from mast_opt.problems.registry import kind_named

Outcome = tuple[int, dict[str, Any], Path | None]
"""Position of a trial, its outcome, and the folder of its plan if one was kept."""
Outcomes = Generator[Outcome, None, None]


@dataclass(frozen=True)
class RunPlan:
    """Runs of a suite that are still to be made, and those that are done."""

    suite: Suite
    file: Path
    """File of the results."""
    todo: tuple[tuple[str, Trial], ...]
    """Trials still to run, with their keys."""
    done: int
    """Trials that have a result under the same key from this machine; one whose solver was missing counts as none."""
    machine: dict[str, Any]
    versions: dict[str, str]
    commit: str | None


@dataclass(frozen=True)
class FinishedRun:
    """A run that has ended, as reported to the caller."""

    trial: Trial
    result: Result
    position: int
    """Number of the run, 1 for the first that is run now."""
    left_s: float
    """Seconds expected for the other runs: their limits, scaled by how long the runs so far took for theirs."""
    best_known: str
    """Fate of the plan where best-known plans are kept; otherwise empty."""


def plan(suite: Suite, folder: Path, filter: str = "", *, again: bool = False) -> RunPlan:
    """Find out which runs of a suite are still to be made.

    Args:
        suite: the suite.
        folder: of the results.
        filter: words; trials whose label lacks one of them are left out.
        again: run also what has a result.
    """
    chosen = [trial for trial in suite.trials if all(word in trial.label for word in filter.split())]
    used = versions(name for trial in chosen for name in used_by(trial))
    at, here = commit(), machine()
    keyed = [(key_of(trial, used, at), trial) for trial in chosen]
    file = file_of(folder, suite.name)
    results = [] if again else load(file)
    there = {
        result["key"]
        for result in results
        if result["status"] != Ended.UNAVAILABLE.value and result.get("machine", here) == here
    }
    todo = tuple((key, trial) for key, trial in keyed if key not in there)
    return RunPlan(suite, file, todo, len(keyed) - len(todo), here, used, at)


def execute(
    work: RunPlan,
    report: Callable[[FinishedRun], None],
    starts: Callable[[Trial], None] = lambda trial: None,
    announce: Callable[[str], None] = lambda words: None,
    *,
    patience_s: float = PATIENCE_S,
    update_best_known: bool = False,
) -> list[Result]:
    """Make the runs; each result is appended to the file before the next run begins.

    A result has the commit that its run was made with: where sources change meanwhile, later runs have another one.

    Args:
        work: what ``plan`` found.
        report: called after each run.
        starts: called before each run.
        announce: called with what else takes time.
        patience_s: beyond twice its limit, before a run is killed.
        update_best_known: let a strictly better plan replace the best known one of a stored instance.
    """
    trials = [trial for _, trial in work.todo]
    warm(trials, announce)
    outcomes = _one_by_one(trials, starts, patience_s, update_best_known)
    results: list[Result] = []
    with closing(outcomes):
        for at, outcome, folder in outcomes:
            _, trial = work.todo[at]
            sources = outcome.pop("commit", None) or work.commit
            key = key_of(trial, work.versions, sources)
            stamp = {"commit": sources, "ended": datetime.now(UTC).isoformat(timespec="seconds")}
            used = {name: work.versions[name] for name in used_by(trial) if name in work.versions}
            known = {"versions": {**used, **outcome.pop("versions", {})}, "machine": work.machine}
            result = {"key": key, **trial.facts, **outcome, **known, **stamp}
            if trial.reference:
                result["reference"] = dict(trial.reference)
            append(work.file, result)
            results.append(result)
            words = _offer(trial, folder)
            report(FinishedRun(trial, result, len(results), _left_s(trials, results), words))
    return results


def warm(trials: Iterable[Trial], announce: Callable[[str], None]) -> None:
    """Compile the kernels of our own solvers in processes of their own, so that no run is charged for it."""
    kinds = {
        trial.source.kind
        for trial in trials
        if not isinstance(trial.source, Program)
        and trial.contestant.solver in (AUTO, *kind_named(trial.source.kind).solvers.heuristics)
    }
    for kind in sorted(kinds):
        announce(f"compiling the kernels for {kind}, or loading them: up to minutes, once")
        words = f"import mast_opt; mast_opt.warm_up({kind!r})"
        subprocess.run([sys.executable, "-c", words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _one_by_one(trials: Sequence[Trial], starts: Callable[[Trial], None], patience_s: float, keep: bool) -> Outcomes:
    """Make the runs of a suite one after another, each with its plan's folder if plans are kept."""
    with tempfile.TemporaryDirectory() as folder:
        for at, trial in enumerate(trials):
            starts(trial)
            plan_folder = Path(folder) / "plan" if keep and isinstance(trial.source, Stored) else None
            yield at, run_child(trial, plan_folder, patience_s=patience_s), plan_folder
            if plan_folder is not None:
                shutil.rmtree(plan_folder, ignore_errors=True)


def _offer(trial: Trial, folder: Path | None) -> str:
    """Offer the plan of a run as the best known one; returns what came of it."""
    if folder is None or not folder.exists() or not isinstance(trial.source, Stored):
        return ""
    try:
        return best_known.offer(trial.source.path, folder)
    except InputError as error:
        return f"not saved as best known: {' '.join(str(error).split())}"


def _left_s(trials: Sequence[Trial], results: Sequence[Result]) -> float:
    """Seconds that the rest of the suite takes, judged by how long its runs have taken of their limits."""
    spent = sum(result["runtime_s"]["wall"] for result in results)
    allowed = sum(trial.time_limit_s for trial in trials)
    gone = sum(result["time_limit_s"] for result in results)
    return spent / gone * (allowed - gone) if gone else allowed

"""Results as JSON lines: one file a suite, one line a run, only ever added to; and how a run can end."""

import enum
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mast_opt.core.errors import InputError
from mast_opt.core.limits import MOST_RESULTS_BYTES, read_regular
from mast_opt.planner.bench.suites.suite import Trial
from mast_opt.planner.io.faults import shortened
from mast_opt.problems import backends


class Ended(enum.Enum):
    """Endings of a run to which no solver's status applies."""

    MEASURED = "MEASURED"
    """A program printed its figures."""
    UNAVAILABLE = "UNAVAILABLE"
    """The solver is not installed or has no licence."""
    TOO_LARGE = "TOO_LARGE"
    """The instance is over the size that the solver's licence allows, or that the memory holds."""
    REJECTED = "REJECTED"
    """The verifier rejects the plan that the solver gave."""
    ERROR = "ERROR"
    """An exception, stated in ``error``."""
    MEMORY = "MEMORY"
    """Out of memory."""
    CRASHED = "CRASHED"
    """The process ended without a result."""
    TIMEOUT = "TIMEOUT"
    """The process was killed, long after the time limit."""


_EXPECTED = (Ended.MEASURED, Ended.UNAVAILABLE, Ended.TOO_LARGE)
BROKEN = frozenset(ended.value for ended in Ended if ended not in _EXPECTED)
"""Endings that no run should have, as results state them."""


Result = dict[str, Any]

INSIDE = ("highs", "cpsat")
"""Backends that solvers of our own are handed."""


def key_of(trial: Trial, versions: Mapping[str, str], commit: str | None) -> str:
    """Key of a run: runs of the same trial, versions and commit have the same."""
    used = {name: versions.get(name) for name in used_by(trial)}
    facts = json.dumps([trial.facts, used, commit], sort_keys=True)
    return hashlib.sha256(facts.encode()).hexdigest()[:16]


def used_by(trial: Trial) -> tuple[str, ...]:
    """Packages whose version may decide the result of a run; for a solver of our own also the backends inside."""
    solver = trial.contestant.solver
    own = () if solver is None or solver in backends.names() else INSIDE
    inside = [name for name in map(str, _leaves(trial.contestant.params)) if name in backends.names()]
    used = ("mast-opt", "numpy", "numba", *own, *inside, *([] if solver is None else [solver]))
    return tuple(dict.fromkeys(used))


def _leaves(params: Mapping[str, Any]) -> Iterator[Any]:
    """The values of a contestant's parameters, those in groups too."""
    for value in params.values():
        yield from _leaves(value) if isinstance(value, Mapping) else [value]


def file_of(folder: Path, suite: str) -> Path:
    """The file that holds the results of a suite."""
    return folder / f"{suite}.jsonl"


def append(file: Path, result: Result) -> None:
    """Add a result as a line. A last line that a crash cut short gives way to it; one that only lacks its
    end is ended.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as lines:
        if lines.tell():
            there = file.read_bytes()
            whole = there.rfind(b"\n") + 1
            if _is_json(there[whole:]):
                lines.write(b"\n")
            else:
                lines.truncate(whole)
        lines.write(json.dumps(result, allow_nan=False).encode() + b"\n")


def _is_json(line: bytes) -> bool:
    """Whether a line of a results file is JSON."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def load(file: Path) -> list[Result]:
    """Every result in a file; none if there is no such file. A last line cut short by a crash is left out.

    Raises:
        InputError: the file cannot be read, or another line is no JSON object; names it.
    """
    if not file.exists():
        return []
    results: list[Result] = []
    try:
        lines = read_regular(file, MOST_RESULTS_BYTES).split(b"\n")
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}; expected results as JSON lines") from error
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            result = json.loads(line.decode("utf-8"))
            if not isinstance(result, dict):
                raise TypeError("this is none")
        except (ValueError, TypeError, RecursionError) as error:
            if number == len(lines):
                break
            raise InputError(f"{file}, line {number}: expected one JSON object a line ({error})") from None
        results.append(result)
    return results


def latest(results: Iterable[Result]) -> list[Result]:
    """The last result of each trial, whatever the versions and the commit; in the order of their first appearance.

    Results on an earlier content of an instance are left out where there are some on a later one: values on two
    instances of the same name cannot be compared.

    Raises:
        InputError: a result does not say on which instance it is.
    """
    results = list(results)
    for result in results:
        if not (
            "source" in result and isinstance(result.get("entry"), str) and isinstance(result.get("instance"), str)
        ):
            shown = shortened(json.dumps(result))
            raise InputError(f"a result: found {shown}; expected a text as entry and instance, and a source")
    last: dict[str, Result] = {}
    source: dict[tuple[str, str], Any] = {}
    for result in results:
        last[_trial_of(result)] = result
        source[result["entry"], result["instance"]] = result["source"]
    return [
        result
        for result in last.values()
        if "figures" in result or result["source"] == source[result["entry"], result["instance"]]
    ]


def _trial_of(result: Result) -> str:
    """Trial of a result as text, equal for results that only other versions tell apart."""
    names = ("entry", "instance", "contestant", "time_limit_s", "seed", "threads")
    return json.dumps([result.get(name) for name in names], sort_keys=True)

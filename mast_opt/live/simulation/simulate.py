"""Simulations from Python: traces in, a run with its figures and its log out."""

import threading
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from mast_opt.core import arguments as arg
from mast_opt.core.errors import InstanceWarning, UsageError
from mast_opt.core.input_warning import InputWarning
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.wording import plain
from mast_opt.live.loop.events import Stored
from mast_opt.live.loop.metrics import Metrics, metrics
from mast_opt.live.simulation.run import SimulatedRun, policy_names, run_trace
from mast_opt.live.simulation.run_folder import RunFacts, write_run
from mast_opt.live.simulation.traces.importers import TRACE_IMPORTERS
from mast_opt.live.simulation.traces.schema import MOST_S
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace, trace_from_tables
from mast_opt.live.simulation.variants import variant
from mast_opt.live.simulation.warm_up import warm_up_simulation

SECOND_MS = 1000


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Summarised):
    """A simulated run."""

    trace: str
    """Name of the trace."""
    policy: str
    params: Mapping[str, Any]
    """All parameters of the policy, defaults too."""
    metrics: Metrics
    complete: bool
    """False where ``cancel`` ended it early."""
    warnings: tuple[InputWarning, ...]
    """Columns of the trace that the policy does not look at, and jobs that no region can ever hold."""
    _run: SimulatedRun
    _facts: RunFacts

    def _summary(self) -> Summary:
        """Summary of a simulation for people: trace, policy, key metrics and parameters."""
        found = self.metrics
        facts = (
            ("trace", self.trace),
            ("policy", self.policy),
            ("finished", f"{found.finished:,} of {found.jobs:,}"),
            ("sum_queue_s", "–" if found.queue_s.mean is None else plain(found.sum_queue_s)),
            *([("can never run", f"{found.impossible:,}")] if found.impossible else []),
            ("makespan_s", plain(found.makespan_s)),
        )
        return Summary("Simulation", facts, ("parameter", "value"), tuple((k, str(v)) for k, v in self.params.items()))

    def events(self) -> Iterator[Stored]:
        """The log of the simulation's events, from its beginning."""
        return self._run.events()

    def write(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write log and figures to a new folder, for ``mast-opt report`` and ``mast-opt diff``.

        Raises:
            InputError: it cannot be written, or something else is there.
        """
        arg.a_path("path", path)
        write_run(self._run, self._facts, self.metrics, Path(path), force=force)


def _a_trace(name: str, value: object) -> None:
    """Refuse an argument that is neither a trace of jobs nor a path."""
    if not isinstance(value, JobTrace):
        if not isinstance(value, (str, PathLike)):
            raise arg.refuse(name, value, "a JobTrace or a path")
        arg.a_path(name, value)


@arg.checked(
    trace=_a_trace,
    policy=arg.a_text,
    params=arg.optional(arg.mapping_of(arg.anything)),
    slow=arg.texts,
    load=arg.a_number,
    seed=arg.a_whole(0),
    warm_up_s=arg.a_number,
    until_s=arg.optional(arg.a_number),
    cancel=arg.optional(arg.an_event),
)
def simulate(
    trace: JobTrace | str | PathLike[str],
    policy: str,
    *,
    params: Mapping[str, Any] | None = None,
    slow: Collection[str] = (),
    load: float = 1.0,
    seed: int = 0,
    warm_up_s: float = 0.0,
    until_s: float | None = None,
    cancel: threading.Event | None = None,
) -> Simulation:
    """The run of a trace of jobs under a policy, in virtual time.

    Args:
        trace: a trace, or the path of one.
        policy: ``fifo``, ``sjf``, ``srtf``, ``las``, ``mast``, ``federated``, ``gavel``, or another scheduler of the
            literature: those of ``docs/policies-in-time.md``.
        params: parameters of the policy by name, such as ``{"rule": "share"}``, and of slow paths.
        slow: slow paths that are on, such as ``["data", "servers"]``.
        load: how many times as fast jobs come as in the trace.
        seed: 0 for the order of arrivals in the trace; another number exchanges the times of arrival among the jobs of
            each home region.
        warm_up_s: jobs submitted before this second do not count in the metrics.
        until_s: second at which the run ends; None for the end of all jobs.
        cancel: set it from any thread to end the run there.

    Warns:
        InstanceWarning: a column that the policy does not look at, or jobs that no region can ever hold.

    Raises:
        UsageError: there is no such policy, parameter or slow path, or a value that it cannot have.
        InstanceError: the trace has faults, or asks for what the policy cannot do; lists all of it.
        Interrupted: cancelled in the replay of an order-only policy, which keeps no part of a run.
    """
    if max(warm_up_s, until_s or 0.0) > MOST_S:
        raise UsageError(f"warm_up_s is {warm_up_s} and until_s {until_s}; expected at most {MOST_S:,} seconds")
    jobs = variant(trace if isinstance(trace, JobTrace) else read_trace(trace), load, seed)
    given = {name: _text(name, value) for name, value in (params or {}).items()}
    until_ms = None if until_s is None else round(until_s * SECOND_MS)
    stop = None if cancel is None else cancel.is_set
    if policy in policy_names():
        warm_up_simulation([policy])
    run = run_trace(jobs, policy, given, slow=tuple(slow), until_ms=until_ms, stop=stop)
    since_ms = round(warm_up_s * SECOND_MS) if warm_up_s else None
    last_ms = max(until_ms, int(run.rows.at_ms[-1])) if until_ms is not None and len(run.rows) else None
    found = metrics(run.rows, since_ms, last_ms, impossible=run.impossible)
    facts = RunFacts(jobs.name, load, seed, warm_up_s, until_s, run.complete)
    for one in run.warnings:
        warnings.warn(str(one), InstanceWarning, stacklevel=3)
    return Simulation(jobs.name, policy, run.params, found, run.complete, run.warnings, run, facts)


def _text(name: str, value: object) -> str:
    """A parameter of a simulated policy as the command line would give it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, (int, float)) for one in value):
        return ",".join(map(str, value))
    if isinstance(value, (str, int, float)):
        return str(value)
    raise arg.refuse(f"params[{name!r}]", value, "a text, a number, True or False, or a list of numbers")


@arg.checked(importer=arg.a_text, seed=arg.a_whole(0))
def import_trace(importer: str, *paths: str | PathLike[str], seed: int = 0, **settings: int | float | str) -> JobTrace:
    """A trace of jobs from public data or from what another scheduler has recorded.

    Args:
        importer: ``sacct``, ``openb``, ``philly`` or ``gavel-trace``; ``mast-opt import --help`` lists their inputs and
            settings.
        paths: its inputs, in order.
        seed: of everything that the data lack.
        settings: such as ``needs="gpus"``; the importer's defaults where they are not given.

    Raises:
        UsageError: there is no such importer or setting, a value that it cannot have, or too few or too many paths.
        SourceError: a file is missing or not what it should be; lists every fault.
    """
    for place, path in enumerate(paths):
        arg.a_path(f"paths[{place}]", path)
    given = {name: str(value) for name, value in settings.items()}
    chosen = TRACE_IMPORTERS.named(importer)
    with TRACE_IMPORTERS.blaming(importer):
        found = chosen.run([Path(path) for path in paths], given, seed)
    return trace_from_tables(found.name, found.provenance, found.tables)

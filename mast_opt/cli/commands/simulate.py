"""``mast-opt simulate``."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from shlex import join
from typing import Annotated

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.interrupt import Interrupt
from mast_opt.cli.invocation import Answer, Console, Run
from mast_opt.cli.kueue import advise_folder
from mast_opt.cli.options import Force, Json, TheRun, at_least, check_force, named_values, repeated
from mast_opt.cli.sweep import compile_for, grid_of, sweep
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Event
from mast_opt.live.loop.history import history
from mast_opt.live.loop.longest_waits import LongWait, longest_by_size
from mast_opt.live.loop.metrics import Metrics, Spread, metrics
from mast_opt.live.loop.place_metrics import PlaceMetrics, place_metrics
from mast_opt.live.simulation.kernel import POLICIES as ORDER_ONLY
from mast_opt.live.simulation.run import SimulatedRun, run_trace
from mast_opt.live.simulation.run_folder import RunFacts, check_replaceable, write_run
from mast_opt.live.simulation.sweep import Window, cells_of
from mast_opt.live.simulation.traces.trace import read_trace
from mast_opt.live.simulation.variants import variant
from mast_opt.planner.io.atomic import check_writable


def command(
    trace: Annotated[Path | None, Parameter(help="A folder, .xlsx or .json of the kind job-trace.")] = None,
    /,
    *,
    policy: Annotated[
        str | None, Parameter(help="fifo, sjf, srtf, las, mast, federated, gavel, tiresias, …; several: a sweep.")
    ] = None,
    kueue: Annotated[
        Path | None, Parameter(help="Instead of a trace: a folder with YAML of Kueue's objects; who starts where now.")
    ] = None,
    param: Annotated[list[str] | None, repeated("NAME=VALUE: a parameter of the policy or of a slow path.")] = None,
    slow: Annotated[
        str | None, Parameter(help="Slow paths, separated by commas: data (copies replicas), servers (moves servers).")
    ] = None,
    until: Annotated[float | None, at_least(0, "Second of the trace to stop at.")] = None,
    load: Annotated[str, Parameter(help="How many times as fast jobs come as in the trace; several: a sweep.")] = "1",
    seed: Annotated[
        str, Parameter(help="0: jobs come as in the trace; others: in another order. 1..10 or 1,2: a sweep.")
    ] = "0",
    processes: Annotated[
        int | None, at_least(1, "Runs of a sweep at a time; one for each processor unless given.")
    ] = None,
    warm_up: Annotated[float, at_least(0, "Jobs submitted before this second do not count.")] = 0.0,
    out: Annotated[Path | None, Parameter(help="A new folder for the log of events and the figures.")] = None,
    force: Force = False,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Run a trace of submitted jobs under a policy, in virtual time; or under several, as a sweep.

    fifo, sjf, srtf and las look at nothing but the order of jobs and at GPUs: each region has a queue of its own, and
    its servers are equal. A job that does not fit blocks those behind it under fifo and sjf, and nobody under srtf and
    las, which stop jobs for others. las has the parameter thresholds_gpu_s. mast places jobs in all regions that hold
    their data; federated sends each job to a region when it comes (parameters rule, age_ms, seed, …); gavel lets jobs
    take turns in rounds (objective, aware, round_s, …). All three have placement, and --slow turns on plans of data
    and of servers for them, with parameters such as slow.data.every_s. The figures come from the log alone.

        mast-opt simulate my-trace --policy fifo
        mast-opt simulate my-trace --policy las --param thresholds_gpu_s=3600,28800 --out las-run
        mast-opt simulate my-trace --policy federated --param rule=share --json
        mast-opt simulate my-trace --policy fifo,las,mast --seed 1..10 --load 0.8,1,1.2 --out my-sweep
        mast-opt simulate my-trace --policy mast --slow data,servers --param slow.data.every_s=43200
        mast-opt simulate my-trace --policy gavel --param objective=finish-time
        mast-opt simulate --kueue my-manifests
    """
    if kueue is not None:
        if trace is not None or policy is not None:
            raise UsageError("--kueue stands instead of a trace and its policy; expected one of the two")
        return advise_folder(run, kueue)
    if trace is None or policy is None:
        raise UsageError("expected a trace and its --policy, or --kueue with a folder of YAML")
    check_force(force, out)
    paths = () if slow is None else tuple(slow.split(","))
    params = named_values("--param", param, "rule=share")
    cells = cells_of(*grid_of(policy, load, seed), params, paths, Window(warm_up, until))
    if len(cells) > 1:
        return sweep(run, trace, cells, out, processes=processes, force=force)
    if processes is not None:
        raise UsageError("--processes is for sweeps: several policies, seeds or loads")
    if out is not None:
        check_replaceable(out, force)
        check_writable(out)
    with run.phase("read", f"reading {trace}"):
        jobs = variant(read_trace(trace), cells[0].load, cells[0].seed)
    run.record.update(kind="job-trace", name=jobs.name, solver=policy)
    compile_for(run, [policy])
    until_ms = None if until is None else round(until * 1000)
    with Interrupt(run, "the run up to here") as interrupt, run.phase("solve"):
        of = partial(run_trace, jobs, policy, dict(cells[0].params), slow=paths, until_ms=until_ms)
        done = _watched(run, lambda watch: of(watch=watch, stop=interrupt.cancel.is_set), policy)
    with run.phase("verify"):
        since = round(warm_up * 1000) if warm_up else None
        end_ms = None if until_ms is None else max(until_ms, int(done.rows.at_ms[-1]))
        found = metrics(done.rows, since, end_ms, impossible=done.impossible)
        places = None if policy in ORDER_ONLY else place_metrics(done.events(), since or 0, end_ms)
    longest = {} if places is None else longest_by_size(history(done.events()), done.impossible)
    run.warn(done.warnings, strict=False)
    run.record.update(
        complete=done.complete,
        slow=list(paths),
        params={name: list(value) if isinstance(value, tuple) else value for name, value in done.params.items()},
        metrics={**found.to_dict(), **({} if places is None else places.to_dict())},
        sum_queue_s=found.sum_queue_s,
        mean_jct_s=found.jct_s.mean,
        makespan_s=found.makespan_s,
        events=done.count,
        impossible_jobs=dict(done.impossible),
        longest_waits=[{"gpus_up_to": size, **asdict(one)} for size, one in longest.items()],
        starts={kind: dict(one) for kind, one in done.starts.items()},
        out=None if out is None else str(out),
    )
    if out is not None:
        facts = RunFacts(jobs.name, cells[0].load, cells[0].seed, warm_up, until, done.complete)
        write_run(done, facts, found, out, places=places, force=force)
    ended = Exit.OK if done.complete else Exit.INTERRUPTED
    return Answer(ended, lambda console: _show(console, jobs.name, done, found, places, longest, out))


def _watched(run: Run, work: Callable[[Callable[[float], None]], SimulatedRun], policy: str) -> SimulatedRun:
    """The run, with a line of progress while it takes long."""
    from mast_opt.planner.report.terminal.progress import Progress

    began, most = time.perf_counter(), 0.0
    with Progress(run.err, f"simulating {policy}") as progress:

        def watch(share: float) -> None:
            nonlocal most
            most = share = max(most, share)  # solves of slow paths do not know it
            elapsed = time.perf_counter() - began
            left = f", {elapsed * (1 - share) / share:.0f} s left" if share > 0 else ""
            progress(Event(elapsed, None, None, f"{share:.0%} of the jobs{left}"))

        return work(watch)


def _show(
    console: Console,
    name: str,
    done: SimulatedRun,
    found: Metrics,
    places: PlaceMetrics | None,
    longest: Mapping[int, LongWait],
    out: Path | None,
) -> None:
    """Print the figures of a simulated run."""
    from mast_opt.core.wording import percent, plain
    from mast_opt.live.reports.content import by_size, start_errors
    from mast_opt.planner.report.terminal.sections import print_words, show_section, show_table

    still = found.waiting - found.impossible
    never = f" ({found.impossible:,} can never run)" if found.impossible else ""
    print_words(
        console,
        f"{name} under {done.policy}: {found.jobs:,} jobs, {found.finished:,} finished, {found.waiting:,} wait{never}, "
        f"{found.running:,} run; {done.count:,} events",
    )
    spreads = []
    nothing = Spread(None, None, None, None, None)
    for words, spread in (
        ("wait", found.queue_s),
        *([(f"{still:,} still wait, so far", found.still_waiting_s)] if still else []),
        *([(f"{found.impossible:,} can never run", nothing)] if found.impossible else []),
        ("until done", found.jct_s),
        ("slowdown", found.slowdown),
    ):
        values = (spread.mean, spread.p50, spread.p95, spread.p99, spread.max)
        spreads.append((words, *map(plain, values)))
    show_table(console, "Seconds", ("", "mean", "P50", "P95", "P99", "most"), spreads)
    rest = [
        ("sum of all waits, s", plain(None if found.queue_s.mean is None else found.sum_queue_s)),
        ("makespan, s", plain(found.makespan_s)),
        ("GPUs in use", percent(found.allocation)),
        ("GPUs asked for", percent(found.offered)),
        ("stops", f"{found.preemptions:,}"),
        ("work lost, GPU-hours", plain(found.lost_gpu_h)),
        ("jobs that waited over a day", f"{found.starved:,}"),
    ]
    if places is not None and places.storage_overhead is not None:
        rest.append(("jobs that waited for data while there was room", f"{places.waited_for_data:,}"))
        rest.append(("storage beyond one replica", percent(places.storage_overhead)))
    show_table(console, "Run", ("figure", "value"), rest)
    if longest:
        show_section(console, by_size(longest))
    if done.starts:
        show_section(console, start_errors(done.starts))
    if out is not None:
        report = join(["mast-opt", "report", str(out)])
        print_words(console, f"The log of events and the figures are in {out}. See them in a browser:\n  {report}")

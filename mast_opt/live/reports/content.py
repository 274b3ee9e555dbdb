"""Content of the page of a run: figures, pictures, who waited longest and why, waits by region and tier."""

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.core.wording import percent, plain
from mast_opt.live.loop.history import History, Wait, history
from mast_opt.live.loop.log_checker import Violation, check_log
from mast_opt.live.loop.longest_waits import LongWait, longest_by_size, longest_waits
from mast_opt.live.reports.charts import DAY_MS, HOUR_MS, charts_of
from mast_opt.live.reports.usage import usage_of
from mast_opt.live.simulation.run_folder import StoredRun
from mast_opt.planner.io.atomic import check_free, new_file
from mast_opt.planner.report.html.content import table_of
from mast_opt.planner.report.html.page import in_words, rendered
from mast_opt.planner.report.html.render import Picture, draw
from mast_opt.problems.job_placement.units import WHOLE
from mast_opt.problems.kind.presentation import Form, Head, Section

LONGEST = 50
"""Jobs that waited longest, as many as are listed."""
SHARES = ("allocation", "offered", "not_collocated", "storage_overhead", "first_time")
"""Metrics that are parts of something."""
WORDS = {
    "queue_s_mean": "wait, mean, s",
    "queue_s_p95": "wait, P95, s",
    "sum_queue_s": "all waits together, s",
    "gpu_weighted_queue_s": "wait, mean by GPUs, s",
    "jct_s_mean": "until done, mean, s",
    "jct_s_p95": "until done, P95, s",
    "slowdown_mean": "slowdown, mean",
    "slowdown_p95": "slowdown, P95",
    "makespan_s": "makespan, s",
    "allocation": "GPUs in use",
    "offered": "GPUs wanted",
    "preemptions": "stops",
    "lost_gpu_h": "work lost, GPU-hours",
    "starved": "waited over a day",
    "waiting": "still wait",
    "impossible": "can never run",
    "still_waiting_s_mean": "still wait, so far, mean, s",
    "still_waiting_s_p95": "still wait, so far, P95, s",
    "running": "still run",
    "waited_for_data": "waited for data while there was room",
    "needless": "stops that were not needed",
    "storage_overhead": "storage beyond one replica",
    "first_time": "first runs of their kind",
    "frag_mean": "fragmented GPUs, mean",
    "frag_p95": "fragmented GPUs, P95",
    "step_s": "looked at every, s",
}
"""Metrics whose names say too little to people who have not read what they are."""
ANSWERS = ("queue_s_mean", "queue_s_p95", "jct_s_mean", "allocation", "starved", "lost_gpu_h")
"""Metrics that a page shows first, in this order; the others are folded."""
SPREAD = ("mean", "p95")
"""Fields that are shown of a metric that is a spread."""


@dataclass(frozen=True)
class RunReport:
    """The content of a page."""

    title: str
    kind: str
    kind_title: str
    violations: tuple[Violation, ...]
    """Faults of the log."""
    notes: tuple[str, ...]
    figures: tuple[tuple[str, str], ...]
    metrics: tuple[tuple[str, float | None], ...]
    """Name and value, as in ``metrics.json``; a spread gives several."""
    pictures: tuple[tuple[Picture, Section], ...]
    sections: tuple[Section, ...]
    provenance: str = ""


def run_report(run: StoredRun, prices: Mapping[str, float] | None = None) -> RunReport:
    """Content of the report on a run.

    Args:
        prices: GPU type → price of a GPU-hour, for usage by tenant.

    Raises:
        LogError: the log has faults.
        InputError: it cannot be read.
    """
    found = history(run.events())
    return RunReport(
        title=run.facts.trace,
        kind="run",
        kind_title=f"Simulated run, {run.policy}",
        violations=check_log(run.events()),
        notes=_notes(run),
        figures=_figures(run, found),
        metrics=tuple(flat_metrics(run.metrics).items()),
        pictures=tuple((draw(chart), table_of(chart)) for chart in charts_of(found)),
        sections=(
            *_impossible(run, found),
            _longest(run, found),
            by_size(longest_by_size(found, run.impossible)),
            *([start_errors(starts)] if (starts := run.metrics.get("starts")) else []),
            *_groups(run, found),
            _usage(found, prices),
        ),
    )


def _notes(run: StoredRun) -> tuple[str, ...]:
    """Notes of a run's report: whether it was interrupted, where it ends, what its key figures leave out."""
    facts, notes = run.facts, []
    if not facts.complete:
        notes.append("The run was interrupted: what is here ends where it stopped.")
    if facts.until_s is not None:
        notes.append(
            f"The run ends at second {facts.until_s:g} of the trace; jobs that wait then count as long as that."
        )
    if facts.warm_up_s:
        notes.append(f"Key figures leave out jobs submitted before second {facts.warm_up_s:g}; pictures show all.")
    return tuple(notes)


def _figures(run: StoredRun, found: History) -> tuple[tuple[str, str], ...]:
    """Facts of a run's report: policy, jobs, load, seed and parameters."""
    stated = [("policy", run.policy), ("jobs", f"{len(found.jobs):,}")]
    stated += [("load", f"{run.facts.load:g} ×")] if run.facts.load != 1 else []
    stated += [("seed", str(run.facts.seed))] if run.facts.seed else []
    stated += [(in_words(name), _param(value)) for name, value in run.params.items()]
    return tuple(stated)


def _param(value: object) -> str:
    """Value of a policy's parameter as the report of a run shows it."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def flat_metrics(stated: Mapping[str, Any]) -> dict[str, float | None]:
    """Name → value of every figure of a run that is one number; of a spread the mean and the 95th percentile."""
    found: dict[str, float | None] = {}
    for name, value in stated.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            found[name] = value
        elif isinstance(value, Mapping) and all(part in value for part in SPREAD):
            found.update({f"{name}_{part}": value[part] for part in SPREAD})
    return found


def metric_text(name: str, value: float | None) -> str:
    """A metric of a run as people read it."""
    return percent(value, 1) if name in SHARES else plain(value)


def metric_words(name: str) -> str:
    """Name of a run's metric in words, with its unit."""
    return WORDS.get(name) or in_words(name)


def tiles(report: RunReport) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The key figures of a run's page: those that answer what people ask first, and the others, of which those that are
    0 come last."""
    rows = {
        name: {"name": name, "words": metric_words(name), "value": repr(float(value)), "text": metric_text(name, value)}
        for name, value in report.metrics
        if value is not None
    }
    for row in rows.values():
        words, _, unit = row["words"].rpartition(", ")
        if unit == "s":
            row["words"], row["text"] = words, time_text(float(row["value"]))
    first = [rows.pop(name) for name in ANSWERS if name in rows]
    return first, sorted(rows.values(), key=lambda row: row["value"] == "0.0")


def time_text(seconds: float) -> str:
    """A length of time in the largest unit that fits in it, from seconds to days; days from two on."""
    for least, length, unit in ((172_800, 86_400, "days"), (3600, 3600, "h"), (60, 60, "min")):
        if abs(seconds) >= least:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.3g} s" if seconds else "none"


def versions() -> str:
    """Version of mast-opt that made the report of a run."""
    return f"mast-opt {version('mast-opt')}"


def _impossible(run: StoredRun, found: History) -> tuple[Section, ...]:
    """Section of a run's report: the jobs that no region can ever hold, if there are any."""
    rows = tuple(
        (job, spec.tier, spec.stated_mgpu / WHOLE, (submitted - found.first_ms) / DAY_MS, run.impossible[job])
        for job, (spec, submitted) in found.jobs.items()
        if job in run.impossible
    )
    heads = (
        Head("job"),
        *(Head(title, Form.AMOUNT) for title in ("tier", "GPUs", "submitted, days")),
        Head("why"),
    )
    note = "Their waits are in no figure: they have no end."
    return (Section("Jobs that can never run", heads, rows, note, leads=True),) if rows else ()


def _longest(run: StoredRun, found: History) -> Section:
    """Section of a run's report: the jobs that waited longest, and why."""
    heads = (
        *(Head("job"), Head("region")),
        *(Head(title, Form.AMOUNT) for title in ("tier", "GPUs", "submitted, days", "waited, hours", "waits")),
        Head("why"),
    )
    rows = tuple(
        (
            wait.job,
            wait.region or "–",
            wait.tier,
            wait.gpus,
            (wait.submitted_ms - found.first_ms) / DAY_MS,
            wait.waited_ms / HOUR_MS,
            wait.attempts,
            wait.why,
        )
        for wait in longest_waits(found, LONGEST, without=run.impossible)
    )
    note = "Free GPUs are those of the region in which the job waited longest, counted together over its servers."
    return Section("Who waited longest, and why", heads, rows, note if rows else "No job waited.", leads=True)


def start_errors(starts: Mapping[str, Mapping[str, float]]) -> Section:
    """Section of a run's report: how far starts were from what was said of them, see ``StartErrors.figures``."""
    shares, hours = ("started_by_then", "within_factor_2"), ("too_long_h_p10", "too_long_h_p50", "too_long_h_p90")
    titles = Form.FILL.heads("started by then", "within factor 2"), Form.AMOUNT.heads("P10, h", "median, h", "P90, h")
    heads = Head("said"), Head("jobs", Form.COUNT), *titles[0], *titles[1]
    rows: tuple[tuple[str | float, ...], ...] = tuple(
        (kind.replace("_", " "), int(one["jobs"]), *[one[name] for name in (*shares, *hours)])
        for kind, one in starts.items()
    )
    return Section("Starts as they were said, and hours by which that was too long", heads, rows)


def by_size(longest: Mapping[int, LongWait]) -> Section:
    """Section of a run's report: of each size of jobs, the one that waited longest, and why."""
    heads = Head("GPUs up to", Form.COUNT), Head("job"), Head("waited, hours", Form.AMOUNT), Head("why")
    rows = tuple((size, wait.job, wait.waited_ms / HOUR_MS, wait.why) for size, wait in longest.items())
    return Section("Longest wait of each size of jobs", heads, rows, "" if rows else "No job waited.")


def _groups(run: StoredRun, found: History) -> tuple[Section, ...]:
    """Sections of a run's report: waits of jobs by where they waited, by tier and by size."""

    def size(wait: Wait) -> str:
        spec = found.jobs[wait.job][0]
        return f"{spec.stated_mgpu / WHOLE:g} GPUs"

    groups: tuple[tuple[str, str, Callable[[Wait], str]], ...] = (
        ("Waits by region", "region", lambda wait: wait.region or "–"),
        ("Waits by tier", "tier", lambda wait: f"tier {found.jobs[wait.job][0].tier}"),
        ("Waits by size", "size", size),
    )
    return tuple(_grouped(run, found, title, head, key) for title, head, key in groups)


def _grouped(run: StoredRun, found: History, title: str, head: str, key: Callable[[Wait], str]) -> Section:
    """Section of a run's report: waits of each group of jobs, their mean, P95, longest and sum."""
    waits: dict[str, list[float]] = {}
    for wait in found.waits:
        if wait.job in run.impossible:
            continue
        group = f"{key(wait)}, still waiting" if wait.open else key(wait)
        waits.setdefault(group, []).append((wait.end_ms - wait.begin_ms) / HOUR_MS)
    heads = (
        Head(head),
        *(Head(words, Form.AMOUNT) for words in ("waits", "mean, hours", "P95", "longest", "sum")),
    )
    rows: list[tuple[Any, ...]] = [
        (name, len(hours), float(np.mean(hours)), float(np.percentile(hours, 95)), max(hours), sum(hours))
        for name, hours in sorted(waits.items(), key=lambda pair: -sum(pair[1]))
    ]
    never = sum(job in run.impossible for job in found.jobs)
    rows += [("can never run", never, None, None, None, None)] if never else []
    return Section(title, heads, tuple(rows))


def _usage(found: History, prices: Mapping[str, float] | None) -> Section:
    """Section of a run's report: GPU-hours of each tenant in each month."""
    titles = ("asked, GPU-hours", "held", "idle", "lost", *(["cost"] if prices else []))
    heads = (Head("month"), Head("tenant"), *(Head(title, Form.AMOUNT) for title in titles))
    rows = tuple(astuple(row)[: len(heads)] for row in usage_of(found, prices))
    note = "What is held while a job starts or stops is idle; work that has to be done again is lost."
    return Section("Usage by tenant and month", heads, rows, note)


def run_page(report: RunReport) -> str:
    """The whole page of a run as HTML."""
    opened = tuple(section.title for section in report.sections if section.leads)
    return rendered(
        "run.html.j2", report=report, rest="in the log", opened=opened, metrics=tiles(report), versions=versions()
    )


def write_run_report(
    run: StoredRun, path: str | PathLike[str], prices: Mapping[str, float] | None = None, *, force: bool = False
) -> RunReport:
    """Write a run as one page that opens in any browser, without a network. ``prices``: see ``run_report``.

    Raises:
        UsageError: a name that does not end in ``.html``.
        LogError: the log of the run has faults.
        InputError: a file that cannot be read, is there already or cannot be written.
    """
    target = Path(path)
    if target.suffix.lower() != ".html":
        raise UsageError(f"{target}: expected a name that ends in .html")
    check_free(target, force=force)
    content = run_report(run, prices)
    with new_file(target.absolute()) as partial:
        partial.write_text(run_page(content), encoding="utf-8", newline="\n")
    return content

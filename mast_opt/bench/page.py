"""Results as a page in Markdown: what was run where, every figure with its command, and where our solvers lose."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mast_opt.bench import figures
from mast_opt.bench.figures import Instance, Result
from mast_opt.bench.plots import TITLES
from mast_opt.bench.status import Ended
from mast_opt.bench.suite import KnownIssue, Suite
from mast_opt.bench.tables import markdown, percent_or_dash, plain_or_dash
from mast_opt.kinds import kind_named
from mast_opt.report.numbers import percent, plain, seconds

METHOD = """\
Every row is the work of one command and can be run again. Each run is a process of its own, pinned to as many
processors as it has threads; runs follow one another. The time limit covers formulating, solving and
verifying; reading or generating comes before, and libraries and kernels are loaded before. Objectives are the
verifier's; bounds are proven by the solver or by a certificate. Memory is the highest resident size of the
run's process or of one that it started, Python and its libraries included.

- *best known* is the least verified objective among these results, the plans kept under
  `instances/**/best_known/` and, for public instances, the published values. *Gap to best* is (objective −
  best known) / best known; *proven gap* is (objective − own bound) / objective.
- Times, gaps and memory of several runs are shifted geometric means (shift: 1 s, one percentage point, 1 MB).
  A run that did not come to its end counts its whole limit as time. A run without a plan is in no gap: read
  gaps beside the number of plans.
- An exact solver begins with the present state where the instance tells it and it breaks no rule.
- Which solvers are compared, how to install them, and whose figures are left out:
  [peers](benchmarks/peers.md).
"""


@dataclass(frozen=True)
class Chapter:
    """The results of one suite, the latest of each trial, and what is kept beside the instances."""

    suite: Suite
    results: Sequence[Result]
    known: Mapping[Instance, float]
    """Objectives of the plans kept as best known."""

    @property
    def best(self) -> dict[Instance, float]:
        return figures.best_values(self.results, self.known)


def page(chapters: Sequence[Chapter], images: str | None) -> str:
    """The whole page.

    Args:
        chapters: the suites, in the order in which they appear.
        images: folder of the plots as the page sees it; None leaves them out.
    """
    parts = ["# Benchmarks", "Generated from the results under `benchmarks/results/` by:", _command("report")]
    parts += ["## How to read this", METHOD.strip()]
    parts += ["## What our solvers lose at", *_losses(chapters)]
    for chapter in chapters:
        parts += list(_chapter(chapter, images))
    return "\n\n".join(parts) + "\n"


def _chapter(chapter: Chapter, images: str | None) -> Iterator[str]:
    suite, results = chapter.suite, chapter.results
    yield f"## {suite.title}"
    if suite.about:
        yield suite.about.strip()
    yield from _circumstances(results)
    yield _command(suite.name)
    solves = [result for result in results if "figures" not in result and result["contestant"].get("name")]
    solves = [result for result in solves if result["source"].get("kind")]
    if solves:
        yield _summary(solves, chapter.best)
    for entry in dict.fromkeys(result["entry"] for result in results):
        of_entry = [result for result in results if result["entry"] == entry]
        yield f"### {entry}"
        yield _command(suite.name, entry)
        measured = [result for result in of_entry if "figures" in result]
        yield _measured(measured) if measured else _rows(of_entry, chapter.best)
        yield from _failures(of_entry)
    if images is not None and solves:
        yield from (f"![{TITLES[name]}]({images}/{suite.name}-{name}.svg)\n\n{TITLES[name]}." for name in suite.plots)
    if suite.known_issues:
        yield "Known issues:\n\n" + "\n".join(f"- {_issue(issue)}" for issue in suite.known_issues)


def _command(suite: str, entry: str | None = None) -> str:
    chosen = f" --filter '{entry}/'" if entry else ""
    words = f"mast-opt bench {suite}{chosen}" if suite != "report" else "mast-opt bench report benchmarks/results"
    return f"<!--- skip: next -->\n```sh\n{words}\n```"


def _circumstances(results: Sequence[Result]) -> Iterator[str]:
    """Machines, versions, commits and dates, as the results tell them."""
    machines = Counter(
        "{processor}, {processors} processors, {memory_gb} GB, {system}, Python {python}".format(**result["machine"])
        for result in results
    )
    versions: dict[str, set[str]] = defaultdict(set)
    for result in results:
        for name, number in result["versions"].items():
            versions[name].add(number)
    shown = ", ".join(f"{name} {' and '.join(sorted(numbers))}" for name, numbers in sorted(versions.items()))
    days = sorted(result["ended"][:10] for result in results)
    commits = Counter(str(result["commit"]) for result in results)
    threads = sorted({result["threads"] for result in results})
    yield (
        f"Machine: {'; '.join(machines)}. Threads a run: {', '.join(map(str, threads))}. Versions: {shown}. "
        f"Commit {', '.join(commits)}. {days[0]}{f' to {days[-1]}' if days[-1] != days[0] else ''}."
    )


def _summary(results: Sequence[Result], best: Mapping[Instance, float]) -> str:
    heads = ("contestant", "runs", "plans", "proven", "best plan", "gap to best", "proven gap", "time")
    rows = []
    for name in figures.names_of(results):
        mine = [result for result in results if figures.contestant(result) == name]
        gaps = [figures.gap_to(result.get("objective"), best.get(figures.instance(result))) for result in mine]
        winners = sum(gap == 0.0 for gap in gaps)
        counts = (len(mine), sum(map(figures.feasible, mine)), sum(map(figures.solved, mine)), winners)
        rows.append((name, *map(str, counts), *_means(mine, best)))
    return markdown(heads, rows)


def _rows(results: Sequence[Result], best: Mapping[Instance, float]) -> str:
    """One row for each contestant and limit, over the instances and seeds of the entry."""
    single = len({figures.instance(result) for result in results}) == 1
    heads = (
        "contestant",
        "limit",
        "plans",
        "proven",
        "objective",
        "bound",
        "gap to best",
        "proven gap",
        "time",
        "memory",
    )
    rows = []
    groups: dict[tuple[str, float], list[Result]] = defaultdict(list)
    for result in results:
        groups[figures.contestant(result), result["time_limit_s"]].append(result)
    for (name, limit), mine in groups.items():
        plans = sum(map(figures.feasible, mine))
        objectives = [result["objective"] for result in mine if figures.feasible(result)]
        bounds = [result["bound"] for result in mine if result.get("bound") is not None]
        memory = figures.shifted_geometric_mean(result.get("peak_memory_mb", 0.0) for result in mine)
        rows.append(
            (
                name,
                f"{limit:g} s",
                f"{plans}/{len(mine)}",
                str(sum(map(figures.solved, mine))),
                _spread(objectives, single),
                _spread(bounds, single),
                *_means(mine, best),
                "–" if not memory else f"{memory:,.0f} MB",
            )
        )
    return markdown(heads, rows)


def _means(results: Sequence[Result], best: Mapping[Instance, float]) -> tuple[str, str, str]:
    """Gap to the best known, proven gap, time."""
    to_best = [figures.gap_to(result.get("objective"), best.get(figures.instance(result))) for result in results]
    proven = [result.get("gap") for result in results]
    means = (
        figures.shifted_geometric_mean((gap for gap in gaps if gap is not None), 0.01) for gaps in (to_best, proven)
    )
    time = figures.shifted_geometric_mean(map(figures.time_s, results))
    return (*map(percent_or_dash, means), "–" if time is None else seconds(time))  # type: ignore[return-value]


def _spread(values: Sequence[float], single: bool) -> str:
    """One value, or from which to which."""
    if not values:
        return "–"
    low, high = min(values), max(values)
    if single and high - low > figures.SAME * max(1.0, abs(low)):
        return f"{plain(low)} to {plain(high)}"
    return plain(low) if low == high or single else f"{plain(low)} … {plain(high)}"


def _measured(results: Sequence[Result]) -> str:
    """Figures of a program, one row for each contestant."""
    names = list(dict.fromkeys(name for result in results for name in result["figures"]))
    rows = []
    for result in results:
        cells = [result["figures"].get(name) for name in names]
        shown = [cell if isinstance(cell, str) else plain_or_dash(cell) for cell in cells]
        rows.append((figures.contestant(result), *shown))
    return markdown(("contestant", *(name.replace("_", " ") for name in names)), rows)


def _failures(results: Sequence[Result]) -> Iterator[str]:
    """What ended in no status of a solver, counted by contestant and words."""
    ends = {status.value for status in Ended} - {Ended.MEASURED.value}
    counted = Counter(
        (figures.contestant(result), result["status"], result.get("error") or "")
        for result in results
        if result["status"] in ends
    )
    if counted:
        lines = [f"- {name}: {status} × {count}: {words}" for (name, status, words), count in counted.items()]
        yield "\n".join(lines)


def _issue(issue: KnownIssue) -> str:
    about = ", ".join(part for part in (issue.contestant, issue.entry) if part)
    return f"{about}: {issue.words}" if about else issue.words


def is_own(result: Result) -> bool:
    """Whether the solver is one of mast-opt's heuristics."""
    kind = result["source"].get("kind")
    return kind is not None and result["contestant"].get("solver") in kind_named(kind).heuristics


def _losses(chapters: Sequence[Chapter]) -> Iterator[str]:
    """Every instance on which another solver's plan, under the same limit, beats the best of ours."""
    lines: list[str] = []
    compared = 0
    for chapter in chapters:
        groups: dict[tuple[Any, ...], list[Result]] = defaultdict(list)
        for result in chapter.results:
            if figures.feasible(result):
                groups[(*figures.instance(result), result["time_limit_s"], result["seed"])].append(result)
        for (entry, label, limit, seed), results in groups.items():
            ours = min((r for r in results if is_own(r)), key=lambda r: r["objective"], default=None)
            theirs = min((r for r in results if not is_own(r)), key=lambda r: r["objective"], default=None)
            if ours is None or theirs is None:
                continue
            compared += 1
            gap = figures.gap_to(ours["objective"], theirs["objective"])
            if gap:
                lines.append(
                    f"- {chapter.suite.name}, {entry}, `{label}`, {limit:g} s, seed {seed}: {figures.contestant(ours)} "
                    f"{plain(ours['objective'])} against {plain(theirs['objective'])} of {figures.contestant(theirs)} "
                    f"({percent(gap)} worse)"
                )
    if not compared:
        yield "No run of ours stands beside another solver's yet."
        return
    yield (
        f"Of {compared} comparisons (one instance, limit and seed, with a plan of ours and of another solver), "
        f"the best of our heuristics is worse in {len(lines)}:"
    )
    if lines:
        yield "\n".join(lines)

"""Results as pages in Markdown: what was run where, every figure with its command, and where our solvers lose."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mast_opt.core.wording import percent, plain
from mast_opt.planner.bench.reporting.plots import TITLES, file_name, kinds_of
from mast_opt.planner.bench.reporting.tables import by_instance, in_order, measured, rows, summary
from mast_opt.planner.bench.results import metrics as figures
from mast_opt.planner.bench.results.metrics import Instance, Result
from mast_opt.planner.bench.results.store import Ended
from mast_opt.planner.bench.suites.suite import KnownIssue, Suite
from mast_opt.planner.bench.suites.toml_reader import FOLDER
from mast_opt.planner.solving.auto_strategy import AUTO
from mast_opt.problems.registry import kind_named

GENERATED = "Generated from the benchmark results with:"
"""Second paragraph of every page."""
METHOD = """\
Each row can be run again with one command. Runs follow one another, each in a process of its own, which is
pinned to as many processors as it has threads. The time limit covers formulating, solving and verifying; the
instance is read or generated, and libraries and kernels are loaded, before it starts. Objectives are computed by
the verifier; bounds are proven by the solver or by a certificate. Memory is the highest resident size of the
run's process or of one that it started, including Python and its libraries.

- *best known* is the best verified objective among these results, the plans kept under
  `instances/**/best_known/` and, for public instances, the published values: the smallest, or under a
  maximising policy the largest, where gaps have the opposite sign. *Gap to best* is (objective −
  best known) / best known; *proven gap* is (objective − own bound) / objective.
- Times, gaps and memory of several runs are shifted geometric means (shift: 1 s, one percentage point, 1 MB).
  A run that did not finish counts its full limit as its time. Runs without a plan are excluded from gaps, so read
  gaps together with the number of plans.
- *Worst gap* is the largest gap to best of any run in the row, over all its instances and seeds. *Seeds* is the
  number of seeds that each instance was run with; a worst gap of one seed says nothing about other seeds.
- If an entry has several instances, a second table has a row for each: the value and gap with the best seed and,
  after "…", the worst seed, under the longest limit. A star marks a proven optimum.
- An exact solver starts from the present state if the instance states it and it breaks no limit.
"""
PEERS = """
- Which solvers are compared, how to install them, and whose figures are left out:
  [peers](peers.md).
"""
"""Last point of ``METHOD`` where all suites are those of mast-opt."""


@dataclass(frozen=True)
class Chapter:
    """The results of one suite, the latest of each trial, and what is kept next to the instances."""

    suite: Suite
    results: Sequence[Result]
    known: Mapping[Instance, float]
    """Objectives of the plans kept as best known."""
    sources: tuple[Path, ...] = (Path("benchmarks/results"),)
    """Files and folders that the report was asked for."""

    @property
    def best(self) -> dict[Instance, float]:
        """Best known objective of each instance, by this chapter's results and what is known from elsewhere."""
        return figures.best_values(self.results, self.known)


def page(chapters: Sequence[Chapter], images: str | None) -> str:
    """All results on one page.

    Args:
        chapters: the suites, in the order in which they appear.
        images: folder of the plots as the page sees it; None leaves them out.
    """
    parts = [*_front(chapters), *_losses(chapters)]
    for chapter in chapters:
        parts += [f"## {chapter.suite.title}", *_chapter(chapter, images, "###")]
    return "\n\n".join(parts) + "\n"


def overview(chapters: Sequence[Chapter], folder: str) -> str:
    """The benchmark page in front of the pages of the suites, which are in ``folder`` as this page sees it."""
    parts = [*_front(chapters), *_losses(chapters), "## Suites"]
    names = [(chapter.suite.name, chapter.suite.title, len(chapter.results)) for chapter in chapters]
    lines = [f"| [{name}]({folder}/{name}.md) | {title} | {runs:,} |" for name, title, runs in names]
    parts.append("\n".join(["| suite | what it measures | runs |", "| --- | --- | --: |", *lines]))
    return "\n\n".join(parts) + "\n"


def suite_page(chapter: Chapter, images: str | None) -> str:
    """The page of one benchmark suite."""
    parts = [f"# {chapter.suite.title}", GENERATED, _report_command(chapter), *_chapter(chapter, images, "##")]
    return "\n\n".join(parts) + "\n"


def _front(chapters: Sequence[Chapter]) -> list[str]:
    """First part of the benchmark page: its title, how to read it, and the heading of the losses."""
    ours = all(chapter.suite.path.parent == FOLDER for chapter in chapters)
    method = METHOD.strip() + (PEERS.rstrip() if ours else "")
    reading = ["## How to read this", method, "## Where our solvers lose"]
    return ["# Results of benchmarks", GENERATED, *map(_report_command, chapters[:1]), *reading]


def _report_command(chapter: Chapter) -> str:
    """Command that writes the report again from a chapter's results."""
    return _shell(f"mast-opt bench report {shlex.join(map(str, chapter.sources))}")


def _chapter(chapter: Chapter, images: str | None, heading: str) -> Iterator[str]:
    """Paragraphs of a suite, each of its entries under a heading of that level."""
    suite, results = chapter.suite, chapter.results
    if suite.about:
        yield suite.about.strip()
    if results:
        yield from _circumstances(results)
    imported = any(result["source"].keys() & {"importer", "data"} for result in results)
    called = suite.name if suite.path.parent == FOLDER else shlex.quote(str(suite.path))
    yield _command(called, imported=imported)
    solves = [result for result in results if "figures" not in result and result["contestant"].get("name")]
    solves = [result for result in solves if result["source"].get("kind")]
    if solves:
        yield summary(solves, chapter.best)
    for entry in dict.fromkeys(result["entry"] for result in results):
        of_entry = [result for result in results if result["entry"] == entry]
        yield f"{heading} {entry}"
        yield _command(called, entry, imported=imported)
        programs = [result for result in of_entry if "figures" in result]
        yield measured(programs) if programs else rows(of_entry, chapter.best)
        weighted = [result for result in of_entry if not figures.order(result)]
        if weighted and len({figures.instance(result) for result in of_entry}) > 1 and not programs:
            yield by_instance(weighted, chapter.best)
        yield from in_order(of_entry)
        yield from _failures(of_entry)
    if images is not None:
        for kind in kinds_of(solves):
            for name in suite.plots:
                words = f"{kind_named(kind).title.partition(':')[0]}. {TITLES[name]}"
                yield f"![{words}]({images}/{file_name(suite.name, kind, name)})\n\n{words}."
    if suite.known_issues:
        yield "Known issues:\n\n" + "\n".join(f"- {_issue(issue)}" for issue in suite.known_issues)


def _command(suite: str, entry: str | None = None, *, imported: bool = False) -> str:
    """Command that makes the runs of a suite, or of one entry."""
    chosen = f" --filter '{entry}/'" if entry else ""
    return _shell(f"mast-opt bench {suite}{' --data PUBLIC_DATA' if imported else ''}{chosen}")


def _shell(words: str) -> str:
    """Shell command as a block of the benchmark page."""
    return f"<!--- skip: next -->\n```sh\n{words}\n```"


def _circumstances(results: Sequence[Result]) -> Iterator[str]:
    """Machines, versions, commits and dates, as the results state them."""
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


def _failures(results: Sequence[Result]) -> Iterator[str]:
    """List of the runs that ended without a solver status, counted by contestant and message."""
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
    """Description of a known issue of a suite, with the contestant and entry that it concerns."""
    about = ", ".join(part for part in (issue.contestant, issue.entry) if part)
    return f"{about}: {issue.words}" if about else issue.words


def is_own(result: Result) -> bool:
    """Whether the solver is one of mast-opt's heuristics, not a plug-in."""
    kind, solver = result["source"].get("kind"), result["contestant"].get("solver")
    ours = dict(kind_named(kind).solvers.usable()) if kind is not None else {}
    return solver in ours and ours[solver].package is None


def _losses(chapters: Sequence[Chapter]) -> Iterator[str]:
    """Every instance on which another solver's plan, under the same limit, beats the best of ours."""
    lines: list[str] = []
    compared = 0
    for chapter in chapters:
        groups: dict[tuple[Any, ...], list[Result]] = defaultdict(list)
        for result in chapter.results:
            groups[(*figures.instance(result), result["time_limit_s"], result["seed"])].append(result)
        for (_, label, limit, seed), results in groups.items():
            ours = [result for result in results if is_own(result)]
            others = [result for result in results if not is_own(result) and result["contestant"].get("solver") != AUTO]
            theirs = [result for result in others if figures.feasible(result)]
            if not ours or not theirs:
                continue
            compared += 1
            words = _lost(ours, figures.leader(theirs))
            if words:
                entry = results[0]["entry"]
                lines.append(f"- {chapter.suite.name}, {entry}, `{label}`, {limit:g} s, seed {seed}: {words}")
    if not compared:
        yield "No run of ours can be compared with another solver's yet."
        return
    yield (
        f"Of {compared} comparisons (one instance, limit and seed, with a run of ours and a plan of another solver), "
        f"the best of our heuristics is worse in {len(lines)}{':' if lines else '.'}"
    )
    if lines:
        yield "\n".join(lines)


def _lost(ours: Sequence[Result], other: Result) -> str:
    """Description of how far our best run is behind another solver's plan; empty if it is not."""
    found = [result for result in ours if figures.feasible(result)]
    if not found:
        names = " or ".join(figures.names_of(ours))
        return f"no plan of {names} against {_value(other)} of {figures.contestant(other)}"
    best = figures.leader(found)
    at = figures.behind(best, other)
    if at is None:
        return ""
    gap = figures.gap_to(figures.values(best)[at], figures.values(other)[at], figures.sense(best))
    words = f"{figures.contestant(best)} {_value(best, at)} against {_value(other, at)} of {figures.contestant(other)}"
    return f"{words} ({percent(gap)} worse)" if figures.values(other)[at] else words


def _value(result: Result, position: int = 0) -> str:
    """Objective of a run, or, in a lexicographic one, the name and value of the term at a position of the order."""
    name = figures.order(result)[position : position + 1]
    return " ".join([*name, plain(figures.values(result)[position])])

"""The tables of a suite's page: contestants over all runs, over an entry, and instance by instance."""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cmp_to_key
from typing import Any

from mast_opt.core.solve_result import relative_gap
from mast_opt.core.wording import UNKNOWN, percent, plain, seconds
from mast_opt.planner.bench.results import metrics as figures
from mast_opt.planner.bench.results.metrics import Instance, Result


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of benchmark results whose first column is text and whose others are numbers."""
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


SUMMARY = (
    "contestant",
    "runs",
    "seeds",
    "plans",
    "proven",
    "best plan",
    "gap to best",
    "worst gap",
    "proven gap",
    "time",
)
"""Heads of a summary."""


def summary(results: Sequence[Result], best: Mapping[Instance, float]) -> str:
    """One row for each contestant, over everything that it ran in the benchmark."""
    return markdown(SUMMARY, summary_rows(results, best))


def summary_rows(results: Sequence[Result], best: Mapping[Instance, float]) -> list[tuple[str, ...]]:
    """Rows of a summary of benchmark results."""
    lines = []
    for name in figures.names_of(results):
        mine = [result for result in results if figures.contestant(result) == name]
        winners = figures.winners(mine, results, best)
        counts = (sum(map(figures.feasible, mine)), sum(map(figures.solved, mine)), winners)
        lines.append((name, str(len(mine)), seeds(mine), *map(str, counts), *_means(mine, best)))
    return lines


def rows(results: Sequence[Result], best: Mapping[Instance, float]) -> str:
    """One row for each contestant and limit, over the instances and seeds of the entry."""
    single = len({figures.instance(result) for result in results}) == 1
    heads = (
        "contestant",
        "limit",
        "seeds",
        "plans",
        "proven",
        "objective",
        "bound",
        "gap to best",
        "worst gap",
        "proven gap",
        "time",
        "memory",
    )
    lines = []
    groups: dict[tuple[str, float], list[Result]] = defaultdict(list)
    for result in results:
        groups[figures.contestant(result), result["time_limit_s"]].append(result)
    for (name, limit), mine in groups.items():
        plans = sum(map(figures.feasible, mine))
        objectives = [value for value in map(figures.objective, mine) if value is not None]
        bounds = [value for value in map(figures.bound, mine) if value is not None]
        memory = figures.shifted_geometric_mean(
            result["peak_memory_mb"] for result in mine if "peak_memory_mb" in result
        )
        lines.append(
            (
                name,
                f"{limit:g} s",
                seeds(mine),
                f"{plans}/{len(mine)}",
                str(sum(map(figures.solved, mine))),
                _spread(objectives, single),
                _spread(bounds, single),
                *_means(mine, best),
                UNKNOWN if memory is None else f"{memory:,.0f} MB",
            )
        )
    return markdown(heads, lines)


def seeds(results: Sequence[Result]) -> str:
    """Number of seeds with which each instance was run, or the range of these numbers."""
    fewest, most = figures.seeds_of(results)
    return str(most) if fewest == most else f"{fewest} to {most}"


def _means(results: Sequence[Result], best: Mapping[Instance, float]) -> tuple[str, str, str, str]:
    """Gap to the best known, the worst of these, proven gap, time."""
    to_best = figures.known_gaps(results, best)
    proven = [gap for gap in map(figures.gap, results) if gap is not None]
    time = figures.shifted_geometric_mean(map(figures.time_s, results))
    return (
        percent(figures.shifted_geometric_mean(to_best, 0.01)),
        percent(max(to_best, default=None)),
        percent(figures.shifted_geometric_mean(proven, 0.01)),
        UNKNOWN if time is None else seconds(time),
    )


def _spread(values: Sequence[float], single: bool) -> str:
    """Figures of a benchmark's seeds: one value, or from which to which."""
    if not values:
        return UNKNOWN
    low, high = min(values), max(values)
    if single and high - low > figures.SAME * max(1.0, abs(low)):
        return f"{plain(low)} to {plain(high)}"
    return plain(low) if low == high or single else f"{plain(low)} … {plain(high)}"


def measured(results: Sequence[Result]) -> str:
    """Figures of a program, one row for each instance and contestant; over several seeds, the median with least and
    most."""
    names = list(dict.fromkeys(name for result in results for name in result["figures"]))
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for result in results:
        groups.setdefault((result["instance"], figures.contestant(result)), []).append(result["figures"])
    instances = len({instance for instance, _ in groups}) > 1
    several = max(map(len, groups.values())) > 1
    lines = [
        (
            *([instance] if instances else []),
            contestant,
            *([str(len(mine))] if several else []),
            *(_over_seeds([f.get(name) for f in mine]) for name in names),
        )
        for (instance, contestant), mine in groups.items()
    ]
    heads = (["instance"] if instances else []) + ["contestant"] + (["seeds"] if several else [])
    return markdown((*heads, *(name.replace("_", " ") for name in names)), lines)


def _over_seeds(cells: Sequence[float | str | None]) -> str:
    """A figure of a benchmark, or the median of several with the least and the most of them."""
    numbers = [cell for cell in cells if isinstance(cell, (int, float))]
    if len(numbers) < len(cells) or min(numbers) == max(numbers):
        shown = dict.fromkeys(cell if isinstance(cell, str) else plain(cell) for cell in cells)
        return ", ".join(shown)
    return f"{plain(statistics.median(numbers))} ({plain(min(numbers))} to {plain(max(numbers))})"


def by_instance(results: Sequence[Result], best: Mapping[Instance, float]) -> str:
    """One row for each instance: what each contestant reached under its longest limit, best and worst seed."""
    names = figures.names_of(results)
    lines = []
    for instance in dict.fromkeys(figures.instance(result) for result in results):
        here = [result for result in results if figures.instance(result) == instance]
        bound = figures.best_bounds(here).get(instance)
        cells = [_reached([r for r in here if figures.contestant(r) == name], best.get(instance)) for name in names]
        lines.append((instance[1], plain(best.get(instance)), plain(bound), *cells))
    return markdown(("instance", "best known", "best bound", *names), lines)


def _reached(results: Sequence[Result], best: float | None) -> str:
    """The best objective under the longest limit with its gap to the best known, and those of the worst seed."""
    longest = max((result["time_limit_s"] for result in results), default=0.0)
    longest_runs = [result for result in results if result["time_limit_s"] == longest]
    found = [value for value in map(figures.objective, longest_runs) if value is not None]
    if not found:
        return UNKNOWN
    sense = figures.sense(results[0])
    first, last = sense.best(*found), sense.opposite.best(*found)
    proven = "*" if any(figures.solved(result) for result in results) else ""
    text = f"{plain(first)}{proven} ({percent(figures.gap_to(first, best, sense))})"
    if len(longest_runs) == 1:
        return text
    if len(found) < len(longest_runs):
        return f"{text} … no plan"
    return f"{text} … {plain(last)} ({percent(figures.gap_to(last, best, sense))})"


def in_order(results: Sequence[Result]) -> Iterator[str]:
    """The terms of lexicographic objectives: for each order a table with one row for each run that has a plan."""
    found = [result for result in results if figures.order(result) and figures.feasible(result)]
    for order in dict.fromkeys(map(figures.order, found)):
        mine = [result for result in found if figures.order(result) == order]
        yield (
            f"Minimised one after another: {', '.join(order)}. Plans are compared in this order, the best first; such "
            "runs are in no gap and no bound. A star marks what is proven under the terms before; where the proofs "
            "end, the bound follows."
        )
        lines = []
        for instance in dict.fromkeys(map(figures.instance, mine)):
            here = [result for result in mine if figures.instance(result) == instance]
            for result in sorted(here, key=cmp_to_key(_compare)):
                limit, seed = f"{result['time_limit_s']:g} s", str(result["seed"])
                lines.append((figures.contestant(result), instance[1], limit, seed, *_terms(result)))
        yield markdown(("contestant", "instance", "limit", "seed", *order), lines)


def _compare(one: Result, other: Result) -> int:
    """Order of two runs by the terms of their plans: −1, 0 or 1."""
    return (figures.behind(one, other) is not None) - (figures.behind(other, one) is not None)


def _terms(result: Result) -> Iterator[str]:
    """Each term of a run with what is proven of it."""
    bounds = {stage["term"]: stage["bound"] for stage in result.get("stages", ())}
    proven = True
    for term, value in zip(figures.order(result), figures.values(result), strict=True):
        bound = bounds.get(term) if proven else None
        gap = relative_gap(value, bound)
        proven = gap is not None and gap <= result["gap_asked"] + figures.SAME
        yield plain(value) + ("*" if proven else "" if bound is None else f" (≥ {plain(bound)})")

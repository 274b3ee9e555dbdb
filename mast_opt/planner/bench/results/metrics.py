"""Figures computed from results: what was solved, means, gaps, profiles, times to a target."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import Status

Result = Mapping[str, Any]
Floats = NDArray[np.float64]

SHIFT_S = 1.0
"""Shift of the shifted geometric mean of times: differences far below it hardly count."""
SAME = 1e-6
"""Relative; objectives that differ by less are equal."""
TARGETS = (0.1, 0.01)
"""Gaps to the best known value whose first moment is looked for."""

Instance = tuple[str, str]
"""Source and label of an instance: what different contestants have in common, in whatever entries of a suite."""


def contestant(result: Result) -> str:
    """Name of the contestant that a result belongs to."""
    name: str = result["contestant"]["name"]
    return name


def instance(result: Result) -> Instance:
    """The instance that a result belongs to: where it is from, and its label."""
    return identity(result["source"]), result["instance"]


def identity(source: Mapping[str, Any]) -> str:
    """The source of an instance, as text."""
    return json.dumps(source, sort_keys=True)


def sense(result: Result) -> Sense:
    """Whether less or more of a run's objective is better."""
    return Sense(result.get("sense", Sense.MIN.value))


def order(result: Result) -> tuple[str, ...]:
    """The terms of a run that are minimised one after another; none where the objective is their weighted sum."""
    return tuple(result.get("order", ()))


def with_orders(results: Sequence[Result]) -> list[Result]:
    """The benchmark results, with sense and order of an instance's objective filled in where only other results know
    them.

    A run that ended without an answer does not.
    """
    known: dict[Instance, dict[str, Any]] = defaultdict(dict)
    for result in results:
        known[instance(result)] |= {name: result[name] for name in ("order", "sense") if result.get(name)}
    return [{**result, **known[instance(result)]} for result in results]


def objective(result: Result) -> float | None:
    """The objective of a run, to be compared with others; None without a plan and where terms are minimised
    one by one.
    """
    return None if order(result) else result.get("objective")


def bound(result: Result) -> float | None:
    """Proven bound of a run on ``objective``; None where nothing is proven."""
    return None if order(result) else result.get("bound")


def gap(result: Result) -> float | None:
    """Gap of a run between ``objective`` and ``bound``; None where either is unknown."""
    return None if order(result) else result.get("gap")


def values(result: Result) -> tuple[float, ...]:
    """Values by which the plans of runs are compared, the first difference deciding: the objective, or the terms in
    their order.
    """
    return tuple(result["terms"][term] for term in order(result)) or (result["objective"],)


def behind(one: Result, other: Result) -> int | None:
    """The position in ``values`` that makes the plan of one run worse than another's; None if it is not worse."""
    for position, (ours, theirs) in enumerate(zip(values(one), values(other), strict=True)):
        if gap_to(ours, theirs, sense(one)):
            return position
        if gap_to(theirs, ours, sense(one)):
            return None
    return None


def leader(results: Sequence[Result]) -> Result:
    """The run with the first of the best plans, which all are for one instance."""
    best, *others = results
    for other in others:
        best = best if behind(best, other) is None else other
    return best


def winners(mine: Iterable[Result], everyone: Iterable[Result], best: Mapping[Instance, float]) -> int:
    """Number of the first results that have the best value known of their instance.

    Where terms are minimised one by one, that is a plan that no other of the results goes before.
    """
    rivals: dict[Instance, list[Result]] = defaultdict(list)
    for result in everyone:
        if order(result) and feasible(result):
            rivals[instance(result)].append(result)
    leaders = {one: leader(results) for one, results in rivals.items()}
    count = 0
    for result in mine:
        if not order(result):
            count += gap_of(result, best) == 0.0
        elif feasible(result):
            count += behind(result, leaders[instance(result)]) is None
    return count


def feasible(result: Result) -> bool:
    """Whether a benchmark's run found a plan."""
    return result.get("objective") is not None


def solved(result: Result) -> bool:
    """Whether a run has proven its result: optimal within the asked gap, or infeasible."""
    return result["status"] in (Status.OPTIMAL.value, Status.INFEASIBLE.value)


def time_s(result: Result) -> float:
    """Seconds of a run that formulating, solving and verifying took; the limit where the run did not come
    to its end.
    """
    if result["status"] not in {status.value for status in Status}:
        return float(result["time_limit_s"])
    spent = result["runtime_s"]
    return float(sum(spent.get(phase, 0.0) for phase in ("formulate", "solve", "verify")))


def shifted_geometric_mean(values: Iterable[float], shift: float = SHIFT_S) -> float | None:
    """exp(mean(log(value + shift))) − shift; None of nothing, in a benchmark's summary."""
    logs = [math.log(value + shift) for value in values]
    return math.exp(math.fsum(logs) / len(logs)) - shift if logs else None


def best_values(results: Iterable[Result], known: Mapping[Instance, float]) -> dict[Instance, float]:
    """The best objective known of each instance: of these results, of what is kept, of what others published.

    The least one, or the largest where more is better.
    """
    best = dict(known)
    for result in results:
        for value in (objective(result), (result.get("reference") or {}).get("best")):
            if value is not None:
                best[instance(result)] = sense(result).best(best.get(instance(result), value), value)
    return best


def best_bounds(results: Iterable[Result]) -> dict[Instance, float]:
    """The tightest bound that anyone proved on each instance: the highest, or the least where more is better."""
    best: dict[Instance, float] = {}
    for result in results:
        for value in (bound(result), (result.get("reference") or {}).get("bound")):
            if value is not None:
                best[instance(result)] = sense(result).opposite.best(best.get(instance(result), value), value)
    return best


def gap_to(value: float | None, best: float | None, sense: Sense = Sense.MIN) -> float | None:
    """(value − best) / max(|best|, 1e-9), a benchmark's gap; 0 where they are the same; None where either is unknown.

    Where more is better, it is (best − value) / max(|best|, 1e-9).
    """
    if value is None or best is None:
        return None
    if abs(value - best) <= SAME * max(1.0, abs(best)):
        return 0.0
    return max(0.0, sense.minimised(value - best)) / max(abs(best), 1e-9)


def gap_of(result: Result, best: Mapping[Instance, float]) -> float | None:
    """The gap of a run's objective to the best known value of its instance; None where either is unknown."""
    return gap_to(objective(result), best.get(instance(result)), sense(result))


def known_gaps(results: Iterable[Result], best: Mapping[Instance, float]) -> list[float]:
    """The gap to the best known of each run that has a plan."""
    gaps = (gap_of(result, best) for result in results)
    return [value for value in gaps if value is not None]


def seeds_of(results: Iterable[Result]) -> tuple[int, int]:
    """The fewest and the most seeds that any contestant has on any instance under any limit; 0, 0 of nothing."""
    seeds: dict[tuple[str, Instance, float], set[int]] = defaultdict(set)
    for result in results:
        seeds[contestant(result), instance(result), result["time_limit_s"]].add(result["seed"])
    counts = [len(found) for found in seeds.values()]
    return min(counts, default=0), max(counts, default=0)


def time_to(result: Result, target: float) -> float | None:
    """Seconds until the first incumbent that is as good as the target; None if it was never reached.

    Incumbents are as the solver reported them on its way; the last one is what the verifier confirms.
    """
    margin, of = SAME * max(1.0, abs(target)), sense(result)

    def good(value: float | None) -> bool:
        return value is not None and of.minimised(value) <= of.minimised(target) + margin

    for event in result.get("events", ()):
        if len(event) == 3 and good(event[1]):
            return float(event[0])
    return time_s(result) if good(objective(result)) else None


def target_of(best: float, gap: float, sense: Sense = Sense.MIN) -> float:
    """The objective of a benchmark at a gap to the best known value: above it, or below it where more is better."""
    return best + sense.minimised(gap) * max(abs(best), 1e-9)


def performance_profile(costs: Mapping[str, Mapping[Any, Sequence[float]]]) -> dict[str, tuple[Floats, Floats]]:
    """Performance profile: for each contestant the share of its runs that do their task within a factor of the quickest
    run of any.

    After Dolan and Moré, Benchmarking optimization software with performance profiles, Mathematical Programming
    91, 2002, with several runs of a task where a contestant has several seeds. Tasks that nobody does count for none.

    Args:
        costs: contestant → task → cost of each run, above 0; infinite where it failed.

    Returns:
        contestant → (factors ascending from 1, share of runs done within each).
    """
    least: dict[Any, float] = {}
    for done in costs.values():
        for task, runs in done.items():
            least[task] = min(least.get(task, math.inf), *runs)
    profile = {}
    for name, done in costs.items():
        ratios = [cost / least[task] for task, runs in done.items() if math.isfinite(least[task]) for cost in runs]
        factors = np.sort(np.array([ratio for ratio in ratios if math.isfinite(ratio)], dtype=np.float64))
        profile[name] = (factors, np.arange(1, len(factors) + 1) / max(len(ratios), 1))
    return profile


def names_of(results: Sequence[Result]) -> list[str]:
    """Contestants of the results, in the order of their first appearance."""
    return list(dict.fromkeys(contestant(result) for result in results))

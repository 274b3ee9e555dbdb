"""How good a server assignment ``ras`` finds and proves, cold and again after demand has changed a little.

    python benchmarks/server_assignment_scale.py [--family standard] [--servers 10000] [--reservations 50]
        [--datacenters 3] [--seed 0] [--limit 30] [--gap 0.01] [--drift 1]

Solves one instance until the gap or the limit is reached and prints when each gap was first proven, the terms and the
memory at its peak. Then today's assignment becomes the plan, what is asked changes by ``drift`` percent in either
direction, and the same is done from there. The same on a small copy shows how many servers move, and how many must: the
fewest with which no more is lacking, proven by HiGHS. Seconds are of the clock unless they are the processor's; kernels
are compiled before.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace
from typing import Any

import numpy as np

import mast_opt
from mast_opt.core.solve_result import Event, Status
from mast_opt.planner.solving import Solution
from mast_opt.problems.server_assignment import ServerAssignment

SMALL = 300, 8
"""Servers and reservations of the copy whose fewest moves are proven."""
GAPS = (0.1, 0.05, 0.02, 0.01, 0.005)


def reached(events: tuple[Event, ...]) -> str:
    """When each gap was first proven."""
    first = [next((e.elapsed_s for e in events if e.gap is not None and e.gap <= gap), None) for gap in GAPS]
    return ", ".join(
        f"{gap:.1%} {'never' if at is None else f'{at:.1f} s'}" for gap, at in zip(GAPS, first, strict=True)
    )


def timed(problem: ServerAssignment, **given: Any) -> tuple[Solution[Any], float]:
    """The solution and the processor's seconds."""
    began = time.process_time()
    solution = mast_opt.solve(problem, "ras", **given)
    return solution, time.process_time() - began


def show(title: str, solution: Solution[Any], processor_s: float) -> None:
    verdict = solution.verdict
    assert verdict is not None
    bound = "none" if solution.bound is None else f"{solution.bound:.6f}"
    gap = "unknown" if solution.gap is None else f"{solution.gap:.2%}"
    print(f"{title}: objective {solution.objective:.6f}, bound {bound}, gap {gap}")
    print(f"  {solution.runtime_s['solve']:.1f} s, {processor_s:.2f} s of the processor")
    print(f"  proven: {reached(solution.events)}")
    terms = ", ".join(f"{name} {value:.6f}" for name, value in verdict.terms.items() if value)
    print(f"  moved {verdict.metrics['moved_servers']:.0f} servers; {terms}")


def drifted(problem: ServerAssignment, solution: Solution[Any], percent: float) -> ServerAssignment:
    """The plan as today, and what is asked up or down by so many percent."""
    assert solution.plan is not None
    owner = solution.plan.reservation
    way = np.random.default_rng(1).choice([-1, 1], len(problem.reservations))
    asked = np.round(problem.reservations.asked_mrru * (1 + way * percent / 100)).astype(np.int64)
    kept = owner == problem.servers.owner
    return replace(
        problem,
        servers=replace(problem.servers, owner=owner.copy(), in_use=problem.servers.in_use & kept),
        reservations=replace(problem.reservations, asked_mrru=asked),
    )


def changed(problem: ServerAssignment, solution: Solution[Any]) -> tuple[int, int]:
    """Servers that are taken from somebody, and servers that somebody gains."""
    assert solution.plan is not None
    after = solution.plan.reservation
    moves = after != problem.servers.owner
    return int((moves & problem.owned).sum()), int((moves & (after < len(problem.reservations))).sum())


def fewest(problem: ServerAssignment) -> tuple[int, int] | None:
    """The fewest servers that can be taken, and the fewest that can be gained, while no more lacks than must; None
    where that is not proven within a minute each."""
    weights = dict.fromkeys(problem.objective.weights, 0.0) | {"shortfall": 1e3, "moves_in_use": 1.0, "moves_idle": 1.0}
    found = []
    for use in (0.0, 1.0):
        objective = replace(problem.objective, weights=weights | {"use": use})
        solution = mast_opt.solve(replace(problem, objective=objective), "highs", gap=0.0, time_limit_s=60)
        if solution.status is not Status.OPTIMAL:
            return None
        found.append(changed(problem, solution)[int(use)])
    return found[0], found[1]


def show_moves(family: str, percent: float) -> None:
    problem = mast_opt.generate("server-assignment", family, servers=SMALL[0], reservations=SMALL[1], datacenters=2)
    first = mast_opt.solve(problem, "ras", time_limit_s=10, gap=0.01)
    again = drifted(problem, first, percent)
    second = mast_opt.solve(again, "ras", time_limit_s=10, gap=0.01, start=first.plan)
    (taken, gained), proven = changed(again, second), fewest(again)
    least = "the fewest are not proven" if proven is None else f"at least {proven[0]} and {proven[1]}"
    print(f"{SMALL[0]} servers after {percent:g}%: {taken} taken and {gained} gained; {least}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", default="standard")
    parser.add_argument("--servers", type=int, default=10_000)
    parser.add_argument("--reservations", type=int, default=50)
    parser.add_argument("--datacenters", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of the instance")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds")
    parser.add_argument("--gap", type=float, default=0.01)
    parser.add_argument("--drift", type=float, default=1.0, help="percent")
    args = parser.parse_args()
    mast_opt.warm_up("server-assignment")
    sizes = {"servers": args.servers, "reservations": args.reservations, "datacenters": args.datacenters}
    problem = mast_opt.generate("server-assignment", args.family, seed=args.seed, **sizes)
    print(problem.name)
    cold, processor_s = timed(problem, time_limit_s=args.limit, gap=args.gap)
    show("cold", cold, processor_s)
    again = drifted(problem, cold, args.drift)
    warm, processor_s = timed(again, time_limit_s=args.limit, gap=args.gap, start=cold.plan)
    show("warm", warm, processor_s)
    show_moves(args.family, args.drift)
    print(f"memory at its peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()

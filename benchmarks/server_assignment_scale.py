"""How good a server assignment ``ras`` finds and proves, cold and again after demand has changed a little.

    python benchmarks/server_assignment_scale.py [--family standard] [--servers 10000] [--reservations 50]
        [--datacenters 3] [--limit 30] [--gap 0.01] [--drift 1]

Solves one instance until the gap or the limit is reached and prints when each gap was first proven, the terms and the
memory at its peak. Then today's assignment becomes the plan, what is asked changes by ``drift`` percent in either
direction, and the same is done from there. Times are wall time; kernels are compiled before the clock starts.
"""

from __future__ import annotations

import argparse
import resource
from dataclasses import replace

import numpy as np

import mast_opt
from mast_opt.result import Event
from mast_opt.server_assignment import ServerAssignment
from mast_opt.solving import Solution

GAPS = (0.1, 0.05, 0.02, 0.01, 0.005)


def reached(events: tuple[Event, ...]) -> str:
    """When each gap was first proven."""
    first = [next((e.elapsed_s for e in events if e.gap is not None and e.gap <= gap), None) for gap in GAPS]
    return ", ".join(
        f"{gap:.1%} {'never' if at is None else f'{at:.1f} s'}" for gap, at in zip(GAPS, first, strict=True)
    )


def show(title: str, solution: Solution) -> None:
    verdict = solution.verdict
    assert verdict is not None
    bound = "none" if solution.bound is None else f"{solution.bound:.6f}"
    gap = "unknown" if solution.gap is None else f"{solution.gap:.2%}"
    print(f"{title}: objective {solution.objective:.6f}, bound {bound}, gap {gap}, {solution.runtime_s['solve']:.1f} s")
    print(f"  proven: {reached(solution.events)}")
    terms = ", ".join(f"{name} {value:.6f}" for name, value in verdict.terms.items() if value)
    print(f"  moved {verdict.metrics['moved_servers']:.0f} servers; {terms}")


def drifted(problem: ServerAssignment, solution: Solution, percent: float) -> ServerAssignment:
    """The plan as today, and what is asked up or down by so many percent."""
    assert solution.plan is not None
    owner = solution.plan.reservation
    way = np.random.default_rng(1).choice([-1, 1], len(problem.reservations))
    asked = np.round(problem.asked_mrru * (1 + way * percent / 100)).astype(np.int64)
    kept = owner == problem.owner
    return replace(problem, owner=owner.copy(), in_use=problem.in_use & kept, asked_mrru=asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", default="standard")
    parser.add_argument("--servers", type=int, default=10_000)
    parser.add_argument("--reservations", type=int, default=50)
    parser.add_argument("--datacenters", type=int, default=3)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds")
    parser.add_argument("--gap", type=float, default=0.01)
    parser.add_argument("--drift", type=float, default=1.0, help="percent")
    args = parser.parse_args()
    mast_opt.warm_up("server-assignment")
    sizes = {"servers": args.servers, "reservations": args.reservations, "datacenters": args.datacenters}
    problem = mast_opt.generate("server-assignment", args.family, **sizes)
    print(problem.name)
    cold = mast_opt.solve(problem, "ras", time_limit_s=args.limit, gap=args.gap)
    show("cold", cold)
    again = drifted(problem, cold, args.drift)
    warm = mast_opt.solve(again, "ras", time_limit_s=args.limit, gap=args.gap, start=cold.plan)
    show("warm", warm)
    print(f"memory at its peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()

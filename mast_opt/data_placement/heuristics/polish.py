"""What the search leaves open, settled by a MIP solver: shares of splittable work, sources across links, and a
plan at all where the search found none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.data_placement.formulation import base, exact_shares
from mast_opt.data_placement.heuristics.neighbourhoods import Neighbourhoods, worthwhile
from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import DataPlacement
from mast_opt.data_placement.today import today
from mast_opt.data_placement.verify import verify
from mast_opt.mip import IntArray, Mip
from mast_opt.result import SolveParams
from mast_opt.search import Tools

LARGEST = 3_000_000
"""Entries of a program that is still handed to the MIP solver."""
LEAST_S, MOST_S = 1.0, 30.0
"""Seconds that the MIP solver is given at least, and where there is no time limit."""


def finish(problem: DataPlacement, tools: Tools, plan: Plan | None) -> Plan | None:
    """The plan with what the annealing leaves open settled, and improved by neighbourhoods where that is worthwhile."""
    if tools.watch.stop.iterations is not None or not worthwhile(problem):
        return polish(problem, tools, plan)
    before = polish(problem, tools, plan) if problem.links is None else None
    start = before or plan
    better = None if start is None else Neighbourhoods(problem, tools).improve(start)
    found = [candidate for candidate in (before, today(problem)) if candidate is not None]
    if better is not None:
        found.append(better if verify(problem, better).ok else polish(problem, tools, better) or better)
    lawful = [candidate for candidate in found if verify(problem, candidate).ok]
    if not lawful:
        return polish(problem, tools, None)
    return min(lawful, key=lambda candidate: verify(problem, candidate).objective)


def polish(problem: DataPlacement, tools: Tools, plan: Plan | None) -> Plan | None:
    """The plan with its open shares optimised, or a feasible one where there was none; never a worse one."""
    rounds = problem.links is not None or bool(problem.splittable.any())
    if plan is not None and not rounds:
        return plan
    if len(problem.read_workload) * len(problem.regions) > LARGEST:
        return plan if plan is not None and verify(problem, plan).ok else None
    formulation = exact_shares(problem) if rounds else base(problem)
    mip, best = formulation.mip, plan if plan is not None and verify(problem, plan).ok else None
    attempts = [False] if plan is None else [True, False] if best is None else [True]
    for fixed in attempts:
        program = mip
        if fixed and plan is not None:
            x = formulation.encode(plan)
            held = _settled(mip)
            program = mip.fix(held, np.rint(x[held]))
        counted = tools.watch.stop.iterations is not None and fixed
        limit = None if counted else max(LEAST_S, min(MOST_S, tools.watch.remaining_s))
        start = None if best is None else formulation.encode(best)
        params = SolveParams(time_limit_s=limit, gap=tools.watch.stop.gap, start=start, cancel=tools.watch.stop.cancel)
        result = tools.mip_solver(program, replace(params, threads=tools.threads))
        if result.x is None:
            continue
        candidate = formulation.decode(result.x)
        verdict = verify(problem, candidate)
        if verdict.ok and (best is None or verdict.objective < verify(problem, best).objective):
            best = candidate
        if best is not None:
            break
    return best


def _settled(mip: Mip) -> IntArray:
    """Columns of what the search has decided: replicas, and work that is not split."""
    return np.concatenate([block.ids.ravel() for block in mip.columns if block.name in ("place", "run", "unserved")])

"""Where CP-SAT counts in 64 bits and the program does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mast_opt
from mast_opt.core.solve_result import Status


def test_costs_leave_room_for_what_presolve_adds_up() -> None:
    """With costs scaled to nearly all of 64 bits, CP-SAT calls this program invalid."""
    problem = mast_opt.generate("data-placement", "standard", seed=1, datasets=20, workloads=30, regions=4)
    objective = replace(problem.objective, order=("unserved",))
    regions = replace(problem.regions, cpu_mcores=problem.regions.cpu_mcores * 7 // 10)
    tight = replace(problem, may_refuse=True, regions=regions, objective=objective)
    exact = mast_opt.solve(tight, "highs", threads=1)
    found = mast_opt.solve(tight, "cpsat", threads=2)
    assert exact.objective is not None
    assert exact.objective > 0
    assert (found.status, exact.status) == (Status.OPTIMAL, Status.OPTIMAL)
    assert found.objective == pytest.approx(exact.objective, rel=1e-3)

"""Between solver and user stands the verifier: what is broken by a tolerance is repaired, what is wrong is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import VerificationError
from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.mip_route import REPAIR_ROUNDS, Answer, ExactSolve
from mast_opt.problems.backends.highs import Highs
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.mip import Mip
from mast_opt.problems.registry import kind_of
from tests.backends.programs import INF, program
from tests.narrowing import some
from tests.solvers import HERE

ONE_MCORE_SHORT = {
    "instance": {"format": "mast-opt/1", "kind": "data-placement", "name": "one millicore short"},
    "regions": [
        {"region": "a", "storage_tb": 10, "cpu_cores": 999_999.999},
        {"region": "b", "storage_tb": 10, "cpu_cores": 999_999.999},
    ],
    "gpu_supply": [],
    "datasets": [{"dataset": "logs", "size_tb": 1}],
    "replicas": [{"dataset": "logs", "region": "a"}],
    "workloads": [{"workload": name, "tier": 0, "cpu_cores": 500_000} for name in ("w1", "w2")],
    "gpu_demand": [],
    "reads": [{"workload": name, "dataset": "logs", "tb_per_day": 1} for name in ("w1", "w2")],
}
"""Both workloads would run next to the data, and exceed its region by a part in a thousand million."""


@pytest.fixture
def problem(tmp_path: Path) -> DataPlacement:
    path = tmp_path / "short.json"
    path.write_text(json.dumps(ONE_MCORE_SHORT))
    read: DataPlacement = mast_opt.read(path)
    return read


class Recording(Highs):
    """HiGHS, remembering the limits of the row ``cpu[a]`` in every program that it is given."""

    def __init__(self) -> None:
        self.limits: list[float] = []

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        self.limits.append(float(mip.row_upper[list(mip.row_names()).index("cpu[a]")]))
        return super().solve(mip, params)


class Deaf(Highs):
    """A solver for which nothing is ever too much: it does not see the upper limits of rows."""

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        one_sided = np.where(mip.row_lower < mip.row_upper, INF, mip.row_upper)
        return super().solve(replace(mip, row_upper=one_sided), params)


class Boastful(Highs):
    """Its plans are right, and more expensive than it says."""

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        result = super().solve(mip, params)
        assert result.objective is not None
        return replace(result, objective=result.objective * 0.99)


def answer_of(problem: DataPlacement, backend: Highs) -> Answer:
    """The answer at HiGHS's own tolerance, which is not the one that we set."""
    kind = kind_of(problem)
    params = SolveParams(options=(("mip_feasibility_tolerance", 1e-6),))
    return ExactSolve(kind, problem, backend, params, Clock(None)).run(kind.formulate, None)


@pytest.mark.parametrize("solver", HERE)
def test_no_plan_breaks_a_limit_by_a_part_that_a_solver_does_not_see(problem: DataPlacement, solver: str) -> None:
    found = mast_opt.solve(problem, solver, threads=1)
    assert found.status in (Status.OPTIMAL, Status.FEASIBLE)  # the bound is that of the first solve
    assert some(found.verdict).ok
    assert found.objective == pytest.approx(0.7)  # the other workload gets a copy of its own: 0.5 + 2 · 0.1


def test_what_a_tolerance_let_pass_is_solved_again_with_a_lower_limit(problem: DataPlacement) -> None:
    backend = Recording()
    answer = answer_of(problem, backend)
    assert answer.verdict is not None
    assert answer.verdict.ok
    assert backend.limits[0] == 999_999_999
    assert all(later <= earlier for earlier, later in zip(backend.limits, backend.limits[1:]))
    assert 999_990_000 < backend.limits[-1] < 999_999_999


def test_a_plan_that_stays_wrong_is_refused(problem: DataPlacement) -> None:
    with pytest.raises(VerificationError, match=rf"after {REPAIR_ROUNDS} repairs highs still .* break cpu\[a\]"):
        answer_of(problem, Deaf())


def test_an_objective_that_the_plan_does_not_have_is_refused(problem: DataPlacement) -> None:
    with pytest.raises(VerificationError, match=r"highs reports objective 0\.693; the plan it gave costs 0\.7"):
        answer_of(problem, Boastful())


def test_limits_are_pulled_in_on_every_side() -> None:
    rows = [([1.0, 0.0], -INF, 4.0), ([0.0, 1.0], 2.0, INF), ([1.0, 1.0], 1.0, 5.0), ([1.0, -1.0], 0.0, 0.0)]
    mip = program([1.0, 1.0], rows, upper=9.0)
    tighter = mip.tighten({"row[0]": 1.0, "row[1]": 0.5, "row[2]": 2.0})
    np.testing.assert_array_equal(tighter.row_lower, [-INF, 2.5, 3.0, 0.0])
    np.testing.assert_array_equal(tighter.row_upper, [3.0, INF, 3.0, 0.0])
    with pytest.raises(ValueError, match=r"row\[3\] cannot be tightened"):
        mip.tighten({"row[3]": 1e-9})
    with pytest.raises(KeyError, match="no such rows"):
        mip.tighten({"row[4]": 1.0})

"""The portfolio ``auto`` where a member is wrong, dies or is interrupted: only plans that were verified count."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import VerificationError
from mast_opt.core.solve_result import Event, Limit, SolveParams, SolveResult, Status
from mast_opt.problems import backends
from mast_opt.problems.backends.highs import Highs
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.mip import Mip
from mast_opt.problems.registry import kind_of
from mast_opt.problems.search.interface import Heuristic, HeuristicSolver, SearchContext, SearchResult
from tests.narrowing import some
from tests.solving.test_repair import ONE_MCORE_SHORT, Deaf

LONG_S = 0.5
"""Several times as long as the portfolio takes to stop its members."""
BOTH = {"head_start_s": 0.0}
THIRDS = {
    "instance": {
        "format": "mast-opt/1",
        "kind": "data-placement",
        "name": "thirds",
        "limits": {"overload_gpus": 0},
    },
    "regions": [{"region": name, "storage_tb": 10, "cpu_cores": 1000} for name in "abc"],
    "gpu_supply": [
        {"region": "a", "gpu_type": "h100", "gpus": 50},
        {"region": "b", "gpu_type": "h100", "gpus": 50},
        {"region": "c", "gpu_type": "h100", "gpus": 28.2},
    ],
    "datasets": [{"dataset": "logs", "size_tb": 1, "copies_max": 2}],
    "replicas": [{"dataset": "logs", "region": "a"}, {"dataset": "logs", "region": "b"}],
    "workloads": [{"workload": "train", "tier": 0, "cpu_cores": 1, "splittable": True}],
    "gpu_demand": [{"workload": "train", "gpu_type": "h100", "gpus": 128}],
    "reads": [{"workload": "train", "dataset": "logs", "tb_per_day": 1}],
}
"""As much as fits runs next to the data: 50 of 128 GPUs in a and in b, which is no whole number of thousandths."""


def problem_of(tables: dict[str, Any], folder: Path) -> DataPlacement:
    """The instance of some tables."""
    path = folder / "instance.json"
    path.write_text(json.dumps(tables))
    read: DataPlacement = mast_opt.read(path)
    return read


@pytest.fixture
def short(tmp_path: Path) -> DataPlacement:
    """HiGHS's first answer breaks a limit by a part that it does not see."""
    return problem_of(ONE_MCORE_SHORT, tmp_path)


@pytest.fixture
def problem(tmp_path: Path) -> DataPlacement:
    """The same with a limit that is broken or kept by far: one workload fits in each region."""
    tables: dict[str, Any] = dict(ONE_MCORE_SHORT)
    regions = [{**row, "cpu_cores": 700_000} for row in tables["regions"]]
    return problem_of({**tables, "regions": regions}, tmp_path)


@pytest.fixture
def thirds(tmp_path: Path) -> DataPlacement:
    return problem_of(THIRDS, tmp_path)


def use_backend(monkeypatch: pytest.MonkeyPatch, backend: Highs) -> None:
    """Let a backend answer where HiGHS is asked for."""
    real = backends.get
    monkeypatch.setattr(backends, "get", lambda name: backend if name == "highs" else real(name))


def use_search(monkeypatch: pytest.MonkeyPatch, problem: DataPlacement, search: Heuristic) -> None:
    """Let a search answer where tetris is asked for."""
    heuristics = kind_of(problem).solvers.heuristics
    fake: HeuristicSolver = replace(heuristics["tetris"], search=search, rehearsals=lambda problem: ())
    monkeypatch.setitem(heuristics, "tetris", fake)


def idle(problem: DataPlacement, tools: SearchContext, start: Any) -> SearchResult[Any]:
    """A search that finds nothing, and ends when it is stopped or after a while."""
    stopped = tools.watch.stop.cancel.wait(4 * LONG_S)
    return SearchResult(None, None, Limit.INTERRUPT if stopped else Limit.ITERATIONS, "")


def solved(problem: DataPlacement, **asked: Any) -> Any:
    return mast_opt.solve(problem, "auto", threads=2, params=BOTH, **asked)


def valid_plan(problem: DataPlacement, weights: dict[str, float] | None = None) -> Any:
    """A plan that breaks no rule; with other weights, not the best one."""
    return some(mast_opt.solve(problem, "highs", threads=1, weights=weights).plan).made_for(problem)


class DeafAtFirst(Deaf):
    """Its first answer breaks limits and claims to be optimal; from the second on it is HiGHS, and slow."""

    def __init__(self) -> None:
        self.solves = 0

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        self.solves += 1
        if self.solves == 1:
            return super().solve(mip, params)
        params.cancel.wait(LONG_S)
        return Highs.solve(self, mip, params)


class Slow(Highs):
    """HiGHS after a while."""

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        params.cancel.wait(LONG_S)
        return super().solve(mip, params)


def test_an_answer_that_the_verifier_refuses_stops_nobody(
    short: DataPlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = DeafAtFirst()
    use_backend(monkeypatch, backend)
    use_search(monkeypatch, short, idle)
    found = solved(short)
    assert backend.solves > 1
    assert found.status in (Status.OPTIMAL, Status.FEASIBLE)
    assert found.limit is not Limit.INTERRUPT
    assert found.objective == pytest.approx(0.7)
    assert found.strategy["plan_by"] == "highs"


@pytest.mark.parametrize("at_once", [True, False])
def test_a_search_whose_plan_is_refused_is_dropped_and_named(
    problem: DataPlacement, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    plan = replace(valid_plan(problem), place=np.zeros((1, 2), np.bool_))

    def wrong(problem: DataPlacement, tools: SearchContext, start: Any) -> SearchResult[Any]:
        tools.watch.report(0.1, 0.1, lambda: plan)
        if not at_once:
            tools.watch.stop.cancel.wait(4 * LONG_S)
        return SearchResult(plan, 0.1, None, "")

    use_backend(monkeypatch, Slow())
    use_search(monkeypatch, problem, wrong)
    found = solved(problem)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(0.7)
    assert "tetris failed: tetris returned a plan that breaks" in found.message


def test_a_member_that_dies_costs_its_part_only(problem: DataPlacement, monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(problem: DataPlacement, tools: SearchContext, start: Any) -> SearchResult[Any]:
        raise IndexError("out of bounds")

    use_backend(monkeypatch, Slow())
    use_search(monkeypatch, problem, dying)
    found = solved(problem)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(0.7)
    assert "tetris failed: IndexError: out of bounds" in found.message


def test_what_the_callers_own_function_raises_is_raised(
    problem: DataPlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(event: Event) -> None:
        raise LookupError("no room to draw in")

    use_search(monkeypatch, problem, idle)
    with pytest.raises(LookupError, match="no room to draw in"):
        solved(problem, on_event=raising)


def test_a_verified_plan_that_another_proves_stops_both_and_is_kept(
    problem: DataPlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HiGHS has the bound and no plan, the search a plan that it loses when it is stopped."""
    plan = valid_plan(problem)
    best = mast_opt.verify(problem, plan).objective

    class Bounding(Highs):
        def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
            some(params.on_event)(Event(0.0, None, best))
            params.cancel.wait(4 * LONG_S)
            return SolveResult(Status.NO_SOLUTION, None, None, best, Limit.INTERRUPT, "")

    def losing(problem: DataPlacement, tools: SearchContext, start: Any) -> SearchResult[Any]:
        tools.watch.report(best, None, lambda: plan)
        return idle(problem, tools, start)

    use_backend(monkeypatch, Bounding())
    use_search(monkeypatch, problem, losing)
    found = solved(problem)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(best)
    assert (found.strategy["plan_by"], found.strategy["bound_by"]) == ("tetris", "highs")


def test_a_proof_that_rules_out_a_plan_of_another_member_is_an_error(
    problem: DataPlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    worse = valid_plan(problem, {"storage": 0.0, "remote": 0.001})

    def boastful(problem: DataPlacement, tools: SearchContext, start: Any) -> SearchResult[Any]:
        tools.watch.stop.cancel.wait(4 * LONG_S)
        return SearchResult(worse, mast_opt.verify(problem, worse).objective, None, "")

    use_search(monkeypatch, problem, boastful)
    with pytest.raises(VerificationError, match=r"tetris says that the objective cannot be better.*highs has a plan"):
        solved(problem)


def test_infeasible_is_an_error_where_another_member_has_a_plan(
    problem: DataPlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_one = threading.Event()
    plan = valid_plan(problem)

    class Despairing(Highs):
        def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
            found_one.wait(4 * LONG_S)
            return SolveResult(Status.INFEASIBLE, None, None, None, None, "")

    def finding(problem: DataPlacement, tools: SearchContext, start: Any) -> SearchResult[Any]:
        found_one.set()
        tools.watch.stop.cancel.wait(4 * LONG_S)
        return SearchResult(plan, None, Limit.INTERRUPT, "")

    use_backend(monkeypatch, Despairing())
    use_search(monkeypatch, problem, finding)
    with pytest.raises(VerificationError, match="highs says that there is no plan, and tetris has one"):
        solved(problem)


def test_an_interrupt_keeps_a_plan_that_rounding_has_spoilt(
    thirds: DataPlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50 of 128 GPUs are 390.625 thousandths; 391 do not fit, so the shares are settled again, interrupt or not."""
    cancel = threading.Event()
    asked: list[bool] = []

    class Interrupted(Highs):
        def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
            result = super().solve(mip, params)
            asked.append(bool(mip.integral.all()))
            cancel.set()
            return result

    use_backend(monkeypatch, Interrupted())
    found = mast_opt.solve(thirds, "highs", threads=1, cancel=cancel)
    assert len(asked) > 1
    assert some(found.verdict).ok
    assert found.status.has_solution


def test_an_interrupt_is_said_where_it_costs_the_plan(short: DataPlacement, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole workloads cannot be repaired without moving one, which a repair of an interrupted solve does not do."""
    cancel = threading.Event()

    class Interrupted(Deaf):
        def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
            result = Deaf.solve(self, mip, params) if not cancel.is_set() else Highs.solve(self, mip, params)
            cancel.set()
            return result

    use_backend(monkeypatch, Interrupted())
    found = mast_opt.solve(short, "highs", threads=1, cancel=cancel)
    assert found.status is Status.NO_SOLUTION
    assert found.limit is Limit.INTERRUPT

"""``resolve``: what a re-solve takes over, what it proves, and when it begins again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.live.loop.commands import Solve
from mast_opt.live.simulation.solves import SimulatedSolver, SolveSettings
from mast_opt.planner.analysis import common
from mast_opt.planner.analysis.scenario_files import Scenario
from mast_opt.planner.solving import resolving
from mast_opt.planner.solving.dispatch import solve
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.kind.carried_axes import Match
from mast_opt.problems.mip import Mip
from mast_opt.problems.registry import kind_of
from mast_opt.problems.resource_allocation.policies import HIERARCHICAL, POLICIES
from mast_opt.problems.search.sub_mip import SubMip
from tests.narrowing import some
from tests.resource_allocation.support import with_policy

SIZES = {"datasets": 40, "workloads": 60, "regions": 5}
ASKED: dict[str, Any] = {"threads": 1, "gap": 0.0}


@pytest.fixture(scope="module")
def solved() -> tuple[DataPlacement, mast_opt.Solution[Any]]:
    problem = mast_opt.generate("data-placement", "standard", seed=3, **SIZES)
    return problem, mast_opt.solve(problem, "tetris", iterations=40, **ASKED)


def a_little_later(problem: DataPlacement) -> DataPlacement:
    """Labels in another order, one workload and one dataset renamed, other sizes of two."""
    work = (*reversed(problem.workloads.labels[1:]), "newcomer")
    at = np.array([*range(len(work) - 1, 0, -1), 0])
    order = np.argsort(at)
    rank = np.empty_like(order)
    rank[at] = np.arange(len(at))
    sizes = problem.datasets.size_mb.copy()
    sizes[:2] = sizes[:2] * 9 // 10

    def sorted_rows(group: Any) -> Any:
        work = rank[group.workload]
        by = np.argsort(work, kind="stable")
        others = {one.name: getattr(group, one.name)[by] for one in group.COLUMNS}
        return replace(group, **{**others, "workload": work[by]})

    columns = {
        "datasets.labels": ("new data", *problem.datasets.labels[1:]),
        "datasets.size_mb": sizes,
        "workloads": replace(problem.workloads.rows(at), labels=work),
        "options": sorted_rows(problem.options),
        "reads": sorted_rows(problem.reads),
    }
    return problem.with_columns(columns)


def test_rows_are_matched_by_label_and_the_bound_is_one_of_the_new_instance(
    solved: tuple[DataPlacement, mast_opt.Solution[Any]],
) -> None:
    before, earlier = solved
    problem = a_little_later(before)
    found = mast_opt.resolve(problem, earlier, **ASKED)
    reuse = some(found.reuse)
    assert (reuse.start, reuse.prices, reuse.cold) == (True, True, "")
    assert reuse.changed["workloads"] == 2
    assert 3 <= reuse.changed["datasets"] <= 4
    assert found.status is Status.FEASIBLE
    assert mast_opt.verify(problem, some(found.plan)).ok
    checked = some(kind_of(problem).verification.certified_bound)(problem, some(found.certificate).arrays())
    assert checked == pytest.approx(some(found.bound))
    cold = mast_opt.solve(problem, "tetris", iterations=6, **ASKED)
    assert some(found.objective) < some(cold.objective)
    assert some(found.bound) > some(cold.bound)


def test_carried_prices_alone_prove_most_of_what_they_did(
    solved: tuple[DataPlacement, mast_opt.Solution[Any]],
) -> None:
    before, earlier = solved
    problem = a_little_later(before)
    kind = kind_of(problem)
    now, then = (kind.tables.digests(one) for one in (problem, before))
    arrays = some(earlier.certificate).arrays()
    prove = some(kind.verification.certified_bound)
    how = kind.solvers.again["tetris"]
    carried = how.certificate(problem, arrays, Match(then, now))
    assert 0.9 * some(earlier.bound) < prove(problem, carried) <= some(earlier.objective)
    same = how.certificate(before, arrays, Match(then, then))
    assert prove(before, same) > 0.97 * some(earlier.bound)


def test_a_folder_does_as_well_as_the_solution(
    solved: tuple[DataPlacement, mast_opt.Solution[Any]], tmp_path: Path
) -> None:
    before, earlier = solved
    mast_opt.write_plan(before, earlier, tmp_path / "plan")
    problem = a_little_later(before)
    by_folder, by_object = (mast_opt.resolve(problem, one, **ASKED) for one in (tmp_path / "plan", earlier))
    assert by_folder.reuse == by_object.reuse
    assert by_folder.bound == pytest.approx(some(by_object.bound))
    assert some(by_folder.objective) == pytest.approx(some(by_object.objective))


def test_a_start_without_what_is_new_is_completed_near_it(
    solved: tuple[DataPlacement, mast_opt.Solution[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it the whole program is searched for a first plan, which takes some hundred times as long."""
    open_decisions: list[int] = []
    real = SubMip.__call__

    def seen(sub_mip: SubMip, mip: Mip, params: SolveParams) -> SolveResult:
        open_decisions.append(int((mip.integral & (mip.col_lower < mip.col_upper)).sum()))
        return real(sub_mip, mip, params)

    monkeypatch.setattr(SubMip, "__call__", seen)
    before, earlier = solved
    found = mast_opt.resolve(a_little_later(before), earlier, **ASKED)
    assert found.status is Status.FEASIBLE
    assert 0 < max(open_decisions) < 20


def lost_region(problem: DataPlacement) -> DataPlacement:
    labels = ("elsewhere", *problem.regions.labels[1:])
    return problem.relabelled({"regions": labels})


def double_demand(problem: DataPlacement) -> DataPlacement:
    return problem.with_columns({"options.mgpu": 2 * problem.options.mgpu})


DOUBLED = "100% of the rows of gpu_demand have changed, in all by 100%"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lost_region, "a region is new or gone"),
        (double_demand, DOUBLED),
    ],
)
def test_what_changes_everything_is_solved_from_scratch(
    solved: tuple[DataPlacement, mast_opt.Solution[Any]], change: Any, words: str
) -> None:
    before, earlier = solved
    problem = change(before)
    found = mast_opt.resolve(problem, earlier, iterations=4, **ASKED)
    assert some(found.reuse).cold == words
    assert words in str(found.reuse)
    cold = mast_opt.solve(problem, "tetris", iterations=4, **ASKED)
    assert (found.objective, found.bound) == (cold.objective, cold.bound)
    assert some(found.reuse).reference_gap == cold.gap


def test_new_values_everywhere_are_no_other_instance(solved: tuple[DataPlacement, mast_opt.Solution[Any]]) -> None:
    before, earlier = solved
    problem = before.with_columns({"options.mgpu": before.options.mgpu * 21 // 20})
    reuse = some(mast_opt.resolve(problem, earlier, iterations=4, **ASKED).reuse)
    assert (reuse.start, reuse.prices, reuse.cold) == (True, True, "")
    assert reuse.changed["gpu_demand"] == np.count_nonzero(problem.options.mgpu) > len(problem.options) / 2


def test_jobs_that_come_and_go_leave_a_basis() -> None:
    before = mast_opt.generate("resource-allocation", "standard", seed=3, jobs=40)
    earlier = mast_opt.solve(before, "highs", threads=1)
    rate, amount = before.members.rate.copy(), before.resources.amount.copy()
    rate[3:9], amount[0] = rate[3:9] * 1.5, amount[0] + 1
    problem = before.with_columns(
        {
            "jobs.labels": ("newcomer", *before.jobs.labels[1:]),
            "configurations.labels": ("newcomer@gpu-1", "newcomer@gpu-2", *before.configurations.labels[2:]),
            "members.rate": rate,
            "resources.amount": amount,
        }
    )
    found, cold = mast_opt.resolve(problem, earlier, threads=1), mast_opt.solve(problem, "highs", threads=1)
    assert (some(found.reuse).start, some(found.reuse).prices, some(found.reuse).cold) == (True, True, "")
    assert found.status is cold.status is Status.OPTIMAL
    assert some(found.objective) == pytest.approx(some(cold.objective), rel=1e-9)
    assert sorted(some(found.plan).rate) == pytest.approx(sorted(some(cold.plan).rate), rel=1e-6)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_goes_on_to_the_same_allocation(policy: str) -> None:
    family = "features" if policy == HIERARCHICAL else "standard"
    before = with_policy(mast_opt.generate("resource-allocation", family, seed=5, jobs=20), policy)
    earlier = mast_opt.solve(before, "highs", threads=1)
    problem = before.with_columns({"members.rate": before.members.rate * np.linspace(1.0, 1.05, len(before.members))})
    found, cold = mast_opt.resolve(problem, earlier, threads=1), mast_opt.solve(problem, "highs", threads=1)
    assert some(found.reuse).start
    assert found.status is cold.status
    assert some(found.objective) == pytest.approx(some(cold.objective), rel=1e-5)


def test_a_result_far_from_proven_is_solved_again(
    solved: tuple[DataPlacement, mast_opt.Solution[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, earlier = solved
    monkeypatch.setattr(resolving, "GAP_GROWTH", 0.0)
    monkeypatch.setattr(resolving, "GAP_SLACK", 0.0)
    found = mast_opt.resolve(a_little_later(before), earlier, iterations=2, **ASKED)
    assert some(found.reuse).cold.startswith("the gap would have been ")
    assert not some(found.reuse).start


def test_an_earlier_solve_that_does_not_fit_is_refused(
    solved: tuple[DataPlacement, mast_opt.Solution[Any]],
) -> None:
    problem, earlier = solved
    fleet = mast_opt.generate("server-assignment", None, servers=12)
    with pytest.raises(UsageError, match="previous is a solution of data-placement"):
        mast_opt.resolve(fleet, earlier)
    with pytest.raises(UsageError, match="without a plan"):
        mast_opt.resolve(problem, replace(earlier, plan=None))
    with pytest.raises(UsageError, match=r"expected the Solution of mast_opt\.solve"):
        mast_opt.resolve(problem, 7)  # type: ignore[arg-type]
    axes = {name: problem.labels_of(name) for name in ("regions", "gpu_types", "datasets", "workloads")}
    foreign = problem.relabelled({name: tuple(f"other {one}" for one in labels) for name, labels in axes.items()})
    with pytest.raises(UsageError, match="no label in common"):
        mast_opt.resolve(foreign, earlier)


def test_an_exact_solver_takes_the_start() -> None:
    problem = mast_opt.generate("data-placement", "organisation", seed=1, datasets=8, workloads=10, regions=3)
    first = mast_opt.solve(problem, "highs", threads=1)
    again = mast_opt.resolve(problem, first, threads=1)
    assert (some(again.reuse).start, some(again.reuse).prices) == (True, False)
    assert some(again.last_pass).rows == 0


def test_a_fleet_goes_on_from_its_prices(tmp_path: Path) -> None:
    before = mast_opt.generate("server-assignment", "standard", seed=1, servers=240, reservations=6, datacenters=2)
    earlier = mast_opt.solve(before, "ras", iterations=2, **ASKED)
    order = np.arange(len(before.servers))[::-1]
    shuffled = before.with_columns({"servers": before.servers.rows(order)})
    labels = ("new server", *shuffled.servers.labels[1:])
    asked = before.reservations.asked_mrru.copy()
    asked[0] = asked[0] * 101 // 100
    problem = shuffled.with_columns({"servers.labels": labels, "reservations.asked_mrru": asked})
    kind = kind_of(problem)
    prove = some(kind.verification.certified_bound)
    mast_opt.write_plan(before, earlier, tmp_path / "plan")
    found, by_folder = (mast_opt.resolve(problem, one, **ASKED) for one in (earlier, tmp_path / "plan"))
    assert some(found.reuse).changed == {"servers": 2, "reservations": 1}
    assert (some(found.reuse).prices, some(found.reuse).cold) == (True, "")
    assert mast_opt.verify(problem, some(found.plan)).ok
    assert prove(problem, some(found.certificate).arrays()) == pytest.approx(some(found.bound))
    assert by_folder.objective == pytest.approx(some(found.objective))
    assert by_folder.reuse == found.reuse
    moved = problem.relabelled({"datacenters": ("elsewhere", *problem.datacenters[1:])})
    assert some(mast_opt.resolve(moved, earlier, iterations=1, **ASKED).reuse).cold == "a datacenter is new or gone"


def test_periods_go_on_from_the_certificate_before(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = mast_opt.generate("server-assignment", "standard", seed=1, servers=60, reservations=3, datacenters=2)
    first = mast_opt.solve(problem, "ras", iterations=1, **ASKED)
    kept = some(resolving.carried_from(problem, first, "ras")).certificate
    assert np.array_equal(some(kept)["once"], some(first.certificate).arrays()["once"])
    assert resolving.carried_from(problem, first, "highs") is None
    handed: list[Any] = []
    real = solve

    def seen(*arguments: Any, carried: Any, **asked: Any) -> Any:
        handed.append(carried)
        return real(*arguments, carried=carried, iterations=1, **asked)

    monkeypatch.setattr(common, "solve", seen)
    plans = mast_opt.plan_periods(
        mast_opt.generate("data-placement", "standard", seed=3, **SIZES),
        [Scenario("now", {"grow_demand": {"all": 1.01}}), Scenario("next", {"grow_demand": {"all": 1.01}})],
        solver="tetris",
        **ASKED,
    )
    assert plans.complete
    assert handed[0] is None
    assert some(handed[1].certificate)["cpu"].shape == (SIZES["regions"],)


def test_a_slow_path_goes_on_where_it_is_asked_to(solved: tuple[DataPlacement, mast_opt.Solution[Any]]) -> None:
    problem, _ = solved
    bounds = {}
    for again in (0, 2):
        solver = SimulatedSolver({"data": SolveSettings("tetris", 6, 0, again=again)})
        for number in range(2):
            solver.begin(number, Solve(number, "data", "", problem))
        bounds[again] = [answer.bound for answer in solver.answers(2)]
    assert bounds[0][0] == bounds[0][1] == bounds[2][0]
    assert some(bounds[2][1]) > some(bounds[2][0])

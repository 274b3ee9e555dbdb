"""Plans know their instance: those of another one are refused, and a start is matched by label."""

import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import mast_opt
from mast_opt import PlanError
from mast_opt.planner.io import labelled_tables, write_plan
from mast_opt.planner.report.html.write import write_report
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.kind import origin
from mast_opt.problems.kind.carry_over import carried_over
from mast_opt.problems.registry import check_plan, kind_of
from tests.narrowing import some

SIZES = {
    "data-placement": {"datasets": 4, "workloads": 5, "regions": 3},
    "job-placement": {"jobs": 5, "servers": 6},
    "server-assignment": {"servers": 8, "reservations": 2},
    "task-reassignment": {"processes": 5, "machines": 3},
    "resource-allocation": {"jobs": 4},
}


def company(seed: int = 1) -> DataPlacement:
    return mast_opt.generate("data-placement", seed=seed, datasets=4, workloads=5, regions=3)


def solved(problem: DataPlacement, **about: Any) -> Any:
    return mast_opt.solve(problem, "tetris", iterations=2, **about)


def plan_of(problem: Any) -> Any:
    kind = kind_of(problem)
    plan = kind.analysis.current_plan(problem)
    if plan is None:
        solver = next(iter(kind.solvers.heuristics), "highs")
        plan = some(mast_opt.solve(problem, solver).plan)
    return plan.made_for(problem)


@pytest.mark.parametrize("kind", SIZES)
def test_a_plan_of_another_instance_of_the_same_size_is_refused(kind: str) -> None:
    family = "organisation" if kind == "data-placement" else None
    problems = [mast_opt.generate(kind, family, seed=seed, **SIZES[kind]) for seed in range(15)]
    plans = [plan_of(problem) for problem in problems]
    pairs = list(permutations(range(15), 2))
    for one, other in pairs:
        with pytest.raises(PlanError):
            mast_opt.verify(problems[one], plans[other])
        with pytest.raises(PlanError):
            mast_opt.verify(problems[one], pickle.loads(pickle.dumps(plans[other])))
    assert len(pairs) == 210
    for problem, plan in zip(problems, plans):
        twin = pickle.loads(pickle.dumps(problem))
        assert mast_opt.verify(twin, plan) == mast_opt.verify(problem, pickle.loads(pickle.dumps(plan)))


GROWTH = mast_opt.Scenario("growth", {"grow_demand": {"all": 1.1}})
CALLS: dict[str, Callable[[Any, Any, Path], object]] = {
    "verify": lambda problem, plan, path: mast_opt.verify(problem, plan),
    "steps": lambda problem, plan, path: mast_opt.steps(problem, plan),
    "explain": lambda problem, plan, path: mast_opt.explain(problem, plan),
    "whatif": lambda problem, plan, path: mast_opt.whatif(problem, [GROWTH], plan),
    "buy": lambda problem, plan, path: mast_opt.buy(problem, target=1.0, start=plan),
    "marginal": lambda problem, plan, path: mast_opt.marginal_values(problem, plan),
    "diff": lambda problem, plan, path: mast_opt.diff(problem, plan, plan),
    "risk": lambda problem, plan, path: mast_opt.risk(problem, plan),
    "report": lambda problem, plan, path: write_report(problem, plan, path / "report.html"),
    "write": lambda problem, plan, path: write_plan(problem, plan, {}, path / "plan"),
    "tables": lambda problem, plan, path: labelled_tables(problem, plan),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_function_that_takes_a_plan_refuses_it(call: str, tmp_path: Path) -> None:
    problem = company()
    dataset = problem.datasets.labels[0]
    other = problem.replace("datasets", dataset, size_mb=int(problem.datasets.size_mb[0]) + 1)
    with pytest.raises(PlanError, match="datasets: found 'other data'"):
        CALLS[call](other, solved(problem).plan, tmp_path)
    assert not list(tmp_path.iterdir())


def test_other_labels_are_named() -> None:
    problem = company()
    names = tuple(f"{label}-new" for label in problem.workloads.labels)
    with pytest.raises(PlanError, match=r"workloads\[0\]: found '.*-new'"):
        mast_opt.verify(problem.relabelled({"workloads": names}), solved(problem).plan)


def test_nothing_is_hashed_where_the_instance_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(problem: object) -> bytes:
        raise AssertionError("an instance was hashed")

    problem = company()
    plan = solved(problem).plan
    monkeypatch.setattr(origin, "content", refuse)
    assert mast_opt.verify(problem, plan).ok
    solved(problem, start=plan, near=plan)


def test_name_and_provenance_and_other_statements_make_no_other_instance() -> None:
    problem = company()
    plan = solved(problem).plan
    for other in (replace(problem, name="b", provenance="elsewhere"), problem.with_limits({"moves": 3})):
        check_plan(kind_of(problem), other, plan)


def test_a_plan_is_judged_by_the_limits_of_its_solve() -> None:
    problem = mast_opt.generate("data-placement", "organisation", seed=1, datasets=8, workloads=10, regions=3)
    limited = mast_opt.solve(problem, "highs", limits={"moves": 0}, weights={"remote": 7.0}, time_limit_s=20)
    assert mast_opt.verify(problem, some(limited.plan)).objective == limited.objective
    free = mast_opt.solve(problem, "highs", time_limit_s=20)
    assert not mast_opt.verify(problem.with_limits({"moves": 0}), some(free.plan)).ok
    stricter = problem.with_limits({"copied_tb": 0})
    loose = mast_opt.solve(problem, "highs", limits={"copied_tb": None}, time_limit_s=20)
    assert mast_opt.verify(stricter, some(loose.plan)).ok == (some(loose.verdict).metrics["copied_tb"] == 0)


def changed(problem: DataPlacement, without: str = "") -> DataPlacement:
    """The instance with its rows in reverse order, perhaps without a workload."""
    tables = {name: frame.reverse() for name, frame in mast_opt.to_tables(problem).items()}
    for name, frame in tables.items():
        if "workload" in frame.columns:
            tables[name] = frame.filter(frame["workload"] != without)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mast_opt.InstanceWarning)  # small generated companies ask for much
        return mast_opt.from_tables("data-placement", tables)


def test_a_start_of_another_instance_is_matched_by_label() -> None:
    problem = company()
    plan = solved(problem).plan
    turned = changed(problem)
    assert turned.workloads.labels == problem.workloads.labels[::-1]
    begun, unmatched = carried_over(kind_of(problem), turned, plan)
    assert unmatched == ()
    assert (
        mast_opt.to_tables(turned, begun)["runs"]
        .sort(by="workload")
        .equals(mast_opt.to_tables(problem, plan)["runs"].sort(by="workload"))
    )


def test_what_does_not_match_is_said() -> None:
    problem = company()
    gone = problem.workloads.labels[2]
    found = solved(changed(problem, without=gone), start=solved(problem).plan)
    assert found.unmatched == (f"workload: {gone}",)
    assert found.plan is not None


def test_what_is_new_is_as_it_is_today() -> None:
    problem = mast_opt.generate("data-placement", "organisation", seed=1, datasets=8, workloads=10, regions=3)
    new = problem.workloads.labels[2]
    before = changed(problem, without=new)
    plan, unmatched = carried_over(kind_of(problem), problem, solved(before).plan)
    assert unmatched == ()
    runs, today = (
        mast_opt.to_tables(problem, one)["runs"] for one in (plan, kind_of(problem).analysis.current_plan(problem))
    )
    assert runs.filter(runs["workload"] == new).equals(today.filter(today["workload"] == new))
    assert runs["workload"].n_unique() == len(problem.workloads)


def test_a_pickled_plan_of_other_labels_is_no_start() -> None:
    problem = company()
    plan = pickle.loads(pickle.dumps(solved(problem).plan))
    with pytest.raises(PlanError, match=r"other labels"):
        solved(changed(problem, without=problem.workloads.labels[0]), start=plan)

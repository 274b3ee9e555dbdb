"""Scenarios: what each change does, how they are compared, and one plan for all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mast_opt
from mast_opt import Scenario
from mast_opt.core.solve_result import Status
from mast_opt.planner.analysis.scenario_files import happened
from mast_opt.planner.analysis.solves import Workers
from mast_opt.planner.analysis.whatif import AGAIN_S
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.analysis.hooks import QUESTIONS
from mast_opt.problems.data_placement.analysis.scenarios import CHANGES, moved
from mast_opt.problems.data_placement.analysis.two_stage import TWO_STAGE
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.registry import kind_of
from tests.data_placement.strategies import plans, problems
from tests.data_placement.support import proven
from tests.data_placement.workshop import IMAGES, LOGS, PLAN, PROBLEM, TB, TRAIN, A, B, C
from tests.examples import examples
from tests.narrowing import some

FREE = replace(PROBLEM, links=None)
LOST = Scenario("b is lost", {"lose_regions": ["b"]})
GROWN = Scenario("more tier 0", {"grow_demand": {"0": 2.0}})


def after(problem: DataPlacement, **changes: Any) -> DataPlacement:
    changed = happened(kind_of(problem), problem, Scenario("it", changes))
    assert isinstance(changed, DataPlacement)
    return changed


def test_a_lost_region_holds_and_runs_nothing() -> None:
    lost = QUESTIONS.priced(after(PROBLEM, lose_regions=["b"]))
    assert not lost.datasets.stored[:, B].any()
    assert (lost.regions.storage_mb[B], lost.regions.cpu_mcores[B], lost.regions.supply_mgpu[B].tolist()) == (
        0,
        0,
        [0, 0],
    )
    assert lost.links is not None
    assert lost.links.capacity_mb_per_day.tolist() == [0, TB, 0, 0]
    assert not lost.datasets.pinned[IMAGES, B]
    solution = mast_opt.solve(lost)
    assert solution.status is Status.OPTIMAL
    assert not some(solution.plan).place[:, B].any()
    assert B not in some(solution.plan).run_region
    assert some(solution.plan).place[IMAGES].sum() >= 1


def test_data_that_is_allowed_nowhere_else_is_lost_with_its_region() -> None:
    forbidden = FREE.datasets.forbidden.copy()
    forbidden[LOGS] = [False, True, True]
    lost = QUESTIONS.priced(after(FREE.with_columns({"datasets.forbidden": forbidden}), lose_regions="a"))
    assert lost.datasets.copies_min[LOGS] == 0
    solution = mast_opt.solve(lost)
    assert solution.verdict is not None
    assert TRAIN not in some(solution.plan).run_workload
    assert solution.verdict.terms["unserved"] > 0


def test_demand_grows_by_tier_and_in_all() -> None:
    grown = after(PROBLEM, grow_demand={"all": 1.1, "0": 2.0})
    assert grown.options.mgpu.tolist() == [16_000, 40_000, 0, 4_400]
    assert grown.workloads.cpu_mcores.tolist() == [20_000, 55_000, 5_500]
    assert grown.reads.mb_per_day.tolist() == [4_000_000, 6_000_000, 1_100_000, 4_400_000]
    assert after(PROBLEM, grow_demand=1.5).workloads.cpu_mcores.tolist() == [15_000, 75_000, 7_500]


def test_hardware_storage_prices_weights_and_rules() -> None:
    more = after(PROBLEM, add_gpus=[{"region": "c", "gpu_type": "h100", "gpus": 4}], add_storage_tb={"a": 1.5, "b": -2})
    assert int(more.regions.supply_mgpu[C, 0]) == 4000
    assert more.regions.storage_mb.tolist() == [21_500_000, 18_000_000, 20_000_000]
    assert after(PROBLEM, add_cpu_cores={"c": 5}).regions.cpu_mcores[C] == 105_000
    wide = after(PROBLEM, add_ingress_tb_per_day={"b": 1})
    assert wide.regions.ingress_mb_per_day.tolist() == [0, 5 * TB, 0]
    expensive = after(PROBLEM, scale_link_prices=2, weights={"egress": 0.5})
    assert expensive.links is not None
    assert expensive.links.price_usd_per_tb.tolist() == [40, 100, 20, 20]
    assert expensive.objective.weights["egress"] == 0.5
    ruled = after(PROBLEM, pin=[{"dataset": "logs", "region": "a"}], forbid={"dataset": "video", "region": "a"})
    assert ruled.datasets.pinned[LOGS, A]
    assert ruled.datasets.forbidden[2, A]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lose_regions": ["d"]}, "no region called 'd'; expected one of: a, b, c"),
        ({"lose_regions": 3}, "expected a list of regions"),
        ({"grow_demand": -1}, "at least 0"),
        ({"grow_demand": {"7": 2}}, "no tier called '7'; expected one of: all, 0, 1"),
        ({"grow_demand": {"all": "much"}}, "expected a number"),
        ({"add_gpus": [{"region": "a", "gpus": 1}]}, "expected { region = …, gpu_type = …, gpus = … }"),
        ({"add_gpus": [{"region": "a", "gpu_type": "h100", "gpus": -9}]}, "takes more h100 from a than there are"),
        ({"add_gpus": [{"region": "b", "gpu_type": "h100", "gpus": -9}]}, "takes more h100 from b than there are"),
        ({"add_storage_tb": {"a": -99}}, "takes more from a"),
        ({"add_storage_tb": 3}, "expected a table"),
        ({"add_storage_tb": {"a": 1e20}}, "add_storage_tb.a is 1e+20; expected a number from -1e+12 to 1e+12"),
        ({"add_storage_tb": {"a": float("nan")}}, "expected a number"),
        ({"add_gpus": [{"region": "a", "gpu_type": "h100", "gpus": 1e18}]}, "to 1e+12"),
        ({"grow_demand": 1e12}, "fits in 64 bits"),
        ({"weights": {"joy": 1}}, "no term called 'joy'"),
        ({"weights": {"peak": -1}}, "at least 0"),
        ({"pin": ["logs"]}, "expected a list of tables"),
    ],
)
def test_values_that_make_no_sense_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(mast_opt.UsageError, match="scenario it: ") as error:
        after(PROBLEM, **changes)
    assert words in str(error.value)


def test_a_workload_that_is_split_otherwise_counts_once_as_moved() -> None:
    """0.1 of etl moves from c to a, and images get a replica in a."""
    place = PLAN.place.copy()
    place[IMAGES, A] = True
    other = replace(PLAN, place=place, run_share=np.array([1000, 700, 300, 1000]))
    assert moved(PROBLEM, PROBLEM, PLAN, other) == {"moved_tb": 6.0, "moved_workloads": 1.0}
    assert moved(PROBLEM, PROBLEM, other, PLAN) == {"moved_tb": 0.0, "moved_workloads": 1.0}


def test_a_workload_that_stops_has_not_moved() -> None:
    part = replace(PLAN, run_share=np.array([1000, 500, 300, 1000]))
    assert moved(PROBLEM, PROBLEM, PLAN, part)["moved_workloads"] == 0.0


def test_prices_of_links_need_links() -> None:
    with pytest.raises(mast_opt.UsageError, match="no table of links"):
        after(FREE, scale_link_prices=2)


def test_examples_of_the_keys_are_of_that_key() -> None:
    import tomllib

    for key, change in CHANGES.items():
        assert list(tomllib.loads(change.example)) == [key]
        assert change.help


def test_scenarios_beside_the_base() -> None:
    answer = mast_opt.whatif(PROBLEM, [LOST, GROWN], PLAN, jobs=2, threads=1)
    assert [one.name for one in answer.outcomes] == ["b is lost", "more tier 0"]
    assert answer.robust is None
    assert (answer.base.solution.plan, answer.base.moved["moved_tb"], answer.base.solution.bound) == (PLAN, 0.0, None)
    assert answer.base_words == "base is the plan that was given, not planned again."
    for one in answer.outcomes:
        assert one.solution.status is Status.OPTIMAL
        assert mast_opt.verify(one.problem, some(one.solution.plan)).ok
        assert proven(base(one.problem).mip).objective == pytest.approx(one.solution.objective, rel=1e-3)
        assert one.base_verdict is not None
        place = some(one.solution.plan).place & ~PLAN.place
        assert one.moved["moved_tb"] == pytest.approx(float((PROBLEM.datasets.size_mb @ place).sum()) / TB)
    lost = answer.outcomes[0]
    assert lost.base_verdict is not None
    assert lost.base_verdict.ok, "what the lost region held and ran is gone, and breaks no limit"
    assert lost.base_verdict.terms["unserved"] > 0


def test_without_a_base_plan_the_base_is_planned() -> None:
    answer = mast_opt.whatif(PROBLEM, [GROWN], threads=1)
    assert answer.base_words == "base is a new plan, since none was given."
    assert answer.base.solution.status is Status.OPTIMAL
    (grown,) = answer.outcomes
    assert some(grown.solution.objective) >= some(answer.base.solution.objective) - 1e-9


@pytest.mark.parametrize("ignores_gap", [False, True])
def test_the_gap_asked_for_is_of_what_a_plan_can_change(monkeypatch: pytest.MonkeyPatch, ignores_gap: bool) -> None:
    """With a solver that stops at half of the gap it is asked for, or one that does not go on."""
    exact, asked, seconds = Workers.solve, [], []

    def early(pool: Workers, solver: str, instance: Any, start: Any, limits: Any) -> Any:
        """The plan, with a bound below it."""
        asked.append(limits["gap"])
        seconds.append(limits["time_limit_s"])
        found = exact(pool, solver, instance, start, {**limits, "gap": 0.0})
        return replace(found, bound=some(found.objective) * (1 - (asked[0] if ignores_gap else asked[-1]) / 2))

    monkeypatch.setattr(Workers, "solve", early)
    (outcome,) = mast_opt.whatif(PROBLEM, [LOST], PLAN, threads=1, gap=0.01).outcomes
    assert len(asked) == 2
    assert asked[0] == 0.01 > asked[1]
    assert seconds == [None, AGAIN_S]
    assert outcome.solution.status is (Status.FEASIBLE if ignores_gap else Status.OPTIMAL)
    assert (some(outcome.open_gap) > 0.01) == ignores_gap


def test_no_room_for_data_is_infeasible_and_says_why() -> None:
    full = Scenario("no disks", {"add_storage_tb": {"a": -20, "b": -20, "c": -20}})
    (outcome,) = mast_opt.whatif(PROBLEM, [full], PLAN).outcomes
    assert outcome.solution.status is Status.INFEASIBLE
    assert outcome.solution.conflicts
    assert outcome.moved == {}


@pytest.mark.parametrize("aim", ["worst", "weighted"])
@pytest.mark.parametrize("problem", [FREE, PROBLEM], ids=["free", "links"])
def test_one_set_of_replicas_for_all(aim: str, problem: DataPlacement) -> None:
    scenarios = [LOST, replace(GROWN, weight=0.5)]
    answer = mast_opt.whatif(problem, scenarios, PLAN, robust=aim, gap=1e-6)
    robust = answer.robust
    assert robust is not None
    assert robust.status is Status.OPTIMAL
    assert robust.objective == pytest.approx(robust.bound, rel=1e-4)
    assert some(robust.objective) <= some(robust.base_objective) + 1e-6
    assert mast_opt.verify(answer.base.problem, some(robust.plan)).ok
    values = []
    changes = {"base": {}, **{scenario.name: scenario.changes for scenario in scenarios}}
    for one in (answer.base, *answer.outcomes):
        changed = QUESTIONS.priced(after(problem, **changes[one.name]))
        held = TWO_STAGE.recourse(changed, robust.plan, one.name == "base")
        solution = robust.robust[one.name]
        assert kind_of(held).verification.verify(held, solution.plan).ok
        assert proven(base(held).mip).objective == pytest.approx(solution.objective, rel=1e-4)
        values.append(some(solution.objective))
    expected = max(values) if aim == "worst" else np.average(values, weights=[1, 1, 0.5])
    assert robust.objective == pytest.approx(expected)


def test_the_robust_plan_is_the_best_of_all_replicas() -> None:
    """Against enumeration: each set of replicas that today's instance allows, with the best recourse in each case."""
    small = mast_opt.generate("data-placement", seed=4, datasets=2, workloads=3, regions=2)
    small = QUESTIONS.priced(small)
    lost = QUESTIONS.priced(after(small, lose_regions=[small.regions.labels[0]]))
    best = np.inf
    for code in range(2**4):
        place = np.array([code >> bit & 1 for bit in range(4)], np.bool_).reshape(2, 2)
        plan = replace(some(mast_opt.solve(small).plan), place=place)
        value = 0.0
        for instance, is_base in ((small, True), (lost, False)):
            result = proven(base(TWO_STAGE.recourse(instance, plan, is_base)).mip)
            value += np.inf if result.objective is None else result.objective / 2
        best = min(best, value)
    scenario = Scenario("lost", {"lose_regions": [small.regions.labels[0]]})
    robust = mast_opt.whatif(small, [scenario], robust="weighted", gap=1e-6).robust
    assert robust is not None
    assert robust.objective == pytest.approx(best, rel=1e-4)


@examples(15)
@given(problem=problems(refuse=True, splits=False), data=st.data())
def test_recourse_and_its_formulation_agree(problem: DataPlacement, data: st.DataObject) -> None:
    """Holding the shared columns at any replicas, both have the same optimum or none."""
    cell = {name: data.draw(st.sampled_from(problem.labels_of(f"{name}s"))) for name in ("dataset", "region")}
    rule = data.draw(st.sampled_from([{}, {"pin": cell}, {"forbid": cell}]))
    plan = data.draw(plans(problem))
    scenario = after(problem, **rule, lose_regions=[data.draw(st.sampled_from(problem.regions.labels))])
    held = plan.place & TWO_STAGE.alive(scenario).reshape(plan.place.shape)
    if (scenario.datasets.pinned & ~held).any():  # lacking, or both pinned and forbidden
        assert kind_of(problem).analysis.conflicts(TWO_STAGE.recourse(scenario, plan, False))
        return
    formulation = TWO_STAGE.formulate(scenario)
    fixed = formulation.mip.fix(TWO_STAGE.shared(formulation.mip), held.ravel().astype(float))
    here, there = proven(fixed), proven(base(TWO_STAGE.recourse(scenario, plan, False)).mip)
    assert here.status is there.status
    if here.objective is not None:
        assert here.objective == pytest.approx(there.objective, rel=1e-6, abs=1e-6)


def test_replicas_that_a_scenario_forbids_are_void_there() -> None:
    ban = Scenario("ban", {"forbid": [{"dataset": "logs", "region": "b"}]})
    robust = mast_opt.whatif(FREE, [ban], PLAN, robust="weighted", gap=1e-6).robust
    assert robust is not None
    assert some(robust.base["base"].plan).place[LOGS, B]
    for solution in (robust.base["ban"], robust.robust["ban"]):
        assert solution.status is Status.OPTIMAL
        assert not some(solution.plan).place[LOGS, B]
    assert some(robust.objective) <= some(robust.base_objective) + 1e-6


def test_what_a_scenario_pins_has_to_be_there_before() -> None:
    pin = Scenario("pin", {"pin": [{"dataset": "images", "region": "a"}]})
    robust = mast_opt.whatif(FREE, [pin], PLAN, robust="worst", gap=1e-6).robust
    assert robust is not None
    assert some(robust.plan).place[IMAGES, A]
    assert robust.objective is not None
    assert robust.base["pin"].status is Status.INFEASIBLE
    assert robust.base_objective is None


@pytest.mark.parametrize(
    ("scenarios", "given", "words"),
    [
        ([], {}, "at least one"),
        ([LOST, LOST], {}, "both be called"),
        ([Scenario("base", {"lose_regions": ["a"]})], {}, "the instance as it is"),
        ([Scenario("idle")], {}, "changes nothing"),
        ([Scenario("odd", {"lose_region": ["a"]})], {}, "unknown key 'lose_region'; did you mean 'lose_regions'"),
        ([Scenario("odd", {"zzz": ["a"]})], {}, "unknown key 'zzz'; expected some of: lose_regions"),
        ([LOST], {"robust": "best"}, "worst, weighted"),
        ([LOST], {"robust": "worst", "solver": "tetris"}, "use one of"),
        ([LOST], {"jobs": 0}, "at least 1"),
    ],
)
def test_arguments_that_cannot_be_honoured(scenarios: list[Scenario], given: dict[str, Any], words: str) -> None:
    with pytest.raises(mast_opt.UsageError, match=words):
        mast_opt.whatif(PROBLEM, scenarios, PLAN, **given)


def test_a_base_plan_that_breaks_limits_is_refused() -> None:
    with pytest.raises(mast_opt.UsageError, match="the base plan breaks limits: storage"):
        mast_opt.whatif(PROBLEM.with_columns({"regions.storage_mb": PROBLEM.regions.storage_mb // 4}), [LOST], PLAN)


def test_a_file_of_scenarios(tmp_path: Path) -> None:
    path = tmp_path / "what-if.toml"
    path.write_text('[[scenario]]\nname = "lost"\nweight = 2\nlose_regions = ["a"]\ngrow_demand = { 0 = 1.5 }\n')
    (scenario,) = mast_opt.read_scenarios(path)
    assert scenario == Scenario("lost", {"lose_regions": ["a"], "grow_demand": {"0": 1.5}}, 2.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "one or more tables headed"),
        ("x = 1", "holds x"),
        ("[[scenario]]\n", 'expected name = "…"'),
        ('[[scenario]]\nname = "a"\nweight = -1', "weight is -1"),
        ('[[scenario]]\nname = "a"\nweight = 1' + "0" * 400, "weight is a whole number of 1329 bits"),
        ('[[scenario]]\nname = "a"\nweight = 0x' + "f" * 5000, "weight is a whole number of 20000 bits"),
        ("[[scenario]\n", "is not TOML"),
        ("scenario = [1]", "expected a table headed"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "what-if.toml"
    path.write_text(text)
    with pytest.raises(mast_opt.InputError) as error:
        mast_opt.read_scenarios(path)
    assert words in str(error.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(mast_opt.InputError, match="No such file"):
        mast_opt.read_scenarios(tmp_path / "nothing.toml")

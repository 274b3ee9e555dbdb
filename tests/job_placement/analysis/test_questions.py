"""Questions of job placement, which always has a plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt import Scenario
from mast_opt.problems.job_placement.analysis.hooks import add_servers
from mast_opt.problems.job_placement.plan import empty
from tests.narrowing import some

FOLDER = Path(__file__).parents[3] / "instances" / "job_placement"
VICTIMS = mast_opt.read(FOLDER / "tiny-victims.json")
REGIONS = mast_opt.read(FOLDER / "tiny-regions.json")
ROOM = {"cluster": VICTIMS.clusters.labels[0], "gpu_type": VICTIMS.gpu_types[0]}


def test_there_is_always_a_plan() -> None:
    with pytest.raises(mast_opt.UsageError, match="always has a plan"):
        mast_opt.explain(VICTIMS)


@pytest.mark.parametrize("problem", [VICTIMS, REGIONS], ids=["victims", "regions"])
def test_every_alternative_that_is_offered_is_lawful(problem: Any) -> None:
    plan = mast_opt.solve(problem).plan
    best = mast_opt.verify(problem, plan).objective
    answer = mast_opt.explain(problem, plan, problem.jobs.labels)
    assert [one.name for one in answer.reasons] == list(problem.jobs.labels)
    for one in answer.reasons:
        for option in one.options:
            assert bool(option.forbidden) == (option.change is None)
            if option.change is not None:
                assert best + option.change >= best - 1e-6
        assert one.sentence


def test_a_rejected_job_and_what_rules_its_clusters_out() -> None:
    plan = mast_opt.solve(VICTIMS).plan
    urgent, patient = mast_opt.explain(VICTIMS, plan, ["urgent", "patient"]).reasons
    assert urgent.options[0].words == "rejected"
    assert urgent.options[0].terms["rejected"] == pytest.approx(0.8)
    assert patient.now.startswith("runs nowhere")
    assert patient.options[0].change is None
    assert "no room" in patient.options[0].forbidden[0]


def test_an_empty_plan_is_asked_what_admitting_takes() -> None:
    (urgent,) = mast_opt.explain(VICTIMS, empty(VICTIMS), ["urgent"]).reasons
    assert urgent.options[0].words.startswith("in cluster c1")
    assert urgent.options[0].change is not None
    assert urgent.options[0].change < 0
    assert "less" in urgent.sentence


def test_scenarios() -> None:
    cluster, kind = VICTIMS.clusters.labels[0], VICTIMS.gpu_types[0]
    scenarios = [
        Scenario("cluster lost", {"lose_clusters": [cluster]}),
        Scenario("region lost", {"lose_regions": [VICTIMS.regions[0]]}),
        Scenario("double", {"grow_demand": 2}),
        Scenario("new rack", {"add_servers": [{"cluster": cluster, "gpu_type": kind, "servers": 2}]}),
    ]
    answer = mast_opt.whatif(VICTIMS, scenarios, jobs=2, threads=1)
    lost, region, double, more = answer.outcomes
    assert lost.solution.objective == region.solution.objective == pytest.approx(1000)
    assert lost.base_verdict is not None
    assert not lost.base_verdict.ok
    assert double.problem.jobs.tasks.tolist() == (2 * VICTIMS.jobs.tasks).tolist()
    assert more.solution.objective == 0
    assert len(more.problem.servers) == len(VICTIMS.servers) + 2
    assert all(mast_opt.verify(one.problem, one.solution.plan).ok for one in answer.outcomes)


def test_a_plan_that_stopped_a_job_on_what_is_lost_is_not_broken_by_that() -> None:
    plan = replace(empty(VICTIMS), preempt=np.arange(len(VICTIMS.running)) == VICTIMS.running.preemptible.argmax())
    scenario = Scenario("lost", {"lose_clusters": list(VICTIMS.clusters.labels)})
    (outcome,) = mast_opt.whatif(VICTIMS, [scenario], plan=plan, threads=1).outcomes
    assert outcome.base_verdict is not None
    assert outcome.base_verdict.violations == ()
    assert outcome.base_verdict.metrics["preempted_jobs"] == 0


def test_new_servers_are_like_those_that_are_not_lost() -> None:
    """Server 0 and 1 are the a100 of region east, which is lost; one more is brought to west first."""
    elsewhere = {"cluster": "west-1", "gpu_type": "a100", "servers": 1}
    (more,) = mast_opt.whatif(REGIONS, [Scenario("more", {"add_servers": [elsewhere]})]).outcomes
    changes = {"lose_regions": ["east"], "add_servers": [elsewhere | {"servers": 2}]}
    (outcome,) = mast_opt.whatif(more.problem, [Scenario("moved", changes)]).outcomes
    assert not outcome.problem.servers.supply[0].any()
    assert (outcome.problem.servers.supply[-2:] == REGIONS.servers.supply[0]).all()


def test_new_servers_may_be_like_servers_without_memory() -> None:
    """Only a server that has nothing is lost."""
    bare = replace(
        VICTIMS,
        servers=replace(VICTIMS.servers, supply=VICTIMS.servers.supply * [1, 1, 0]),
        allocations=replace(VICTIMS.allocations, need=VICTIMS.allocations.need * [1, 1, 0]),
    )
    more = add_servers(bare, [ROOM | {"servers": 1}])
    assert more.servers.supply[-1].tolist() == bare.servers.supply[bare.servers.gpu_type == 0][0].tolist()


def test_new_servers_need_one_that_is_not_lost() -> None:
    changes = {"lose_regions": ["east"], "add_servers": [{"cluster": "west-1", "gpu_type": "a100", "servers": 1}]}
    with pytest.raises(mast_opt.UsageError, match="no server of type a100 is left that new ones could be equal to"):
        mast_opt.whatif(REGIONS, [Scenario("moved", changes)])


def test_replicas_open_regions() -> None:
    name = REGIONS.datasets.labels[0]
    everywhere = [{"dataset": name, "region": region} for region in REGIONS.regions]
    (outcome,) = mast_opt.whatif(REGIONS, [Scenario("copied", {"replicate": everywhere})]).outcomes
    assert outcome.problem.datasets.stored[0].all()


def test_heuristics_answer_too() -> None:
    scenario = Scenario("lost", {"lose_clusters": [VICTIMS.clusters.labels[0]]})
    answer = mast_opt.whatif(VICTIMS, [scenario], solver="exhaustive")
    assert answer.outcomes[0].solution.objective == pytest.approx(1000)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lose_clusters": ["moon"]}, "no cluster called 'moon'"),
        ({"grow_demand": {"9": 2}}, "no tier called '9'"),
        ({"replicate": 3}, "expected a list of tables"),
        ({"add_servers": [ROOM | {"servers": 2.4}]}, "servers is 2.4; expected a whole number of at least 1"),
        ({"add_servers": [ROOM | {"servers": 0}]}, "servers is 0; expected a whole number of at least 1"),
        ({"weights": {"spread": -1}}, "at least 0"),
    ],
)
def test_values_that_make_no_sense(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(mast_opt.UsageError, match=words):
        mast_opt.whatif(VICTIMS, [Scenario("it", changes)])


def test_jobs_are_not_rejected_to_save_anything() -> None:
    least = some(mast_opt.solve(VICTIMS).verdict).terms["rejected"]
    answer = mast_opt.pareto(VICTIMS, ("preemption", "balance"), points=2)
    assert answer.points
    assert all(point.terms["rejected"] == pytest.approx(least) for point in answer.points)

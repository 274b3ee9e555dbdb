"""Metrics, the order of a plan and the state of today, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.analysis.current_state import current_state
from mast_opt.problems.job_placement.migration.plan_rows import migration_plan
from mast_opt.problems.job_placement.plan import empty
from mast_opt.problems.job_placement.verification.measures import measure
from tests.instance_rows import JobRows
from tests.job_placement.verification.test_verifier import plan, sound, two_clusters


def test_metrics_of_a_plan() -> None:
    """Of 16 GPUs, e1 has 2 + 2 in use, e2 2 after 4 were stopped, e3 1 + 1.2; all of them are in cluster ce."""
    problem = two_clusters()
    _, metrics = measure(problem, sound(problem))
    assert metrics == pytest.approx(
        {
            "admitted_jobs": 3,
            "admitted_value": 6.2,
            "admitted_gpus": 6.2,
            "preempted_jobs": 1,
            "preempted_gpu_hours": 4,
            "gpu_allocation_rate": 8.2 / 16,
            "peak_utilisation": 8.2 / 12,
            "fragmented_gpus": 0,
        }
    )
    _, nothing = measure(problem, empty(problem))
    assert (nothing["gpu_allocation_rate"], nothing["peak_utilisation"]) == (6 / 16, 6 / 12)
    assert nothing["admitted_jobs"] == nothing["admitted_value"] == nothing["preempted_gpu_hours"] == 0


def test_metrics_without_gpus() -> None:
    """Cores alone: nothing is used of no GPUs."""
    builder = JobRows()
    builder.add_region("west").add_cluster("c", region="west")
    builder.add_server("s", "c", gpus=0, gpu_type="none", cpu_cores=8, memory_gb=64)
    builder.add_job("j", tier=0, tasks=1, gpus=0, cpu_cores=1, memory_gb=1)
    problem = builder.build()
    assert isinstance(problem, JobPlacement)
    terms, metrics = measure(problem, plan(problem, ("j", "s", 1, None)))
    assert metrics["admitted_jobs"] == 1
    assert metrics["peak_utilisation"] == metrics["gpu_allocation_rate"] == 0
    assert not any(terms.values())


def test_terms_of_a_plan() -> None:
    """The two GPUs of e1 that are left are too few for a task that takes a whole server; e3 is free, e2 full."""
    problem = two_clusters()
    whole = replace(
        problem, options=replace(problem.options, mgpu=np.where(problem.options.job == 0, 4000, problem.options.mgpu))
    )
    terms, metrics = measure(whole, empty(whole))
    assert metrics["fragmented_gpus"] == 2
    assert terms["fragmentation"] == pytest.approx(2 / 16)
    assert terms["rejected"] == 1
    over = replace(
        whole, allocations=replace(whole.allocations, server=np.array([1, 1]))
    )  # e2 is over its GPUs by 2, which makes up for nothing elsewhere
    assert measure(over, empty(over))[1]["fragmented_gpus"] == 0
    weight = problem.tier_weight[problem.running.tier[problem.running.labels.index("soft")]]
    terms, _ = measure(problem, plan(problem, ("one", "w1", 1, None), stop=("soft",)))
    assert terms["preemption"] == pytest.approx(weight * (4 + 4) * 1000 / 16_000)


def test_the_order_says_what_stops_and_starts_where() -> None:
    problem = two_clusters()
    rows = [
        (m.wave, m.action, m.what, m.source, m.target, m.amount, m.unit)
        for m in migration_plan(problem, sound(problem)).moves
    ]
    assert rows[0] == (0, "stop", "soft", "e2", None, 4, "GPUs")
    assert rows[1:] == [
        (1, "start", "gang", None, "e1, e2", 4, "GPUs"),
        (1, "start", "share", None, "e3", pytest.approx(1.2), "GPUs"),
        (1, "start", "one", None, "e3", 1, "GPUs"),
    ]
    (start,) = migration_plan(problem, plan(problem, ("one", "w1", 1, None))).moves
    assert (start.wave, start.target) == (0, "w1")
    wide = replace(problem, jobs=replace(problem.jobs, tasks=np.array([4, 3, 1])))
    for servers, words in ((("e1", "e2", "e3"), "e1, e2, e3"), (("e1", "e2", "e3", "w1"), "4 servers of ce, cw")):
        (start,) = migration_plan(wide, plan(wide, *(("gang", server, 1, None) for server in servers))).moves
        assert start.target == words


def test_what_today_breaks() -> None:
    """soft holds more of all three resources of e2 than there are, and is in two clusters; its tenant has a quota of 5
    GPUs in all and of 3 on a100."""
    problem = replace(two_clusters(), tenants=("lab",))
    assert current_state(problem).broken == ()
    assert [(one.what, one.known, one.of) for one in current_state(problem).known] == [("running jobs", 2, 2)]
    crowded = replace(
        problem,
        allocations=replace(
            problem.allocations,
            running=np.array([1, 1]),
            server=np.array([1, 3]),
            need=np.array([[5000, 17_000, 64 + 512], [1000, 0, 0]]),
        ),
        quotas=replace(
            problem.quotas,
            tenant=np.array([0, 0]),
            gpu_type=np.array([0, 0]),
            typed=np.array([False, True]),
            mgpu=np.array([5000, 3000]),
            parent=np.full(2, len(problem.tenants)),
            borrowing_mgpu=np.full(2, -1),
            lending_mgpu=np.full(2, -1),
        ),
    )
    state = current_state(crowded)
    assert [(one.limit, one.index, one.message) for one in state.broken] == [
        ("capacity", ("e2", "GPUs"), "server e2 is over its GPUs by 1"),
        ("capacity", ("e2", "cores"), "server e2 is over its cores by 1"),
        ("capacity", ("e2", "GiB"), "server e2 is over its GiB by 0.5"),
        ("gang", ("soft",), "running job soft holds servers in 2 clusters"),
        ("quota", ("lab",), "tenant lab is over its quota by 1 GPUs"),
        ("quota", ("lab", "a100"), "tenant lab is over its quota on a100 by 2 GPUs"),
    ]
    assert [(one.what, one.known, one.of) for one in state.known] == [("running jobs", 1, 2)]
    exact = replace(crowded, quotas=replace(crowded.quotas, mgpu=np.array([6000, 5000])))
    assert {one.limit for one in current_state(exact).broken} == {"capacity", "gang"}

"""The live fleet and the batch solver give one job the same place, whatever the instance has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from mast_opt.core.errors import UsageError
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.engine.server_selection import LEAST_LOSS
from mast_opt.problems.job_placement.exhaustive.batch import admit_in_order, exhaustively
from mast_opt.problems.job_placement.exhaustive.batch_state import BatchState, batch_state_of, mix_of
from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveParams
from mast_opt.problems.job_placement.exhaustive.solver import ejection_chains
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.units import GPU
from mast_opt.problems.search.interface import SearchMonitor, StoppingCriteria
from tests.job_placement.fleets import bid_for
from tests.job_placement.reference import assert_exact
from tests.job_placement.strategies import problems

FRACTION: Any = 1.0
"""What a type checker would refuse as a number of tasks."""


def alone(problem: JobPlacement, j: int) -> JobPlacement:
    """The instance with one of its pending jobs only."""
    p = problem
    options, reads, costs = p.options, p.reads, p.costs
    return replace(
        p,
        jobs=p.jobs.rows(np.array([j])),
        options=replace(options.rows(options.job == j), job=np.zeros((options.job == j).sum(), np.int64)),
        reads=replace(reads.rows(reads.job == j), job=np.zeros((reads.job == j).sum(), np.int64)),
        costs=replace(costs.rows(costs.job == j), job=np.zeros((costs.job == j).sum(), np.int64)),
    )


def placed(problem: JobPlacement) -> BatchState:
    watch = SearchMonitor(StoppingCriteria())
    batch = batch_state_of(problem, mix_of(problem))
    admit_in_order(batch, problem.order, watch, exhaustively(style=LEAST_LOSS))
    return ejection_chains(batch, problem.order, watch, ExhaustiveParams())


def agree(problem: JobPlacement) -> str:
    """Compare the two; returns what happened."""
    batch, answer = placed(problem), Fleet.of(problem).place(Job.of(problem, 0))
    plan = batch.plan()
    if isinstance(answer, Refused):
        assert not len(plan.job), answer.reason
        return "refused"
    p = problem
    if answer.over_quota and p.standing.jobs.tier[0] < len(p.tiers):
        # a batch takes a job on types of which its tenant's quotas cover it; a fleet lets it borrow rather than wait
        assert not answer.victims
        assert not len(plan.job) or plan.preempt.any()
        return "borrows rather than waits"
    assert len(plan.job)
    s = int(plan.server[0])
    assert answer.tier == p.tiers[p.queue_tier[0]]
    assert (answer.region, answer.cluster) == (p.regions[p.server_region[s]], p.clusters.labels[p.server_cluster[s]])
    assert answer.gpu_type == p.gpu_types[p.servers.gpu_type[s]]
    assert set(answer.victims) == {p.running.labels[v] for v in np.flatnonzero(plan.preempt).tolist()}
    assert answer.price == pytest.approx(p.objective.weights["cost"] * paid(p, s) + read_remotely(p, s))
    assert chosen(p, plan) == {(share.server, share.tasks, fractions(p, share)) for share in answer.shares}
    return "with victims" if answer.victims else "free"


def chosen(p: JobPlacement, plan: Plan) -> set[tuple[str, int, tuple[tuple[int, int], ...]]]:
    """(server, tasks, (GPU, milli-GPUs) of fractions) of the job of a plan."""
    found = set()
    for s in np.unique(plan.server).tolist():
        rows = np.flatnonzero(plan.server == s)
        named = [row for row in rows.tolist() if plan.indexed[row]]
        need = int(p.need_mgpu[0, p.servers.gpu_type[s]])
        on = tuple(sorted((int(plan.gpu_index[row]), int(plan.tasks[row]) * need) for row in named))
        found.add((p.servers.labels[s], int(plan.tasks[rows].sum()), on))
    return found


def fractions(p: JobPlacement, share: Share) -> tuple[tuple[int, int], ...]:
    need = int(p.need_mgpu[0, p.servers.gpu_type[p.servers.labels.index(share.server)]])
    return tuple(sorted(share.gpus.items())) if need < 1000 else ()


def paid(p: JobPlacement, s: int) -> float:
    return float(p.costs.cost_micro[p.costs.cluster == p.server_cluster[s]].sum()) / 1e6


def read_remotely(p: JobPlacement, s: int) -> float:
    share = int(p.missing_mb[0, p.server_region[s]]) / max(int(p.reads.mb_per_day.sum()), 1)
    return p.objective.weights["remote"] * share


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems(jobs=1, servers=5, running=4))
def test_one_job_of_any_instance_goes_where_the_batch_puts_it(problem: JobPlacement) -> None:
    agree(problem)


def racks_renumbered(p: JobPlacement, rng: np.random.Generator) -> JobPlacement:
    order = rng.permutation(len(p.racks))
    return replace(
        p,
        racks=replace(p.racks, labels=tuple(p.racks.labels[b] for b in order.tolist()), cluster=p.racks.cluster[order]),
        servers=replace(p.servers, rack=np.argsort(order)[p.servers.rack]),
    )


def with_residency(p: JobPlacement, rng: np.random.Generator) -> JobPlacement:
    return replace(p, datasets=replace(p.datasets, residency=rng.random(p.datasets.stored.shape) < 0.6))


def with_lost_data(p: JobPlacement, rng: np.random.Generator) -> JobPlacement:
    return replace(
        p,
        datasets=replace(p.datasets, stored=p.datasets.stored & (rng.random((len(p.datasets), 1)) < 0.7)),
        remote_reads=True,
    )


def with_costs(p: JobPlacement, rng: np.random.Generator) -> JobPlacement:
    at = np.argwhere(rng.random((len(p.jobs), len(p.clusters))) < 0.7)
    micro = rng.integers(1, 4, len(at)) * 500_000
    return replace(p, costs=replace(p.costs, job=at[:, 0], cluster=at[:, 1], cost_micro=micro), remote_reads=True)


def with_quotas(p: JobPlacement, rng: np.random.Generator) -> JobPlacement:
    """One tenant, all of whose work counts, with a quota for all types and for each of the first two."""
    kinds = min(2, len(p.gpu_types))
    in_use = int(p.held[:, GPU].sum())
    return replace(
        p,
        tenants=("lab",),
        jobs=replace(p.jobs, tenant=np.zeros(len(p.jobs), np.int64)),
        running=replace(p.running, tenant=np.zeros(len(p.running), np.int64)),
        quotas=replace(
            p.quotas,
            tenant=np.zeros(kinds + 1, np.int64),
            gpu_type=np.arange(kinds + 1) % kinds,
            typed=np.arange(kinds + 1) < kinds,
            mgpu=in_use // np.array([3] * kinds + [1]) + rng.integers(-10, 11, kinds + 1) * 1000 + 10_000,
            parent=np.ones(kinds + 1, np.int64),
            borrowing_mgpu=np.full(kinds + 1, -1),
            lending_mgpu=np.full(kinds + 1, -1),
        ),
    )


RULES = {
    "as drawn": lambda p, rng: p,
    "priced": lambda p, rng: replace(p, remote_reads=True),
    "racks": racks_renumbered,
    "residency": with_residency,
    "lost data": with_lost_data,
    "costs": with_costs,
    "quotas": with_quotas,
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("family", FAMILIES)
def test_one_job_of_every_family_goes_where_the_batch_puts_it(family: str, rule: str) -> None:
    sizes = {
        name: min(size, 4) for name, size in FAMILIES[family].sizes.items() if name not in ("fill_percent", "jobs")
    }
    seen = set()
    for seed in range(3):
        fill = {} if seed else {"fill_percent": 100}
        rng = np.random.default_rng(seed)
        problem = RULES[rule](FAMILIES[family].generate(rng, **sizes, **fill), rng)
        seen |= {agree(alone(problem, j)) for j in range(min(12, len(problem.jobs)))}
    assert len(seen) > 1


def servers(count: int = 2) -> list[Server]:
    return [Server(f"s{n}", f"r{n}", f"c{n}", "b", "a100", 4, 64_000, 65_536) for n in range(count)]


def test_a_bid_takes_the_cheapest_cluster_before_the_least_loaded() -> None:
    fleet = Fleet(servers(), tiers=(0, 1))
    expensive = Job("x", 0, mgpu=1000, costs={"c0": 1500.0, "c1": 1000.0})
    bid = fleet.place(expensive)
    assert isinstance(bid, Bid)
    assert (bid.cluster, bid.price) == ("c1", 1000.0)
    far = Job("y", 0, mgpu=1000, datasets=("logs",), read_mb_per_day={"logs": 10})
    reading = Fleet(servers(), replicas={"logs": {"r1"}}, remote_mb_price=2.0)
    assert [(bid.region, bid.price) for bid in reading.bids(far)] == [("r1", 0.0), ("r0", 20.0)]
    reading.set_replicas("logs", ())
    answer = reading.place(far)
    assert isinstance(answer, Refused)
    assert answer.reason == "no region holds logs"


def test_quotas_of_one_type_hold_for_that_type() -> None:
    fleet = Fleet(
        [Server("a", "r", "c", "b", "a100", 4, 0, 0), Server("h", "r", "c", "b", "h100", 4, 0, 0)],
        tiers=(0, 3),
        type_quotas={"lab": {"h100": 1000}},
    )
    job = Job("one", 0, mgpu=1000, gpu_types={"h100": 1000}, tenant="lab")
    bid = fleet.place(job)
    assert isinstance(bid, Bid)
    assert not bid.over_quota
    fleet.commit(bid)
    second = fleet.place(replace(job, name="two"))
    assert isinstance(second, Bid)
    assert (second.over_quota, second.tier) == (True, 3)
    either = fleet.place(replace(job, name="two", gpu_types={"h100": 1000, "a100": 1000}))
    assert isinstance(either, Bid)
    assert not either.over_quota
    fleet.release("one")
    assert not bid_for(fleet, replace(job, name="two")).over_quota


def test_a_victim_of_the_same_round_leaves_no_trace() -> None:
    fleet = Fleet(servers(1), tiers=(0, 1, 2))
    with fleet.round():
        for job, victims in (
            (Job("small", 2, mgpu=4000, preemptible=True), ()),
            (Job("urgent", 0, mgpu=1000), ("small",)),
            (Job("equal", 2, mgpu=3000), ()),
        ):
            bid = fleet.place(job)
            assert isinstance(bid, Bid), job.name
            assert fleet.commit(bid) == victims
    assert_exact(fleet._books)


def test_explain_gives_the_closest_level_of_all_types_and_needs_of_types_in_service() -> None:
    fleet = Fleet(
        [
            *(Server(f"a{n}", "r", "c", "b", "a100", 1, 9, 9) for n in range(2)),
            Server("h", "r", "c", "b", "h100", 2, 9, 9),
        ],
        tiers=(0, 1),
    )
    assert fleet.explain(Job("x", 0, tasks=2))[0].words == "it fits as it is, within one server"
    fleet.cordon("h")
    fleet.commit(bid_for(fleet, Job("busy", 0, mgpu=1000)))
    words = fleet.explain(Job("x", 0, gpu_types={"a100": 1000, "h100": 500}, tasks=2))[0].words
    assert words.startswith("2 GPUs asked for; 1 free")


@pytest.mark.parametrize(
    "changes",
    [
        {"shares": (Share("s1", 1, {0: 1000}),)},
        {"shares": (Share("s0", 1, {0: 1000}),)},
        {"shares": (Share("s0", 1, {}),)},
        {"shares": (Share("s0", 2, {2: 1000, 3: 1000}),)},
        {"shares": (Share("s0", 1, {4: 1000}),)},
        {"shares": (Share("s0", 1, {2: 500, 3: 500}),)},
        {"shares": (Share("s0", FRACTION, {3: 1000}),)},
        {"shares": (Share("nowhere", 1, {3: 1000}),)},
        {"shares": ()},
        {"shares": None},
        {"victims": ("fixed",)},
        {"victims": ("nobody",)},
        {"victims": 3},
        {"tier": 1},
        {"over_quota": True},
        {"job": Job("fixed", 0)},
        {"job": Job("new", 7)},
    ],
)
def test_a_changed_bid_is_refused_and_changes_nothing(changes: dict[str, Any]) -> None:
    fleet = Fleet(servers(2), tiers=(0, 1))
    fleet.set_replicas("logs", {"r0"})
    fleet.commit(bid_for(fleet, Job("fixed", 0, mgpu=2000, datasets=("logs",))))
    bid = bid_for(fleet, Job("new", 0, datasets=("logs",)))
    with pytest.raises(UsageError):
        fleet.commit(replace(bid, **changes))
    with pytest.raises(UsageError, match="takes a Bid"):
        fleet.commit("bid")  # type: ignore[arg-type]
    assert fleet.running() == ("fixed",)
    assert_exact(fleet._books)
    assert fleet.commit(bid) == ()


@pytest.mark.parametrize("gpus", [{0: 1000, 1: 1000}, {0: 1000, 2: 1000}])
def test_a_bid_without_its_victims_or_beyond_what_they_free_is_refused(gpus: dict[int, int]) -> None:
    """Of four GPUs, a victim holds 0 and 1, a job that may not be stopped 2, and 3 is free."""
    fleet = Fleet(servers(1), tiers=(0, 1))
    for job in (Job("victim", 1, mgpu=2000, preemptible=True), Job("fixed", 0)):
        fleet.commit(bid_for(fleet, job))
    bid = bid_for(fleet, Job("new", 0, mgpu=2000))
    assert bid.victims == ("victim",)
    shares = (replace(bid.shares[0], gpus=gpus),)
    for changed in ((), ("victim",)) if 2 in gpus else ((),):
        with pytest.raises(UsageError, match="s0 has no room for 1 of its tasks"):
            fleet.commit(replace(bid, shares=shares, victims=changed))
    assert fleet.running() == ("victim", "fixed")
    assert_exact(fleet._books)
    assert fleet.commit(bid) == ("victim",)
    assert_exact(fleet._books)

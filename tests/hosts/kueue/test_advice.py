"""Advice for workloads: where they fit, whom they would stop, and why not elsewhere; and what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mast_opt.core.errors import InputError, UsageError
from mast_opt.live.hosts.kueue.nomination import Advice, DispatchParams, advise
from mast_opt.live.hosts.kueue.objects import ClusterView
from mast_opt.live.hosts.kueue.reading import cluster_view
from mast_opt.live.hosts.kueue.reading import workload as read
from tests.hosts.kueue.objects import Object, flavor, local_queue, pods, queue, running, workload


def cluster(name: str, *objects: Object, gpus: int = 64, active: bool = True) -> ClusterView:
    standard = [queue(gpus=gpus)] if not any(one["kind"] == "ClusterQueue" for one in objects) else []
    flavors = [flavor()] if not any(one["kind"] == "ResourceFlavor" for one in objects) else []
    return cluster_view(name, [*standard, *flavors, local_queue(), *objects], active=active)


def only(clusters: Sequence[ClusterView], *waiting: Object, **more: Any) -> Advice:
    found = advise(clusters, [read(one) for one in waiting], **more)
    return found[-1]


def test_the_cluster_that_stops_nobody_is_first() -> None:
    low = queue(gpus=16, preemption={"withinClusterQueue": "LowerPriority"})
    full = cluster("full", low, running("old", pods(8, 2), priority=1))
    free = cluster("free", gpus=16)
    found = only((full, free), workload("new", pods(8, 2), priority=5))
    assert found.clusters == ("free", "full")
    assert found.reasons == {
        "free": "fits on h100",
        "full": "fits on h100 if 1 workload stop: default/old",
    }
    assert found.victims == ()


def test_nobody_is_stopped_where_the_queue_does_not_preempt() -> None:
    full = cluster("full", queue(gpus=16), running("old", pods(8, 2), priority=1))
    found = only((full,), workload("new", pods(8, 2), priority=5))
    assert found.clusters == ()
    assert found.words.startswith("fits nowhere now; full: pod set main: ")


def test_why_a_workload_without_pods_waits() -> None:
    assert only((cluster("a", gpus=8),), workload("w", pods(1, 0))).words == "fits nowhere now; it asks for no pods"


def test_equal_priority_is_not_stopped() -> None:
    low = queue(gpus=16, preemption={"withinClusterQueue": "LowerPriority"})
    full = cluster("full", low, running("old", pods(8, 2), priority=5))
    assert only((full,), workload("new", pods(8, 1), priority=5)).clusters == ()


def test_each_workload_sees_the_room_that_those_before_it_leave() -> None:
    clusters = [cluster("a", gpus=8), cluster("b", gpus=8)]
    waiting = [read(workload(name, priority=priority)) for name, priority in (("w", 0), ("x", 9), ("y", 3))]
    found = advise(clusters, waiting)
    assert [one.workload.name for one in found] == ["x", "y", "w"]
    first, second, third = (one.clusters[:1] for one in found)
    assert {*first, *second} == {"a", "b"}
    assert third == ()


def test_data_and_labels_and_taints_and_connections_rule_clusters_out() -> None:
    tainted = [flavor(nodeTaints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])]
    labelled = [flavor(labels={"gpu": "h100"})]
    clusters = [
        cluster("far"),
        cluster("tainted", *tainted),
        cluster("labelled", *labelled),
        cluster("lost", active=False),
        cluster_view("bare", []),
        cluster("stopped", queue(stopPolicy="Hold")),
    ]
    replicas = {"logs": {one.name for one in clusters} - {"far"}}
    plain = workload("w", pods(8, 1, nodeSelector={"gpu": "a100"}), datasets="logs")
    found = only(clusters, plain, replicas=replicas)
    assert found.clusters == ()
    assert {name: found.reasons[name] for name in ("tainted", "labelled", "lost", "bare", "stopped")} == {
        "tainted": "pod set main: no flavor takes these pods",
        "labelled": "pod set main: no flavor takes these pods",
        "lost": "not connected",
        "bare": "no LocalQueue default/q with a ClusterQueue",
        "stopped": "ClusterQueue cq is stopped",
    }
    assert "logs" in found.reasons["far"]
    tolerating = pods(8, 1, nodeSelector={"gpu": "h100"}, tolerations=[{"key": "gpu", "operator": "Exists"}])
    assert set(only(clusters, workload("w", tolerating), replicas=replicas).clusters) == {"far", "tainted", "labelled"}


def test_affinity_counts_as_a_selector() -> None:
    terms = [{"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100", "h200"]}]}]
    wants = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    clusters = [cluster(kind, flavor(labels={"gpu": kind})) for kind in ("a100", "h100")]
    assert only(clusters, workload("w", pods(8, 1, affinity=wants))).clusters == ("h100",)


def test_a_cohort_lends_what_it_leaves() -> None:
    own = queue(gpus=8, cohortName="all")
    other = queue("other", gpus=16, cohortName="all")
    busy = running("busy", pods(8, 1), of="other")
    wanted = workload("w", pods(8, 3))
    assert only([cluster("a", own, other)], wanted).clusters == ("a",)
    assert only([cluster("a", own, other, busy)], wanted).clusters == ()
    assert only([cluster("a", queue(gpus=8, cohort="all"), other)], wanted).clusters == ("a",)
    assert only([cluster("a", queue(gpus=8), other)], wanted).clusters == ()
    other["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] = 8
    assert only([cluster("a", own, other)], wanted).clusters == ()
    assert only([cluster("a", own, other)], workload("w", pods(8, 2))).clusters == ("a",)
    own["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = 0
    assert only([cluster("a", own, other)], workload("w", pods(8, 2))).clusters == ()


def test_pod_sets_are_parts_of_one_gang() -> None:
    leader, workers = pods(None, 1, "leader", cpu="4"), pods(8, 2, "workers", cpu="16")
    fits = cluster("a", queue(gpus=16, cpu=36))
    tight = cluster("b", queue(gpus=16, cpu=35))
    found = only([fits, tight], workload("w", leader, workers))
    assert found.clusters == ("a",)
    assert found.reasons["b"]


def test_a_cluster_that_tries_already_stays_first() -> None:
    clusters = [cluster("a"), cluster("b", running("busy"))]
    status: Any = {"nominatedClusterNames": ["b"]}
    assert only(clusters, workload("w")).clusters == ("a", "b")
    assert only(clusters, workload("w", **status)).clusters == ("b", "a")


def test_candidates() -> None:
    clusters = [cluster("a"), cluster("b")]
    found = only(clusters, workload("w"), candidates={"default/w": ("b", "c")})
    assert found.clusters == ("b",)
    assert found.reasons == {"c": "not known", "b": "fits on h100"}


@pytest.mark.parametrize("seed", range(6))
def test_against_a_count_of_gpus(seed: int) -> None:
    """One queue and flavor a cluster, whole GPUs, nobody may be stopped: a workload fits where so many are free."""
    rng = np.random.default_rng(seed)
    free = {}
    clusters = []
    for name in "abc":
        gpus, busy = int(rng.integers(0, 40)), [int(n) for n in rng.integers(1, 9, 3)]
        clusters.append(cluster(name, *(running(f"r{at}", pods(n, 1)) for at, n in enumerate(busy)), gpus=gpus))
        free[name] = gpus - sum(busy)
    waiting = [read(workload(f"w{n}", pods(int(rng.integers(1, 5)), int(rng.integers(1, 6))))) for n in range(8)]
    for one in advise(clusters, waiting):
        asked = sum(pods.count * pods.needs[0] for pods in one.workload.pod_sets) // 1000
        assert set(one.clusters) == {name for name in free if free[name] >= asked}
        if one.clusters:
            free[one.clusters[0]] -= asked


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"podSets": []}, "it has no podSets"),
        ({"podSets": 3}, "podSets is '3'; expected a list"),
        ({"priority": "high"}, "priority is 'high'; expected a whole number"),
        ({"podSets": [{"count": -1}]}, "expected a whole number of at least 0"),
        ({"podSets": [pods(8, 1) | {"count": "two"}]}, "count is 'two'"),
        ({"podSets": [pods("many")]}, "a request of nvidia.com/gpu is 'many'"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_read_is_named(change: Object, words: str) -> None:
    wrong = workload("w")
    wrong["spec"] |= change
    with pytest.raises(InputError, match=f"Workload default/w: .*{words}"):
        read(wrong)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("round_s", 0), ("round_s", float("nan")), ("most", 0), ("most", 21)),
        *(("priorities", (1, 1)), ("priorities", tuple(range(10, 0, -1)))),
    ],
)
def test_parameters_are_checked(name: str, value: float | tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match=name):
        DispatchParams(**{name: value})  # type: ignore[arg-type]

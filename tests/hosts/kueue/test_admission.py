"""Kueue's accounting, case by case: what fits, what waits, and who has to stop."""

# ruff: noqa: E501 - tables of cases
from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from mast_opt.live.hosts.kueue.manifests import read_manifests
from mast_opt.live.hosts.kueue.nomination import Advice, advise
from tests.hosts.kueue.objects import Object, condition, flavor, local_queue, pods, queue, running, workload

GPU = "nvidia.com/gpu"


def advice(folder: Path, *objects: Object) -> dict[str, Advice]:
    """Name of a workload → advice for it; flavor and LocalQueue are the usual ones unless given."""
    kinds = {one["kind"] for one in objects}
    more = [] if "ResourceFlavor" in kinds else [flavor()]
    more += [] if "LocalQueue" in kinds else [local_queue()]
    (folder / "all.yaml").write_text(yaml.safe_dump_all([*map(copy.deepcopy, objects), *more]))
    picture = read_manifests(folder)
    return {one.workload.name: one for one in advise(picture.clusters, picture.waiting, replicas=picture.replicas)}


def limits(found: Object, **more: int) -> Object:
    found["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0].update(more)
    return found


def cohort(name: str, gpus: int | None = None, parent: str = "", **more: int) -> Object:
    found: Object = {"kind": "Cohort", "metadata": {"name": name}, "spec": {}}
    if gpus is not None:
        found["spec"]["resourceGroups"] = limits(queue(gpus=gpus), **more)["spec"]["resourceGroups"]
    if parent:
        found["spec"]["parentName"] = parent
    return found


def gives(name: str, of: str, gpus: int = 8, count: int = 1, priority: int = 0, **spec: Any) -> Object:
    found = workload(name, pods(gpus, count), priority=priority)
    found["spec"] |= {"queueName": of, **spec}
    return found


JOB: Object = {
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "default", "uid": "u1", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
    "spec": {"parallelism": 1, "template": pods(8)["template"]},
}
LOWER = {"withinClusterQueue": "LowerPriority"}
RECLAIM = {"reclaimWithinCohort": "Any"}


def two(a: int, b: int, **spec: Any) -> list[Object]:
    """Two queues of a cohort, each with a LocalQueue; the policies are those of the first."""
    names = [queue("a", a, cohortName="all", **spec), queue("b", b, cohortName="all")]
    return [*names, local_queue("a", "qa"), local_queue("b", "qb")]


CASES: dict[str, tuple[list[Object], dict[str, str | list[str]]]] = {
    "lent out and used there": ([*two(10, 10), running("b1", pods(1, 20), of="b"), gives("a1", "qa", 1, 10)], {"a1": "waits"}),
    "lent out and reclaimed": (
        [*two(10, 10, preemption=RECLAIM), running("b1", pods(1, 20), of="b"), gives("a1", "qa", 1, 10)],
        {"a1": ["b1"]},
    ),
    "reclaimed, but not from a queue within its quota": (
        [*two(10, 10, preemption=RECLAIM), running("b1", pods(1, 10), of="b"), gives("a1", "qa", 1, 11)],
        {"a1": "waits"},
    ),
    "reclaimed by priority only": (
        [
            *two(10, 10, preemption={"reclaimWithinCohort": "LowerPriority"}),
            running("b1", pods(1, 20), of="b"),
            gives("a1", "qa", 1, 10),
        ],
        {"a1": "waits"},
    ),
    "others stop while the queue borrows": (
        [
            *two(4, 10, preemption={"reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "LowerPriority"}}),
            queue("c", 6, cohortName="all"),
            running("b1", pods(1, 12), of="b", priority=-1),
            gives("a1", "qa", 1, 10),
        ],
        {"a1": ["b1"]},
    ),
    "not above the threshold": (
        [
            *two(
                4,
                10,
                preemption={
                    "reclaimWithinCohort": "Any",
                    "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": -5},
                },
            ),
            queue("c", 6, cohortName="all"),
            running("b1", pods(1, 12), of="b", priority=-1),
            gives("a1", "qa", 1, 10),
        ],
        {"a1": "waits"},
    ),
    "spare quota is promised once": (
        [*two(0, 0), queue("c", 8, cohortName="all"), gives("a1", "qa"), gives("b1", "qb")],
        {"a1": [], "b1": "waits"},
    ),
    "a borrowing limit of 0": (
        [limits(two(4, 10)[0], borrowingLimit=0), *two(4, 10)[1:], gives("a1", "qa", 1, 5), gives("a2", "qa", 1, 4)],
        {"a1": "waits", "a2": []},
    ),
    "a lending limit": (
        [two(4, 10)[0], limits(two(4, 10)[1], lendingLimit=2), *two(4, 10)[2:], gives("a1", "qa", 1, 7), gives("a2", "qa", 1, 6)],
        {"a1": "waits", "a2": []},
    ),
    "a quota that was lowered": (
        [
            queue(gpus=8, preemption=LOWER),
            running("a", pods(4), priority=5),
            running("b", pods(8), priority=5),
            gives("hi", "q", 4, priority=100),
        ],
        {"hi": ["b"]},
    ),
    "the least important stops": (
        [
            queue(gpus=16, preemption=LOWER),
            running("p10", pods(8), priority=10),
            running("p5", pods(8), priority=5),
            gives("hi", "q", priority=100),
        ],
        {"hi": ["p5"]},
    ),
    "the size does not count": (
        [
            queue(gpus=16, preemption=LOWER),
            *(running(name, pods(gpus), priority=5) for name, gpus in (("a", 4), ("b", 4), ("c", 8))),
            gives("hi", "q", priority=100),
        ],
        {"hi": ["a", "b"]},
    ),
    "equals do not stop": (
        [queue(gpus=8, preemption=LOWER), running("a", priority=100), gives("hi", "q", priority=100)],
        {"hi": "waits"},
    ),
    "own quota of a cohort": ([queue("a", 0, cohortName="all"), cohort("all", 8), local_queue("a", "qa"), gives("a1", "qa")], {"a1": []}),
    "a cohort above a cohort": (
        [queue("a", 0, cohortName="team"), cohort("team", parent="all"), cohort("all", 8), local_queue("a", "qa"), gives("a1", "qa")],
        {"a1": []},
    ),
    "a limit of the cohort between": (
        [
            queue("a", 0, cohortName="team"),
            cohort("team", 2, parent="all", borrowingLimit=4),
            cohort("all", 8),
            local_queue("a", "qa"),
            gives("a1", "qa"),
            gives("a2", "qa", 6),
        ],
        {"a1": "waits", "a2": []},
    ),
    "cohorts above themselves": (
        [queue("a", 8, cohortName="x"), cohort("x", parent="y"), cohort("y", parent="x"), local_queue("a", "qa"), gives("a1", "qa")],
        {"a1": "waits"},
    ),
    "a LocalQueue on hold": ([queue(), {**local_queue(), "spec": {"clusterQueue": "cq", "stopPolicy": "Hold"}}, workload("w")], {"w": "waits"}),
    "a workload that is being deleted": (
        [queue(gpus=8), {**running("d"), "metadata": {**running("d")["metadata"], "deletionTimestamp": "2026-11-24T04:00:00Z"}}, workload("w")],
        {"w": "waits"},
    ),
    "one that is not active any more": (
        [queue(gpus=8), {**running("d"), "spec": {**running("d")["spec"], "active": False}}, workload("w")],
        {"w": "waits"},
    ),
    "one that was evicted and still runs": (
        [queue(gpus=8), {**running("e"), "status": {**running("e")["status"], "conditions": [condition("QuotaReserved"), condition("Evicted")]}}, workload("w")],
        {"w": "waits"},
    ),
    "one that has finished": (
        [queue(gpus=8), {**running("e"), "status": {**running("e")["status"], "conditions": [condition("QuotaReserved"), condition("Finished")]}}, workload("w")],
        {"w": []},
    ),
    "pods that gave their quota back": (
        [queue(gpus=24), {**running("r", pods(8, 3)), "status": {**running("r", pods(8, 3))["status"], "reclaimablePods": [{"name": "main", "count": 2}]}}, gives("w", "q", 8, 2)],
        {"w": []},
    ),
    "fewer pods than asked for": ([queue(gpus=4), workload("w", {**pods(1, 10), "minCount": 2})], {"w": []}),
    "fewer than it accepts": ([queue(gpus=4), workload("w", {**pods(1, 10), "minCount": 5})], {"w": "waits"}),
    "a Job and its Workload": (
        [queue(gpus=16), JOB, {**workload("job-train"), "metadata": {**workload("job-train")["metadata"], "ownerReferences": [{"kind": "Job", "name": "train", "uid": "u1"}]}}, workload("z")],
        {"job-train": [], "z": []},
    ),
    "a Job that has ended": (
        [queue(gpus=8), {**JOB, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}, workload("z")],
        {"z": []},
    ),
    "a Job with fewer completions than pods": (
        [queue(gpus=4), {**JOB, "spec": {"parallelism": 10, "completions": 3, "template": pods(1)["template"]}}],
        {"train": []},
    ),
    "a Job without pods": ([queue(gpus=8), {**JOB, "spec": {**JOB["spec"], "parallelism": 0}}], {"train": "waits"}),
    "two vendors in a flavor": (
        [
            {**queue(), "spec": {"resourceGroups": [{"coveredResources": [GPU, "amd.com/gpu"], "flavors": [{"name": "h100", "resources": [{"name": GPU, "nominalQuota": 0}, {"name": "amd.com/gpu", "nominalQuota": 8}]}]}]}},
            workload("w"),
        ],
        {"w": "waits"},
    ),
    "slices of GPUs with a quota of their own": (
        [
            {**queue(), "spec": {"resourceGroups": [{"coveredResources": ["nvidia.com/mig-1g.5gb"], "flavors": [{"name": "h100", "resources": [{"name": "nvidia.com/mig-1g.5gb", "nominalQuota": 7}]}]}]}},
            workload("w", {"name": "main", "count": 4, "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/mig-1g.5gb": 2}}}]}}}),
            workload("v", {"name": "main", "count": 3, "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/mig-1g.5gb": 2}}}]}}}),
        ],
        {"w": "waits", "v": []},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_kueue_counts(tmp_path: Path, name: str) -> None:
    objects, wanted = CASES[name]
    found = advice(tmp_path, *objects)
    assert found.keys() == wanted.keys()
    stops = {
        one: [key.rpartition("/")[2] for key in of.victims] if of.clusters else "waits" for one, of in found.items()
    }
    assert stops == wanted


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {"containers": [{"resources": {"limits": {"nvidia.com/mig-3g.20gb": 8}}}]},
            "not looked at: nvidia.com/mig-3g.20gb",
        ),
        ({"containers": [{"resources": {"limits": {"google.com/tpu": 4}}}]}, "not looked at: google.com/tpu"),
        ({"containers": [{}], "resourceClaims": [{"name": "x"}]}, "not looked at: resource claims"),
    ],
)
def test_what_is_not_modelled_never_fits(tmp_path: Path, spec: Object, words: str) -> None:
    found = advice(tmp_path, queue(), workload("w", {"name": "main", "count": 1, "template": {"spec": spec}}))["w"]
    assert found.clusters == ()
    assert words in found.words


def test_what_kueue_excludes_is_seen_from_its_admissions(tmp_path: Path) -> None:
    """The queue does not cover processors, and has admitted pods that ask for some: its configuration excludes them."""
    old = running("old", pods(8, cpu="4"))
    assert "not looked at: cpu" in advice(tmp_path, queue(gpus=16), workload("w", pods(8, cpu="4")))["w"].words
    old["status"]["admission"]["podSetAssignments"][0]["flavors"] = {GPU: "h100"}
    found = advice(tmp_path, queue(gpus=16), old, workload("w", pods(8, cpu="4")))["w"]
    assert "fits on h100" in found.words


def test_a_topology_is_not_looked_at(tmp_path: Path) -> None:
    found = advice(tmp_path, queue(), workload("w", {**pods(8), "topologyRequest": {"required": "rack"}}))["w"]
    assert found.clusters == ()
    assert "not looked at: a topology" in found.words


def test_admitted_with_fewer_pods(tmp_path: Path) -> None:
    """Five of eight pods were admitted, by what the admission says they use: three are free."""
    part = running("part", pods(1, 8))
    part["status"]["admission"]["podSetAssignments"][0] |= {"count": 5, "resourceUsage": {GPU: "5"}}
    assert advice(tmp_path, queue(gpus=8), part, gives("three", "q", 1, 3))["three"].clusters
    assert not advice(tmp_path, queue(gpus=8), part, gives("four", "q", 1, 4))["four"].clusters


def test_fewer_pods_are_said(tmp_path: Path) -> None:
    found = advice(tmp_path, queue(gpus=4), workload("w", {**pods(1, 10), "minCount": 2}))["w"]
    assert "fits on h100 with 4 of 10 pods of main" in found.words


@pytest.mark.parametrize(
    ("fungibility", "wanted"),
    [({}, "fits on small"), ({"whenCanBorrow": "TryNextFlavor"}, "fits on large")],
)
def test_flavors_are_tried_in_order(tmp_path: Path, fungibility: dict[str, str], wanted: str) -> None:
    def offers(*sizes: tuple[str, int]) -> Object:
        flavors = [{"name": name, "resources": [{"name": GPU, "nominalQuota": gpus}]} for name, gpus in sizes]
        return {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}], "cohortName": "all"}

    first = {**queue(), "spec": {**offers(("small", 4), ("large", 64)), "flavorFungibility": fungibility}}
    other = {**queue("other"), "spec": offers(("small", 64))}
    found = advice(tmp_path, first, other, flavor("small"), flavor("large"), workload("w"))["w"]
    assert wanted in found.words


@pytest.mark.parametrize(
    ("terms", "wanted"),
    [
        ([[("gpu", "In", ["h100"])]], "h100"),
        ([[("gpu", "NotIn", ["h100"])]], "a100"),
        ([[("new", "Exists", [])]], "h100"),
        ([[("new", "DoesNotExist", [])]], "a100"),
        ([[("generation", "Gt", ["8"])]], "h100"),
        ([[("gpu", "In", ["b200"])], [("gpu", "In", ["h100"])]], "h100"),
        ([[("zone", "In", ["x"])]], "a100"),
    ],
)
def test_affinity(tmp_path: Path, terms: list[list[tuple[str, str, list[str]]]], wanted: str) -> None:
    """By labels that the flavors of the queue know; others are left to the nodes."""
    stated = [
        {"matchExpressions": [{"key": key, "operator": how, "values": values} for key, how, values in term]}
        for term in terms
    ]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": stated}}}
    flavors = [{"name": name, "resources": [{"name": GPU, "nominalQuota": 8}]} for name in ("a100", "h100")]
    both = {**queue(), "spec": {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}]}}
    labels = {"a100": {"gpu": "a100", "generation": "8"}, "h100": {"gpu": "h100", "generation": "9", "new": "yes"}}
    found = advice(
        tmp_path, both, *(flavor(name, of) for name, of in labels.items()), workload("w", pods(8, affinity=affinity))
    )
    assert f"fits on {wanted}" in found["w"].words


def test_an_inactive_queue(tmp_path: Path) -> None:
    off = {**queue(), "status": {"conditions": [{"type": "Active", "status": "False", "message": "FlavorNotFound"}]}}
    assert "ClusterQueue cq is not active: FlavorNotFound" in advice(tmp_path, off, workload("w"))["w"].words

"""What a pod asks for: the scheduler's rule, case by case."""

# ruff: noqa: E501 - a table of cases
from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mast_opt.core.errors import InputError
from mast_opt.live.hosts.kueue.reading import workload
from mast_opt.planner.importers.mapped.dumps import kubectl
from mast_opt.planner.importers.notices import SourceWarning
from mast_opt.planner.importers.pod_requests import amount, pod_requests
from mast_opt.planner.io.faults import Faults

Spec = dict[str, Any]
GPU = "nvidia.com/gpu"


def box(limits: Spec | None = None, always: bool = False, name: str = "c", **requests: object) -> Spec:
    asked = {GPU if key == "gpu" else key: value for key, value in requests.items()}
    found: Spec = {"name": name, "resources": {"requests": asked, "limits": limits or {}}}
    return {**found, "restartPolicy": "Always"} if always else found


CASES: list[tuple[str, Spec, dict[str, object]]] = [
    ("containers are added", {"containers": [box(cpu="1"), box(cpu="500m", memory="1Gi")]}, {"cpu": 1.5, "memory": 2**30}),
    ("no containers", {}, {}),
    ("a limit stands for a request", {"containers": [box({"cpu": 2, GPU: 4}, cpu="1")]}, {"cpu": 1, GPU: 4}),
    ("the largest init container", {"containers": [box(cpu=4)], "initContainers": [box(cpu=3), box(cpu=9)]}, {"cpu": 9}),
    ("init containers that need less", {"containers": [box(cpu=4)], "initContainers": [box(cpu=3), box(cpu=3)]}, {"cpu": 4}),
    ("sidecars run with the containers", {"containers": [box(cpu=4)], "initContainers": [box(always=True, cpu=4)]}, {"cpu": 8}),
    (
        "an init container runs with the sidecars before it",
        {"containers": [box(cpu=4)], "initContainers": [box(always=True, cpu=4), box(cpu=30, gpu=8)]},
        {"cpu": 34, GPU: 8},
    ),
    (
        "but not with those after it",
        {"containers": [box(cpu=4)], "initContainers": [box(cpu=30), box(always=True, cpu=4)]},
        {"cpu": 30},
    ),
    (
        "several sidecars, in order",
        {"containers": [box(cpu=1)], "initContainers": [box(always=True, cpu=2), box(cpu=3), box(always=True, cpu=4), box(cpu=1)]},
        {"cpu": 7},
    ),
    (
        "each resource has a moment of its own",
        {"containers": [box(cpu=8, memory="1Gi")], "initContainers": [box(cpu=1, memory="4Gi")]},
        {"cpu": 8, "memory": 2**32},
    ),
    (
        "overhead comes on top",
        {"containers": [box(cpu=4)], "initContainers": [box(cpu=30)], "overhead": {"cpu": "1", "memory": "64Mi"}},
        {"cpu": 31, "memory": 2**26},
    ),
    (
        "the pod as a whole",
        {"containers": [box(cpu=4, gpu=1)], "resources": {"requests": {"cpu": 6, GPU: 9}}, "overhead": {"cpu": 1}},
        {"cpu": 7, GPU: 1},
    ),
    ("less than its containers together", {"containers": [box(cpu=4)], "resources": {"requests": {"cpu": 3}}}, {"cpu": 3}),
    (
        "a limit of the pod, where nobody states a request",
        {"containers": [box(cpu=4)], "resources": {"limits": {"cpu": 8, "memory": "1Gi"}}},
        {"cpu": 4, "memory": 2**30},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "spec", "wanted"), CASES, ids=[name for name, _, _ in CASES])
def test_as_the_scheduler_counts(tmp_path: Path, name: str, spec: Spec, wanted: dict[str, float]) -> None:
    """The same figures by the function, by the source ``kubectl`` and by the adapter of Kueue."""
    assert pod_requests(spec) == wanted
    item = {"kind": "Pod", "metadata": {"name": "p"}, "spec": spec, "status": {"phase": "Running"}}
    (tmp_path / "pods.json").write_text(json.dumps({"items": [item]}))
    faults = Faults()
    row = kubectl(tmp_path / "pods.json", faults)["pods"].row(0, named=True)
    assert not faults
    assert (row["cpu_cores"], row["gpus"]) == (wanted.get("cpu", 0), wanted.get(GPU, 0))
    assert row["memory_gib"] == wanted.get("memory", 0) / 2**30
    sets = workload({"spec": {"podSets": [{"count": 1, "template": {"spec": spec}}]}}).pod_sets
    base = [int(Decimal(wanted.get(key, 0)) * unit) for key, unit in ((GPU, 1000), ("cpu", 1000), ("memory", 1))]
    assert sets[0].needs == (*base[:2], -(-base[2] // 2**20))


def test_a_container_that_is_being_resized() -> None:
    """It counts as the larger of what it has and what it asks for, and as what it has where that cannot be."""
    spec = {"containers": [box(cpu=4)]}
    status = {
        "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": 6}, "resources": {"requests": {"cpu": 5}}}]
    }
    assert pod_requests(spec, status) == {"cpu": 6}
    assert pod_requests({"containers": [box(cpu=9)]}, status) == {"cpu": 9}
    status["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
    assert pod_requests({"containers": [box(cpu=9)]}, status) == {"cpu": 6}


def test_amounts() -> None:
    cases = [
        ("500m", 500),
        ("2", 2000),
        (3, 3000),
        ("1e1", 10_000),
        ("0.1", 100),
        ("1k", 1_000_000),
        ("1n", 1),
        (".5", 500),
    ]
    pods = [{"containers": [{"resources": {"requests": {"cpu": text}}}]} for text, _ in cases]
    read = workload({"spec": {"podSets": [{"template": {"spec": spec}} for spec in pods]}}).pod_sets
    assert [one.requests["cpu"] for one in read] == [number for _, number in cases]
    assert amount("1E", "x") == 10**18
    wrongs: tuple[object, ...] = ("", "-1", "1x", "1.2.3", True, None, [], "1" * 40, "0x10", "1e3Ki", "1K", ".")
    for wrong in wrongs:
        with pytest.raises(InputError, match="an amount of Kubernetes"):
            amount(wrong, "x")


def test_devices_that_no_column_counts_are_named(tmp_path: Path) -> None:
    spec = {"containers": [{"resources": {"requests": {"nvidia.com/mig-1g.5gb": 1, "amd.com/gpu": 2}}}]}
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}], "containers": [{}]}
    items = [{"kind": "Pod", "metadata": {"name": name}, "spec": one} for name, one in (("a", spec), ("b", claims))]
    (tmp_path / "pods.json").write_text(json.dumps({"items": items}))
    with pytest.warns(SourceWarning) as found:
        frame = kubectl(tmp_path / "pods.json", Faults())["pods"]
    assert frame["gpus"].to_list() == [2, 0]
    assert "'nvidia.com/mig-1g.5gb': a device that no column counts" in str(found[0].message)
    assert "'b': devices of resource claims are not counted" in str(found[1].message)

"""Kueue's objects as YAML has them, made by hand."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
NOW = "2026-11-24T04:00:00Z"


def queue(name: str = "cq", gpus: int = 64, *, cpu: int | None = None, flavor: str = "h100", **spec: Any) -> Object:
    resources: list[Object] = [{"name": "nvidia.com/gpu", "nominalQuota": gpus}]
    covered = ["nvidia.com/gpu"]
    if cpu is not None:
        resources.append({"name": "cpu", "nominalQuota": cpu})
        covered.append("cpu")
    groups = [{"coveredResources": covered, "flavors": [{"name": flavor, "resources": resources}]}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {"resourceGroups": groups, **spec},
    }


def flavor(name: str = "h100", labels: dict[str, str] | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": name},
        "spec": {**({} if labels is None else {"nodeLabels": labels}), **spec},
    }


def local_queue(of: str = "cq", name: str = "q") -> Object:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterQueue": of},
    }


def pods(gpus: int | None = 8, count: int = 1, name: str = "main", **pod: Any) -> Object:
    requests = {} if gpus is None else {"nvidia.com/gpu": str(gpus)}
    if "cpu" in pod:
        requests["cpu"] = pod.pop("cpu")
    container = {"name": "c", "image": "x", "resources": {"requests": requests}}
    return {"name": name, "count": count, "template": {"spec": {"containers": [container], **pod}}}


def workload(
    name: str, *pod_sets: Object, priority: int = 0, datasets: str = "", uid: str = "", **status: Any
) -> Object:
    meta: Object = {"name": name, "namespace": "default", "creationTimestamp": NOW}
    if uid:
        meta["uid"] = uid
    if datasets:
        meta["annotations"] = {"mast-opt.io/datasets": datasets}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": meta,
        "spec": {"queueName": "q", "priority": priority, "podSets": list(pod_sets) or [pods()]},
        "status": status,
    }


def condition(kind: str, status: str = "True") -> Object:
    return {"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": NOW}


def admission(found: Object, of: str = "cq", flavor: str = "h100") -> Object:
    assignments = [
        {
            "name": one["name"],
            "count": one["count"],
            "flavors": dict.fromkeys(one["template"]["spec"]["containers"][0]["resources"]["requests"], flavor),
        }
        for one in found["spec"]["podSets"]
    ]
    return {"clusterQueue": of, "podSetAssignments": assignments}


def running(name: str, *pod_sets: Object, priority: int = 0, of: str = "cq", flavor: str = "h100") -> Object:
    found = workload(name, *pod_sets, priority=priority)
    found["status"] = {
        "conditions": [condition("QuotaReserved"), condition("Admitted")],
        "admission": admission(found, of, flavor),
    }
    return found

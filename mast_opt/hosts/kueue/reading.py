"""Kueue's objects from what an API server or a file says (``v1beta1`` and ``v1beta2``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mast_opt.core.errors import InputError
from mast_opt.hosts.kueue.objects import (
    ClusterQueue,
    ClusterView,
    Flavor,
    Needs,
    PodSet,
    Quota,
    Taint,
    Toleration,
    Workload,
)
from mast_opt.hosts.kueue.quantities import UNITS, base_units
from mast_opt.importers.pod_requests import amount, pod_requests

GROUP = "kueue.x-k8s.io"
DATASETS = "mast-opt.io/datasets"
"""Annotation of a workload, or of the job that it is made for: datasets that it reads, separated by commas."""
QUEUE = "kueue.x-k8s.io/queue-name"
"""Label of a job: its LocalQueue."""
Object = Mapping[str, Any]


def resource_of(name: str) -> str:
    """``gpu``, ``cpu`` or ``memory``; empty for a resource that is not looked at. Every ``…/gpu`` is GPUs."""
    return "gpu" if name.endswith("/gpu") else name if name in ("cpu", "memory") else ""


def at(found: Any, *path: str, kind: type[Any] = dict) -> Any:  # noqa: ANN401 - a part of an object
    """What lies at a path, empty where there is nothing. Raises InputError for something of another type."""
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    if found is None:
        return kind()
    if not isinstance(found, kind):
        raise InputError(f"{'.'.join(path)} is {str(found)[:60]!r}; expected {_NOUNS.get(kind, kind.__name__)}")
    return found


_NOUNS = {dict: "an object", list: "a list", str: "text", int: "a whole number", bool: "true or false"}


def named(found: Object) -> str:
    """Kind, namespace and name of an object, for messages."""
    namespace, name = at(found, "metadata", "namespace", kind=str), at(found, "metadata", "name", kind=str)
    return f"{found.get('kind', 'object')} {f'{namespace}/' if namespace else ''}{name}"


def workload(found: Object) -> Workload:
    """A Workload. Raises InputError."""
    try:
        return _workload(found)
    except InputError as error:
        raise InputError(f"{named(found)}: {error}") from None


def _workload(found: Object) -> Workload:
    spec, status, meta = at(found, "spec"), at(found, "status"), at(found, "metadata")
    pod_sets = tuple(_pod_set(one) for one in at(spec, "podSets", kind=list))
    if not pod_sets:
        raise InputError("it has no podSets")
    gpu_sets = {one.name for one in pod_sets if one.needs[0]}
    checks = at(status, "admissionChecks", kind=list)
    return Workload(
        namespace=meta.get("namespace") or "default",
        name=at(meta, "name", kind=str),
        queue=at(spec, "queueName", kind=str),
        priority=at(spec, "priority", kind=int),
        pod_sets=pod_sets,
        created=at(meta, "creationTimestamp", kind=str),
        active=spec.get("active") is not False,
        deleting=bool(meta.get("deletionTimestamp")),
        conditions=frozenset(
            one.get("type", "") for one in at(status, "conditions", kind=list) if one.get("status") == "True"
        ),
        flavors=_admitted_flavors(status, gpu_sets),
        admitted_by=at(status, "admission", "clusterQueue", kind=str),
        checks={one.get("name", ""): one.get("state", "") for one in checks},
        messages={one.get("name", ""): one.get("message", "") for one in checks},
        nominated=tuple(at(status, "nominatedClusterNames", kind=list)),
        cluster=at(status, "clusterName", kind=str),
        datasets=datasets_of(meta),
        version=at(meta, "resourceVersion", kind=str),
        uid=at(meta, "uid", kind=str),
        reserved_at=_of_condition(status, "QuotaReserved", "lastTransitionTime"),
        outcome=_of_condition(status, "Finished", "reason"),
    )


def _of_condition(status: Object, kind: str, field: str) -> str:
    """A field of a condition that is true; empty if it is not."""
    for one in at(status, "conditions", kind=list):
        if one.get("type") == kind and one.get("status") == "True":
            return str(one.get(field) or "")
    return ""


def datasets_of(meta: Object) -> tuple[str, ...]:
    """The datasets of an annotation."""
    text = at(meta, "annotations", DATASETS, kind=str)
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _admitted_flavors(status: Object, gpu_sets: set[str]) -> dict[str, str]:
    flavors = {}
    for one in at(status, "admission", "podSetAssignments", kind=list):
        by_kind = {resource_of(name): flavor for name, flavor in at(one, "flavors").items()}
        wanted = by_kind.get("gpu" if one.get("name") in gpu_sets else "cpu")
        flavor = wanted or next(iter(by_kind.values()), None)
        if flavor is not None:
            flavors[str(one.get("name"))] = str(flavor)
    return flavors


def _pod_set(found: Object) -> PodSet:
    pod = at(found, "template", "spec")
    count = at(found, "count", kind=int) if "count" in found else 1
    if isinstance(count, bool) or count < 0:
        raise InputError(f"count of pod set {found.get('name')} is {count}; expected a whole number of at least 0")
    return PodSet(
        name=str(found.get("name") or "main"),
        count=count,
        needs=_needs(pod),
        selector=_selector(pod),
        tolerations=tuple(
            Toleration(
                one.get("key") or "", one.get("operator") or "Equal", one.get("value") or "", one.get("effect") or ""
            )
            for one in at(pod, "tolerations", kind=list)
        ),
    )


def _needs(pod: Object) -> Needs:
    """What a pod asks for."""
    needs = dict.fromkeys(UNITS, 0)
    for name, value in pod_requests(pod).items():
        kind = resource_of(name)
        if kind:
            needs[kind] += base_units(value, kind)
    return needs["gpu"], needs["cpu"], needs["memory"]


def _selector(pod: Object) -> dict[str, frozenset[str]]:
    """Labels that nodes must have. Of a required affinity, the operator In of a single term; others are left to the
    cluster."""
    accepted = {label: frozenset({str(value)}) for label, value in at(pod, "nodeSelector").items()}
    path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    terms = at(pod, *path, kind=list)
    for one in at(terms[0], "matchExpressions", kind=list) if len(terms) == 1 else ():
        if one.get("operator") == "In":
            values = frozenset(map(str, one.get("values") or ()))
            accepted[one["key"]] = accepted.get(one["key"], values) & values
    return accepted


def cluster_queue(found: Object) -> ClusterQueue:
    """A ClusterQueue. Raises InputError."""
    spec = at(found, "spec")
    quotas: dict[str, dict[str, Quota]] = {}
    for group in at(spec, "resourceGroups", kind=list):
        for flavor in at(group, "flavors", kind=list):
            listed = quotas.setdefault(str(flavor.get("name")), {})
            for one in at(flavor, "resources", kind=list):
                kind = resource_of(str(one.get("name")))
                if kind:
                    listed[kind] = _quota(one, kind, f"{named(found)}, flavor {flavor.get('name')}")
    policy = at(spec, "preemption", "withinClusterQueue", kind=str)
    strategy = at(spec, "admissionChecksStrategy", "admissionChecks", kind=list)
    return ClusterQueue(
        name=at(found, "metadata", "name", kind=str),
        cohort=at(spec, "cohortName", kind=str) or at(spec, "cohort", kind=str),
        quotas=quotas,
        preempts=policy not in ("", "Never"),
        checks=(*at(spec, "admissionChecks", kind=list), *(str(one.get("name")) for one in strategy)),
        stopped=at(spec, "stopPolicy", kind=str) not in ("", "None"),
    )


def _quota(found: Object, kind: str, where: str) -> Quota:
    def limit(name: str) -> int | None:
        return None if found.get(name) is None else base_units(amount(found[name], f"{where}: {name}"), kind)

    return Quota(limit("nominalQuota") or 0, limit("borrowingLimit"), limit("lendingLimit"))


def flavor(found: Object) -> Flavor:
    """A ResourceFlavor."""
    spec = at(found, "spec")
    return Flavor(
        at(found, "metadata", "name", kind=str),
        {str(label): str(value) for label, value in at(spec, "nodeLabels").items()},
        tuple(
            Taint(one.get("key") or "", one.get("value") or "", one.get("effect") or "")
            for one in at(spec, "nodeTaints", kind=list)
        ),
    )


def cluster_view(
    name: str, objects: Iterable[Object], *, active: bool = True, read: Callable[[Object], Workload] = workload
) -> ClusterView:
    """A cluster from all of its objects; those of other kinds are passed over. Raises InputError."""
    queues, local, flavors, workloads = {}, {}, {}, []
    for one in objects:
        kind = one.get("kind")
        if kind == "ClusterQueue":
            queues[at(one, "metadata", "name", kind=str)] = cluster_queue(one)
        elif kind == "LocalQueue":
            namespace = at(one, "metadata", "namespace", kind=str) or "default"
            local[f"{namespace}/{at(one, 'metadata', 'name', kind=str)}"] = at(one, "spec", "clusterQueue", kind=str)
        elif kind == "ResourceFlavor":
            flavors[at(one, "metadata", "name", kind=str)] = flavor(one)
        elif kind == "Workload":
            workloads.append(read(one))
    return ClusterView(name, queues, local, flavors, tuple(workloads), active)

"""Kueue's objects from what an API server or a file says (``v1beta1`` and ``v1beta2``)."""

from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any

from mast_opt.core.errors import InputError
from mast_opt.core.quota_tree import Quota
from mast_opt.live.hosts.kueue import objects as kueue
from mast_opt.live.hosts.kueue.fields import POD_SET
from mast_opt.planner.importers.fields import stated
from mast_opt.planner.importers.pod_requests import amount, is_gpu, pod_requests

GROUP = "kueue.x-k8s.io"
DATASETS = "mast-opt.io/datasets"
"""Annotation of a workload, or of the job that it is made for: datasets that it reads, separated by commas."""
BOOST = "kueue.x-k8s.io/priority-boost"
"""Annotation of a workload: what is added to its priority."""
BOOST_BEFORE = "mast-opt.io/priority-boost-before"
"""Annotation of a workload whose boost is ours: the boost that it had before."""
GATED_BY = "kueue.x-k8s.io/admission-gated-by"
"""Annotation of a job: who keeps it from being admitted, with commas between them."""
QUEUE = "kueue.x-k8s.io/queue-name"
"""Label of a job: its LocalQueue."""
POD_ENDS_S = 30
"""Time that Kubernetes lets a pod end in that states none."""
KUEUE_ENDS_S = 30
"""Time until Kueue has seen the end of a limit, and it is seen that its quota is free."""
Object = Mapping[str, Any]


def at(found: Any, *path: str, kind: type[Any] = dict) -> Any:  # noqa: ANN401 - a part of an object
    """Value at a path of a Kubernetes object, empty where there is nothing. Raises InputError for something of another
    type.
    """
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


def workload(found: Object) -> kueue.Workload:
    """A Workload. Raises InputError."""
    try:
        return _workload(found)
    except InputError as error:
        raise InputError(f"{named(found)}: {error}") from None


def _limit(spec: Object) -> tuple[int | None, int | None]:
    """Limit of a workload, and its grace, in seconds: Kueue's limit, and the time that its pods may take to end; else
    Kubernetes' limits of its pods, after which a job may begin others."""
    pods = [at(one, "template", "spec") for one in at(spec, "podSets", kind=list)]
    limits = [one for pod in pods if isinstance(one := pod.get("activeDeadlineSeconds"), int) and one > 0]
    grace = [pod.get("terminationGracePeriodSeconds") for pod in pods]
    most = spec.get("maximumExecutionTimeSeconds")
    if isinstance(most, int) and most > 0:
        return most, KUEUE_ENDS_S + max((one if isinstance(one, int) else POD_ENDS_S for one in grace), default=0)
    return (min(limits), None) if limits else (None, 0)


def _workload(found: Object) -> kueue.Workload:
    """A Workload of Kueue from its object, without the checks of ``workload``."""
    spec, status, meta = at(found, "spec"), at(found, "status"), at(found, "metadata")
    pod_sets = tuple(_pod_set(one) for one in at(spec, "podSets", kind=list))
    if not pod_sets:
        raise InputError("it has no podSets")
    gpu_sets = {one.name for one in pod_sets if one.needs[0]}
    checks = at(status, "admissionChecks", kind=list)
    limit_s, limit_grace_s = _limit(spec)
    return kueue.Workload(
        namespace=meta.get("namespace") or "default",
        name=at(meta, "name", kind=str),
        queue=at(spec, "queueName", kind=str),
        priority=at(spec, "priority", kind=int),
        pod_sets=pod_sets,
        limit_s=limit_s,
        limit_grace_s=limit_grace_s,
        created=at(meta, "creationTimestamp", kind=str),
        active=spec.get("active") is not False,
        deleting=bool(meta.get("deletionTimestamp")),
        conditions=frozenset(
            one.get("type", "") for one in at(status, "conditions", kind=list) if one.get("status") == "True"
        ),
        held=_held(status, pod_sets),
        flavors=_admitted_flavors(status, gpu_sets),
        admitted_by=at(status, "admission", "clusterQueue", kind=str),
        checks={one.get("name", ""): one.get("state", "") for one in checks},
        messages={one.get("name", ""): one.get("message", "") for one in checks},
        nominated=tuple(at(status, "nominatedClusterNames", kind=list)),
        cluster=at(status, "clusterName", kind=str),
        datasets=datasets_of(meta),
        boost=at(meta, "annotations", BOOST, kind=str),
        boost_before=at(meta, "annotations").get(BOOST_BEFORE),
        gates=dict.fromkeys((str(one.get("name")) for one in at(spec, "preemptionGates", kind=list)), "Closed")
        | {str(one.get("name")): str(one.get("position")) for one in at(status, "preemptionGates", kind=list)},
        version=at(meta, "resourceVersion", kind=str),
        uid=at(meta, "uid", kind=str),
        reserved_at=_of_condition(status, "QuotaReserved", "lastTransitionTime"),
        outcome=_of_condition(status, "Finished", "reason"),
        owners=tuple(
            name
            for one in at(meta, "ownerReferences", kind=list)
            for name in (str(one.get("uid") or ""), f"{one.get('kind')}/{one.get('name')}")
            if name
        ),
    )


def _of_condition(status: Object, kind: str, field: str) -> str:
    """A field of a condition of a Workload that is true; empty if it is not."""
    for one in at(status, "conditions", kind=list):
        if one.get("type") == kind and one.get("status") == "True":
            return str(one.get(field) or "")
    return ""


def datasets_of(meta: Object) -> tuple[str, ...]:
    """The datasets that an annotation of a Workload names."""
    text = at(meta, "annotations", DATASETS, kind=str)
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _admitted_flavors(status: Object, gpu_sets: set[str]) -> dict[str, str]:
    """Pod set → the flavor on which it was admitted: that of its GPUs, if it has any."""
    flavors = {}
    for one in at(status, "admission", "podSetAssignments", kind=list):
        by_name = at(one, "flavors")
        gpus = (flavor for name, flavor in by_name.items() if is_gpu(name))
        wanted = next(gpus, None) if one.get("name") in gpu_sets else by_name.get("cpu")
        flavor = wanted or next(iter(by_name.values()), None)
        if flavor is not None:
            flavors[str(one.get("name"))] = str(flavor)
    return flavors


def _held(status: Object, pod_sets: tuple[kueue.PodSet, ...]) -> dict[kueue.Key, int]:
    """Amounts that an admission still holds: what was assigned for so many pods, without those that are not needed any
    more."""
    sets = {one.name: one for one in pod_sets}
    spare = {str(one.get("name")): at(one, "count", kind=int) for one in at(status, "reclaimablePods", kind=list)}
    held: dict[kueue.Key, int] = {}
    for one in at(status, "admission", "podSetAssignments", kind=list):
        name = str(one.get("name"))
        pods = sets.get(name)
        count = at(one, "count", kind=int) if one.get("count") is not None else (pods.count if pods else 0)
        left = max(0, count - spare.get(name, 0))
        stated = {name: _count(name, amount(value, name)) for name, value in at(one, "resourceUsage").items()}
        asked = {name: each * count for name, each in pods.requests.items()} if pods else {}
        for resource, flavor in at(one, "flavors").items():
            total = stated.get(resource, asked.get(resource, 0))
            key = str(flavor), str(resource)
            held[key] = held.get(key, 0) + -(-total * left // max(count, 1))
    return held


def _pod_set(found: Object) -> kueue.PodSet:
    """A pod set of a Workload from its object. Raises InputError."""
    pod = at(found, "template", "spec")
    count = at(found, "count", kind=int) if "count" in found else 1
    if isinstance(count, bool) or count < 0:
        raise InputError(f"count of pod set {found.get('name')} is {count}; expected a whole number of at least 0")
    return kueue.PodSet(
        name=str(found.get("name") or "main"),
        count=count,
        requests={resource: _count(resource, value) for resource, value in pod_requests(pod).items()},
        terms=_terms(pod),
        tolerations=tuple(
            kueue.Toleration(
                one.get("key") or "", one.get("operator") or "Equal", one.get("value") or "", one.get("effect") or ""
            )
            for one in at(pod, "tolerations", kind=list)
        ),
        least=at(found, "minCount", kind=int) if found.get("minCount") is not None else None,
        unknown=_unknown(found),
    )


def _count(resource: str, value: Decimal) -> int:
    """An amount as Kueue counts it: millicores, bytes, or how many, rounded up."""
    return int((value * 1000 if resource == "cpu" else value).to_integral_value(ROUND_CEILING))


def _terms(pod: Object) -> tuple[tuple[kueue.Expression, ...], ...]:
    """Terms that a node has to satisfy, by the node selector and the required node affinity."""
    always = tuple(
        kueue.Expression(label, "In", frozenset({str(value)})) for label, value in at(pod, "nodeSelector").items()
    )
    path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    terms = [
        tuple(
            kueue.Expression(
                str(one.get("key")), str(one.get("operator")), frozenset(map(str, one.get("values") or ()))
            )
            for one in at(term, "matchExpressions", kind=list)
        )
        for term in at(pod, *path, kind=list)
    ]
    return tuple((*always, *term) for term in terms) or (always,)


def _unknown(found: Object) -> tuple[str, ...]:
    """Fields of a pod set that are stated and that no rule here understands, in words."""
    return tuple(one.help for one in stated(found, POD_SET))


def cluster_queue(found: Object) -> kueue.ClusterQueue:
    """A ClusterQueue. Raises InputError."""
    spec = at(found, "spec")
    policy, borrowing = at(spec, "preemption"), at(spec, "preemption", "borrowWithinCohort")
    strategy = at(spec, "admissionChecksStrategy", "admissionChecks", kind=list)
    threshold = borrowing.get("maxPriorityThreshold")
    fungible = at(spec, "flavorFungibility")
    return kueue.ClusterQueue(
        name=at(found, "metadata", "name", kind=str),
        cohort=at(spec, "cohortName", kind=str) or at(spec, "cohort", kind=str),
        groups=tuple(
            kueue.Group(
                frozenset(map(str, at(group, "coveredResources", kind=list)))
                or frozenset(
                    str(one.get("name"))
                    for flavor in at(group, "flavors", kind=list)
                    for one in at(flavor, "resources", kind=list)
                ),
                tuple(str(flavor.get("name")) for flavor in at(group, "flavors", kind=list)),
            )
            for group in at(spec, "resourceGroups", kind=list)
        ),
        quotas=_quotas(found),
        preemption=kueue.Preemption(
            at(policy, "withinClusterQueue", kind=str) or "Never",
            at(policy, "reclaimWithinCohort", kind=str) or "Never",
            at(borrowing, "policy", kind=str) not in ("", "Never"),
            at(borrowing, "maxPriorityThreshold", kind=int) if threshold is not None else None,
        ),
        checks=(*at(spec, "admissionChecks", kind=list), *(str(one.get("name")) for one in strategy)),
        stopped=_stopped(found),
        borrows_first=at(fungible, "whenCanBorrow", kind=str) != "TryNextFlavor",
        preempts_first=at(fungible, "whenCanPreempt", kind=str) in ("Preempt", "MayStopSearch"),
    )


def _stopped(found: Object) -> str:
    """Reason why a ClusterQueue admits nothing; empty if it does."""
    if at(found, "spec", "stopPolicy", kind=str) not in ("", "None"):
        return "is stopped"
    for one in at(found, "status", "conditions", kind=list):
        if one.get("type") == "Active" and one.get("status") == "False":
            return f"is not active: {one.get('message') or one.get('reason')}"
    return ""


def cohort(found: Object) -> kueue.Cohort:
    """A Cohort. Raises InputError."""
    spec = at(found, "spec")
    parent = at(spec, "parentName", kind=str) or at(spec, "parent", kind=str)
    return kueue.Cohort(at(found, "metadata", "name", kind=str), parent, _quotas(found))


def _quotas(found: Object) -> dict[kueue.Key, Quota]:
    """(flavor, resource) → quota of a ClusterQueue or Cohort."""
    quotas: dict[kueue.Key, Quota] = {}
    for group in at(found, "spec", "resourceGroups", kind=list):
        for flavor in at(group, "flavors", kind=list):
            for one in at(flavor, "resources", kind=list):
                key = str(flavor.get("name")), str(one.get("name"))
                quotas[key] = _quota(one, key[1], f"{named(found)}, flavor {key[0]}")
    return quotas


def _quota(found: Object, resource: str, where: str) -> Quota:
    """Quota of a resource, with limits of borrowing and lending, as a ClusterQueue or Cohort states it."""

    def limit(name: str) -> int | None:
        value = found.get(name)
        return None if value is None else _count(resource, amount(value, f"{where}: {name}"))

    return Quota(limit("nominalQuota") or 0, limit("borrowingLimit"), limit("lendingLimit"))


def flavor(found: Object) -> kueue.Flavor:
    """A ResourceFlavor."""
    spec = at(found, "spec")
    return kueue.Flavor(
        at(found, "metadata", "name", kind=str),
        {str(label): str(value) for label, value in at(spec, "nodeLabels").items()},
        tuple(
            kueue.Taint(one.get("key") or "", one.get("value") or "", one.get("effect") or "")
            for one in at(spec, "nodeTaints", kind=list)
        ),
    )


def cluster_view(
    name: str, objects: Iterable[Object], *, active: bool = True, read: Callable[[Object], kueue.Workload] = workload
) -> kueue.ClusterView:
    """A cluster from all of its objects; those of other kinds are passed over. Raises InputError."""
    queues, local, flavors, cohorts = {}, {}, {}, {}
    held, workloads = set(), []
    for one in objects:
        kind = one.get("kind")
        own = at(one, "metadata", "name", kind=str)
        if kind == "ClusterQueue":
            queues[own] = cluster_queue(one)
        elif kind == "Cohort":
            cohorts[own] = cohort(one)
        elif kind == "LocalQueue":
            key = f"{at(one, 'metadata', 'namespace', kind=str) or 'default'}/{own}"
            local[key] = at(one, "spec", "clusterQueue", kind=str)
            if at(one, "spec", "stopPolicy", kind=str) not in ("", "None"):
                held.add(key)
        elif kind == "ResourceFlavor":
            flavors[own] = flavor(one)
        elif kind == "Workload":
            workloads.append(read(one))
    return kueue.ClusterView(name, queues, local, flavors, tuple(workloads), active, cohorts, frozenset(held))

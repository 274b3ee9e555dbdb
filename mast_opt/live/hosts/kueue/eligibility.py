"""Rules that say which pods may run on which flavor, and which workloads count towards a quota."""

from collections.abc import Collection, Mapping

from mast_opt.live.hosts.kueue.objects import Expression, Flavor, PodSet, Taint, Workload

HOLDS_QUOTA = ("QuotaReserved", "Admitted")
"""Conditions of a workload that counts towards the quota."""


def holds_quota(workload: Workload) -> bool:
    """Whether a workload counts towards a quota. One that is being deleted or not active holds it until Kueue takes it
    away."""
    return "Finished" not in workload.conditions and any(one in workload.conditions for one in HOLDS_QUOTA)


def accepts(flavor: Flavor, pods: PodSet) -> bool:
    """Whether pods may run on the nodes of Kueue's flavor."""
    return selects(pods, flavor.labels, flavor.labels.keys()) and all(tolerated(one, pods) for one in flavor.taints)


def selects(pods: PodSet, labels: Mapping[str, str], known: Collection[str]) -> bool:
    """Whether pods accept nodes with these labels, as far as it is about labels that flavors know."""
    return any(all(one.key not in known or _matches(one, labels) for one in term) for term in pods.terms)


def _matches(one: Expression, labels: Mapping[str, str]) -> bool:
    """Whether a node's labels satisfy an expression of a pod's node affinity."""
    value = labels.get(one.key)
    if one.operator in ("Gt", "Lt"):
        limit = next(iter(one.values), "")
        if value is None or not value.lstrip("-").isdigit() or not limit.lstrip("-").isdigit():
            return False
        return int(value) > int(limit) if one.operator == "Gt" else int(value) < int(limit)
    return {
        "In": value in one.values,
        "NotIn": value not in one.values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }.get(one.operator, False)


def tolerated(taint: Taint, pods: PodSet) -> bool:
    """Whether pods may run on nodes with a taint."""
    if taint.effect not in ("NoSchedule", "NoExecute"):
        return True
    return any(
        (one.key == taint.key or (not one.key and one.operator == "Exists"))
        and (one.operator == "Exists" or one.value == taint.value)
        and one.effect in ("", taint.effect)
        for one in pods.tolerations
    )

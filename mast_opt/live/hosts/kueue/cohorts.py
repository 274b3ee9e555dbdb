"""ClusterQueues and Cohorts of a cluster as nodes of a tree of quotas."""

from collections.abc import Mapping

from mast_opt.core.quota_tree import Quota
from mast_opt.live.hosts.kueue.objects import ClusterView, Key


def circles(cluster: ClusterView) -> frozenset[str]:
    """Queues and cohorts that have a cohort above them which is above itself; Kueue admits nothing there."""

    def in_circle(name: str, above: str) -> bool:
        seen = {name}
        while above:
            if above in seen:
                return True
            seen.add(above)
            above = cluster.cohorts[above].parent if above in cluster.cohorts else ""
        return False

    queues = (name for name, one in cluster.queues.items() if in_circle("", one.cohort))
    return frozenset(
        (*queues, *(f"cohort {name}" for name, one in cluster.cohorts.items() if in_circle(name, one.parent)))
    )


def nodes(
    cluster: ClusterView, above_themselves: frozenset[str]
) -> tuple[dict[str, str | None], dict[str, Mapping[Key, Quota]]]:
    """Nodes of Kueue's tree of quotas with their parents, and their quotas; cohorts are called ``cohort NAME``."""

    def above(node: str, name: str) -> str | None:
        return f"cohort {name}" if name and node not in above_themselves else None

    parents: dict[str, str | None] = {name: above(name, one.cohort) for name, one in cluster.queues.items()}
    parents |= {f"cohort {name}": above(f"cohort {name}", one.parent) for name, one in cluster.cohorts.items()}
    for name in [one for one in parents.values() if one is not None and one not in parents]:
        parents[name] = None
    quotas = {name: one.quotas for name, one in cluster.queues.items()}
    return parents, quotas | {f"cohort {name}": one.quotas for name, one in cluster.cohorts.items()}

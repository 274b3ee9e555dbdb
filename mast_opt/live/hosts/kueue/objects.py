"""Objects of Kueue, as far as they are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mast_opt.core.quota_tree import Quota
from mast_opt.planner.importers.pod_requests import is_gpu
from mast_opt.problems.job_placement.units import WHOLE

MIB = 2**20
Key = tuple[str, str]
"""Flavor and resource."""
Needs = tuple[int, int, int]
"""Milli-GPUs, millicores and MiB."""


@dataclass(frozen=True)
class Toleration:
    """Toleration of a taint."""

    key: str
    operator: str
    value: str
    effect: str


@dataclass(frozen=True)
class Taint:
    """Taint of the nodes of a flavor."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True)
class Expression:
    """Expression of a node selector or affinity."""

    key: str
    operator: str
    values: frozenset[str]


@dataclass(frozen=True)
class PodSet:
    """Equal pods of a workload."""

    name: str
    count: int
    requests: Mapping[str, int]
    """Requests of one pod: resource → millicores, bytes, or how many."""
    terms: tuple[tuple[Expression, ...], ...] = ((),)
    """Terms of the node affinity: all expressions of one of them hold for a node."""
    tolerations: tuple[Toleration, ...] = ()
    least: int | None = None
    """Fewest pods with which it may be admitted (``minCount``); None: all of them."""
    unknown: tuple[str, ...] = ()
    """Requests that nothing here looks at, and that may keep it from running."""

    @property
    def needs(self) -> Needs:
        """Needs of one pod, GPUs of every vendor together."""
        gpus = sum(count for name, count in self.requests.items() if is_gpu(name))
        return gpus * WHOLE, self.requests.get("cpu", 0), -(-self.requests.get("memory", 0) // MIB)


@dataclass(frozen=True)
class Workload:
    """A workload, and how far it has come."""

    namespace: str
    name: str
    queue: str
    """Its LocalQueue."""
    priority: int
    pod_sets: tuple[PodSet, ...]
    created: str = ""
    active: bool = True
    deleting: bool = False
    conditions: frozenset[str] = frozenset()
    """Types of conditions that are true."""
    held: Mapping[Key, int] = field(default_factory=dict)
    """Amounts that it has been admitted with and has not given back: (flavor, resource) → amount."""
    flavors: Mapping[str, str] = field(default_factory=dict)
    """Pod set → flavor of its GPUs, or of its processors where it has none; of an admission."""
    admitted_by: str = ""
    """ClusterQueue that has reserved quota for it."""
    checks: Mapping[str, str] = field(default_factory=dict)
    """Admission check → state."""
    messages: Mapping[str, str] = field(default_factory=dict)
    """Admission check → message."""
    nominated: tuple[str, ...] = ()
    cluster: str = ""
    """MultiKueue's choice."""
    datasets: tuple[str, ...] = ()
    """Datasets that it reads (annotation ``mast-opt.io/datasets``)."""
    version: str = ""
    """Resource version of the object."""
    uid: str = ""
    reserved_at: str = ""
    """Time when its quota was reserved; empty while it is not."""
    outcome: str = ""
    """Reason of the condition Finished."""
    owners: tuple[str, ...] = ()
    """Identities of the jobs that it was made for: their uid, and kind and name."""
    boost: str = ""
    """Annotation ``kueue.x-k8s.io/priority-boost``."""
    boost_before: str | None = None
    """Boost that ours has replaced; None if the boost is not ours."""
    gates: Mapping[str, str] = field(default_factory=dict)
    """Preemption gate → ``Open`` or ``Closed``."""
    limit_s: int | None = None
    """The longest that it may run; None for no limit."""
    limit_grace_s: int | None = 0
    """Longest time from its limit until Kueue has ended it; None: only its pods are ended, and others may follow."""

    @property
    def key(self) -> str:
        """Namespace and name of a workload of Kueue."""
        return f"{self.namespace}/{self.name}"

    @property
    def ended(self) -> bool:
        """Whether nothing is to be done for a workload of Kueue any more."""
        return self.deleting or not self.active or "Finished" in self.conditions


@dataclass(frozen=True)
class Preemption:
    """Preemption policies of a queue, as Kueue calls them: whom its workloads may stop."""

    within: str = "Never"
    reclaim: str = "Never"
    """Policy for other queues of the cohort that use more than their quota."""
    borrows: bool = False
    """Whether others may be stopped while the queue itself borrows."""
    threshold: int | None = None
    """Highest priority of those."""


@dataclass(frozen=True)
class Group:
    """Resources of a queue that take the same flavor."""

    resources: frozenset[str]
    flavors: tuple[str, ...]
    """Flavors in the order in which they are tried."""


@dataclass(frozen=True)
class ClusterQueue:
    """Quotas by flavor and resource."""

    name: str
    cohort: str
    groups: tuple[Group, ...]
    quotas: Mapping[Key, Quota]
    preemption: Preemption = Preemption()
    checks: tuple[str, ...] = ()
    stopped: str = ""
    """Reason why it admits nothing; empty if it does."""
    borrows_first: bool = True
    """Whether a flavor with borrowed quota is taken before the next one is tried (``whenCanBorrow``)."""
    preempts_first: bool = False
    """Whether work on a flavor is stopped before the next one is tried (``whenCanPreempt``)."""

    @property
    def flavors(self) -> tuple[str, ...]:
        """All flavors of a ClusterQueue."""
        return tuple(dict.fromkeys(flavor for group in self.groups for flavor in group.flavors))

    @property
    def preempts(self) -> bool:
        """Whether workloads of lower priority in this queue may be stopped."""
        return self.preemption.within != "Never"


@dataclass(frozen=True)
class Cohort:
    """Queues that share quota, and quota of their own."""

    name: str
    parent: str
    quotas: Mapping[Key, Quota]


@dataclass(frozen=True)
class Flavor:
    """Labels and taints of its nodes."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True)
class ClusterView:
    """A cluster as it is now."""

    name: str
    queues: Mapping[str, ClusterQueue]
    local_queues: Mapping[str, str]
    """namespace/name → ClusterQueue."""
    flavors: Mapping[str, Flavor]
    workloads: tuple[Workload, ...]
    active: bool = True
    """Whether MultiKueue is connected to it."""
    cohorts: Mapping[str, Cohort] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    """LocalQueues that admit nothing."""

"""What is read of Kueue's objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Needs = tuple[int, int, int]
"""Milli-GPUs, millicores and MiB."""


@dataclass(frozen=True)
class Toleration:
    """Of a taint."""

    key: str
    operator: str
    value: str
    effect: str


@dataclass(frozen=True)
class Taint:
    """Of the nodes of a flavor."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True)
class PodSet:
    """Equal pods of a workload."""

    name: str
    count: int
    needs: Needs
    """Of one pod."""
    selector: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Label of nodes → the values that the pods accept."""
    tolerations: tuple[Toleration, ...] = ()


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
    """What it reads (annotation ``mast-opt.io/datasets``)."""
    version: str = ""
    """``resourceVersion``."""
    uid: str = ""
    reserved_at: str = ""
    """When its quota was reserved; empty while it is not."""
    outcome: str = ""
    """Reason of the condition Finished."""

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def ended(self) -> bool:
        """Whether nothing is to be done for it any more."""
        return self.deleting or not self.active or "Finished" in self.conditions


@dataclass(frozen=True)
class Quota:
    """Of one resource of a flavor, in base units."""

    nominal: int
    borrowing: int | None = None
    """None: as much as the cohort has."""
    lending: int | None = None
    """None: everything."""


@dataclass(frozen=True)
class ClusterQueue:
    """Quotas by flavor and resource."""

    name: str
    cohort: str
    quotas: Mapping[str, Mapping[str, Quota]]
    """Flavor → ``gpu``, ``cpu``, ``memory`` → quota; a resource that no group covers is not listed."""
    preempts: bool
    """Whether workloads of lower priority in this queue may be stopped."""
    checks: tuple[str, ...] = ()
    stopped: bool = False


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

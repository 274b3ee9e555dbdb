"""Snapshot of a manager of MultiKueue and its workers, read from their API servers."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from mast_opt.core.errors import InputError
from mast_opt.live.hosts.kueue.api import ApiError, KubeApi, Objects
from mast_opt.live.hosts.kueue.eligibility import holds_quota
from mast_opt.live.hosts.kueue.objects import ClusterView, Workload
from mast_opt.live.hosts.kueue.reading import Object, at, cluster_view, workload

MULTIKUEUE = "kueue.x-k8s.io/multikueue"
"""Controller of the checks whose clusters are nominated."""
CHECK = "mast-opt.io/admission-check"
"""Controller of our own checks."""
OF_WORKERS = ("ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Workload")
PENDING = "Pending"
"""State of a check that nobody has answered."""


@dataclass(frozen=True)
class Managed:
    """A workload of the manager."""

    workload: Workload
    found: Object
    waits: bool
    """Whether it is our turn: it has quota on the manager, and waits for a cluster or for our check."""
    allowed: tuple[str, ...]
    """Clusters that it may be sent to."""


@dataclass(frozen=True)
class ManagerSnapshot:
    """Snapshot of a manager and its workers."""

    clusters: Mapping[str, ClusterView]
    managed: Mapping[str, Managed]
    """Key of a workload of the manager → it."""
    multikueue: frozenset[str]
    """Checks of MultiKueue."""
    ours: Mapping[str, Object]
    """Our own checks."""
    lost: Mapping[str, str]
    """Cluster → why it could not be read."""


class Reader:
    """Workloads as they are read; an object that is the same one as at the last look is not read again."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[Object, Workload]] = {}
        self._now: dict[int, tuple[Object, Workload]] = {}

    def begin(self) -> None:
        """Begin a new look at the objects of the API servers."""
        self._before, self._now = self._now, {}

    def read(self, found: Object) -> Workload:
        """Workload of an object, read once for each version."""
        known = self._before.get(id(found))
        if known is None or known[0] is not found:
            known = found, workload(found)
        self._now[id(found)] = known
        return known[1]


def take_snapshot(manager: KubeApi, workers: Mapping[str, KubeApi], reader: Reader | None = None) -> ManagerSnapshot:
    """Look at everything, without workers that cannot be reached. Raises ApiError if the manager cannot be.

    Args:
        reader: of the last look.
    """
    reader = reader or Reader()
    reader.begin()
    checks = {at(one, "metadata", "name", kind=str): one for one in manager.list("AdmissionCheck")}
    configs = {
        at(one, "metadata", "name", kind=str): tuple(at(one, "spec", "clusters", kind=list))
        for one in manager.list("MultiKueueConfig")
    }
    connected = {at(one, "metadata", "name", kind=str): is_active(one) for one in manager.list("MultiKueueCluster")}
    kinds = {name: at(one, "spec", "controllerName", kind=str) for name, one in checks.items()}
    multikueue = frozenset(name for name, kind in kinds.items() if kind == MULTIKUEUE)
    ours = {name: checks[name] for name, kind in kinds.items() if kind == CHECK}
    managed = {}
    for found in manager.list("Workload"):
        try:
            one = reader.read(found)
        except InputError:  # Kueue itself would not admit it
            continue
        allowed = [
            configs.get(at(checks[name], "spec", "parameters", "name", kind=str), tuple(workers))
            for name in one.checks
            if name in multikueue or name in ours
        ]
        common = tuple(name for name in allowed[0] if all(name in others for others in allowed)) if allowed else ()
        managed[one.key] = Managed(one, found, _waits(one, multikueue, ours), common)
    clusters, lost = {}, {}
    for name, api in workers.items():
        clusters[name], why = _worker(name, api, reader, connected=connected.get(name, True))
        if why:
            lost[name] = why
    return ManagerSnapshot(clusters, managed, multikueue, ours, lost)


def _worker(name: str, api: KubeApi, reader: Reader, *, connected: bool) -> tuple[ClusterView, str]:
    """A worker cluster of MultiKueue, and why it could not be read."""
    try:
        objects = (one for kind in OF_WORKERS for one in _listed(api, kind))
        return cluster_view(name, objects, active=connected, read=reader.read), ""
    except (ApiError, InputError) as error:
        return ClusterView(name, {}, {}, {}, (), active=False), str(error)


def _listed(api: KubeApi, kind: str) -> Objects:
    """Objects of a kind; none where the version of Kueue has no Cohorts."""
    try:
        return api.list(kind)
    except ApiError as error:
        if kind != "Cohort" or error.status != HTTPStatus.NOT_FOUND:
            raise
        return []


def _waits(one: Workload, multikueue: Collection[str], ours: Collection[str]) -> bool:
    """Whether it is our turn to nominate clusters for a workload."""
    if one.ended or not holds_quota(one) or "Admitted" in one.conditions:
        return False
    pending = {name for name, state in one.checks.items() if state == PENDING}
    return (not one.cluster and not pending.isdisjoint(multikueue)) or not pending.isdisjoint(ours)


def is_active(found: Object) -> bool:
    """Whether the condition Active of an object is true."""
    conditions = at(found, "status", "conditions", kind=list)
    return any(one.get("type") == "Active" and one.get("status") == "True" for one in conditions)

"""Events about what jobs run on and read: servers, quotas, datasets, and the hosts of regions."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.live.loop.event import Event


@dataclass(frozen=True, slots=True)
class ServerUp(Event):
    """A server is in service; one that was out of service may come back with other amounts, or elsewhere."""

    server: str
    region: str
    cluster: str
    rack: str
    gpu_type: str
    gpus: int
    cpu_mcores: int = 0
    memory_mib: int = 0


@dataclass(frozen=True, slots=True)
class ServerDown(Event):
    """A server is out of service. What ran there is reported stopped."""

    server: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class ServerClosed(Event):
    """A server takes no new job until it is opened, also when it breaks and comes back meanwhile."""

    server: str
    stop_ms: int | None = None
    """Time at which what still runs there is asked to stop; None for never."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class ServerOpened(Event):
    """A server that was closed takes jobs again."""

    server: str


@dataclass(frozen=True, slots=True)
class CapacitySet(Event):
    """A server or pool has another capacity."""

    server: str
    gpus: int
    cpu_mcores: int = 0
    memory_mib: int = 0


@dataclass(frozen=True, slots=True)
class QuotaSet(Event):
    """A tenant has another quota."""

    tenant: str
    mgpu: int | None
    """None: there is no limit any more."""
    gpu_type: str = ""
    """Empty: of all types together."""


@dataclass(frozen=True, slots=True)
class MoveAsked(Event):
    """A server is to become part of another cluster of its region. It takes no job until it has moved."""

    server: str
    cluster: str


@dataclass(frozen=True, slots=True)
class ServerMoved(Event):
    """Event of a server that is part of another cluster from now on."""

    server: str
    region: str
    cluster: str


@dataclass(frozen=True, slots=True)
class StorageSet(Event):
    """Event of a region's storage."""

    region: str
    storage_mb: int


@dataclass(frozen=True, slots=True)
class DatasetCreated(Event):
    """Event of a dataset that exists from now on, whole in these regions; of a known dataset, its size and owner
    change, and the regions are those where it is."""

    dataset: str
    size_mb: int
    regions: tuple[str, ...]
    namespace: str = ""
    """Namespace that owns the data."""


@dataclass(frozen=True, slots=True)
class CopyAsked(Event):
    """A replica is to be made."""

    dataset: str
    source: str
    region: str
    size_mb: int


@dataclass(frozen=True, slots=True)
class CopyProgress(Event):
    """Event of a copy under way: so much of the replica is there."""

    dataset: str
    region: str
    copied_mb: int


@dataclass(frozen=True, slots=True)
class CopyEnded(Event):
    """A copy has ended; only a whole one is a replica."""

    dataset: str
    region: str
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ReplicaDropped(Event):
    """A replica is deleted."""

    dataset: str
    region: str


@dataclass(frozen=True, slots=True)
class LeadTaken(Event):
    """Event of a process that leads from now on."""

    holder: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Timer(Event):
    """A time that something waited for."""

    name: str

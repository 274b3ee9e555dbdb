"""Copies on submission (policy ``mast``): no data is placed ahead. A job is bound to a region when it comes, and what
is missing there of its data is copied; the job waits for it."""

from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.region_loads import RegionLoads


def bind_with_copies(record: JobRecord, snapshot: Snapshot, actions: Actions, loads: RegionLoads) -> str | None:
    """Bind a job to the region with the largest share of GPUs left that can store all of its data, and ask for copies
    of what is not there. Replicas that no job bound to the region reads make room, the largest first, as long as
    another one is left.

    Returns:
        The region; None where no region that is large enough can have its data.
    """
    for region in loads.by_share(record, snapshot):
        missing = _missing(record, region, snapshot)
        dropped = None if missing is None else _room_for(record, missing, region, snapshot)
        if missing is None or dropped is None:
            continue
        for name in dropped:
            actions.drop(name, region)
        for name in missing:
            actions.copy(name, region)
        actions.bind(record.name, region)
        return region
    return None


def _missing(record: JobRecord, region: str, snapshot: Snapshot) -> list[str] | None:
    """Datasets that a job needs copied to a region; None if some of them cannot be, as they are nowhere whole or their
    size is not known, or if it may not read all of its data there.
    """
    data = snapshot.datasets
    if not all(data.may_be_in(name, region) for name in record.spec.datasets):
        return None
    missing = [
        name
        for name in record.spec.datasets
        if region not in data.whole_in(name) and (name, region) not in data.copying
    ]
    return missing if all(data.whole_in(name) and name in data.size_mb for name in missing) else None


def _room_for(record: JobRecord, missing: list[str], region: str, snapshot: Snapshot) -> list[str] | None:
    """Replicas to drop so that what is missing can be stored; None if there is no such choice."""
    data = snapshot.datasets
    most = data.storage_mb.get(region)
    if most is None or not missing:
        return []
    over = data.stored_mb.get(region, 0) + sum(data.size_mb[name] for name in missing) - most
    if over <= 0:
        return []
    read = set(record.spec.datasets)
    for other in snapshot.jobs.values():
        if region in (other.bound, other.region) or not other.bound:
            read.update(other.spec.datasets)
    sources = {(name, copying.source) for (name, _), copying in data.copying.items()}
    dropped: list[str] = []
    for name in sorted(data.size_mb, key=lambda name: -data.size_mb[name]):
        whole = data.whole_in(name)
        if region in whole and len(whole) > 1 and name not in read and (name, region) not in sources:
            dropped.append(name)
            over -= data.size_mb[name]
            if over <= 0:
                return dropped
    return None

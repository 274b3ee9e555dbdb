"""Datasets: sizes, the regions that hold each one whole, what is being copied, and what regions can store."""

from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass

from mast_opt.live.loop import events as ev

NOWHERE: frozenset[str] = frozenset()


@dataclass(slots=True)
class Copying:
    """A replica that is being made; it takes its whole room from the beginning."""

    source: str
    size_mb: int
    copied_mb: int = 0


class Datasets:
    """Datasets, their replicas and the copies under way. Only ``State.apply`` changes them.

    Args:
        replicas: dataset → regions that hold it in the beginning.
    """

    def __init__(self, replicas: Mapping[str, Collection[str]]) -> None:
        self.replicas = {name: frozenset(regions) for name, regions in replicas.items()}
        self.size_mb: dict[str, int] = {}
        """Sizes of datasets, of those whose size is known."""
        self.namespace: dict[str, str] = {}
        self.residency: dict[str, frozenset[str]] = {}
        """Datasets that may be copied and read in some regions only → these."""
        self.storage_mb: dict[str, int] = {}
        """Region → what it can store; a region that is not listed has no limit."""
        self.stored_mb: dict[str, int] = {}
        """Region → what replicas and copies under way take there."""
        self.copying: dict[tuple[str, str], Copying] = {}
        """(dataset, region) → the copy under way."""

    def whole_in(self, dataset: str) -> frozenset[str]:
        """The regions that hold, by the log, a dataset whole."""
        return self.replicas.get(dataset, NOWHERE)

    def may_be_in(self, dataset: str, region: str) -> bool:
        """Whether the residency of a dataset allows copies and jobs that read it in a region."""
        return region in self.residency.get(dataset, (region,))

    def readable_in(self, dataset: str) -> frozenset[str]:
        """The regions where jobs may read a dataset: it is there whole, and its residency allows it."""
        whole = self.whole_in(dataset)
        return whole & self.residency.get(dataset, whole)

    def has_room(self, region: str, size_mb: int) -> bool:
        """Whether a region can store that much more data, by the loop's state."""
        most = self.storage_mb.get(region)
        return most is None or self.stored_mb.get(region, 0) + size_mb <= most

    def created(self, event: ev.DatasetCreated) -> None:
        """Add a dataset, or change its size, owner or residency; its replicas stay where they were."""
        if not self.is_news(event):
            raise ev.Unfit(f"dataset {event.dataset} is there already")
        old_mb = self.size_mb.get(event.dataset, 0)
        self.size_mb[event.dataset], self.namespace[event.dataset] = event.size_mb, event.namespace
        self.replicas[event.dataset] = frozenset(event.regions)
        self.residency.pop(event.dataset, None)
        if event.residency:
            self.residency[event.dataset] = frozenset(event.residency)
        for region in event.regions:
            self._store(region, event.size_mb - old_mb)
        for (dataset, region), copying in self.copying.items():
            if dataset == event.dataset:
                self._store(region, event.size_mb - copying.size_mb)
                copying.size_mb = event.size_mb

    def is_news(self, event: ev.DatasetCreated) -> bool:
        """Whether an event says anything new of a dataset: its size, owner and residency, or that it exists."""
        if event.dataset not in self.size_mb:
            return True
        as_now = event.size_mb == self.size_mb[event.dataset] and event.namespace == self.namespace[event.dataset]
        as_now &= frozenset(event.residency) == self.residency.get(event.dataset, NOWHERE)
        return not as_now and self.replicas[event.dataset] == frozenset(event.regions)

    def copy_asked(self, event: ev.CopyAsked) -> None:
        """Begin the copy of a replica, which takes its whole room at once."""
        if event.source not in self.whole_in(event.dataset):
            raise ev.Unfit(f"dataset {event.dataset} is copied from {event.source}, which does not hold it")
        if event.region in self.whole_in(event.dataset) or (event.dataset, event.region) in self.copying:
            raise ev.Unfit(f"dataset {event.dataset} is in {event.region} already, or on its way")
        if not self.may_be_in(event.dataset, event.region):
            raise ev.Unfit(f"dataset {event.dataset} is copied to {event.region}, outside its residency")
        self.copying[event.dataset, event.region] = Copying(event.source, event.size_mb)
        self._store(event.region, event.size_mb)

    def progress(self, event: ev.CopyProgress) -> None:
        """Note how much of a replica is there."""
        copying = self.copying.get((event.dataset, event.region))
        if copying is None:
            raise ev.Unfit(f"dataset {event.dataset} is not being copied to {event.region}")
        copying.copied_mb = event.copied_mb

    def copy_ended(self, event: ev.CopyEnded) -> bool:
        """End a copy, perhaps one that was not asked for here; returns whether there is a replica more."""
        copying = self.copying.pop((event.dataset, event.region), None)
        if copying is not None and not event.whole:
            self._store(event.region, -copying.size_mb)
        if not event.whole or event.region in self.whole_in(event.dataset):
            return False
        if copying is None:
            self._store(event.region, self.size_mb.get(event.dataset, 0))
        self.replicas[event.dataset] = self.whole_in(event.dataset) | {event.region}
        return True

    def dropped(self, event: ev.ReplicaDropped) -> None:
        """Delete a replica of a dataset."""
        if event.region not in self.whole_in(event.dataset):
            raise ev.Unfit(f"dataset {event.dataset} is dropped in {event.region}, which does not hold it")
        self.replicas[event.dataset] -= {event.region}
        self._store(event.region, -self.size_mb.get(event.dataset, 0))

    def fits(self, event: ev.CopyProgress | ev.CopyEnded) -> bool:
        """Whether a report fits the present state."""
        copying = self.copying.get((event.dataset, event.region))
        if isinstance(event, ev.CopyProgress):
            return copying is not None and event.copied_mb > copying.copied_mb
        return copying is not None or (event.whole and event.region not in self.whole_in(event.dataset))

    def fields(self) -> tuple[object, ...]:
        """Fields of the datasets to compare states by."""
        return (
            sorted((name, sorted(regions)) for name, regions in self.replicas.items()),
            sorted(self.size_mb.items()),
            sorted(self.namespace.items()),
            *([sorted((name, sorted(where)) for name, where in self.residency.items())] if self.residency else ()),
            sorted(self.storage_mb.items()),
            sorted(self.stored_mb.items()),
            sorted((*pair, *astuple(copying)) for pair, copying in self.copying.items()),
        )

    def _store(self, region: str, size_mb: int) -> None:
        """Add to the MB that a region stores in the loop's state; a negative amount takes away."""
        self.stored_mb[region] = self.stored_mb.get(region, 0) + size_mb

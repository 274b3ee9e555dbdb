"""Independent check of what a log says about data and plans; it shares nothing with the engine."""

from collections.abc import Callable, Collection, Iterator, Mapping

from mast_opt.live.loop import events as ev


class DataCheck:
    """Replicas, storage and plans by the events alone.

    Args:
        wrong: takes what is wrong: a word, and a sentence.
        replicas: dataset → regions that hold it when the log begins.
    """

    def __init__(self, wrong: Callable[[str, str], None], replicas: Mapping[str, Collection[str]]) -> None:
        self._wrong = wrong
        self.replicas = {name: set(regions) for name, regions in replicas.items()}
        self._residency: dict[str, tuple[str, ...]] = {}
        self._size: dict[str, int] = {}
        self._storage: dict[str, int] = {}
        self._copying: dict[tuple[str, str], int] = {}
        self._keep: dict[tuple[str, str], int] = {}
        """(dataset, region) of a deletion in a plan → whole replicas to be left."""
        self._asked: dict[str, str] = {}
        self._plans: set[tuple[str, str]] = set()
        """(path, plan) that may be adopted."""

    def holds(self, dataset: str, region: str) -> bool:
        """Whether a region holds a dataset whole, by the events of the log."""
        return region in self.replicas.get(dataset, ())

    def may_be_in(self, dataset: str, region: str) -> bool:
        """Whether the log allows a dataset to be copied to, and read in, a region."""
        return not (regions := self._residency.get(dataset)) or region in regions

    def outside_residency(self, job: str, datasets: Collection[str], region: str) -> Iterator[str]:
        """Sentences on datasets that a job may not read in the region where it is placed."""
        for name in datasets:
            if not self.may_be_in(name, region):
                yield f"job {job} reads {name} in {region}, outside the residency of that data"

    def storage_set(self, event: ev.StorageSet) -> None:
        """Check an event that sets the storage of a region."""
        self._storage[event.region] = event.storage_mb

    def created(self, event: ev.DatasetCreated) -> None:
        """Take in that there is a dataset, or that one that there was has another size, owner or
        residency."""
        if event.dataset in self._size and self.replicas[event.dataset] != set(event.regions):
            self._wrong("data", f"dataset {event.dataset} was created before, and is elsewhere")
        for dataset, region in self._copying:
            if dataset == event.dataset:
                self._copying[dataset, region] = event.size_mb
        self._size[event.dataset], self._residency[event.dataset] = event.size_mb, event.residency
        self.replicas[event.dataset] = set(event.regions)

    def copy_asked(self, event: ev.CopyAsked) -> None:
        """Check the begin of a copy, which takes its whole room at once."""
        if not self.holds(event.dataset, event.source):
            self._wrong("data", f"{event.dataset} is copied from {event.source}, which does not hold it whole")
        if self.holds(event.dataset, event.region) or (event.dataset, event.region) in self._copying:
            self._wrong("data", f"{event.dataset} is copied to {event.region}, where it is or is on its way")
        if event.size_mb != self._size.get(event.dataset, event.size_mb):
            self._wrong("data", f"a copy of {event.dataset} has {event.size_mb} MB, not {self._size[event.dataset]}")
        if not self.may_be_in(event.dataset, event.region):
            self._wrong("data", f"{event.dataset} is copied to {event.region}, outside its residency")
        self._copying[event.dataset, event.region] = event.size_mb
        stored = sum(self._size.get(name, 0) for name, regions in self.replicas.items() if event.region in regions)
        stored += sum(size for (_, region), size in self._copying.items() if region == event.region)
        most = self._storage.get(event.region)
        if most is not None and stored > most:
            self._wrong("storage", f"with {event.dataset}, {event.region} stores {stored:,} MB; it has {most:,}")

    def copy_ended(self, event: ev.CopyEnded) -> None:
        """Check the end of a copy; only a whole one is a replica."""
        self._copying.pop((event.dataset, event.region), None)
        if event.whole:
            self.replicas.setdefault(event.dataset, set()).add(event.region)

    def dropped(self, event: ev.ReplicaDropped) -> None:
        """Check the deletion of a replica."""
        if not self.holds(event.dataset, event.region):
            self._wrong("data", f"{event.dataset} is deleted in {event.region}, which does not hold it")
            return
        self.replicas[event.dataset].discard(event.region)
        keep = self._keep.get((event.dataset, event.region), 1)
        left = len(self.replicas[event.dataset])
        if left < keep:
            self._wrong("data", f"{left} whole replicas of {event.dataset} are left, not {keep}")

    def solve_asked(self, event: ev.SolveAsked) -> None:
        """Take in that a solve for a plan begins."""
        if event.path in self._asked:
            self._wrong("plan", f"path {event.path} asks for a plan while it waits for another")
        self._asked[event.path] = event.checksum

    def solve_ended(self, event: ev.SolveEnded) -> None:
        """Check the end of a solve for a plan."""
        if self._asked.pop(event.path, None) != event.checksum:
            self._wrong("plan", f"path {event.path} has not asked for the plan of {event.checksum}")
        if event.plan:
            self._plans.add((event.path, event.plan))

    def adopted(self, event: ev.PlanAdopted) -> None:
        """Check the adoption of a plan of data."""
        if (event.path, event.plan) not in self._plans:
            self._wrong("plan", f"path {event.path} adopts {event.plan}, which no solve has brought")
        for step in event.steps:
            if step.does == ev.DROP:
                self._keep[step.name, step.target] = step.keep

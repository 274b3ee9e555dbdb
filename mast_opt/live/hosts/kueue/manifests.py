"""A folder of YAML, as a picture of clusters: what ``kubectl get -A -o yaml`` gives, or what a user would apply.

    DIR/manager/*.yaml        workloads that wait (and MultiKueueCluster, MultiKueueConfig, which may be missing)
    DIR/workers/NAME/*.yaml   ClusterQueue, LocalQueue, ResourceFlavor, and workloads that run
    DIR/replicas.csv          dataset,cluster (may be missing)

Without ``workers`` the whole folder is one cluster, and its workloads that have no quota wait.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mast_opt.core.errors import InputError
from mast_opt.core.limits import MOST_DOCUMENT_BYTES, read_regular
from mast_opt.live.hosts.kueue.eligibility import holds_quota
from mast_opt.live.hosts.kueue.fields import WARNED
from mast_opt.live.hosts.kueue.objects import ClusterView, Workload
from mast_opt.live.hosts.kueue.reading import QUEUE, Object, at, cluster_view, named, workload
from mast_opt.planner.importers.fields import stated
from mast_opt.planner.importers.notices import warn
from mast_opt.planner.importers.yaml_file import yaml_documents

REPLICAS = "replicas.csv"
ENDS = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
"""Conditions of a Job that has ended, or starts no more pods."""
META = ("namespace", "name", "uid", "creationTimestamp", "annotations")
"""Metadata that a Workload takes over from its Job."""
LEAST = "kueue.x-k8s.io/job-min-parallelism"
"""Annotation of a Job: fewest pods with which it may be admitted."""
MOST_OBJECTS = 1_000_000


@dataclass(frozen=True)
class Picture:
    """Clusters, and the workloads that wait."""

    clusters: tuple[ClusterView, ...]
    waiting: tuple[Workload, ...]
    replicas: Mapping[str, frozenset[str]]


def read_manifests(folder: Path) -> Picture:
    """The picture of Kueue's clusters in a folder of YAML.

    Raises:
        InputError: a file or object that cannot be used.
        BackendUnavailable: PyYAML is missing.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; expected one with YAML files of Kueue's objects")
    workers = folder / "workers"
    if workers.is_dir():
        clusters = tuple(cluster_view(path.name, _objects(path)) for path in _workers(folder))
        manager = folder / "manager"
        found = list(_objects(manager) if manager.is_dir() else _objects(folder, "*"))
    else:
        found = list(_objects(folder))
        clusters = (cluster_view(folder.name, found),)
    _warn_of_fields([*found, *(one for path in _workers(folder) for one in _objects(path))])
    if not any(one.queues for one in clusters):
        raise InputError(f"{folder} has no ClusterQueue; expected some, in files of workers/NAME")
    path = folder / REPLICAS
    replicas = read_replicas(path, {one.name for one in clusters}) if path.exists() else {}
    return Picture(clusters, _waiting(found), replicas)


def _workers(folder: Path) -> list[Path]:
    """Folders with the YAML of worker clusters."""
    workers = folder / "workers"
    return [path for path in sorted(workers.iterdir()) if path.is_dir()] if workers.is_dir() else []


def _warn_of_fields(objects: Iterable[Object]) -> None:
    """Warn of what objects state and nothing here looks at."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in objects:
        for field in stated(one, WARNED.get(str(one.get("kind")), ())):
            found.setdefault((field.name, field.help), []).append(named(one))
    for (name, why), names in found.items():
        warn("Kueue's objects", why, column=name, values=names)


def _waiting(objects: list[Object]) -> tuple[Workload, ...]:
    """Workloads that wait, and Jobs that have no Workload yet; each piece of work once, and nothing that has ended."""
    read = [workload(one) for one in objects if one.get("kind") == "Workload"]
    known = {(one.namespace, owner) for one in read for owner in one.owners}
    found = [one for one in read if not one.ended and not holds_quota(one)]
    for one in objects:
        if one.get("kind") == "Job" and at(one, "metadata", "labels", QUEUE, kind=str) and _waits(one):
            names = at(one, "metadata", "uid", kind=str), f"Job/{at(one, 'metadata', 'name', kind=str)}"
            namespace = at(one, "metadata", "namespace", kind=str) or "default"
            if not any((namespace, name) in known for name in names if name):
                found.append(workload(as_workload(one)))
    return tuple(found)


def _waits(job: Object) -> bool:
    """Whether a Job has pods to start: it has not ended, is not being deleted, and has none that run."""
    conditions = at(job, "status", "conditions", kind=list)
    over = any(one.get("type") in ENDS and one.get("status") == "True" for one in conditions)
    return (
        not over
        and not at(job, "metadata", "deletionTimestamp", kind=str)
        and not at(job, "status", "active", kind=int)
    )


def as_workload(job: Object) -> dict[str, Any]:
    """The Workload that Kueue makes for a Job of Kubernetes, for as many pods as run at once; the name is the job's,
    and its priority 0."""
    spec, meta = at(job, "spec"), at(job, "metadata")
    count = spec.get("parallelism", 1)
    if spec.get("completions") is not None:
        count = min(count, max(0, at(spec, "completions", kind=int) - at(job, "status", "succeeded", kind=int)))
    pods: dict[str, Any] = {"name": "main", "count": count, "template": at(spec, "template")}
    least = at(meta, "annotations", LEAST, kind=str)
    if least.isdigit():
        pods["minCount"] = int(least)
    return {
        "kind": "Workload",
        "metadata": {name: meta[name] for name in META if name in meta},
        "spec": {"queueName": at(meta, "labels", QUEUE, kind=str), "podSets": [pods]},
    }


def _objects(folder: Path, pattern: str = "**/*") -> Iterator[Object]:
    """Objects of the files of a folder, and of those below it unless the pattern says otherwise."""
    for path in sorted(folder.glob(pattern)):
        if path.suffix in (".yaml", ".yml", ".json") and path.is_file():
            yield from _file(path)


def _file(path: Path) -> Iterator[Object]:
    """Objects of Kubernetes in a YAML file. Raises InputError, and BackendUnavailable without PyYAML."""
    count = 0
    for document in yaml_documents(path):
        if document is None:
            continue
        items = document.get("items") if isinstance(document, dict) and "items" in document else [document]
        for one in items if isinstance(items, list) else [items]:
            count += 1
            if not isinstance(one, dict) or not isinstance(one.get("kind"), str) or count > MOST_OBJECTS:
                raise InputError(f"{path}: found {str(one)[:60]!r}; expected objects of Kubernetes, each with a kind")
            try:
                named(one)
            except InputError as error:
                raise InputError(f"{path}: {error}") from None
            yield one


class ReplicaFile(Mapping[str, frozenset[str]]):
    """Replicas by dataset, of a file that is read again whenever it has changed; while it cannot be read, or names
    other clusters, they are as before. Arguments and errors as of ``read_replicas``.
    """

    def __init__(self, path: Path, clusters: set[str]) -> None:
        self._path, self._clusters = path, clusters
        self._version = self._stat()
        self._found = read_replicas(path, clusters)

    def _stat(self) -> tuple[int, int]:
        """Time of the last change of the file of replicas, and its length; zeros while there is none."""
        try:
            found = self._path.stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_size

    def _now(self) -> dict[str, frozenset[str]]:
        """Replicas as the file has them now."""
        version = self._stat()
        if version != self._version:
            self._version = version
            with suppress(InputError):
                self._found = read_replicas(self._path, self._clusters)
        return self._found

    def __getitem__(self, dataset: str) -> frozenset[str]:
        return self._now()[dataset]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())


def read_replicas(path: Path, clusters: set[str] | None = None) -> dict[str, frozenset[str]]:
    """Dataset → clusters that hold it, from a file with the columns dataset and cluster. Raises InputError."""
    try:
        rows = list(csv.reader(read_regular(path, MOST_DOCUMENT_BYTES).decode().splitlines()))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if not rows or rows[0] != ["dataset", "cluster"]:
        raise InputError(f"{path}: expected a first line dataset,cluster")
    found: dict[str, frozenset[str]] = {}
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != 2 or (clusters is not None and row[1] not in clusters):
            known = "" if clusters is None else f" of {', '.join(sorted(clusters))}"
            raise InputError(f"{path}, row {number}: found {','.join(row)!r}; expected a dataset and one{known}")
        found[row[0]] = found.get(row[0], frozenset()) | {row[1]}
    return found

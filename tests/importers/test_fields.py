"""What importers say they read is what they read: every access to a parsed object is recorded."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mast_opt.live.hosts.kueue import manifests, reading
from mast_opt.live.hosts.kueue.fields import WARNED
from mast_opt.live.simulation.traces.importers import TRACE_IMPORTERS
from mast_opt.live.simulation.traces.slurm import sacct_json
from mast_opt.planner.importers import IMPORTERS
from mast_opt.planner.importers.fields import Field, stated, values_at
from mast_opt.planner.importers.mapped import dumps
from mast_opt.planner.importers.slurm_nodes import node_in
from tests.hosts.kueue.objects import condition, flavor, local_queue, pods, queue, running

DOCS = Path(__file__).parents[2] / "docs"
Object = dict[str, Any]


def _page() -> Any:
    """The script of the page, which states the fields that are read."""
    spec = importlib.util.spec_from_file_location("importers_page", DOCS / "importers_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGE = _page()
FIELDS = PAGE.KUEUE_FIELDS


class Watched(dict[str, Any]):
    """An object that records the path of every key that is asked for."""

    def __init__(self, found: Object, log: set[str], path: str = "") -> None:
        super().__init__({key: self._wrapped(value, log, f"{path}{key}") for key, value in found.items()})
        self._log, self._path = log, path

    @classmethod
    def _wrapped(cls, value: object, log: set[str], path: str) -> object:
        if isinstance(value, dict):
            return cls(value, log, f"{path}.")
        if isinstance(value, list):
            return [cls._wrapped(one, log, f"{path}[]") for one in value]
        return value

    def get(self, key: str, default: Any = None) -> Any:
        self._log.add(self._path + key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self._log.add(self._path + key)
        return super().__getitem__(key)


def read_of(read: Callable[[Object], object], *samples: Object) -> set[str]:
    """Paths that a reader asks for, without those on the way to others."""
    log: set[str] = set()
    for sample in samples:
        read(Watched(sample, log))
    whole = {path for path in log if not any(_within(other, path) for other in log)}
    return whole - {"kind", *(() if any("namespace" in one.get("metadata", {}) for one in samples) else MESSAGES)}


MESSAGES = ("metadata.namespace",)
"""What messages ask of objects that are in no namespace."""


def _within(path: str, of: str) -> bool:
    return path.startswith((f"{of}.", f"{of}[]"))


def _ways(paths: set[str]) -> set[str]:
    """Every path on the way to these."""
    split = [path.split(".") for path in paths]
    return {".".join(parts[:at]).removesuffix("[]") for parts in split for at in range(1, len(parts))}


def covered(path: str, fields: tuple[Any, ...]) -> bool:
    """Whether a path is declared, is part of something that is, or leads there."""
    names = [one.name.removesuffix("[]") for one in fields]
    return any(path == one or _within(path, one) or _within(one, path) for one in names)


RESOURCES = {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
TERM = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
POD = {
    "containers": [{"name": "c", "resources": RESOURCES}],
    "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": RESOURCES}],
    "overhead": {"cpu": "1"},
    "resources": RESOURCES,
    "resourceClaims": [{"name": "x"}],
    "nodeSelector": {"a": "b"},
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}},
    "tolerations": [{"key": "a"}],
    "nodeName": "n",
    "priority": 1,
}
OWNER = [{"uid": "u", "kind": "Job", "name": "j"}]
META = {"name": "w", "namespace": "n", "uid": "u", "creationTimestamp": "t", "ownerReferences": OWNER, "labels": {}}
HAS = [{"name": "c", "resources": RESOURCES, "allocatedResources": {"cpu": 1}}, {"name": "i", "resources": RESOURCES}]
STATUS = {"phase": "Running", "containerStatuses": HAS, "initContainerStatuses": HAS, "conditions": [{"type": "Ready"}]}
LISTED = {"set": True, "number": 1}


def workload() -> Object:
    found = running("w", {**pods(), "minCount": 1, "topologyRequest": {"required": "rack"}, "template": {"spec": POD}})
    found["status"]["reclaimablePods"] = [{"name": "main", "count": 0}]
    found["status"]["admissionChecks"] = [{"name": "a", "state": "Ready", "message": ""}]
    found["spec"]["preemptionGates"] = [{"name": "gate"}]
    found["status"]["preemptionGates"] = [{"name": "gate", "position": "Open"}]
    found["metadata"]["ownerReferences"] = OWNER
    return found


def cluster_queue() -> Object:
    policy = {"borrowWithinCohort": {"policy": "Never", "maxPriorityThreshold": 1}}
    checks = {"admissionChecks": [{"name": "x"}]}
    selector: Object = {"matchLabels": {}, "matchExpressions": []}
    found = queue(preemption=policy, flavorFungibility={}, admissionChecksStrategy=checks, namespaceSelector=selector)
    return {**found, "status": {"conditions": [condition("Active")]}}


JOB: Object = {
    "kind": "Job",
    "metadata": {**META, "labels": {reading.QUEUE: "q"}},
    "spec": {"parallelism": 2, "completions": 3, "template": {"spec": POD}},
    "status": {"conditions": [condition("Suspended")], "succeeded": 1},
}
NODE: Object = {
    "name": "n",
    "gres": "gpu:2",
    "cpus": 8,
    "real_memory": 10,
    "partitions": ["p"],
    "state": ["IDLE"],
    "effective_cpus": 6,
}
SINFO: Object = {
    "nodes": {"nodes": ["n"]},
    "node": {"state": ["IDLE"]},
    "partition": {"name": "p"},
    "cluster": "c",
    "gres": {"total": "gpu:2"},
    "cpus": {"minimum": 1, "maximum": 1},
    "memory": {"minimum": 1, "maximum": 1},
    "resource_spec": {"cpus": "0", "memory": 0},
}
SACCT = Path(__file__).parents[1] / "simulation/traces/data/sacct-24.11.json"


def with_warnings_of(read: Callable[[Object], object], warned: tuple[Field, ...]) -> Callable[[Object], object]:
    """A reader, and the warnings of what it does not read."""
    return lambda one: (read(one), stated(one, warned))


def of_view(one: Object) -> object:
    return reading.cluster_view("c", [one])


def series(one: Object) -> object:
    return dumps._series("f", one)


def rows(of: Object) -> Iterator[Object]:
    """Rows of a real file, numbers as the reader wants them."""
    return iter(json.loads(json.dumps(of))["jobs"])


NODE_OF_KUBERNETES: Object = {
    "metadata": META,
    "spec": {"unschedulable": False},
    "status": {"capacity": {"cpu": 1}, "conditions": [{"type": "Ready", "status": "True"}]},
}

READERS: dict[str, tuple[Callable[[Object], object], tuple[Any, ...], list[Object]]] = {
    "Workload": (of_view, FIELDS["Workload"], [workload()]),
    "ClusterQueue": (of_view, FIELDS["ClusterQueue"], [cluster_queue()]),
    "Cohort": (of_view, FIELDS["Cohort"], [{**cluster_queue(), "kind": "Cohort"}]),
    "LocalQueue": (of_view, FIELDS["LocalQueue"], [local_queue()]),
    "ResourceFlavor": (of_view, FIELDS["ResourceFlavor"], [flavor(labels={"a": "b"}, nodeTaints=[{"key": "x"}])]),
    "Job": (lambda one: manifests._waiting([one]), FIELDS["Job"], [JOB]),
    "kubectl Node": (
        dumps._node,
        PAGE.NODE.fields,
        [NODE_OF_KUBERNETES],
    ),
    "kubectl Pod": (dumps._pod, PAGE.POD.fields, [{"metadata": META, "spec": POD, "status": STATUS}]),
    "Prometheus": (series, PAGE.SERIES.fields, [{"metric": {"a": "b"}, "values": [[0, "1"]]}]),
    "scontrol": (node_in, PAGE.SCONTROL.fields, [NODE]),
    "sinfo": (node_in, PAGE.SINFO.fields, [SINFO]),
}


UNREAD: dict[str, tuple[Field, ...]] = {
    **WARNED,
    "kubectl Pod": dumps.UNREAD_OF_PODS,
    "Prometheus": (Field("histograms", "looked for before a series is read"),),
}


@pytest.mark.parametrize("name", READERS)
def test_what_is_declared_is_what_is_read(name: str) -> None:
    read, fields, samples = READERS[name]
    asked = read_of(with_warnings_of(read, UNREAD.get(name, ())), *samples)
    unsaid = sorted(path for path in asked if not covered(path, fields))
    assert unsaid == []
    declared = [one.name.removesuffix("[]") for one in fields]
    unread = [one for one in declared if not any(one == path or _within(path, one) for path in {*asked, *_ways(asked)})]
    assert unread == []


def test_a_row_of_sacct_in_json() -> None:
    from mast_opt.planner.io.faults import Faults
    from mast_opt.planner.io.readers.json_file import parse_object

    content = parse_object(SACCT.read_bytes(), "sacct.json", "jobs", Faults())
    assert content is not None
    asked = read_of(lambda job: sacct_json._job(1, job), *content["jobs"])
    plain = {path.removesuffix(".number").removesuffix(".set") for path in asked}
    declared = {field.name for field in PAGE.JSON.fields if not field.name.startswith(("state ", "TRES "))}
    assert plain == declared


def test_paths() -> None:
    found = {"a": [{"b": 1}, {"b": 2}, {}], "c": {"d": []}}
    assert list(values_at(found, "a[].b")) == [1, 2, None]
    fields = (Field("a[].b", ""), Field("c.d", ""), Field("e", ""))
    assert [one.name for one in stated(found, fields)] == ["a[].b"]


def test_every_importer_is_on_the_page() -> None:
    assert PAGE.FORMATS.keys() == {*IMPORTERS, *TRACE_IMPORTERS}
    again = "python docs/importers_page.py writes it"
    assert (DOCS / "importers.md").read_text(encoding="utf-8") == PAGE.page(), again

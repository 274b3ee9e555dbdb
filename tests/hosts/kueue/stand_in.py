"""A stand-in for API servers and for Kueue's controllers: it replays their rules as read in Kueue's sources, and is
neither of them.

``StandIn`` keeps objects, applies and merges patches of a status with field managers, and refuses what Kueue's
validation refuses. ``Kueue`` does what the controllers of a MultiKueue manager and its workers do: it reserves quota,
copies nominated workloads to workers, admits them there if they fit, and names the cluster that was first.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from mast_opt.live.hosts.kueue.admission import Admission, Offer
from mast_opt.live.hosts.kueue.api import ApiError, Objects
from mast_opt.live.hosts.kueue.manager_snapshot import OF_WORKERS
from mast_opt.live.hosts.kueue.patches import APPLY, Patch
from mast_opt.live.hosts.kueue.reading import cluster_view
from tests.hosts.kueue.objects import NOW, Object, admission, condition

Path = tuple[str, ...]
KEYED = {"conditions": "type", "admissionChecks": "name", "podSetAssignments": "name", "preemptionGates": "name"}
"""Lists whose items have a key."""


def leaves(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Path → what lies there; items of keyed lists have a path of their own."""
    name = path[-1] if path else ""
    if isinstance(value, Mapping) and (value or not path):
        return {at: leaf for key, below in value.items() for at, leaf in leaves(below, (*path, f"f:{key}")).items()}
    if isinstance(value, list) and name[2:] in KEYED:
        key = KEYED[name[2:]]
        return {
            at: leaf
            for item in value
            for at, leaf in leaves(item, (*path, f"k:{json.dumps({key: item[key]})}")).items()
        }
    return {path: value}


def tree(found: Mapping[Path, Any]) -> Any:
    """The inverse of ``leaves``."""
    root: dict[str, Any] = {}
    for path, value in found.items():
        at = root
        for name in path[:-1]:
            at = at.setdefault(name, {})
        at[path[-1]] = ("leaf", value)
    return _built(root)


def _built(node: Any) -> Any:
    if isinstance(node, tuple):
        return node[1]
    if node and all(name.startswith("k:") for name in node):
        return [_built(below) for below in node.values()]
    return {name[2:]: _built(below) for name, below in node.items()}


class StandIn:
    """An API server for Kueue's kinds; see ``KubeApi``."""

    def __init__(self, *objects: Object, clears: bool = False) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.owners: dict[tuple[str, str, str], dict[str, tuple[str, set[Path]]]] = {}
        self.events: list[tuple[str, str, str]] = []
        self.clears = clears
        self.down = ""
        self.coming: list[tuple[str, list[Object]]] = []
        """What a watch brings after everything that is there; then it ends."""
        self.closed = False
        self.version = 0
        for one in objects:
            self.create(one)

    def create(self, one: Object) -> None:
        one = copy.deepcopy(one)
        one.setdefault("status", {})
        self._put(self._key(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]), one)

    @staticmethod
    def _key(kind: str, namespace: str, name: str) -> tuple[str, str, str]:
        return kind, namespace, name

    def _put(self, key: tuple[str, str, str], one: Object) -> None:
        self.version += 1
        one["metadata"]["resourceVersion"] = str(self.version)
        managed = []
        for manager, (operation, paths) in self.owners.get(key, {}).items():
            fields: Object = {}
            for path in sorted(paths):
                at = fields
                for name in path:
                    at = at.setdefault(name, {})
                    if name.startswith("k:"):
                        at.setdefault(".", {})
            entry = {"manager": manager, "operation": operation, "fieldsV1": {"f:status": fields}}
            managed.append({**entry, "subresource": "status"})
        one["metadata"]["managedFields"] = managed
        self.objects[key] = one

    def get(self, name: str, kind: str = "Workload", namespace: str = "default") -> Object:
        return self.objects[kind, namespace if kind in ("Workload", "LocalQueue") else "", name]

    def has(self, name: str) -> bool:
        return ("Workload", "default", name) in self.objects

    def remove(self, name: str) -> None:
        self.objects.pop(("Workload", "default", name), None)
        self.owners.pop(("Workload", "default", name), None)

    # --- KubeApi ---

    def list(self, kind: str) -> list[Object]:
        self._reach()
        return [copy.deepcopy(one) for key, one in self.objects.items() if key[0] == kind]

    def follow(self, kind: str) -> Iterator[tuple[str, Objects]]:
        yield "", self.list(kind)
        yield from self.coming

    def clears_nominations(self) -> bool:
        return self.clears

    def record(self, about: Mapping[str, Any], reason: str, message: str, now: str) -> None:
        self.events.append((about["metadata"]["name"], reason, message))

    def close(self) -> None:
        self.closed = True

    def patch(self, patch: Patch) -> None:
        self._reach()
        key = self._key(patch.kind, patch.namespace, patch.name)
        if key not in self.objects:
            raise ApiError(404, f"{patch.name} not found")
        version = patch.body.get("metadata", {}).get("resourceVersion")
        if version is not None and version != self.objects[key]["metadata"]["resourceVersion"]:
            raise ApiError(409, "the object has been modified")
        if patch.status:
            self._patched(key, patch, leaves(patch.body["status"]))
            return
        after = copy.deepcopy(self.objects[key])
        notes = {**after["metadata"].get("annotations", {}), **patch.body["metadata"]["annotations"]}
        after["metadata"]["annotations"] = {name: text for name, text in notes.items() if text is not None}
        self._put(key, after)

    def _patched(self, key: tuple[str, str, str], patch: Patch, given: dict[Path, Any]) -> None:
        before = self.objects[key]
        held, owners = leaves(before["status"]), copy.deepcopy(self.owners.get(key, {}))
        operation = "Apply" if patch.content_type == APPLY else "Update"
        for path, value in given.items():
            for other, (_, paths) in owners.items():
                if other != patch.manager and path in paths and held.get(path) != value:
                    if operation == "Apply" and not patch.force:
                        raise ApiError(409, f"{other} owns {'.'.join(path)}")
                    paths.discard(path)
        if operation == "Apply":
            gone = owners.get(patch.manager, ("", set()))[1] - set(given)
            owners.pop(patch.manager, None)
            for path in gone:
                if not any(path in paths for _, paths in owners.values()):
                    held.pop(path, None)
            owners[patch.manager] = operation, set(given)
        else:
            owners[patch.manager] = operation, owners.get(patch.manager, ("", set()))[1] | set(given)
        held.update(given)
        after = copy.deepcopy(before)
        after["status"] = tree({path: value for path, value in held.items() if value not in ([], None)})
        if key[0] == "Workload":
            self.validate(before["status"], after["status"])
        self.owners[key] = owners
        self._put(key, after)

    def _reach(self) -> None:
        if self.down:
            raise ApiError(0, self.down)

    @staticmethod
    def validate(before: Object, after: Object) -> None:
        """The rules of Kueue's webhook and CRD for what a dispatcher changes."""
        names = after.get("nominatedClusterNames", [])
        wrong = ""
        if len(names) > 20:
            wrong = "must have at most 20 items"
        elif names and after.get("clusterName"):
            wrong = "clusterName and nominatedClusterNames are mutually exclusive"
        elif before.get("clusterName") and after.get("clusterName") not in (None, before["clusterName"]):
            wrong = "clusterName is immutable once set"
        elif (
            after.get("clusterName")
            and not before.get("clusterName")
            and after["clusterName"] not in before.get("nominatedClusterNames", [])
        ):
            wrong = "clusterName must be one of the nominatedClusterNames"
        if wrong:
            raise ApiError(422, wrong)


class Api(Protocol):
    """What Kueue's controllers need of an API server; the stand-in, or a real one."""

    def list(self, kind: str) -> list[Object]:
        """All objects of a kind."""
        ...

    def get(self, name: str) -> Object:
        """A workload."""
        ...

    def has(self, name: str) -> bool:
        """Whether there is such a workload."""
        ...

    def create(self, one: Object) -> None:
        """Make an object."""
        ...

    def remove(self, name: str) -> None:
        """Delete a workload, if it is there."""
        ...

    def patch(self, patch: Patch) -> None:
        """See ``KubeApi``."""
        ...


class Kueue:
    """Kueue's controllers on a manager and its workers, as far as a dispatcher meets them."""

    def __init__(self, manager: Api, workers: Mapping[str, Api]) -> None:
        self.manager, self.workers = manager, workers
        self._seen: dict[str, Object] = {}

    def apply(self, api: Api, name: str, status: Object) -> None:
        found = api.get(name)
        body = {
            "apiVersion": found["apiVersion"],
            "kind": "Workload",
            "metadata": {"name": name, "namespace": "default"},
        }
        api.patch(Patch("Workload", "default", name, APPLY, "kueue-admission", True, {**body, "status": status}))

    def reserve(self, name: str, *checks: str) -> None:
        """The manager reserves quota; its checks are pending."""
        found = self.manager.get(name)
        entries = [{"name": one, "state": "Pending", "message": "", "lastTransitionTime": NOW} for one in checks]
        status = {"conditions": [condition("QuotaReserved")], "admission": admission(found), "admissionChecks": entries}
        self.apply(self.manager, name, status)

    def evict(self, name: str) -> None:
        """The manager takes the reservation back; the remote copies go."""
        self.apply(self.manager, name, {"conditions": [condition("QuotaReserved", "False"), condition("Evicted")]})
        for api in self.workers.values():
            api.remove(name)

    def finish(self, name: str, reason: str = "Succeeded") -> None:
        """Its job has ended."""
        status = self._owned(self.manager.get(name)["status"])
        ended = {**condition("Finished"), "reason": reason}
        self.apply(self.manager, name, {**status, "conditions": [*status["conditions"], ended]})
        for api in self.workers.values():
            api.remove(name)

    def turn(self) -> None:
        """Copy what is nominated, admit on workers what fits, name the first cluster."""
        for one in self.manager.list("Workload"):
            name, status = one["metadata"]["name"], one.get("status", {})
            self._obeys_rules(name, status)
            nominated = status.get("nominatedClusterNames", [])
            if status.get("clusterName"):
                continue
            for cluster, api in self.workers.items():
                if cluster in nominated and not api.has(name):
                    api.create(self._copy(one))
                elif cluster not in nominated and api.has(name):
                    api.remove(name)
            first = self._first(name, nominated)
            if first is not None:
                self._remote_is_first(name, status, nominated, first)

    def _copy(self, one: Object) -> Object:
        """A copy of a workload for a worker."""
        copied = {part: one[part] for part in ("apiVersion", "kind", "spec")}
        return {**copied, "metadata": {"name": one["metadata"]["name"], "namespace": "default"}}

    def _first(self, name: str, nominated: list[str]) -> str | None:
        """The first cluster that admits a workload."""
        return next((cluster for cluster in nominated if self._admits(self.workers[cluster], name)), None)

    def _obeys_rules(self, name: str, status: Object) -> None:
        """Kueue's rules in CEL, which an API server of 1.20 does not know: what it lets pass is refused here."""
        StandIn.validate(self._seen.get(name, {}), status)
        self._seen[name] = copy.deepcopy(status)

    @staticmethod
    def _owned(status: Object) -> Object:
        names = ("conditions", "admission", "admissionChecks", "clusterName")
        return {part: status[part] for part in names if part in status}

    def _remote_is_first(self, name: str, status: Object, nominated: list[str], first: str) -> None:
        for other in nominated:
            if other != first:
                self.workers[other].remove(name)
        kept = self._owned(status)
        kept["conditions"] = [*kept["conditions"], condition("Admitted")]
        kept["admissionChecks"] = [{**check, "state": "Ready"} for check in kept["admissionChecks"]]
        self.apply(self.manager, name, {**kept, "clusterName": first})
        self._obeys_rules(name, self.manager.get(name)["status"])

    def _admits(self, api: Api, name: str) -> bool:
        """Whether a worker admits a copy, on its only flavor; nobody is stopped for it."""
        objects = [one for kind in OF_WORKERS for one in api.list(kind)]
        view = cluster_view("worker", objects)
        (one,) = (one for one in view.workloads if one.name == name)
        if one.admitted_by:
            return True
        found = Admission(view).offer(one)
        if not isinstance(found, Offer) or found.victims:
            return False
        status = {
            "conditions": [condition("QuotaReserved"), condition("Admitted")],
            "admission": admission(api.get(name)),
        }
        self.apply(api, name, status)
        return True

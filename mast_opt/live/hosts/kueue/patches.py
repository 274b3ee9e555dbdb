"""Changes of a status that Kueue accepts.

Kueue writes the status of a workload by server-side apply as ``kueue-admission``. Who applies a single field under that
name takes the others away; who nominates under another name leaves a nomination that Kueue does not clear when it
admits, which its rules then refuse. So a nomination is a copy of all that ``kueue-admission`` owns, with the nomination
in it, and only for the version of the object that was read. Where Kueue clears nominations of others, or does not apply
at all, a nomination is a patch of our own.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mast_opt.live.hosts.kueue.reading import Object, at

KUEUE, OURS = "kueue-admission", "mast-opt"
"""Field managers."""
CLEARS = "clear-nominated-cluster-names"
"""The MutatingAdmissionPolicy of Kueue that clears nominations of others."""
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
MOST_MESSAGE = 1000
"""Characters of a message."""


@dataclass(frozen=True)
class Patch:
    """A change of the status of an object, or of its annotations."""

    kind: str
    namespace: str
    name: str
    content_type: str
    manager: str
    force: bool
    body: Mapping[str, Any]
    status: bool = True
    """False if the change is of metadata."""


def owned(found: Object, manager: str) -> dict[str, Any] | None:
    """Fields of the status that a field manager has applied; None if it never has."""
    for entry in at(found, "metadata", "managedFields", kind=list):
        if (entry.get("manager"), entry.get("operation"), entry.get("subresource") or "status") == (
            manager,
            "Apply",
            "status",
        ):
            fields = at(entry, "fieldsV1", "f:status")
            copy = _extracted(at(found, "status"), fields)
            return dict(copy) if isinstance(copy, Mapping) else {}
    return None


def _extracted(value: Any, fields: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a part of an object
    """The part of a value that fields name, in the form of ``fieldsV1``."""
    inner = {name: below for name, below in fields.items() if name != "."}
    if not inner:
        return value
    if isinstance(value, Mapping):
        return {
            name[2:]: _extracted(value[name[2:]], below)
            for name, below in inner.items()
            if name.startswith("f:") and name[2:] in value
        }
    found = []
    for item in value if isinstance(value, list) else ():
        for name, below in inner.items():
            if name.startswith("v:") and json.loads(name[2:]) == item:
                found.append(item)
            elif name.startswith("k:") and isinstance(item, Mapping):
                key = json.loads(name[2:])
                if all(item.get(part) == wanted for part, wanted in key.items()):
                    found.append({**key, **_extracted(item, below)})
    return found


def nomination(found: Object, names: Sequence[str], *, clears: bool) -> Patch:
    """Nominate these clusters for a Workload.

    Args:
        found: the workload as it was read.
        clears: whether Kueue clears nominations of others when it admits (``CLEARS``).
    """
    meta = at(found, "metadata")
    place = "Workload", meta.get("namespace") or "default", str(meta.get("name"))
    copy = None if clears else owned(found, KUEUE)
    version = {"resourceVersion": meta.get("resourceVersion")}
    if copy is None:
        body: dict[str, Any] = {"metadata": version, "status": {"nominatedClusterNames": list(names)}}
        return Patch(*place, MERGE, OURS, False, body)
    status = {**copy, "nominatedClusterNames": list(names)}
    return Patch(*place, APPLY, KUEUE, True, {**_head(found, **version), "status": status})


def check_state(found: Object, check: str, state: str, message: str, now: str, *, controller: str) -> Patch:
    """Set the state of our own admission check of a Workload; its entry belongs to our controller alone."""
    meta = at(found, "metadata")
    entry = {"name": check, "state": state, "message": message[:MOST_MESSAGE], "lastTransitionTime": now}
    body = {**_head(found), "status": {"admissionChecks": [entry]}}
    place = meta.get("namespace") or "default", str(meta.get("name"))
    return Patch("Workload", *place, APPLY, controller, True, body)


def check_is_active(found: Object, now: str, *, controller: str) -> Patch:
    """Say that somebody answers for an AdmissionCheck."""
    condition = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "mast-opt answers for this check",
        "lastTransitionTime": now,
        "observedGeneration": at(found, "metadata", "generation", kind=int),
    }
    body = {**_head(found), "status": {"conditions": [condition]}}
    return Patch("AdmissionCheck", "", at(found, "metadata", "name", kind=str), APPLY, controller, True, body)


def gate(namespace: str, name: str, gate: str, position: str, now: str) -> Patch:
    """Set the position of a preemption gate of a Workload."""
    state = {"name": gate, "position": position, "lastTransitionTime": now}
    body = {"kind": "Workload", "metadata": {"name": name, "namespace": namespace}}
    return Patch("Workload", namespace, name, APPLY, OURS, True, {**body, "status": {"preemptionGates": [state]}})


def annotated(
    kind: str, namespace: str, name: str, changes: Mapping[str, str | None], version: str | None = None
) -> Patch:
    """Set annotations of an object, or remove them (None).

    Args:
        version: API version of an object that is not Kueue's.
    """
    head = {} if version is None else {"apiVersion": version}
    body = {**head, "metadata": {"annotations": dict(changes)}}
    return Patch(kind, namespace, name, MERGE, OURS, False, body, status=False)


def _head(found: Object, **meta: Any) -> dict[str, Any]:  # noqa: ANN401
    """Head of a patch's body: the Kubernetes object that it is of."""
    names = {name: found["metadata"][name] for name in ("name", "namespace") if name in found["metadata"]}
    return {"apiVersion": found.get("apiVersion"), "kind": found.get("kind"), "metadata": {**names, **meta}}

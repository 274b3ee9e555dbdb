"""Requests of a pod of Kubernetes, as its scheduler counts them, and amounts as Kubernetes writes them.

Every reader of pods and pod templates uses ``pod_requests``: the source ``kubectl`` and the adapter of Kueue.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from mast_opt.core.errors import InputError

_SUFFIXES = {
    "": Decimal(1),
    **{name: Decimal(1000) ** power for name, power in (("n", -3), ("u", -2), ("m", -1), ("k", 1), ("M", 2))},
    **{name: Decimal(1000) ** power for name, power in (("G", 3), ("T", 4), ("P", 5), ("E", 6))},
    **{f"{name}i": Decimal(1024) ** power for power, name in enumerate("KMGTPE", start=1)},
}
_PATTERN = re.compile(
    r"([+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30}))(?:[eE]([+-]?[0-9]{1,2})|([a-zA-Z]{0,2}))"
)
POD_LEVEL = ("cpu", "memory")
"""Resources that a pod can ask for as a whole (``spec.resources``), with all ``hugepages-*``."""
Amounts = dict[str, Decimal]


def amount(value: object, what: str) -> Decimal:
    """An amount such as ``500m``, ``2``, ``16Gi`` or ``1e3``, exactly. Raises InputError for what is none, or less
    than 0."""
    found = _PATTERN.fullmatch(str(value)) if isinstance(value, (str, int, float)) else None
    if found is not None and not isinstance(value, bool) and (found[3] or "") in _SUFFIXES:
        exact = Decimal(found[1]) * (Decimal(10) ** int(found[2]) if found[2] else _SUFFIXES[found[3] or ""])
        if exact >= 0:
            return exact
    raise InputError(f"{what} is {value!r}; expected an amount of Kubernetes of at least 0, such as 500m, 8 or 16Gi")


def pod_requests(spec: Mapping[str, Any], status: Mapping[str, Any] | None = None) -> Amounts:
    """Resource → how much a pod asks for.

    Containers and sidecars (init containers that are restarted for ever) run together and are added. Before them, each
    ordinary init container runs with the sidecars listed before it; the largest of these moments counts if it exceeds
    the sum. What the pod as a whole asks for takes the place of its containers' amounts; the overhead comes on top.

    Args:
        spec: of a pod or pod template.
        status: of the pod; a container that is being resized counts as the larger of what it has and what it asks for.

    Raises:
        InputError: an amount that cannot be read, or a field of another type.
    """
    running: Amounts = {}
    for one in _listed(spec, "containers"):
        _add(running, _container(one, status, "containerStatuses"))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for one in _listed(spec, "initContainers"):
        asked = _container(one, status, "initContainerStatuses")
        if one.get("restartPolicy") == "Always":
            _add(running, asked)
            _add(sidecars, asked)
            asked = dict(sidecars)
        else:
            _add(asked, sidecars)
        _raise_to(largest, asked)
    _raise_to(running, largest)
    running.update(_of_the_pod(spec, running))
    _add(running, _amounts(_mapping(spec, "overhead"), "overhead"))
    return running


def is_gpu(resource: str) -> bool:
    """Whether a resource is whole GPUs, of any vendor: ``nvidia.com/gpu``, ``amd.com/gpu``."""
    return resource.endswith("/gpu")


def is_other_device(resource: str) -> bool:
    """Whether a resource is an extended one that is not whole GPUs: ``nvidia.com/mig-1g.5gb``, ``google.com/tpu``."""
    return "/" in resource and not is_gpu(resource)


def _container(container: Mapping[str, Any], status: Mapping[str, Any] | None, statuses: str) -> Amounts:
    """Requests of a container; its limits where it states none."""
    resources = _mapping(container, "resources")
    stated = {**_mapping(resources, "limits"), **_mapping(resources, "requests")}
    asked = _amounts(stated, "a request")
    for one in _listed(status or {}, statuses):
        if one.get("name") == container.get("name"):
            given = (_mapping(_mapping(one, "resources"), "requests"), _mapping(one, "allocatedResources"))
            has: Amounts = {}
            for amounts in given:
                _raise_to(has, _amounts(amounts, "what a container has"))
            if _cannot_be_resized(status or {}):
                asked.update(has)
            else:
                _raise_to(asked, has)
    return asked


def _cannot_be_resized(status: Mapping[str, Any]) -> bool:
    """Whether Kubernetes has found that a pod cannot be resized as asked."""
    return any(
        one.get("type") == "PodResizePending" and one.get("reason") == "Infeasible"
        for one in _listed(status, "conditions")
    )


def _of_the_pod(spec: Mapping[str, Any], containers: Amounts) -> Amounts:
    """Requests of the pod as a whole; its limits where neither it nor its containers state a request."""
    resources = _mapping(spec, "resources")
    requests = _amounts(_mapping(resources, "requests"), "a request of the pod")
    limits = _amounts(_mapping(resources, "limits"), "a limit of the pod")
    found = {**{name: limit for name, limit in limits.items() if name not in containers}, **requests}
    return {name: value for name, value in found.items() if name in POD_LEVEL or name.startswith("hugepages-")}


def _amounts(stated: Mapping[str, Any], what: str) -> Amounts:
    """Resource → amount of a pod's requests or limits, from text."""
    return {name: amount(value, f"{what} of {name}") for name, value in stated.items()}


def _add(total: Amounts, more: Mapping[str, Decimal]) -> None:
    """Add requests of a pod's containers to a total."""
    for name, value in more.items():
        total[name] = total.get(name, Decimal(0)) + value


def _raise_to(total: Amounts, least: Mapping[str, Decimal]) -> None:
    """Raise a pod's requests to at least these amounts."""
    for name, value in least.items():
        total[name] = max(total.get(name, value), value)


def _mapping(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Mapping under a key of a Kubernetes object, empty where there is none. Raises InputError."""
    value = found.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{key} is {str(value)[:60]!r}; expected an object")
    return value


def _listed(found: Mapping[str, Any], key: str) -> Iterable[Mapping[str, Any]]:
    """List of objects under a key of a Kubernetes object, empty where there is none. Raises InputError."""
    value = found.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        raise InputError(f"{key} is {str(value)[:60]!r}; expected a list of objects")
    return value

"""Data frames from the JSON that cluster tools print: ``kubectl``, Prometheus, Slurm's ``sinfo``."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from mast_opt.core.errors import InputError
from mast_opt.core.limits import MOST_DOCUMENT_BYTES, read_regular
from mast_opt.core.wording import counted
from mast_opt.planner.importers.fields import Field, stated
from mast_opt.planner.importers.notices import warn
from mast_opt.planner.importers.pod_requests import amount, is_gpu, is_other_device, pod_requests
from mast_opt.planner.importers.slurm_nodes import node_in, nodes_of
from mast_opt.planner.io.faults import Faults

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
GPU_TYPE = "nvidia.com/gpu.product"
GIB = 2**30
UNREAD_OF_PODS = (Field("spec.resourceClaims", "devices of resource claims are not counted"),)

Rows = list[dict[str, Any]]


def kubectl(path: Path, faults: Faults) -> dict[str, pl.DataFrame]:
    """Tables ``nodes`` and ``pods`` of ``kubectl get nodes,pods --all-namespaces -o json``."""
    content = _json(path, faults)
    if content is None:
        return {}
    items = content.get("items") if isinstance(content, dict) else None
    if not isinstance(items, list):
        faults.add(path.name, "a list of items, as 'kubectl get nodes,pods -o json' prints it")
        return {}
    nodes = _each(path, faults, (one for one in items if _kind(one) == "Node"), lambda one: _checked(_node(one), NODES))
    pods = _each(path, faults, (one for one in items if _kind(one) == "Pod"), lambda one: _checked(_pod(one), PODS))
    _warn_of_devices(path.name, items)
    return {"nodes": _frame(nodes, NODES), "pods": _frame(pods, PODS)}


def _kind(item: object) -> object:
    """Kind of a Kubernetes object in a dump, such as Pod."""
    return item.get("kind") if isinstance(item, dict) else None


NODES = {
    "node": pl.String, "region": pl.String, "zone": pl.String, "gpu_type": pl.String, "gpus": pl.Float64,
    "cpu_cores": pl.Float64, "memory_gib": pl.Float64, "ready": pl.Boolean,
}  # fmt: skip
PODS = {
    "namespace": pl.String, "pod": pl.String, "node": pl.String, "owner": pl.String, "phase": pl.String,
    "priority": pl.Int64, "gpus": pl.Float64, "cpu_cores": pl.Float64, "memory_gib": pl.Float64,
}  # fmt: skip


def _node(item: Mapping[str, Any]) -> dict[str, Any]:
    """Row of a node in a dump of ``kubectl``."""
    meta, status = item["metadata"], item["status"]
    labels, stated = meta.get("labels") or {}, status.get("allocatable") or status.get("capacity") or {}
    room = {name: amount(value, name) for name, value in stated.items()}
    ready = [one.get("status") == "True" for one in status.get("conditions") or [] if one.get("type") == "Ready"]
    return {
        "node": meta["name"],
        "region": labels.get(REGION),
        "zone": labels.get(ZONE),
        "gpu_type": labels.get(GPU_TYPE),
        "gpus": _gpus(room),
        "cpu_cores": float(room.get("cpu", 0)),
        "memory_gib": float(room.get("memory", 0)) / GIB,
        "ready": all(ready) and not (item.get("spec") or {}).get("unschedulable", False),
    }


def _pod(item: Mapping[str, Any]) -> dict[str, Any]:
    """Row of a pod in a dump of ``kubectl``."""
    meta, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    asked = pod_requests(spec, status)
    owners = meta.get("ownerReferences") or [{}]
    return {
        "namespace": meta.get("namespace"),
        "pod": meta["name"],
        "node": spec.get("nodeName"),
        "owner": owners[0].get("name"),
        "phase": status.get("phase"),
        "priority": spec.get("priority", 0),
        "gpus": _gpus(asked),
        "cpu_cores": float(asked.get("cpu", 0)),
        "memory_gib": float(asked.get("memory", 0)) / GIB,
    }


def _gpus(amounts: Mapping[str, Decimal]) -> float:
    """GPUs of every vendor that a pod or node states."""
    return float(sum(value for name, value in amounts.items() if is_gpu(name)))


def _warn_of_devices(file: str, items: Iterable[Any]) -> None:
    """Warn of devices in a dump of ``kubectl`` that no column counts: slices of GPUs, other accelerators, resource
    claims.
    """
    devices: dict[str, None] = {}
    unread: dict[str, list[object]] = {}
    for item in items:
        spec = item.get("spec") if isinstance(item, dict) else None
        if _kind(item) == "Pod" and isinstance(spec, dict):
            with suppress(InputError):  # a fault says so
                devices |= dict.fromkeys(name for name in pod_requests(spec) if is_other_device(name))
            for field in stated(item, UNREAD_OF_PODS):
                unread.setdefault(field.help, []).append((item.get("metadata") or {}).get("name"))
    if devices:
        warn(file, "a device that no column counts; gpus are resources that end in /gpu", values=list(devices))
    for words, names in unread.items():
        warn(file, words, values=names)


def prometheus(path: Path, faults: Faults) -> dict[str, pl.DataFrame]:
    """Table ``series`` of a range query: for each series its labels, ``mean``, ``max``, ``last`` and ``points``."""
    content = _json(path, faults)
    if content is None:
        return {}
    data = content.get("data") if isinstance(content, dict) else None
    result = data.get("result") if isinstance(data, dict) and data.get("resultType") == "matrix" else None
    if not isinstance(content, dict) or content.get("status") != "success" or not isinstance(result, list):
        faults.add(path.name, "a successful answer of /api/v1/query_range (resultType matrix)")
        return {}
    for key in ("warnings", "infos"):
        for words in content.get(key) or []:
            warn(path.name, f"Prometheus says: {words}")
    rows = [row for row in _each(path, faults, result, lambda one: _series(path.name, one)) if row]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {"series": pl.DataFrame([{name: row.get(name) for name in names} for row in rows], infer_schema_length=None)}


FIGURES = ("mean", "max", "last", "points")


def _series(file: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """A row; none, with a warning, for a series whose figures would not be numbers."""
    named = {("metric" if name == "__name__" else name): str(value) for name, value in item["metric"].items()}
    labels = {(f"label_{name}" if name in FIGURES else name): value for name, value in named.items()}
    title = "{" + ", ".join(f'{name}="{value}"' for name, value in named.items()) + "}"
    values = [float(value) for _, value in item.get("values") or ()]
    odd = [value for value in values if not math.isfinite(value)]
    if odd or not values:
        why = (
            f"{counted(len(odd), 'point')} of {len(values)} {'is' if len(odd) == 1 else 'are'} {odd[0]}"
            if odd
            else "it has no numbers"
        )
        if item.get("histograms"):
            why = "it is a histogram"
        warn(file, f"this series is left out: {why}", values=[title])
        return {}
    return {
        **labels,
        "mean": math.fsum(values) / len(values),
        "max": max(values),
        "last": values[-1],
        "points": len(values),
    }


def sinfo(path: Path, faults: Faults) -> dict[str, pl.DataFrame]:
    """Table ``nodes`` of ``sinfo --Node --json`` or ``scontrol show nodes --json``: a row for each node, partition and
    GPU type of the node.

    Slurm 22.05 prints a list ``nodes`` for both; later versions of ``sinfo`` print a list ``sinfo``. Cores and memory
    are those that jobs can have; those of a node with several GPU types are spread over its rows by GPUs.
    """
    content = _json(path, faults)
    if content is None:
        return {}
    items = nodes_of(content)
    if items is None:
        faults.add(path.name, "a list 'sinfo' or 'nodes', as 'sinfo --Node --json' prints it")
        return {}
    found = _each(path, faults, items, lambda item: {"rows": list(_slurm_rows(item))})
    return {"nodes": _frame([row for one in found for row in one["rows"]], SLURM)}


SLURM = {
    "node": pl.String, "partition": pl.String, "cluster": pl.String, "gpu_type": pl.String, "gpus": pl.Float64,
    "cpu_cores": pl.Float64, "memory_gib": pl.Float64, "state": pl.String, "available": pl.Boolean, "host": pl.String,
}  # fmt: skip


def _slurm_rows(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of a node of Slurm: one for each partition and GPU type."""
    for node in node_in(item):
        for name, kind, gpus, cores, memory_mib in node.parts():
            row = {
                "node": name,
                "cluster": node.cluster,
                "gpu_type": kind or None,
                "gpus": float(gpus),
                "cpu_cores": cores,
                "memory_gib": memory_mib / 1024,
                "state": ",".join(node.states),
                "available": node.available,
                "host": node.name,
            }
            for partition in node.partitions or (None,):
                yield _checked({**row, "partition": partition}, SLURM)


def _json(path: Path, faults: Faults) -> Any | None:  # noqa: ANN401 - whatever the file holds
    """JSON of a dump of a cluster tool; None, with a fault, if there is none."""
    try:
        return json.loads(read_regular(path, MOST_DOCUMENT_BYTES))
    except OSError as error:
        faults.add(str(path), f"a file that can be read ({error.strerror})")
    except (ValueError, RecursionError) as error:
        faults.add(path.name, f"JSON ({error})")
    return None


def _each(
    path: Path, faults: Faults, items: Iterable[Any], made: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> Rows:
    """A row for each item of a dump; a fault for one that is not as the tool prints it."""
    rows: Rows = []
    for number, item in enumerate(items, 1):
        try:
            rows.append(made(item))
        except InputError as error:
            faults.add(path.name, f"an item as the tool prints it ({error})", number)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            faults.add(path.name, f"an item as the tool prints it ({type(error).__name__}: {error})", number)
    return rows


def _checked(row: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a dump. Raises ValueError where a cell is not of its column's type."""
    types = {pl.String: str, pl.Float64: float, pl.Int64: int, pl.Boolean: bool}
    for name, kind in schema.items():
        value = row[name]
        whole = kind is pl.Int64 and (isinstance(value, bool) or not -(2**63) <= (value or 0) < 2**63)
        if value is not None and (not isinstance(value, types[kind]) or whole):
            raise ValueError(f"{name} is {value!r}")
    return row


def _frame(rows: Rows, schema: Mapping[str, Any]) -> pl.DataFrame:
    """Rows of a dump as a data frame with these columns."""
    return pl.DataFrame(rows, schema=dict(schema), infer_schema_length=None)

"""Data frames from the JSON that cluster tools print: ``kubectl``, Prometheus, Slurm's ``sinfo``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mast_opt.core.limits import MOST_DOCUMENT_BYTES, read_regular
from mast_opt.io.faults import Faults

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
GPU, GPU_TYPE = "nvidia.com/gpu", "nvidia.com/gpu.product"
_SUFFIXES = {
    "": 1, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)([a-zA-Z]{0,2})")
_GRES = re.compile(r"gpu(?::([^:()]+))?:([0-9]{1,4})")
GIB = 2**30

Rows = list[dict[str, Any]]


def quantity(text: object) -> float:
    """A quantity of Kubernetes: ``1500m`` is 1.5, ``64Gi`` is 64 · 2^30. Raises ValueError for anything else."""
    found = _QUANTITY.fullmatch(str(text))
    if found is None or found[2] not in _SUFFIXES:
        raise ValueError(f"{text!r} is no quantity")
    return float(found[1]) * _SUFFIXES[found[2]]


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
    return {"nodes": _frame(nodes, NODES), "pods": _frame(pods, PODS)}


def _kind(item: object) -> object:
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
    meta, status = item["metadata"], item["status"]
    labels, room = meta.get("labels") or {}, status.get("allocatable") or status.get("capacity") or {}
    ready = [one.get("status") == "True" for one in status.get("conditions") or [] if one.get("type") == "Ready"]
    return {
        "node": meta["name"],
        "region": labels.get(REGION),
        "zone": labels.get(ZONE),
        "gpu_type": labels.get(GPU_TYPE),
        "gpus": quantity(room.get(GPU, 0)),
        "cpu_cores": quantity(room.get("cpu", 0)),
        "memory_gib": quantity(room.get("memory", 0)) / GIB,
        "ready": all(ready) and not (item.get("spec") or {}).get("unschedulable", False),
    }


def _pod(item: Mapping[str, Any]) -> dict[str, Any]:
    meta, spec = item["metadata"], item.get("spec") or {}
    asked: dict[str, float] = {}
    for container in spec.get("containers") or []:
        resources = container.get("resources") or {}
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name, amount in wanted.items():
            asked[name] = asked.get(name, 0.0) + quantity(amount)
    owners = meta.get("ownerReferences") or [{}]
    return {
        "namespace": meta.get("namespace"),
        "pod": meta["name"],
        "node": spec.get("nodeName"),
        "owner": owners[0].get("name"),
        "phase": (item.get("status") or {}).get("phase"),
        "priority": spec.get("priority", 0),
        "gpus": asked.get(GPU, 0.0),
        "cpu_cores": asked.get("cpu", 0.0),
        "memory_gib": asked.get("memory", 0.0) / GIB,
    }


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
    rows = _each(path, faults, result, _series)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {"series": pl.DataFrame([{name: row.get(name) for name in names} for row in rows], infer_schema_length=None)}


def _series(item: Mapping[str, Any]) -> dict[str, Any]:
    values = [float(value) for _, value in item["values"]]
    if not values or any(value != value for value in values):
        raise ValueError("a series without numbers")
    figures = {"mean": sum(values) / len(values), "max": max(values), "last": values[-1], "points": len(values)}
    labels = {("metric" if name == "__name__" else name): str(value) for name, value in item["metric"].items()}
    return {**labels, **figures}


def sinfo(path: Path, faults: Faults) -> dict[str, pl.DataFrame]:
    """Table ``nodes`` of ``sinfo --Node --json``: a row for each node and partition.

    Slurm 22.05 prints a list ``nodes`` there, as ``scontrol show nodes --json`` does to this day; later versions print
    a list ``sinfo``.
    """
    content = _json(path, faults)
    if content is None:
        return {}
    reads = {"sinfo": _slurm_nodes, "nodes": _slurm_node}
    name = next((one for one in reads if isinstance(content, dict) and isinstance(content.get(one), list)), None)
    if name is None:
        faults.add(path.name, "a list 'sinfo' or 'nodes', as 'sinfo --Node --json' prints it")
        return {}
    rows = [row for found in _each(path, faults, content[name], reads[name]) for row in found["rows"]]
    return {"nodes": _frame(rows, SLURM)}


SLURM = {
    "node": pl.String, "partition": pl.String, "cluster": pl.String, "gpu_type": pl.String, "gpus": pl.Float64,
    "cpu_cores": pl.Float64, "memory_gib": pl.Float64, "state": pl.String,
}  # fmt: skip


def _slurm_nodes(item: Mapping[str, Any]) -> dict[str, Any]:
    found = _GRES.search(str((item.get("gres") or {}).get("total", "")))
    row = {
        "partition": (item.get("partition") or {}).get("name"),
        "cluster": item.get("cluster"),
        "gpu_type": None if found is None else found[1],
        "gpus": 0.0 if found is None else float(found[2]),
        "cpu_cores": float(item["cpus"]["maximum"]),
        "memory_gib": float(item["memory"]["maximum"]) / 1024,
        "state": ",".join(item["node"].get("state") or []),
    }
    return {"rows": [_checked({"node": name, **row}, SLURM) for name in item["nodes"]["nodes"]]}


def _slurm_node(item: Mapping[str, Any]) -> dict[str, Any]:
    found, state = _GRES.search(str(item.get("gres") or "")), item.get("state") or []
    row = {
        "node": item["name"],
        "cluster": item.get("cluster_name"),
        "gpu_type": None if found is None else found[1],
        "gpus": 0.0 if found is None else float(found[2]),
        "cpu_cores": float(item["cpus"]),
        "memory_gib": float(item["real_memory"]) / 1024,
        "state": ",".join([state] if isinstance(state, str) else state).upper(),
    }
    return {"rows": [_checked({**row, "partition": one}, SLURM) for one in item.get("partitions") or [None]]}


def _json(path: Path, faults: Faults) -> Any | None:  # noqa: ANN401 - whatever the file holds
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
    """A row for each item; a fault for one that is not as the tool prints it."""
    rows: Rows = []
    for number, item in enumerate(items, 1):
        try:
            rows.append(made(item))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            faults.add(path.name, f"an item as the tool prints it ({type(error).__name__}: {error})", number)
    return rows


def _checked(row: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The row. Raises ValueError where a cell is not of its column's type."""
    types = {pl.String: str, pl.Float64: float, pl.Int64: int, pl.Boolean: bool}
    for name, kind in schema.items():
        value = row[name]
        whole = kind is pl.Int64 and (isinstance(value, bool) or not -(2**63) <= (value or 0) < 2**63)
        if value is not None and (not isinstance(value, types[kind]) or whole):
            raise ValueError(f"{name} is {value!r}")
    return row


def _frame(rows: Rows, schema: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict(schema), infer_schema_length=None)

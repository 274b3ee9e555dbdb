"""Alibaba's ``cluster-trace-gpu-v2023`` (OpenB): the nodes of a real fleet, and pods that ask for CPU and GPUs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mast_opt.core.limits import MOST_GPUS_A_NODE
from mast_opt.planner.importers.traces.csv_table import SourceTable, find, read_table
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.kind.schema import integer, label

Ints = NDArray[np.int64]

NODES = "openb_node_list_all_node.csv"
PODS = "openb_pod_list_default.csv"
SPEC_PODS = "openb_pod_list_gpuspec33.csv"
"""File of the trace resampled so that a third of the pods name the GPU models that they accept."""
WHOLE_GPU = 1000
"""``gpu_milli`` of a pod that does not share its GPU."""
TIER_OF = {"Guaranteed": 0, "LS": 0, "Burstable": 1, "BE": 2}
"""Tier of a Kubernetes class of service: latency-sensitive and guaranteed first, best effort last."""

NODE_COLUMNS = (
    label("model", "model", required=False, help="GPU model, empty on nodes without GPUs"),
    integer("gpu", maximum=MOST_GPUS_A_NODE, help="GPUs of the node"),
    integer("cpu_milli", help="millicores of the node"),
)
POD_COLUMNS = (
    integer("cpu_milli", help="millicores that it asks for"),
    integer("num_gpu", help="GPUs that it asks for"),
    integer("gpu_milli", help="thousandths of each GPU"),
    label("gpu_spec", "model", required=False, help="GPU models that it accepts, separated by |"),
    label("qos", "qos", help="its class of service"),
)


@dataclass(frozen=True, eq=False)
class Nodes:
    """Machines; a node without GPUs has an empty model."""

    model: tuple[str, ...]
    gpus: Ints
    cpu_mcores: Ints


@dataclass(frozen=True, eq=False)
class Pods:
    """Pods of the trace, as arrays."""

    gpus: Ints
    whole: NDArray[np.bool_]
    """Does it have its GPUs for itself? False without GPUs."""
    cpu_mcores: Ints
    tier: Ints
    models: tuple[frozenset[str], ...]
    """GPU models that it accepts; empty for any."""

    def subset(self, kept: NDArray[np.bool_]) -> Pods:
        """The pods under a mask, in the same order."""
        at = np.flatnonzero(kept)
        return Pods(
            self.gpus[at],
            self.whole[at],
            self.cpu_mcores[at],
            self.tier[at],
            tuple(self.models[n] for n in at.tolist()),
        )


@dataclass(frozen=True, eq=False)
class OpenbTrace:
    """The trace: nodes, pods, and the pods of the variant that names GPU models."""

    nodes: Nodes
    pods: Pods
    spec_pods: Pods
    """Pods of which a third name GPU models."""

    def models(self, smallest: int) -> tuple[str, ...]:
        """GPU models with at least ``smallest`` GPUs, by name."""
        count = Counter[str]()
        for model, gpus in zip(self.nodes.model, self.nodes.gpus.tolist()):
            count[model] += gpus
        return tuple(sorted(model for model, gpus in count.items() if model and gpus >= smallest))


def read_fleet(folder: Path, faults: Faults) -> OpenbTrace | None:
    """The fleet in a folder; None, and faults that say why, if it cannot be had."""
    files = [find(folder, name, faults) for name in (NODES, PODS, SPEC_PODS)]
    if any(file is None for file in files):
        return None
    nodes, pods, spec_pods = (file for file in files if file is not None)
    machines, asking, choosing = _nodes(nodes, faults), _pods(pods, faults), _pods(spec_pods, faults)
    if machines is None or asking is None or choosing is None:
        return None
    return OpenbTrace(machines, asking, choosing)


def _nodes(path: Path, faults: Faults) -> Nodes | None:
    table = read_table(path, NODE_COLUMNS, faults)
    if table is None:
        return None
    model, gpus = table.labels["model"].fill_null(""), table.numbers["gpu"]
    unnamed = np.flatnonzero((gpus > 0) & (model == "").to_numpy())
    faults.cells(table.file, "model", unnamed + 1, lambda n: "", "the model of the node's GPUs")
    return Nodes(tuple(model.to_list()), gpus, table.numbers["cpu_milli"])


def _pods(path: Path, faults: Faults) -> Pods | None:
    table = read_table(path, POD_COLUMNS, faults)
    if table is None:
        return None
    tier = _tiers(table, faults)
    gpus = table.numbers["num_gpu"]
    accepts = {text: frozenset(text.split("|")) - {""} for text in table.labels["gpu_spec"].fill_null("").unique()}
    return Pods(
        gpus,
        (gpus > 0) & (table.numbers["gpu_milli"] == WHOLE_GPU),
        table.numbers["cpu_milli"],
        tier,
        tuple(accepts[text] for text in table.labels["gpu_spec"].fill_null("").to_list()),
    )


def _tiers(table: SourceTable, faults: Faults) -> Ints:
    qos = table.labels["qos"]
    tier = qos.replace_strict(TIER_OF, default=None, return_dtype=pl.Int64)
    unknown = np.flatnonzero(tier.is_null().to_numpy())
    faults.cells(table.file, "qos", unknown + 1, lambda n: qos[int(unknown[n])], f"one of {', '.join(TIER_OF)}")
    return tier.fill_null(0).to_numpy()

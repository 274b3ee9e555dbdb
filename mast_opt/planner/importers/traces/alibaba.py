"""Alibaba's public GPU traces: machines of 2023 (OpenB) and 2026, and pods of 2023 that ask for CPU and GPUs."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mast_opt.core.limits import MOST_GPUS_A_NODE
from mast_opt.planner.importers.traces.csv_table import SourceTable, find, read_table
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.kind.problem_data import Ints
from mast_opt.problems.kind.schema import integer, label

NODES = "openb_node_list_all_node.csv"
PODS = "openb_pod_list_default.csv"
SPEC_PODS = "openb_pod_list_gpuspec33.csv"
"""File of the trace resampled so that a third of the pods name the GPU models that they accept."""
_LISTS = (NODES, "node_info_df.csv")
WHOLE_GPU = 1000
"""``gpu_milli`` of a pod that does not share its GPU."""
TIER_OF = {"Guaranteed": 0, "LS": 0, "Burstable": 1, "BE": 2}
"""Tier of a Kubernetes class of service: latency-sensitive and guaranteed first, best effort last."""
MIB_PER_CORE = 4096
"""Memory of nodes whose list does not state it."""
MEMORY = "memory_mib"
"""Column that only importers of memory need."""
NODE_COLUMNS = (
    label("model", "model", required=False, help="GPU model, empty on nodes without GPUs"),
    integer("gpu", maximum=MOST_GPUS_A_NODE, help="GPUs of the node"),
    integer("cpu_milli", help="millicores of the node"),
    integer(MEMORY, help="memory of the node, MiB"),
)
NODE_COLUMNS_2026 = (
    label("gpu_model", "model", help="GPU model"),
    integer("gpu_capacity_num", maximum=MOST_GPUS_A_NODE, help="GPUs of the node"),
    integer("cpu_num", help="cores of the node"),
)
POD_COLUMNS = (
    integer("cpu_milli", help="millicores that it asks for"),
    integer(MEMORY, help="MiB that it asks for"),
    integer("num_gpu", help="GPUs that it asks for"),
    integer("gpu_milli", help="thousandths of each GPU"),
    label("gpu_spec", "model", required=False, help="GPU models that it accepts, separated by |"),
    label("qos", "qos", help="its class of service"),
)


@dataclass(frozen=True, eq=False)
class GpuNodes:
    """N machines; one without GPUs has an empty model."""

    model: tuple[str, ...]
    gpus: Ints
    cpu_mcores: Ints
    memory_mib: Ints
    source: str
    """Description of the source for the provenance."""

    def part(self, at: Ints) -> "GpuNodes":
        """The machines of Alibaba's trace at these positions."""
        model = tuple(self.model[n] for n in at.tolist())
        return GpuNodes(model, self.gpus[at], self.cpu_mcores[at], self.memory_mib[at], self.source)


@dataclass(frozen=True, eq=False)
class GpuPods:
    """Pods of the trace, jobs of one task, as arrays."""

    mgpu: Ints
    """Milli-GPUs: less than 1000, or whole GPUs."""
    cpu_mcores: Ints
    memory_mib: Ints
    tier: Ints
    models: tuple[tuple[str, ...], ...]
    """GPU models that it accepts; empty for any."""

    def __len__(self) -> int:
        return len(self.mgpu)

    def part(self, at: Ints) -> "GpuPods":
        """The pods of Alibaba's trace at these positions, in this order."""
        models = tuple(self.models[n] for n in at.tolist())
        return GpuPods(self.mgpu[at], self.cpu_mcores[at], self.memory_mib[at], self.tier[at], models)


@dataclass(frozen=True, eq=False)
class OpenbTrace:
    """The trace of 2023: nodes, pods, and the pods of the variant that names GPU models; memory is not read."""

    nodes: GpuNodes
    pods: GpuPods
    spec_pods: GpuPods
    """Pods of which a third name GPU models."""

    def models(self, smallest: int) -> tuple[str, ...]:
        """GPU models of OpenB's trace with at least ``smallest`` GPUs, by name."""
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
    unread = (MEMORY,)
    machines, asking = _nodes_of_2023(nodes, faults, unread), pods_in(pods, faults, unread)
    choosing = pods_in(spec_pods, faults, unread)
    if machines is None or asking is None or choosing is None:
        return None
    return OpenbTrace(machines, asking, choosing)


def read_nodes(path: Path, faults: Faults) -> GpuNodes | None:
    """The machines in a node list, or in the folder that has one; None, and faults that say why, if there is none."""
    file = path
    if path.is_dir():
        there = [path / name for name in _LISTS if (path / name).is_file()]
        found = there[0] if there else find(path, NODES, faults)
        if found is None:
            return None
        file = found
    return _nodes_of_2026(file, faults) if file.name.startswith("node_info") else _nodes_of_2023(file, faults)


def _nodes_of_2023(file: Path, faults: Faults, lacking: Collection[str] = ()) -> GpuNodes | None:
    """Machines of Alibaba's trace of 2023 (OpenB); None, with faults, if they cannot be had."""
    table = read_table(file, NODE_COLUMNS, faults, lacking=lacking)
    if table is None:
        return None
    model, gpus = table.labels["model"].fill_null(""), table.numbers["gpu"]
    unnamed = np.flatnonzero((gpus > 0) & (model == "").to_numpy())
    faults.cells(table.file, "model", unnamed + 1, lambda n: "", "the model of the node's GPUs")
    cores, memory = table.numbers["cpu_milli"], table.numbers[MEMORY]
    return GpuNodes(tuple(model.to_list()), gpus, cores, memory, "Alibaba cluster-trace-gpu-v2023 (OpenB)")


def _nodes_of_2026(file: Path, faults: Faults) -> GpuNodes | None:
    """Machines of Alibaba's trace of 2026; None, with faults, if they cannot be had."""
    table = read_table(file, NODE_COLUMNS_2026, faults)
    if table is None:
        return None
    cores = table.numbers["cpu_num"]
    return GpuNodes(
        tuple(table.labels["gpu_model"].to_list()),
        table.numbers["gpu_capacity_num"],
        cores * 1000,
        cores * MIB_PER_CORE,
        f"Alibaba cluster-trace-v2026-spot-gpu (memory: {MIB_PER_CORE // 1024} GiB a core, ours)",
    )


def read_pods(folder: Path, faults: Faults) -> GpuPods | None:
    """The pods of the list in which a third name GPU models; None, and faults that say why, if it cannot be had."""
    file = find(folder, SPEC_PODS, faults)
    return None if file is None else pods_in(file, faults)


def pods_in(file: Path, faults: Faults, lacking: Collection[str] = ()) -> GpuPods | None:
    """The pods of any list, plain or gzipped; None, and faults that say why, if they cannot be had.

    Args:
        lacking: columns that may be missing.
    """
    table = read_table(file, POD_COLUMNS, faults, lacking=lacking)
    if table is None:
        return None
    gpus, share = table.numbers["num_gpu"], table.numbers["gpu_milli"]
    odd = np.flatnonzero((gpus > 0) & ((share < 1) | (share > WHOLE_GPU) | ((gpus > 1) & (share != WHOLE_GPU))))
    faults.cells(table.file, "gpu_milli", odd + 1, lambda n: str(share[odd[n]]), "1 to 1000, and 1000 for several GPUs")
    spec = table.labels["gpu_spec"].fill_null("").to_list()
    return GpuPods(
        np.where(gpus > 0, gpus * share, 0),
        table.numbers["cpu_milli"],
        table.numbers[MEMORY],
        _tiers(table, faults),
        tuple(tuple(dict.fromkeys(filter(None, text.split("|")))) for text in spec),
    )


def _tiers(table: SourceTable, faults: Faults) -> Ints:
    """Tier of each pod of Alibaba's trace, by its class of service."""
    qos = table.labels["qos"]
    tier = qos.replace_strict(TIER_OF, default=None, return_dtype=pl.Int64)
    unknown = np.flatnonzero(tier.is_null().to_numpy())
    faults.cells(table.file, "qos", unknown + 1, lambda n: qos[int(unknown[n])], f"one of {', '.join(TIER_OF)}")
    return tier.fill_null(0).to_numpy()

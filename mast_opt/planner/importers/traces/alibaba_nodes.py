"""Machines of public GPU fleets: Alibaba's node lists of 2023 (OpenB) and of 2026, distinguished by their columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.limits import MOST_GPUS_A_NODE
from mast_opt.planner.importers.traces.alibaba_openb import NODES
from mast_opt.planner.importers.traces.csv_table import find, read_table
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.kind.schema import integer, label

Ints = NDArray[np.int64]

MIB_PER_CORE = 4096
"""Memory of nodes whose list does not state it."""
COLUMNS_2023 = (
    label("model", "model", required=False, help="GPU model, empty on nodes without GPUs"),
    integer("gpu", maximum=MOST_GPUS_A_NODE, help="GPUs of the node"),
    integer("cpu_milli", help="millicores of the node"),
    integer("memory_mib", help="memory of the node, MiB"),
)
COLUMNS_2026 = (
    label("gpu_model", "model", help="GPU model"),
    integer("gpu_capacity_num", maximum=MOST_GPUS_A_NODE, help="GPUs of the node"),
    integer("cpu_num", help="cores of the node"),
)
_LISTS = (NODES, "node_info_df.csv")


@dataclass(frozen=True, eq=False)
class GpuNodes:
    """N machines; one without GPUs has an empty model."""

    model: tuple[str, ...]
    gpus: Ints
    cpu_mcores: Ints
    memory_mib: Ints
    source: str
    """Description of the source for the provenance."""

    def part(self, at: Ints) -> GpuNodes:
        """The machines at these positions."""
        model = tuple(self.model[n] for n in at.tolist())
        return GpuNodes(model, self.gpus[at], self.cpu_mcores[at], self.memory_mib[at], self.source)


def read_nodes(path: Path, faults: Faults) -> GpuNodes | None:
    """The machines in a node list, or in the folder that has one; None, and faults that say why, if there is none."""
    file = path
    if path.is_dir():
        there = [path / name for name in _LISTS if (path / name).is_file()]
        found = there[0] if there else find(path, NODES, faults)
        if found is None:
            return None
        file = found
    return _ofCOLUMNS_2026(file, faults) if file.name.startswith("node_info") else _ofCOLUMNS_2023(file, faults)


def _ofCOLUMNS_2023(file: Path, faults: Faults) -> GpuNodes | None:
    table = read_table(file, COLUMNS_2023, faults)
    if table is None:
        return None
    model, gpus = table.labels["model"].fill_null(""), table.numbers["gpu"]
    unnamed = np.flatnonzero((gpus > 0) & (model == "").to_numpy())
    faults.cells(table.file, "model", unnamed + 1, lambda n: "", "the model of the node's GPUs")
    cores, memory = table.numbers["cpu_milli"], table.numbers["memory_mib"]
    return GpuNodes(tuple(model.to_list()), gpus, cores, memory, "Alibaba cluster-trace-gpu-v2023 (OpenB)")


def _ofCOLUMNS_2026(file: Path, faults: Faults) -> GpuNodes | None:
    table = read_table(file, COLUMNS_2026, faults)
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

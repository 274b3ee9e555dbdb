"""Pods of Alibaba's 2023 trace as jobs of one task: cores, memory, a share of a GPU or several, acceptable models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mast_opt.planner.importers.traces.alibaba_openb import SPEC_PODS, TIER_OF
from mast_opt.planner.importers.traces.csv_table import find, read_table
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.kind.schema import integer, label

Ints = NDArray[np.int64]

COLUMNS = (
    integer("cpu_milli", help="millicores that it asks for"),
    integer("memory_mib", help="MiB that it asks for"),
    integer("num_gpu", help="GPUs that it asks for"),
    integer("gpu_milli", help="thousandths of each GPU"),
    label("gpu_spec", "model", required=False, help="GPU models that it accepts, separated by |"),
    label("qos", "qos", help="its class of service"),
)


@dataclass(frozen=True, eq=False)
class GpuPods:
    """Pods of the trace that ask for GPUs, as arrays."""

    mgpu: Ints
    """Milli-GPUs: less than 1000, or whole GPUs."""
    cpu_mcores: Ints
    memory_mib: Ints
    tier: Ints
    models: tuple[frozenset[str], ...]
    """GPU models that it accepts; empty for any."""

    def __len__(self) -> int:
        return len(self.mgpu)

    def part(self, at: Ints) -> GpuPods:
        """The pods at these positions, in this order."""
        models = tuple(self.models[n] for n in at.tolist())
        return GpuPods(self.mgpu[at], self.cpu_mcores[at], self.memory_mib[at], self.tier[at], models)


def read_pods(folder: Path, faults: Faults) -> GpuPods | None:
    """The pods of the list in which a third name GPU models; None, and faults that say why, if it cannot be had."""
    file = find(folder, SPEC_PODS, faults)
    return None if file is None else pods_in(file, faults)


def pods_in(file: Path, faults: Faults) -> GpuPods | None:
    """The pods of any list, plain or gzipped; None, and faults that say why, if they cannot be had."""
    table = read_table(file, COLUMNS, faults)
    if table is None:
        return None
    gpus, share = table.numbers["num_gpu"], table.numbers["gpu_milli"]
    odd = np.flatnonzero((gpus > 0) & ((share < 1) | (share > 1000) | ((gpus > 1) & (share != 1000))))
    faults.cells(table.file, "gpu_milli", odd + 1, lambda n: str(share[odd[n]]), "1 to 1000, and 1000 for several GPUs")
    qos = table.labels["qos"]
    tier = qos.replace_strict(TIER_OF, default=None, return_dtype=pl.Int64)
    unknown = np.flatnonzero(tier.is_null().to_numpy())
    faults.cells(table.file, "qos", unknown + 1, lambda n: qos[int(unknown[n])], f"one of {', '.join(TIER_OF)}")
    spec = table.labels["gpu_spec"].fill_null("").to_list()
    return GpuPods(
        np.where(gpus > 0, gpus * share, 0),
        table.numbers["cpu_milli"],
        table.numbers["memory_mib"],
        tier.fill_null(0).to_numpy(),
        tuple(frozenset(text.split("|")) - {""} for text in spec),
    )

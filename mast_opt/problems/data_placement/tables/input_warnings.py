"""Input warnings of data placement: values that are allowed and were probably not meant."""

import numpy as np

from mast_opt.core.input_warning import InputWarning
from mast_opt.core.units import MB_PER_TB
from mast_opt.problems.data_placement.tables.schema import SCHEMA
from mast_opt.problems.kind.plausibility import Plausibility
from mast_opt.problems.kind.schema import Tables

TOO_MUCH_STORAGE = 500.0
"""Total storage over one copy of everything from which on a wrong unit is likely."""
TOO_LITTLE_STORAGE = 1 / 100
LARGE = (
    ("regions", "cpu_cores"),
    ("datasets", "size_tb"),
    ("workloads", "cpu_cores"),
    ("workloads", "output_tb"),
    ("gpu_demand", "gpus"),
    ("reads", "tb_per_day"),
    ("cpu_quota", "cpu_cores"),
)
"""Columns in which a thousandfold value is suspicious, and a thousandth is not."""
EITHER = (("regions", "storage_tb"), ("regions", "ingress_tb_per_day"), ("links", "tb_per_day"))


def warnings(tables: Tables) -> tuple[InputWarning, ...]:
    """Suspicious values in the tables: GPU types, workloads larger than the fleet, units."""
    found = Plausibility(SCHEMA, tables)
    _gpus(found, tables)
    for table, column in LARGE:
        found.outliers(table, column)
    for table, column in EITHER:
        found.outliers(table, column, small_too=True)
    _storage(found, tables)
    return tuple(found.found)


def _gpus(found: Plausibility, tables: Tables) -> None:
    """GPU types that no region supplies, and workloads that need more GPUs than all regions together have."""
    types = len(tables.axes["gpu_type"])
    supply = np.zeros(types, np.int64)
    np.add.at(supply, tables.get("gpu_supply", "gpu_type"), tables.get("gpu_supply", "gpus"))
    workload, kind = tables.get("gpu_demand", "workload"), tables.get("gpu_demand", "gpu_type")
    needs = tables.get("gpu_demand", "gpus")
    able = np.zeros(len(tables.axes["workload"]), np.bool_)
    able[workload[supply[kind] > 0]] = True
    stranded = np.zeros(types, np.bool_)
    stranded[kind[~able[workload] & (needs > 0)]] = True
    supplied = supply > 0
    what = "no region supplies GPUs of this type"
    found.unsupplied("gpu_demand", "gpu_type", supplied, what, every=stranded)
    found.spellings("gpu_supply", "gpu_type")
    found.unsupplied("current_runs", "gpu_type", supplied, what)
    rows = np.flatnonzero(supplied[kind] & (needs > supply[kind]))
    labels = tables.axes["gpu_type"]
    messages = [
        f"more than the {supply[kind[row]] / 1000:g} {labels[kind[row]]} of all regions together" for row in rows
    ]
    found.cells("gpu_demand", "gpus", rows, messages, "GPUs are counted one by one")


def _storage(found: Plausibility, tables: Tables) -> None:
    """Warn of all sizes of datasets, or all storage, in another unit: one copy of everything against the storage of all
    regions.
    """
    sizes = float(tables.get("datasets", "size_tb").astype(np.float64).sum())
    storage = float(tables.get("regions", "storage_tb").astype(np.float64).sum())
    if not sizes or not storage or len(tables.get("datasets", "size_tb")) < 2:
        return
    sizes_tb, storage_tb = sizes / MB_PER_TB, storage / MB_PER_TB
    stated = f"{sizes_tb:,.6g} TB for one copy of everything, {storage_tb:,.6g} TB of storage in all regions"
    if storage > TOO_MUCH_STORAGE * sizes:
        hint = "is storage_tb in GB, or size_tb in PB? Both columns are in TB"
        found.found.append(
            InputWarning("regions", f"far more storage than data: {stated}", None, "storage_tb", None, hint)
        )
    elif storage < TOO_LITTLE_STORAGE * sizes:
        hint = "is size_tb in GB, or storage_tb in PB? Both columns are in TB"
        found.found.append(
            InputWarning("datasets", f"far more data than storage: {stated}", None, "size_tb", None, hint)
        )

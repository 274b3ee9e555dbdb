"""Input warnings of job placement: values that are allowed and were probably not meant."""

import numpy as np

from mast_opt.core.input_warning import InputWarning
from mast_opt.core.units import MIB_PER_GIB, MILLI
from mast_opt.problems.job_placement.tables.schema import SCHEMA
from mast_opt.problems.kind.plausibility import Plausibility
from mast_opt.problems.kind.schema import Tables

FAR_TOO_LARGE = 4
"""Times the GPUs of its types from which on a job is a mistake; one that needs fewer waits for a larger fleet."""
MOST_MEMORY = 65_536 * MIB_PER_GIB
"""More than any server has."""


def warnings(tables: Tables) -> tuple[InputWarning, ...]:
    """Suspicious values in the tables: tasks larger than any server, jobs larger than the fleet, and units.

    GPU types that no server has are faults, not warnings.
    """
    found = Plausibility(SCHEMA, tables)
    found.spellings("servers", "gpu_type")
    _tasks(found, tables)
    _gangs(found, tables)
    _data(found, tables)
    _parts(found, tables)
    memory = tables.get("servers", "memory_gb")
    rows = np.flatnonzero(memory > MOST_MEMORY)
    found.cells("servers", "memory_gb", rows, "more than any server has", "is it in MiB? The column is in GiB")
    if not len(rows):
        found.outliers("servers", "memory_gb", small_too=True)
    found.outliers("servers", "cpu_cores", small_too=True)
    for column in ("memory_gb", "cpu_cores"):
        found.outliers("jobs", column)
    return tuple(found.found)


def _tasks(found: Plausibility, tables: Tables) -> None:
    """Tasks that need more of something than the largest server has: such a job can never run."""
    units = {"gpus": ("GPUs", MILLI), "cpu_cores": ("cores", MILLI), "memory_gb": ("GiB", MIB_PER_GIB)}
    for column, (unit, scale) in units.items():
        most, needs = int(tables.get("servers", column).max(initial=0)), tables.get("jobs", column)
        rows = np.flatnonzero(needs > most)
        if column == "gpus":  # a job may state another number for each type
            stated = np.zeros(len(needs), np.bool_)
            stated[tables.get("job_gpu_types", "job")[tables.has("job_gpu_types", "gpus")]] = True
            rows = rows[~stated[rows]]
        message = f"one task needs more than the largest server has ({most / scale:,.6g} {unit})"
        hints = [_hint(column, int(needs[row]), most) for row in rows.tolist()]
        found.cells("jobs", column, rows, message, hints)
        part = tables.get("job_parts", column)
        rows = np.flatnonzero(part > most)
        found.cells("job_parts", column, rows, message, [_hint(column, int(part[row]), most) for row in rows.tolist()])
    largest = np.zeros(len(tables.axes["gpu_type"]) + 1, np.int64)
    typed = tables.has("servers", "gpu_type")
    np.maximum.at(largest, tables.get("servers", "gpu_type")[typed], tables.get("servers", "gpus")[typed])
    needs, kind = tables.get("job_gpu_types", "gpus"), tables.get("job_gpu_types", "gpu_type")
    rows = np.flatnonzero(needs > largest[kind])
    messages = [
        f"one task needs more than the largest server of this type has ({largest[kind[row]] / 1000:g})" for row in rows
    ]
    found.cells("job_gpu_types", "gpus", rows, messages, "state the GPUs of one task, not of the whole job")


def _gangs(found: Plausibility, tables: Tables) -> None:
    """Jobs whose tasks need far more GPUs together than all servers of any type that they accept have."""
    fleet = np.zeros(len(tables.axes["gpu_type"]) + 1, np.int64)
    typed = tables.has("servers", "gpu_type")
    np.add.at(fleet, tables.get("servers", "gpu_type")[typed], tables.get("servers", "gpus")[typed])
    tasks, needs = tables.get("jobs", "tasks"), tables.get("jobs", "gpus")
    job, kind = tables.get("job_gpu_types", "job"), tables.get("job_gpu_types", "gpu_type")
    own = np.where(tables.has("job_gpu_types", "gpus"), tables.get("job_gpu_types", "gpus"), needs[job])
    most = FAR_TOO_LARGE * fleet
    fits = tasks * needs <= most.max()
    fits[job] = False
    fits[job[tasks[job] * own <= most[kind]]] = True
    rows = np.flatnonzero(~fits & (needs > 0))
    message = "its tasks need far more GPUs together than all servers of any type that it accepts have"
    found.cells("jobs", "tasks", rows, message, "gpus is per task")


def _data(found: Plausibility, tables: Tables) -> None:
    """Jobs that read a dataset without any replica: they can never run."""
    held = np.zeros(len(tables.axes["dataset"]), np.bool_)
    held[tables.get("replicas", "dataset")] = True
    rows = np.flatnonzero(~held[tables.get("job_datasets", "dataset")])
    found.cells("job_datasets", "dataset", rows, "no region holds this dataset, so the job cannot run", "add a replica")


def _parts(found: Plausibility, tables: Tables) -> None:
    """Find task columns that ``jobs`` states although the job has parts, which count instead."""
    whole = np.zeros(tables.rows("jobs"), np.bool_)
    whole[tables.get("job_parts", "job")] = True
    for column in ("tasks", "gpus", "cpu_cores", "memory_gb"):
        rows = np.flatnonzero(whole & tables.has("jobs", column))
        found.cells("jobs", column, rows, "not used, since the job has parts (job_parts)", "leave the cell empty")


def _hint(column: str, need: int, most: int) -> str:
    """Suggestion for a job that needs more than any server has: another unit, or the need of one task."""
    if column == "memory_gb" and need <= 1024 * most and need > 32 * most:
        return "is it in MiB? The column is in GiB"
    return "state what one task needs, not the whole job"

"""The tables of a job-placement plan, and the way between them and the plan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.core.errors import Fault, PlanError
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.tables.problem_tables import axes_of
from mast_opt.problems.job_placement.units import Bools, Ints
from mast_opt.problems.job_placement.whole_jobs import WholeJobs
from mast_opt.problems.kind.schema import Tables


class _Rows(NamedTuple):
    """Rows of a plan, by job, server and GPU."""

    job: Ints
    server: Ints
    tasks: Ints
    gpu_index: Ints
    indexed: Bools


def plan_from_tables(problem: JobPlacement, tables: Tables) -> Plan:
    """The plan that the tables state. Raises PlanError for a server in another cluster than stated."""
    faults: list[Fault] = []
    starts, moves = (_rows(problem, tables, table, faults) for table in ("assignments", "moves"))
    if faults:
        raise PlanError(faults)
    preempt = np.zeros(len(problem.running), np.bool_)
    preempt[tables.get("preemptions", "job")] = True
    return Plan(*starts, preempt, *moves)


def _rows(problem: JobPlacement, tables: Tables, table: str, faults: list[Fault]) -> _Rows:
    cluster, server = tables.get(table, "cluster"), tables.get(table, "server")
    true = problem.server_cluster[server]
    faults += [
        Fault(
            table,
            f"{problem.clusters.labels[true[row]]}, the cluster of {problem.servers.labels[server[row]]}",
            row + 1,
            "cluster",
            problem.clusters.labels[cluster[row]],
        )
        for row in np.flatnonzero(true != cluster).tolist()
    ]
    indexed = tables.has(table, "gpu_index")
    index = np.where(indexed, tables.get(table, "gpu_index"), 0)
    job: Ints = tables.get(table, "job")
    if table == "assignments":
        job = _jobs(problem, tables, faults)
    order = np.lexsort((index, server, job))
    return _Rows(job[order], server[order], tables.get(table, "tasks")[order], index[order], indexed[order])


def _jobs(problem: JobPlacement, tables: Tables, faults: list[Fault]) -> Ints:
    """The row of ``problem.jobs`` of each assignment, by its job and part."""
    whole, job, named = WholeJobs(problem), tables.get("assignments", "job"), tables.has("assignments", "part")
    part = tables.get("assignments", "part")
    row = whole.row_of(job, np.where(named, part, -1))
    for at in np.flatnonzero(row < 0).tolist():
        known = [whole.part_names[whole.part[one]] for one in np.flatnonzero((whole.of == job[at]) & whole.has_parts)]
        name = whole.labels[job[at]]
        words = f"a part of {name}: {', '.join(known)}" if known else f"nothing, since {name} has no parts"
        faults.append(Fault("assignments", words, at + 1, "part", whole.part_names[part[at]] if named[at] else ""))
    return row


def plan_to_tables(problem: JobPlacement, plan: Plan) -> Tables:
    """The tables that ``plan_from_tables`` turns into this plan; without ``moves`` where nothing moves."""
    starts = _Rows(plan.job, plan.server, plan.tasks, plan.gpu_index, plan.indexed)
    moves = _Rows(plan.moved, plan.moved_server, plan.moved_tasks, plan.moved_gpu_index, plan.moved_indexed)
    values = {
        name: {
            "job": rows.job,
            "cluster": problem.server_cluster[rows.server],
            "server": rows.server,
            "tasks": rows.tasks,
            "gpu_index": rows.gpu_index,
        }
        for name, rows in (("assignments", starts), ("moves", moves))
    }
    whole = WholeJobs(problem)
    values["assignments"] |= {"job": whole.of[plan.job], "part": whole.part[plan.job]}
    values["preemptions"] = {"job": np.flatnonzero(plan.preempt)}
    indexed = {"gpu_index": plan.indexed, "part": whole.has_parts[plan.job]}
    present = {"assignments": indexed, "moves": {"gpu_index": plan.moved_indexed}}
    return Tables(axes_of(problem), values, present, frozenset() if len(plan.moved) else frozenset({"moves"}))

"""The tables of a job-placement plan, and the way between them and the plan."""

from __future__ import annotations

import numpy as np

from mast_opt.core.errors import Fault, PlanError
from mast_opt.job_placement.plan import Plan
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.tables.problem_tables import axes_of
from mast_opt.kind.schema import Tables


def plan_from_tables(problem: JobPlacement, tables: Tables) -> Plan:
    """The plan that the tables state. Raises PlanError for a server in another cluster than stated."""
    cluster, server = tables.get("assignments", "cluster"), tables.get("assignments", "server")
    true = problem.server_cluster[server]
    wrong = np.flatnonzero(true != cluster)
    if len(wrong):
        raise PlanError(
            Fault(
                "assignments",
                f"{problem.clusters.labels[true[row]]}, the cluster of {problem.servers.labels[server[row]]}",
                row + 1,
                "cluster",
                problem.clusters.labels[cluster[row]],
            )
            for row in wrong.tolist()
        )
    indexed = tables.has("assignments", "gpu_index")
    index = np.where(indexed, tables.get("assignments", "gpu_index"), 0)
    job = tables.get("assignments", "job")
    order = np.lexsort((index, server, job))
    preempt = np.zeros(len(problem.running), np.bool_)
    preempt[tables.get("preemptions", "job")] = True
    tasks = tables.get("assignments", "tasks")[order]
    return Plan(job[order], server[order], tasks, index[order], indexed[order], preempt)


def plan_to_tables(problem: JobPlacement, plan: Plan) -> Tables:
    """The tables that ``plan_from_tables`` turns into this plan."""
    values = {
        "assignments": {
            "job": plan.job,
            "cluster": problem.server_cluster[plan.server],
            "server": plan.server,
            "tasks": plan.tasks,
            "gpu_index": plan.gpu_index,
        },
        "preemptions": {"job": np.flatnonzero(plan.preempt)},
    }
    return Tables(axes_of(problem), values, {"assignments": {"gpu_index": plan.indexed}})

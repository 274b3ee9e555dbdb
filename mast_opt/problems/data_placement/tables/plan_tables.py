"""The tables of a data-placement plan, and the way between them and the plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.problems.data_placement.plan import Plan, fill_copies, fill_remote
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.tables.problem_tables import problem_axes
from mast_opt.problems.kind.schema import Tables


def plan_from_tables(problem: DataPlacement, tables: Tables) -> Plan:
    """The plan that the tables state; positions are those of the problem's axes."""
    place = np.zeros((len(problem.datasets), len(problem.regions)), np.bool_)
    place[tables.get("placements", "dataset"), tables.get("placements", "region")] = True
    typed = tables.has("runs", "gpu_type")
    kind = np.where(typed, tables.get("runs", "gpu_type"), len(problem.gpu_types))
    order = np.lexsort((kind, tables.get("runs", "region"), tables.get("runs", "workload")))
    return Plan(
        place=place,
        run_workload=tables.get("runs", "workload")[order],
        run_region=tables.get("runs", "region")[order],
        run_type=kind[order],
        run_share=tables.get("runs", "share")[order],
        copy_dataset=tables.get("copies", "dataset"),
        copy_source=tables.get("copies", "src"),
        copy_target=tables.get("copies", "dst"),
        copy_share=tables.get("copies", "share"),
        remote_workload=tables.get("remote_reads", "workload"),
        remote_dataset=tables.get("remote_reads", "dataset"),
        remote_source=tables.get("remote_reads", "src"),
        remote_target=tables.get("remote_reads", "dst"),
        remote_share=tables.get("remote_reads", "share"),
    )


def in_full(problem: DataPlacement, plan: Plan) -> Plan:
    """The plan with the copies and the remote reads that it leaves out, as it may where there are no links."""
    if problem.links is not None:
        return plan
    if not len(plan.copy_share):
        dataset, source, target, share = fill_copies(problem, plan.place)
        plan = replace(plan, copy_dataset=dataset, copy_source=source, copy_target=target, copy_share=share)
    if not len(plan.remote_share):
        runs = (plan.run_workload, plan.run_region, plan.run_type, plan.run_share)
        remote = fill_remote(problem, plan.place, *runs)
        workload, dataset, source, target, share = (column[remote[2] >= 0] for column in remote)
        plan = replace(
            plan,
            remote_workload=workload,
            remote_dataset=dataset,
            remote_source=source,
            remote_target=target,
            remote_share=share,
        )
    return plan


def plan_to_tables(problem: DataPlacement, plan: Plan) -> Tables:
    """The tables that ``plan_from_tables`` turns into this plan."""
    dataset, region = np.nonzero(plan.place)
    typed = plan.run_type < len(problem.gpu_types)
    values = {
        "placements": {"dataset": dataset, "region": region},
        "runs": {
            "workload": plan.run_workload,
            "region": plan.run_region,
            "gpu_type": np.where(typed, plan.run_type, 0),
            "share": plan.run_share,
        },
        "copies": {
            "dataset": plan.copy_dataset,
            "src": plan.copy_source,
            "dst": plan.copy_target,
            "share": plan.copy_share,
        },
        "remote_reads": {
            "workload": plan.remote_workload,
            "dataset": plan.remote_dataset,
            "src": plan.remote_source,
            "dst": plan.remote_target,
            "share": plan.remote_share,
        },
    }
    return Tables(problem_axes(problem), values, {"runs": {"gpu_type": typed}})

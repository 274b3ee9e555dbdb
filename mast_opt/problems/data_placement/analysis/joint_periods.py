"""Periods of data placement in one program: what links the replicas and runs of one period to those of the next.

A period after the first is stated as if nothing were stored and nothing ran before it. For each pair of periods come

    kept[i,r] ≤ place[i,r] of both periods              gives back price and ingress of a replica that was there
    left[w,r] ≥ Σ_k run[w,r,k] before − Σ_k run[w,r,k]  terms moved_work and moved_items
    left[w,k] ≥ Σ_r run[w,r,k] before − Σ_r run[w,r,k]  term retyped_work
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.problems.data_placement.entities import CurrentRuns
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.kind.analysis_hooks import JointProgram, Link, Stage
from mast_opt.problems.mip import Block, Mip
from mast_opt.problems.mip.transforms import Extension

_OF_MOVES = ("copied_tb", "copy", "new_replicas", "moves", "moved_work", "moved_workloads", "migration_cost")
"""Limits that count from the plan before."""


def fresh(problem: DataPlacement) -> DataPlacement:
    """The instance as if nothing were stored and nothing ran before it."""
    none, stored = np.zeros(0, np.int64), np.zeros_like(problem.datasets.stored)
    return problem.with_columns({"datasets.stored": stored, "current_runs": CurrentRuns(none, none, none, none)})


def refusal(instances: Iterable[DataPlacement], changes: Iterable[str]) -> str:
    """Reason why the periods cannot be stated together; empty where they can."""
    every = tuple(instances)
    counted = sorted({name for one in every for name in one.limits if name in _OF_MOVES})
    reasons = {
        "links, whose copies have sources": any(one.links is not None for one in every),
        "splittable work": any(bool(one.workloads.splittable.any()) for one in every),
        "terms in an order": any(one.objective.lexicographic for one in every),
        f"limits on what moves ({', '.join(counted)})": bool(counted),
        "regions that are lost": "lose_regions" in set(changes),
    }
    return ", ".join(words for words, there in reasons.items() if there)


def linked(program: Mip, before: Stage, after: Stage) -> Link:
    """The link of two periods in a row, whose columns lie in ``program``."""
    p: DataPlacement = after.problem
    place_before, place_after = _places(before), _places(after)
    datasets, regions, workloads = len(p.datasets), len(p.regions), len(p.workloads)
    replicas, work = datasets * regions, workloads * (regions + len(p.gpu_types) + 1)
    row, column = program.shape
    kept = column + np.arange(replicas)
    left = column + replicas + np.arange(work)
    at_before, run_before = _runs(before, p)
    at_after, run_after = _runs(after, p)
    every, of_work = row + np.arange(replicas), row + 2 * replicas
    limited = np.flatnonzero(p.regions.ingress_limited)
    ingress = np.repeat(_ingress_rows(after), datasets)
    arriving = (np.arange(datasets)[None, :] * regions + limited[:, None]).ravel()
    entries: list[tuple[IntArray, IntArray, ArrayLike]] = [
        (every, kept, 1.0),
        (every, place_after, -1.0),
        (replicas + every, kept, 1.0),
        (replicas + every, place_before, -1.0),
        (of_work + np.arange(work), left, 1.0),
        (of_work + at_before, run_before, -1.0),
        (of_work + at_after, run_after, 1.0),
        (ingress, kept[arriving], -np.tile(p.datasets.size_mb, len(limited)).astype(np.float64)),
    ]
    extension = Extension(
        "between",
        columns=replicas + work,
        col_upper=1.0,
        rows=2 * replicas + work,
        row_lower=np.repeat([-np.inf, 0.0], [2 * replicas, work]),
        row_upper=np.repeat([0.0, np.inf], [2 * replicas, work]),
        entries=entries,
    )

    def values(x: FloatArray) -> FloatArray:
        leaves = np.zeros(work)
        np.add.at(leaves, at_before, x[run_before])
        np.subtract.at(leaves, at_after, x[run_after])
        return np.concatenate([np.minimum(x[place_before], x[place_after]), np.maximum(leaves, 0.0)])

    return Link(extension, _costs(after), values)


def _places(stage: Stage) -> IntArray:
    """Columns of a period's replicas in the joint program."""
    return np.asarray(stage.columns[_block(stage, "place").ids.ravel()])


def _runs(stage: Stage, p: DataPlacement) -> tuple[IntArray, IntArray]:
    """(workload and region, then workload and GPU type, as one number, column) of every run."""
    block = _block(stage, "run")
    assert block.cells is not None
    workload, region, kind = block.cells
    regions, width = len(p.regions), len(p.regions) + len(p.gpu_types) + 1
    at = np.concatenate([np.asarray(workload) * width + region, np.asarray(workload) * width + regions + kind])
    return at, np.tile(np.asarray(stage.columns[block.ids]), 2)


def _ingress_rows(stage: Stage) -> IntArray:
    """Rows of a period's ingress in the joint program."""
    blocks = [one for one in stage.mip.rows if one.name == "ingress"]
    return stage.first_row + blocks[0].ids.astype(np.int64) if blocks else np.zeros(0, np.int64)


def _block(stage: Stage, name: str) -> Block:
    """Block of columns of a period in the joint program, by its name."""
    return next(one for one in stage.mip.columns if one.name == name)


def _costs(after: Stage) -> FloatArray:
    """Costs of the columns of a link: by how much the program of the later period is cheaper where everything is stored
    before it, and what leaving costs where every workload is everywhere before it."""
    p: DataPlacement = after.problem
    regions, types, workloads = len(p.regions), len(p.gpu_types), len(p.workloads)
    places = np.arange(max(regions, types))
    work = np.repeat(np.arange(workloads), len(places))
    region, kind = (np.tile(places % size, workloads) for size in (regions, max(types, 1)))
    runs = CurrentRuns(work, region, kind, np.zeros(len(work), np.int64))
    everywhere = {"datasets.stored": np.ones_like(p.datasets.stored), "current_runs": runs}
    settled = Stage(p, base(p.with_columns(everywhere)).mip, after.columns, after.first_row)
    placed, left, retyped = (_block(settled, name) for name in ("place", "left", "retyped"))
    cost = settled.mip.cost
    moved = np.zeros((workloads, regions + types + 1))
    for block, first in ((left, 0), (retyped, regions)):
        assert block.cells is not None
        moved[block.cells[0], first + np.asarray(block.cells[1])] = cost[block.ids]
    kept = cost[placed.ids.ravel()] - after.mip.cost[_block(after, "place").ids.ravel()]
    return np.concatenate([kept, moved.ravel()])


JOINT = JointProgram(fresh, refusal, linked)

"""Sparse index sets of the data-placement MIP: which (workload, region, type), (read, region), … exist."""

from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.problems.data_placement.problem import Bools, DataPlacement, Ints


@dataclass(frozen=True, eq=False)
class IndexSets:
    """Index sets; every set is sorted by its first index, then the second."""

    run_workload: Ints
    """[c] cells of run[w,r,k], sorted by workload, region, option."""
    run_region: Ints
    run_option: Ints
    run_group: Ints
    """[c] position in the groups below."""

    group_workload: Ints
    """[g] pairs (w, r) in which the workload may run on some type."""
    group_region: Ints

    local_read: IntArray
    """[l] rows local[w,i,r]: each read with each region where its workload may run. The longest set by far: int32."""
    local_group: IntArray
    local_workload: IntArray
    local_dataset: IntArray
    local_region: IntArray

    copy_dataset: Ints
    """[·] cells of copy[i,q,r], with links only."""
    copy_link: Ints


def cells_of(problem: DataPlacement) -> IndexSets:
    """The index sets of the formulation's variables: workload–region–option triples, groups, reads and copies."""
    options = len(problem.options)
    option, region = np.nonzero(problem.option_regions)
    workload = problem.options.workload[option]
    order = np.lexsort((option, region, workload)) if options > len(problem.workloads) else slice(None)
    workload, region, option = workload[order], region[order], option[order]
    first = np.ones(len(workload), np.bool_)
    first[1:] = (workload[1:] != workload[:-1]) | (region[1:] != region[:-1])
    group = np.cumsum(first) - 1
    group_workload, group_region = workload[first], region[first]
    groups = np.bincount(group_workload, minlength=len(problem.workloads))
    group_start = np.cumsum(groups) - groups
    local_read, local_group = joined(problem.reads.workload, group_start, groups)
    links = problem.links
    copy_dataset = copy_link = np.zeros(0, np.int64)
    if links is not None:
        holds: Bools = problem.datasets.stored[:, links.source] & ~problem.datasets.stored[:, links.target]
        copy_dataset, copy_link = np.nonzero(holds & ~problem.closed[:, links.target])
    return IndexSets(
        run_workload=workload,
        run_region=region,
        run_option=option,
        run_group=group,
        group_workload=group_workload,
        group_region=group_region,
        local_read=local_read,
        local_group=local_group,
        local_workload=problem.reads.workload.astype(np.int32)[local_read],
        local_dataset=problem.reads.dataset.astype(np.int32)[local_read],
        local_region=group_region.astype(np.int32)[local_group],
        copy_dataset=copy_dataset,
        copy_link=copy_link,
    )


def joined(group: IntArray, start: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Join of every position j of ``group`` with each member of its group: start[g], start[g] + 1, … start[g] +
    count[g] − 1.

    Returns:
        (positions, members), int32, sorted by position, then member.
    """
    size = count[group]
    position = np.repeat(np.arange(len(group), dtype=np.int32), size)
    before = np.cumsum(size) - size
    return position, (np.repeat(start[group] - before, size) + np.arange(len(position))).astype(np.int32)

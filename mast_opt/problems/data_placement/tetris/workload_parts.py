"""Parts of splittable workloads: the search places each of them whole, in a region of its own.

A splittable workload is replaced by equal parts, which are workloads of the same kind with a share of its needs, reads
and current runs. The plan of the parts is a plan of the workload: shares add up, and so do all
terms, but that ``retyped_work`` and what moves may be less, since parts may have swapped their types and regions.
``moved_items`` counts a part by its share.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mast_opt.problems.data_placement.plan import Plan, filled
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement, Ints


@dataclass(frozen=True)
class PartsParams:
    """How splittable workloads are divided for the search."""

    cell_share: float = 0.1
    """A part takes at most this share of the GPUs of a type that the average region has, or of its cores. Set on family
    organisation: coarser parts leave regions unbalanced, finer ones anneal more slowly."""
    most: int = 16
    """Most parts of a workload; 1 searches with whole workloads. As for cell_share."""
    growth: ClassVar[float] = 3.0
    """Most reads of the divided problem, in reads of the problem; beyond, workloads have fewer parts. Memory and the
    time of a round grow with reads."""


@dataclass(frozen=True, eq=False)
class WorkloadParts:
    """A problem whose workloads are parts of those of another problem."""

    problem: DataPlacement
    """P workloads: the parts."""
    owner: Ints
    """[P] the workload that each is a part of, ascending."""
    first: Ints
    """[P] thousandths of the workload that come before."""
    share: Ints
    """[P] thousandths of the workload."""

    @classmethod
    def of(cls, problem: DataPlacement, params: PartsParams) -> "WorkloadParts":
        """The parts of a problem's workloads; the problem itself where no workload has more than one."""
        counts = _counts(problem, params)
        owner = np.repeat(np.arange(len(counts)), counts)
        rank = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
        first = rank * SHARE // counts[owner]
        share = (rank + 1) * SHARE // counts[owner] - first
        if len(owner) == len(counts):
            return cls(problem, owner, first, share)
        parts = cls(problem, owner, first, share)
        return replace(parts, problem=parts._divided(problem))

    def assigned(self, problem: DataPlacement, plan: Plan) -> Plan:
        """The plan of the problem as one of the parts."""
        if self.problem is problem:
            return plan
        run = self._runs(*plan.rows("run"))
        return filled(self.problem, plan.place, run)

    def merged(self, problem: DataPlacement, plan: Plan) -> Plan:
        """The plan of the parts as one of the problem."""
        if self.problem is problem:
            return plan
        grid = (len(problem.workloads), len(problem.regions), len(problem.gpu_types) + 1)
        at = np.ravel_multi_index((self.owner[plan.run_workload], plan.run_region, plan.run_type), grid)
        cell, entry = np.unique(at, return_inverse=True)
        share = np.zeros(len(cell), np.int64)
        np.add.at(share, entry, self.share[plan.run_workload] * plan.run_share // SHARE)
        workload, region, kind = np.unravel_index(cell, grid)
        run = (workload, region, kind, share)
        return filled(problem, plan.place, run)

    def _divided(self, whole: DataPlacement) -> DataPlacement:
        """The problem of the parts. Needs are rounded up, so that what fits in parts fits."""
        work, reads, options, owner = whole.workloads, whole.reads, whole.options, self.owner

        def part_of(amount: Ints, part: Ints) -> Ints:
            return -(-amount * self.share[part] // SHARE)

        option, of_option = _rows_of(options.workload, owner)
        read, of_read = _rows_of(reads.workload, owner)
        every = np.arange(len(owner))
        runs = whole.current_runs
        workload, region, kind, share = self._runs(runs.workload, runs.region, runs.gpu_type, runs.share)
        return whole.with_columns(
            {
                "workloads": work.rows(
                    owner,
                    labels=tuple(map(str, range(len(owner)))),
                    cpu_mcores=part_of(work.cpu_mcores[owner], every),
                    output_mb=part_of(work.output_mb[owner], every),
                ),
                "options.workload": of_option,
                "options.gpu_type": options.gpu_type[option],
                "options.mgpu": part_of(options.mgpu[option], of_option),
                "reads.workload": of_read,
                "reads.dataset": reads.dataset[read],
                "reads.mb_per_day": part_of(reads.mb_per_day[read], of_read),
                "current_runs.workload": workload,
                "current_runs.region": region,
                "current_runs.gpu_type": kind,
                "current_runs.share": share,
            }
        )

    def _runs(self, workload: Ints, region: Ints, kind: Ints, share: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Runs of workloads as runs of parts: those of a workload follow one another from 0 to 1, as its parts do, and
        each part has what it overlaps."""
        order = np.argsort(workload, kind="stable")
        workload, region, kind, share = workload[order], region[order], kind[order], share[order]
        before = np.cumsum(share) - share
        begin = before - before[np.searchsorted(workload, workload)]
        row, part = _rows_of(workload, self.owner)
        shared = np.minimum(begin[row] + share[row], self.first[part] + self.share[part])
        shared -= np.maximum(begin[row], self.first[part])
        found = shared > 0
        row, part = row[found], part[found]
        return part, region[row], kind[row], shared[found] * SHARE // self.share[part]


def _counts(problem: DataPlacement, params: PartsParams) -> Ints:
    """[W] how many parts each workload has."""
    whole = np.ones(len(problem.workloads), np.int64)
    splittable = problem.workloads.splittable
    if params.most == 1 or not splittable.any():
        return whole
    supply, options = problem.regions.supply_mgpu, problem.options
    cell = np.append(supply.sum(axis=0) / np.maximum((supply > 0).sum(axis=0), 1), 0)[options.gpu_type]
    taken = problem.workloads.cpu_mcores / max(float(problem.regions.cpu_mcores.mean()), 1.0)
    np.maximum.at(taken, options.workload, options.mgpu / np.maximum(cell, 1.0))
    counts = np.where(splittable, np.clip(np.ceil(taken / params.cell_share), 1, params.most), 1).astype(np.int64)
    reads = np.bincount(problem.reads.workload, minlength=len(counts))
    more, room = int((reads * (counts - 1)).sum()), (params.growth - 1) * len(problem.reads)
    return counts if more <= room else 1 + (counts - 1) * int(room) // more


def _rows_of(group: Ints, owner: Ints) -> tuple[Ints, Ints]:
    """(row, part): for each part of a workload, the rows of its owner, in order; ``group`` and ``owner``
    are ascending.
    """
    start, end = np.searchsorted(group, owner), np.searchsorted(group, owner, side="right")
    count = end - start
    part = np.repeat(np.arange(len(owner)), count)
    return np.arange(len(part)) - np.repeat(np.cumsum(count) - count, count) + start[part], part

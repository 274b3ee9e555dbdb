"""Columns of the data-placement MIP by decision, and those that a neighbourhood of tetris's fix-and-optimise frees."""

from __future__ import annotations

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import Bools, DataPlacement
from mast_opt.problems.mip import Mip


class FreeColumns:
    """The columns ``place``, ``run`` and ``unserved`` of a program, by dataset, workload and region (−1: of none)."""

    def __init__(self, problem: DataPlacement, mip: Mip) -> None:
        self._problem = problem
        self.workload = np.full(len(mip.cost), -1)
        self.dataset, self.region, self.type = (self.workload.copy() for _ in range(3))
        for block in mip.columns:
            ids = block.ids.ravel()
            if block.name == "place":
                self.dataset[ids], self.region[ids] = np.divmod(np.arange(block.size), len(problem.regions))
            elif block.name in ("run", "unserved") and block.cells is not None:
                self.workload[ids] = block.cells[0]
                if block.name == "run":
                    self.region[ids], self.type[ids] = block.cells[1:]

    @property
    def all(self) -> Bools:
        """Mask [columns] of every decision."""
        return np.asarray((self.workload >= 0) | (self.dataset >= 0))

    def of(self, plan: Plan) -> FloatArray:
        """[columns] the values that a plan gives to the decisions, 0 elsewhere."""
        p = self._problem
        x = np.zeros(len(self.workload))
        x[self.dataset >= 0] = plan.place.ravel()
        run = np.zeros((len(p.workloads) + 1, len(p.regions) + 1, len(p.gpu_types) + 2), np.bool_)
        run[plan.run_workload, plan.run_region, plan.run_type] = True
        work = self.workload >= 0
        x[work] = run[self.workload, self.region, self.type][work]
        out = np.ones(len(p.workloads) + 1, np.bool_)
        out[plan.run_workload] = False
        left = work & (self.region < 0)
        x[left] = out[self.workload][left]
        return x

    def around(self, dataset: int, most: float, rng: np.random.Generator) -> Bools:
        """[columns] those of about ``most`` workloads: readers of the dataset, of what these read, and so on."""
        p = self._problem
        works = np.zeros(len(p.workloads) + 1, np.bool_)
        data = np.zeros(len(p.datasets) + 1, np.bool_)
        while works.sum() < most:
            data[dataset] = True
            readers = rng.permutation(p.reads.workload[p.reads.dataset == dataset])
            works[readers[: max(1, round(most - works.sum()))]] = True
            read = np.unique(p.reads.dataset[works[p.reads.workload]])
            following = read[~data[read]]
            following = following if len(following) else np.flatnonzero(~data[:-1])
            if not len(following):
                break
            dataset = int(rng.choice(following))
        data[np.unique(p.reads.dataset[works[p.reads.workload]])] = True
        return np.asarray(works[self.workload] | data[self.dataset])

    def in_two_regions(self, x: FloatArray, most: float, rng: np.random.Generator) -> Bools:
        """[columns] those of about ``2 · most`` workloads that run in two regions, and of the replicas there."""
        p = self._problem
        near = np.zeros(len(p.regions) + 1, np.bool_)
        near[rng.choice(len(p.regions), 2, replace=False)] = True
        here = self.workload[(self.workload >= 0) & near[self.region] & (x > 0.5)]
        works = np.zeros(len(p.workloads) + 1, np.bool_)
        works[rng.permutation(here)[: 2 * round(most)]] = True
        works[-1] = True  # columns of no workload
        return np.asarray(near[self.region] & works[self.workload])

"""Search in blocks (tetris): workers search and bound parts of an instance, the driver joins what they find."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from mast_opt.core.errors import UnsupportedOption
from mast_opt.core.executor import Executor, Shared, WorkerLost, executor
from mast_opt.core.parallel import in_parallel
from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import DataPlacement
from mast_opt.data_placement.tetris.blocks.clusters import block_of_workloads, owner_of_datasets
from mast_opt.data_placement.tetris.blocks.instances import (
    Block,
    block_instance,
    block_rows,
    plan_of_block,
    share_of_costs,
)
from mast_opt.data_placement.tetris.blocks.joining import joined_certificate, joined_plan
from mast_opt.data_placement.tetris.blocks.worker import BlockCall, BlockData, bound_block, search_block
from mast_opt.data_placement.tetris.params import TetrisParams
from mast_opt.data_placement.verification.peak_bound import bin_packing_peak_bound
from mast_opt.data_placement.verification.verifier import verify
from mast_opt.search.interface import SearchContext, SearchResult

FoundT = TypeVar("FoundT")


def search_in_blocks(
    problem: DataPlacement, tools: SearchContext, start: Plan | None, weights: Mapping[str, float], params: TetrisParams
) -> SearchResult[Plan]:
    own, stop = params.blocks, tools.watch.stop
    with executor(own.workers, tools.threads, stop.cancel, own.ray) as workers:
        return _Driver(problem, tools, start, weights, params, workers).run()


class _Driver:
    def __init__(self, problem, tools, start, weights, params, workers) -> None:
        self.problem, self.tools, self.start, self.weights, self.params = problem, tools, start, weights, params
        self.workers: Executor = workers
        self.lost = itertools.count()
        own = params.blocks
        count = min(own.count or workers.size, max(len(problem.workloads), 1))
        block = block_of_workloads(problem, count, own)
        owner = owner_of_datasets(problem, block, count)
        self.rows = [block_rows(problem, block, owner, number) for number in range(count)]

    def run(self):
        import time
        T=time.time()
        p, tools = self.problem, self.tools
        floor = bin_packing_peak_bound(p)
        data = []
        for rows in self.rows:
            part = BlockData(block_instance(p, self.weights, rows), share_of_costs(p, rows), floor)
            data.append(self.workers.share(part))
        del part
        print("made", time.time()-T, [ (len(r.workloads),len(r.datasets),int(r.owned.sum()),len(r.reads)) for r in self.rows]); T=time.time()
        rngs = tools.rng.spawn(2 * len(data))
        starts = [None if self.start is None else plan_of_block(p, rows, self.start) for rows in self.rows]
        searched = [BlockCall(one, self.params, rng, 1, None, tools.watch.stop.iterations, start)
                    for one, rng, start in zip(data, rngs, starts)]
        bounded = [BlockCall(one, self.params, rng, 1, None, tools.watch.stop.iterations)
                   for one, rng in zip(data, rngs[len(data):])]
        found = self._each(search_block, searched, self.params.blocks.search_share)
        print("searched", time.time()-T, [f.message for f in found]); T=time.time()
        prices = self._each(bound_block, bounded, 0.9)
        print("bounded", time.time()-T); T=time.time()
        plan = joined_plan(p, self.weights, self.rows, [one.plan for one in found])
        print("joined", time.time()-T, verify(p, plan).objective, verify(p,plan).violations[:3]); T=time.time()
        certificate = joined_certificate(p, self.weights, self.rows, prices)
        bound = certificate.bound_by_prices(p)
        print("certified", time.time()-T, bound, sum(self._v(d.get().problem, f.plan) for d, f in zip(data, found)))
        print([c.bound_by_prices(d.get().problem) for c, d in zip(prices, data)])
        return SearchResult(plan, bound, tools.watch.limit(), f"{len(data)} blocks", certificate)

    def _v(self, p, plan):
        return verify(p, plan).objective

    def _each(self, call, given, share):
        left_s = self.tools.watch.remaining_s * share
        count = len(given)
        waiting = iter(range(count, 0, -1))
        size = min(self.workers.size, count)
        import time
        end = time.time() + left_s
        def one(task):
            left = next(waiting)
            if self.tools.watch.stop.time_limit_s is not None:
                task = replace(task, time_limit_s=max((end - time.time()) * min(1.0, size / left), 0.01))
            return self.workers.run(call, task, self._stopped)
        return in_parallel(one, given, size, self.tools.watch.stop.cancel)

    def _stopped(self) -> bool:
        return self.tools.watch.stop.cancel.is_set() or self.tools.watch.remaining_s <= 0

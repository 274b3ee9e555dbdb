"""Objective of a job-placement batch from the ledger (exhaustive): what the verifier will say, in microseconds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.job_placement.capacity import fewest_racks, whole_server_tasks
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.server_layout import Layout
from mast_opt.problems.job_placement.engine.state import EngineState
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, WHOLE, Ints

Floats = NDArray[np.float64]


class TermPrices(NamedTuple):
    """Prices of the terms of the objective, weights and denominators included."""

    rejected: Floats
    """[J] of not admitting a job."""
    stopped: Floats
    """[V] of stopping a running job."""
    admitted: Floats
    """[J, G] of admitting a job into a group: remote reads, costs, less the racks that it must use."""
    rack: float
    """Price of every rack that a job uses."""
    balance: float
    """Price of a milli-GPU away from the mean use of the type."""
    fragment: float
    """Price of a free milli-GPU on a server that could not take the commonest whole-server task."""
    supply: Floats
    """[R, K] milli-GPUs."""
    whole_task: Ints
    """[S, 2] millicores and MiB of that task; −1 where there is none."""


def term_prices_of(problem: JobPlacement, layout: Layout) -> TermPrices:
    """The prices of a problem, for servers in the order of the layout."""
    p = problem.standing
    weights = p.objective.weights
    worth = p.tier_weight[p.queue_tier] * p.jobs.value_milli
    held = np.bincount(p.allocations.running, weights=p.held[:, GPU], minlength=len(p.running))
    gpus = max(p.all_mgpu, 1)
    rack = weights["spread"] / float(p.jobs.tasks.sum())
    far = p.missing_mb[:, layout.group_region] / max(int(p.reads.mb_per_day.sum()), 1)
    cost = np.zeros((len(p.jobs), len(p.clusters)))
    cost[p.costs.job, p.costs.cluster] = p.costs.cost_micro / 1e6
    admitted = weights["remote"] * far + weights["cost"] * cost[:, layout.group_cluster]
    supply = np.zeros((len(p.regions), len(p.gpu_types)))
    np.add.at(supply, (p.server_region, p.servers.gpu_type), p.servers.supply[:, GPU])
    common = whole_server_tasks(p)
    whole_task = np.full((len(p.servers), 2), -1, np.int64)
    whole_task[layout.position[common.servers]] = common.need[:, 1:]
    return TermPrices(
        rejected=weights["rejected"] * worth / (worth.sum() if worth.any() else 1.0),
        stopped=weights["preemption"] * p.tier_weight[p.running.tier] * (p.running.at_risk_mgpu_hours + held) / gpus,
        admitted=np.ascontiguousarray(admitted - rack * fewest_racks(p)[:, None]),
        rack=rack,
        balance=weights["balance"] / gpus,
        fragment=weights["fragmentation"] / gpus,
        supply=supply,
        whole_task=whole_task,
    )


@compiled
def objective(state: EngineState, prices: TermPrices, jobs: Ints, places: Ints, stopped: Ints) -> float:
    """The objective when the pending ``jobs`` are at ``places`` in the state and ``stopped`` are."""
    seen = np.full(state.server[col.S_RACK].max() + 1, -1, np.int64)
    return _priced(state, prices, jobs, places, stopped, seen) + _soft(state, prices, prices.supply.copy())


@kernel
def _priced(state: EngineState, prices: TermPrices, jobs: Ints, places: Ints, stopped: Ints, seen: Ints) -> float:
    """Terms that are priced by job, summed. ``seen`` [racks] is −1."""
    total = 0.0
    for j in range(len(prices.rejected)):
        total += prices.rejected[j]
    for at in range(len(stopped)):
        total += prices.stopped[stopped[at]]
    for at in range(len(jobs)):
        j, row = jobs[at], state.job[col.J_ROW, places[at]]
        total += prices.admitted[j, state.server[col.S_GROUP, state.row[col.L_SERVER, row]]] - prices.rejected[j]
        while row >= 0:
            rack = state.server[col.S_RACK, state.row[col.L_SERVER, row]]
            if seen[rack] != at:
                seen[rack] = at
                total += prices.rack
            row = state.row[col.L_NEXT, row]
    return float(total)


@kernel
def _soft(state: EngineState, prices: TermPrices, used: Floats) -> float:
    """Balance and fragmentation. ``used`` [R, K] begins as the supply."""
    scattered = 0
    for s in range(state.server.shape[1]):
        free = 0
        for d in range(state.server[col.S_DEVICES, s]):
            free += state.slack_device[s, d, 0]
        group = state.server[col.S_GROUP, s]
        used[state.group[col.G_REGION, group], state.group[col.G_TYPE, group]] -= free
        cpu, memory = prices.whole_task[s, 0], prices.whole_task[s, 1]
        if cpu >= 0 and (
            free < state.server[col.S_DEVICES, s] * WHOLE or state.slack[0, s, 0] < cpu or state.slack[1, s, 0] < memory
        ):
            scattered += free
    total = prices.fragment * scattered
    for k in range(used.shape[1]):
        supply = in_use = 0.0
        for r in range(used.shape[0]):
            supply += prices.supply[r, k]
            in_use += used[r, k]
        for r in range(used.shape[0]):
            if prices.supply[r, k] > 0:
                total += prices.balance * abs(used[r, k] - prices.supply[r, k] * in_use / supply)
    return float(total)

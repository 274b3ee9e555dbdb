"""Objective terms and metrics of a job-placement plan, from the decisions alone.

The verifier's half of the statement: nothing here is shared with the formulation or with a heuristic.
"""

from fractions import Fraction

import numpy as np

from mast_opt.core.units import MICRO, MILLI
from mast_opt.problems.job_placement.capacity import fewest_racks, whole_server_tasks
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, Bools, Ints


def measure(problem: JobPlacement, plan: Plan) -> tuple[dict[str, float], dict[str, float]]:
    """(terms, metrics) as the problem's documentation defines them; positions of the plan are in range."""
    p = problem
    admitted = np.zeros(len(p.jobs), np.bool_)
    admitted[plan.job] = True
    held_mgpu = np.zeros(len(p.running), np.int64)
    np.add.at(held_mgpu, p.allocations.running, p.held[:, GPU])
    free = free_after(p, plan)
    fragmented = _fragmented_mgpu(p, free)
    used = p.servers.supply[:, GPU] - free[:, GPU]
    terms = {
        "rejected": _rejected(p, admitted),
        "preemption": _preemption(p, plan, held_mgpu),
        "balance": _balance(p, used),
        "spread": _spread(p, plan),
        "remote": _remote(p, plan),
        "fragmentation": _ratio(fragmented, p.all_mgpu),
        "cost": _cost(p, plan),
    }
    needs = p.need_mgpu[plan.job, p.servers.gpu_type[plan.server]]
    metrics = {
        "admitted_jobs": float((admitted & p.counts_once).sum()),
        "admitted_value": _total(p.jobs.value_milli[admitted]) / MILLI,
        "admitted_gpus": _total(needs * plan.tasks) / MILLI,
        "preempted_jobs": float(plan.preempt.sum()),
        "preempted_gpu_hours": _total(p.running.at_risk_mgpu_hours[plan.preempt]) / MILLI,
        "gpu_allocation_rate": _ratio(_total(used), p.all_mgpu),
        "peak_utilisation": _peak(p, used),
        "fragmented_gpus": fragmented / MILLI,
    }
    if len(p.movable):
        moving = np.isin(p.movable.running, plan.moved)
        metrics["moved_jobs"] = float(moving.sum())
        metrics["moved_gpus"] = _total(held_mgpu[p.movable.running[moving]]) / MILLI
        metrics["restart_gpu_hours"] = _total(p.movable.restart_mgpu_hours[moving]) / MILLI
    return terms, metrics


def free_after(problem: JobPlacement, plan: Plan) -> Ints:
    """[S, 3] what is free when the plan is carried out."""
    p = problem
    free = p.servers.supply.copy()
    leaves = plan.preempt.copy()
    leaves[plan.moved] = True
    stays = ~leaves[p.allocations.running]
    np.subtract.at(free, p.allocations.server[stays], p.held[stays])
    tasks = np.concatenate([plan.tasks, plan.moved_tasks])
    np.subtract.at(free, np.concatenate([plan.server, plan.moved_server]), task_needs(p, plan) * tasks[:, None])
    return free


def task_needs(problem: JobPlacement, plan: Plan) -> Ints:
    """[·, 3] what a task takes of each row of pending jobs, then of each row of moved ones."""
    p, j = problem, plan.job
    of_pending = np.stack(
        [p.need_mgpu[j, p.servers.gpu_type[plan.server]], p.jobs.cpu_mcores[j], p.jobs.memory_mib[j]], axis=1
    )
    of_running = np.zeros((len(p.running), 3), np.int64)
    of_running[p.allocations.running] = p.allocations.need
    return np.concatenate([of_pending, of_running[plan.moved]])


def _rejected(problem: JobPlacement, admitted: Bools) -> float:
    """Σ tier_weight · value not admitted / Σ tier_weight · value."""
    p = problem.standing
    lost = asked = 0.0
    for tier, weight in enumerate(p.tier_weight.tolist()):
        of_tier = p.queue_tier == tier
        lost += weight * _total(p.jobs.value_milli[of_tier & ~admitted])
        asked += weight * _total(p.jobs.value_milli[of_tier])
    return _ratio(lost, asked)


def _preemption(problem: JobPlacement, plan: Plan, held_mgpu: Ints) -> float:
    """Σ tier_weight[v] · (GPU-hours at risk + GPUs held) over victims + Σ tier_weight[v] · GPU-hours to restart over
    moved jobs, / all GPUs."""
    p = problem.standing
    price = 0.0
    moving = np.isin(p.movable.running, plan.moved)
    for tier, weight in enumerate(p.tier_weight.tolist()):
        of_tier = plan.preempt & (p.running.tier == tier)
        price += weight * (_total(p.running.at_risk_mgpu_hours[of_tier]) + _total(held_mgpu[of_tier]))
        price += weight * _total(p.movable.restart_mgpu_hours[moving & (p.running.tier[p.movable.running] == tier)])
    return _ratio(price, p.all_mgpu)


def _balance(problem: JobPlacement, used_mgpu: Ints) -> float:
    """Σ over regions and types of |use − mean use of the type|, as shares of supply, weighted by supply."""
    p = problem
    shape = (len(p.regions), len(p.gpu_types))
    used, supply = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    np.add.at(used, (p.server_region, p.servers.gpu_type), used_mgpu)
    np.add.at(supply, (p.server_region, p.servers.gpu_type), p.servers.supply[:, GPU])
    off = Fraction(0)
    for k in range(len(p.gpu_types)):
        whole, taken = _total(supply[:, k]), _total(used[:, k])
        if whole:
            ours = zip(used[:, k].tolist(), supply[:, k].tolist())
            off += sum((abs(Fraction(u) - Fraction(s * taken, whole)) for u, s in ours if s), Fraction(0))
    return _ratio(float(off), p.all_mgpu)


def _spread(problem: JobPlacement, plan: Plan) -> float:
    """Σ_j (racks used − fewest racks possible) / Σ_j tasks, over the admitted jobs and all tasks that wait."""
    p = problem
    pairs = np.unique(plan.job * len(p.racks) + p.servers.rack[plan.server])
    racks = np.bincount(pairs // len(p.racks), minlength=len(p.jobs))
    over = np.where(racks > 0, racks - fewest_racks(p), 0)
    return _ratio(_total(over), _total(p.jobs.tasks))


def _remote(problem: JobPlacement, plan: Plan) -> float:
    """Volume that admitted jobs read from other regions / volume that all pending jobs read."""
    p = problem
    job, first = np.unique(plan.job, return_index=True)
    far = p.missing_mb[job, p.server_region[plan.server[first]]]
    return _ratio(_total(far), _total(p.reads.mb_per_day))


def _cost(problem: JobPlacement, plan: Plan) -> float:
    """Cost of the admitted jobs in the clusters where a plan puts them."""
    p = problem
    job, first = np.unique(plan.job, return_index=True)
    cluster = dict(zip(job.tolist(), p.server_cluster[plan.server[first]].tolist()))
    rows = zip(p.costs.job.tolist(), p.costs.cluster.tolist(), p.costs.cost_micro.tolist())
    total: int = sum(micro for j, c, micro in rows if cluster.get(j) == c)
    return total / MICRO


def _fragmented_mgpu(problem: JobPlacement, free: Ints) -> int:
    """Free GPUs on servers that could not take the commonest whole-server task of their type and size."""
    common = whole_server_tasks(problem)
    left = free[common.servers]
    cannot = (left < common.need).any(axis=1)
    return _total(np.maximum(left[cannot, GPU], 0))


def _peak(problem: JobPlacement, used_mgpu: Ints) -> float:
    """The fullest cluster's share of GPUs in use."""
    p = problem
    used, supply = np.zeros(len(p.clusters), np.int64), np.zeros(len(p.clusters), np.int64)
    np.add.at(used, p.server_cluster, used_mgpu)
    np.add.at(supply, p.server_cluster, p.servers.supply[:, GPU])
    return max((u / s for u, s in zip(used.tolist(), supply.tolist()) if s), default=0.0)


def _total(amounts: Ints) -> int:
    """An exact sum of the job-placement verifier."""
    return sum(amounts.tolist())


def _ratio(part: float, whole: float) -> float:
    """Ratio of a part to a whole of the job-placement plan, 0 of nothing."""
    return part / whole if whole else 0.0

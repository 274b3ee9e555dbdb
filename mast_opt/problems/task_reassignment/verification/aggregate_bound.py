"""Aggregate lower bound of task reassignment (the challenge's simple one): all machines taken as one."""

from mast_opt.core.arrays import exact_column_sums
from mast_opt.problems.task_reassignment.problem import TaskReassignment


def aggregate_bound(problem: TaskReassignment) -> float:
    """Load and balance cost if need and room could be shared freely among machines; in a lexicographic objective, the
    value of its first term.

    Both are sums of max(0, ·) over machines, which are at least max(0, ·) of the sum (Jensen); moves cost at least 0.
    Machines without balance goals can take at most what they have: the rest of what is needed is on the others.
    """
    p = problem
    order = p.objective.order
    weights = p.objective.weights if not order else dict.fromkeys(p.objective.weights, 0.0) | {order[0]: 1.0}
    need = exact_column_sums(p.processes.need)
    room, other = (
        exact_column_sums(p.machines.capacity[p.machines.balanced]),
        exact_column_sums(p.machines.capacity[~p.machines.balanced]),
    )
    least = [total - used for total, used in zip(room, need, strict=True)]
    most = [total - max(0, used - away) for total, used, away in zip(room, need, other, strict=True)]
    over = [max(0, used - safe) for used, safe in zip(need, exact_column_sums(p.machines.safety), strict=True)]
    load = sum(int(weight) * amount for weight, amount in zip(p.resources.load_weight, over, strict=True))
    goals = zip(p.balances.first, p.balances.second, p.balances.target, p.balances.weight, strict=True)
    balance = sum(int(w) * max(0, int(target) * least[first] - most[second]) for first, second, target, w in goals)
    return float(weights["load"] * load + weights["balance"] * balance)

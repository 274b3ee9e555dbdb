"""What a shift or a swap does to the two machines it touches. Kernels on plain arrays, small enough to be inlined.

``here`` and ``there`` are 1 where the process is at home on the source or the target, the first index of ``need``.
"""

from __future__ import annotations

from numba import njit

from mast_opt.task_reassignment.heuristics.compiled import OPTIONS


@njit(**OPTIONS)
def firm_room(firm, need, free, process, target, there):
    """Has the target room for the transient needs of the process?"""
    room = True
    for at in range(firm.shape[0]):
        k = firm[at]
        room &= need[there, process, k] <= free[target, k]
    return room


@njit(**OPTIONS)
def shifted_levels(price, feature, level, process, source, target):
    """Load and balance cost of both machines after the shift."""
    cost = 0.0
    for j in range(price.shape[0]):
        f = feature[process, j]
        cost += price[j] * (max(0.0, level[source, j] - f) + max(0.0, level[target, j] + f))
    return cost


@njit(**OPTIONS)
def shifted_excess(loose, scarcity, need, free, process, source, target, here, there):
    """Change in weighted excess over capacities."""
    change = 0.0
    for at in range(loose.shape[0]):
        k = loose[at]
        a, b = free[source, k], free[target, k]
        gain = min(0.0, a) + min(0.0, b)
        a += need[here, process, k]
        b -= need[there, process, k]
        change += scarcity[k] * (gain - min(0.0, a) - min(0.0, b))
    return change


@njit(**OPTIONS)
def firm_room_exchanged(firm, need, free, p, q, source, target, p_here, p_there, q_here, q_there):
    """Have both machines room for the transient needs after p and q have changed places?"""
    room = True
    for at in range(firm.shape[0]):
        k = firm[at]
        room &= need[p_there, p, k] - need[q_there, q, k] <= free[target, k]
        room &= need[q_here, q, k] - need[p_here, p, k] <= free[source, k]
    return room


@njit(**OPTIONS)
def exchanged_levels(price, feature, level, p, q, source, target):
    """Load and balance cost of both machines after the swap."""
    cost = 0.0
    for j in range(price.shape[0]):
        f = feature[p, j] - feature[q, j]
        cost += price[j] * (max(0.0, level[source, j] - f) + max(0.0, level[target, j] + f))
    return cost


@njit(**OPTIONS)
def exchanged_excess(loose, scarcity, need, free, p, q, source, target, p_here, p_there, q_here, q_there):
    """Change in weighted excess over capacities."""
    change = 0.0
    for at in range(loose.shape[0]):
        k = loose[at]
        a, b = free[source, k], free[target, k]
        gain = min(0.0, a) + min(0.0, b)
        a += need[p_here, p, k] - need[q_here, q, k]
        b += need[q_there, q, k] - need[p_there, p, k]
        change += scarcity[k] * (gain - min(0.0, a) - min(0.0, b))
    return change

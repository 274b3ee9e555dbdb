"""The primal steps of the relaxation: one pass over workloads or datasets each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.compiled import compiled, kernel
from mast_opt.mip import FloatArray


@kernel
def to_simplex(values, count):
    """Project values[:count] onto {x ≥ 0, Σ x = 1} in place (Michelot 1986)."""
    total = 0.0
    for j in range(count):
        total += values[j]
    shift, active = (total - 1.0) / count, count + 1
    while True:
        total, above = 0.0, 0
        for j in range(count):
            if values[j] > shift:
                total += values[j]
                above += 1
        if above >= active or above == 0:
            break
        shift, active = (total - 1.0) / above, above
    for j in range(count):
        values[j] = max(values[j] - shift, 0.0)


class Loads(NamedTuple):
    """What the runs ask of the regions."""

    demand: FloatArray
    """[R, C + 1] of each class of GPU work, the last being work without GPUs."""
    cpu: FloatArray
    output: FloatArray
    quota: FloatArray


@kernel
def _cell_costs(a, gangs, prices, gpu_price, splittable, w, cost, reads):
    """Price of every cell of w, option by option, region by region; returns how many there are."""
    regions = a.supply.shape[0]
    reads[:] = 0.0
    if len(prices.work_lift) > 0:
        for r in range(regions):
            reads[r] = prices.work_lift[w, r]
    for n in range(a.read_start[w], a.read_start[w + 1]):
        for r in range(regions):
            reads[r] += prices.read[n, r]
    leave = 0.0
    for c in range(a.today_start[w], a.today_start[w + 1]):
        leave += a.today_share[c] * a.move_price[w]
        kept = 1.0 if splittable[w] else a.today_share[c]
        reads[a.today_region[c]] -= kept * a.move_price[w]
    for r in range(regions):
        reads[r] += a.cpu_need[w] * prices.cpu[r] + a.output[w] * prices.storage[r]
        row = a.quota_row[a.app[w], r]
        if row >= 0:
            reads[r] += a.cpu_need[w] * prices.quota[row]
    reads[regions] = a.refuse_price[w]
    count = 0
    for o in range(a.option_start[w], a.option_start[w + 1]):
        for r in range(regions + 1):
            if a.option_region[o, r]:
                gpu = gangs.option_amount[o] * gpu_price[gangs.option_class[o], r] if r < regions else 0.0
                cost[count] = reads[r] + leave + gpu
                count += 1
    return count


@kernel
def _step_workload(a, gangs, prices, gpu_price, splittable, pace, run, runs, w, cost, reads, loads):
    """The step of one workload; returns its cheapest cell."""
    regions = a.supply.shape[0]
    count = _cell_costs(a, gangs, prices, gpu_price, splittable, w, cost, reads)
    if count == 0:
        return 0.0
    cheapest = cost[0]
    for j in range(1, count):
        cheapest = min(cheapest, cost[j])
    j = 0
    for o in range(a.option_start[w], a.option_start[w + 1]):
        for r in range(regions + 1):
            if a.option_region[o, r]:
                cost[j] = run[o, r] - pace * cost[j]
                j += 1
    to_simplex(cost, count)
    runs[w, :] = 0.0
    j = 0
    for o in range(a.option_start[w], a.option_start[w + 1]):
        own, amount = gangs.option_class[o], gangs.option_amount[o]
        for r in range(regions + 1):
            if a.option_region[o, r]:
                ahead = 2.0 * cost[j] - run[o, r]
                run[o, r] = cost[j]
                j += 1
                if r < regions and ahead != 0.0:
                    runs[w, r] += ahead
                    loads.demand[r, own] += ahead * amount
                    loads.cpu[r] += ahead * a.cpu_need[w]
                    loads.output[r] += ahead * a.output[w]
                    row = a.quota_row[a.app[w], r]
                    if row >= 0:
                        loads.quota[row] += ahead * a.cpu_need[w]
    return cheapest


@compiled
def workload_step(a, gangs, prices, gpu_price, splittable, omega, weight, run, runs):
    """Primal step of the runs.

    Returns Σ_w cheapest cell, and the loads of the extrapolated point, which ``runs`` [W, R] receives too.
    """
    regions = a.supply.shape[0]
    loads = Loads(np.zeros((regions, len(gpu_price))), np.zeros(regions), np.zeros(regions), np.zeros(len(a.quota)))
    widest = 1
    for w in range(len(a.tier)):
        widest = max(widest, a.option_start[w + 1] - a.option_start[w])
    cost, reads = np.zeros(widest * (regions + 1)), np.zeros(regions + 1)
    cheapest = 0.0
    for w in range(len(a.tier)):
        pace = omega / weight[w]
        cheapest += _step_workload(a, gangs, prices, gpu_price, splittable, pace, run, runs, w, cost, reads, loads)
    return cheapest, loads


@kernel
def _cheapest_set(a, i, cost, rest):
    """Least cost of a set of replicas of i within its limits.

    ``rest`` is scratch: the cheapest of what is free, sorted, as many as there may be copies.
    """
    total, count, kept = 0.0, 0, 0
    most = a.copies_max[i]
    for r in range(len(cost)):
        if a.pinned[i, r]:
            total += cost[r]
            count += 1
        elif not a.forbidden[i, r]:
            at = min(kept, most)
            if at == most and (most == 0 or rest[most - 1] <= cost[r]):
                continue
            at -= at == most
            while at > 0 and rest[at - 1] > cost[r]:
                rest[at] = rest[at - 1]
                at -= 1
            rest[at] = cost[r]
            kept = min(kept + 1, most)
    for j in range(kept):
        if count < a.copies_min[i] or (count < a.copies_max[i] and rest[j] < 0.0):
            total += rest[j]
            count += 1
    return total


@kernel
def _to_copies(a, i, values):
    """Project onto {0 ≤ y ≤ 1, copies_min ≤ Σ y ≤ copies_max, pins and bans}; returns the shift."""
    total, low, high = 0.0, 0.0, 0.0
    for r in range(len(values)):
        if a.pinned[i, r]:
            total += 1.0
        elif not a.forbidden[i, r]:
            total += min(max(values[r], 0.0), 1.0)
            low, high = min(low, values[r] - 1.0), max(high, values[r])
    target = total
    if total < a.copies_min[i]:
        target, high = float(a.copies_min[i]), 0.0
    elif total > a.copies_max[i]:
        target, low = float(a.copies_max[i]), 0.0
    if target == total:
        return 0.0
    shift = 0.0
    for _ in range(40):  # Newton's method, kept inside the bracket
        total, inside = 0.0, 0
        for r in range(len(values)):
            if a.pinned[i, r]:
                total += 1.0
            elif not a.forbidden[i, r]:
                y = values[r] - shift
                total += min(max(y, 0.0), 1.0)
                inside += 0.0 < y < 1.0
        if abs(total - target) < 1e-9:
            break
        if total > target:
            low = shift
        else:
            high = shift
        shift = shift + (total - target) / inside if inside > 0 else 0.5 * (low + high)
        if not low < shift < high:
            shift = 0.5 * (low + high)
    return shift


@kernel
def _step_dataset(a, prices, pace, place, places, i, cost, values, held, new):
    """The step of one dataset; returns its cheapest set."""
    regions = len(cost)
    for r in range(regions):
        if a.stored[i, r]:
            cost[r] = a.keep_price[i] + a.size[i] * prices.storage[r]
        else:
            cost[r] = a.new_price[i] + a.size[i] * (prices.storage[r] + prices.ingress[r])
        if len(prices.data_lift) > 0:
            cost[r] += prices.data_lift[i, r]
    for j in range(a.reader_start[i], a.reader_start[i + 1]):
        n = a.reader_read[j]
        for r in range(regions):
            cost[r] -= prices.read[n, r]
    cheapest = _cheapest_set(a, i, cost, values)
    for r in range(regions):
        values[r] = place[i, r] - pace * cost[r]
    shift = _to_copies(a, i, values)
    for r in range(regions):
        y = min(max(values[r] - shift, 0.0), 1.0)
        if a.pinned[i, r]:
            y = 1.0
        elif a.forbidden[i, r]:
            y = 0.0
        ahead = 2.0 * y - place[i, r]
        place[i, r] = y
        places[i, r] = ahead
        held[r] += a.size[i] * ahead
        if not a.stored[i, r]:
            new[r] += a.size[i] * ahead
    return cheapest


@compiled
def dataset_step(a, prices, omega, weight, place, places):
    """Primal step of the replicas: (Σ_i cheapest set, MB held [R], MB new [R]) as in ``workload_step``."""
    datasets, regions = a.stored.shape
    held, new = np.zeros(regions), np.zeros(regions)
    cost, values = np.empty(regions), np.empty(regions)
    cheapest = 0.0
    for i in range(datasets):
        cheapest += _step_dataset(a, prices, omega / weight[i], place, places, i, cost, values, held, new)
    return cheapest, held, new

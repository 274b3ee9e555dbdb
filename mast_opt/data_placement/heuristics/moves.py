"""Changes to a state: each is priced exactly, in time that does not grow with the instance, then made or left.

Every function returns the change in cost if the change was made, and 0.0 if it was not. Hard limits may be
exceeded in a start, never by a change; moving out of an exceeded limit is rewarded by ``RELIEF``.
"""

from __future__ import annotations

import math

import numpy as np

from mast_opt.compiled import kernel
from mast_opt.data_placement.heuristics.arrays import Arrays
from mast_opt.data_placement.heuristics.state import State

RELIEF = 100.0
"""Worth of bringing an exceeded limit back by its own size."""
IMPOSSIBLE = 1e30
"""Cost of what a hard limit forbids."""
ADD, DROP = 1, 2


@kernel
def _uniform(random):
    """A number in [0, 1) by xorshift64."""
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return (x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def below(random, n):
    """An integer in 0 … n − 1."""
    return np.int64(_uniform(random) * n)


@kernel
def accepted(random, delta, temperature):
    """Metropolis: always if it improves, else with probability exp(−delta / temperature)."""
    return delta <= 0.0 or (temperature > 0.0 and _uniform(random) < math.exp(-delta / temperature))


@kernel
def allowance(random, temperature):
    """The largest change that Metropolis accepts this time, drawn before the change is priced."""
    return 0.0 if temperature <= 0.0 else -temperature * math.log(1.0 - _uniform(random))


@kernel
def _relief(used, limit, amount):
    """Cost change, ≤ 0, of taking ``amount`` out of a limit that may be exceeded."""
    over = used - limit
    return 0.0 if over <= 0 else -RELIEF * min(over, amount) / max(limit, 1)


@kernel
def _balance(a: Arrays, s: State, r, k, p, change):
    """Change of the overload and idle terms when demand[r,k,p] changes."""
    supply = a.supply[r, k]
    before = s.demand[r, k, p]
    after = before + change
    delta = a.overload_price[k, p] * (max(after - supply, 0) - max(before - supply, 0))
    if p == s.demand.shape[2] - 1:
        delta += a.idle_price[k] * (max(supply - after, 0) - max(supply - before, 0))
    return delta


@kernel
def _new_peak(a: Arrays, s: State, k, p, r0, g0, r1, g1):
    """peak[k,p] after demand leaves r0 and enters r1 (−1: neither)."""
    peak = s.peak[k, p]
    if r0 >= 0:
        was = s.demand[r0, k, p] / a.supply[r0, k]
        if was >= peak:
            peak = 0.0
            for r in range(a.supply.shape[0]):
                if a.supply[r, k] > 0 and r != r1:
                    left = s.demand[r, k, p] - (g0 if r == r0 else 0)
                    peak = max(peak, left / a.supply[r, k])
    if r1 >= 0:
        held = s.demand[r1, k, p] + g1 - (g0 if r1 == r0 else 0)
        peak = max(peak, held / a.supply[r1, k])
    return peak


@kernel
def _gpu(a: Arrays, s: State, tier, r0, k0, g0, r1, k1, g1, make):
    """Change of the GPU terms when g0 of type k0 leaves r0 and g1 of type k1 enters r1; made if ``make``."""
    kinds, regions = s.demand.shape[1], s.demand.shape[0]
    leaves = r0 < regions and k0 < kinds and g0 > 0
    enters = r1 < regions and k1 < kinds and g1 > 0
    delta = 0.0
    for p in range(tier, s.demand.shape[2]):
        if leaves and enters and k0 == k1:
            peak = _new_peak(a, s, k0, p, r0, g0, r1, g1)
            delta += a.peak_price[p] * (peak - s.peak[k0, p])
            if r0 == r1:
                delta += _balance(a, s, r0, k0, p, g1 - g0)
            else:
                delta += _balance(a, s, r0, k0, p, -g0) + _balance(a, s, r1, k1, p, g1)
            if make:
                s.peak[k0, p] = peak
        else:
            if leaves:
                peak = _new_peak(a, s, k0, p, r0, g0, -1, 0)
                delta += a.peak_price[p] * (peak - s.peak[k0, p]) + _balance(a, s, r0, k0, p, -g0)
                if make:
                    s.peak[k0, p] = peak
            if enters:
                peak = _new_peak(a, s, k1, p, -1, 0, r1, g1)
                delta += a.peak_price[p] * (peak - s.peak[k1, p]) + _balance(a, s, r1, k1, p, g1)
                if make:
                    s.peak[k1, p] = peak
        if make:
            if leaves:
                s.demand[r0, k0, p] -= g0
            if enters:
                s.demand[r1, k1, p] += g1
    return delta


@kernel
def _replica_price(a: Arrays, i, r):
    return a.keep_price[i] if a.stored[i, r] else a.new_price[i]


@kernel
def _set_replica(a: Arrays, s: State, i, r, present):
    sign = 1 if present else -1
    s.place[i, r] = present
    s.copies[i] += sign
    s.storage[r] += sign * a.size[i]
    if not a.stored[i, r]:
        s.ingress[r] += sign * a.size[i]


@kernel
def _fits(a: Arrays, s: State, i, r, freed):
    """May a replica of i be added in r, when ``freed`` MB of storage leave it at the same time?"""
    if a.forbidden[i, r] or s.storage[r] + a.size[i] - freed > a.storage[r]:
        return False
    return a.stored[i, r] or s.ingress[r] + a.size[i] <= a.ingress[r]


@kernel
def _follow(a: Arrays, s: State, w, r0, r1, action):
    """Move what w reads from r0 to r1, each replica added or dropped as pays; actions are noted for ``_unfollow``."""
    regions = s.place.shape[1]
    delta = 0.0
    for n in range(a.read_start[w], a.read_start[w + 1]):
        i, volume = a.read_dataset[n], a.read_volume[n]
        done = 0
        drop = False
        if r0 < regions:
            left = s.volume[i, r0] - volume
            if not s.place[i, r0]:
                delta -= volume * a.remote_price
            else:
                drop = not a.pinned[i, r0] and left * a.remote_price < _replica_price(a, i, r0)
            s.volume[i, r0] = left
        if r1 < regions:
            before = s.volume[i, r1]
            s.volume[i, r1] = before + volume
            if not s.place[i, r1]:
                price = _replica_price(a, i, r1)
                room = s.copies[i] < a.copies_max[i] or drop
                if room and (before + volume) * a.remote_price > price and _fits(a, s, i, r1, 0):
                    delta += price - before * a.remote_price
                    _set_replica(a, s, i, r1, True)
                    done |= ADD
                else:
                    delta += volume * a.remote_price
        if drop and s.copies[i] > a.copies_min[i]:
            delta += s.volume[i, r0] * a.remote_price - _replica_price(a, i, r0)
            delta += _relief(s.storage[r0], a.storage[r0], a.size[i])
            _set_replica(a, s, i, r0, False)
            done |= DROP
        action[n - a.read_start[w]] = done
    return delta


@kernel
def _unfollow(a: Arrays, s: State, w, r0, r1, action):
    """Undo ``_follow`` with the same arguments."""
    regions = s.place.shape[1]
    for n in range(a.read_start[w + 1] - 1, a.read_start[w] - 1, -1):
        i, volume = a.read_dataset[n], a.read_volume[n]
        done = action[n - a.read_start[w]]
        if done & DROP:
            _set_replica(a, s, i, r0, True)
        if done & ADD:
            _set_replica(a, s, i, r1, False)
        if r0 < regions:
            s.volume[i, r0] += volume
        if r1 < regions:
            s.volume[i, r1] -= volume


@kernel
def _today(a: Arrays, w, r):
    """Share of w that runs in r today, as a cost saved by staying."""
    share = 0.0
    for c in range(a.today_start[w], a.today_start[w + 1]):
        if a.today_region[c] == r:
            share += a.today_share[c]
    return share * a.move_price[w]


@kernel
def _enter(a: Arrays, s: State, w, r, sign):
    """Add w's cores and output to r (sign 1) or take them out (sign −1)."""
    if r < s.place.shape[1]:
        s.cpu[r] += sign * a.cpu_need[w]
        s.storage[r] += sign * a.output[w]
        row = a.quota_row[a.app[w], r]
        if row >= 0:
            s.quota[row] += sign * a.cpu_need[w]


@kernel
def _leaving(a: Arrays, s: State, w, r):
    """Relief of the limits of r when w leaves it."""
    if r >= s.place.shape[1]:
        return 0.0
    delta = _relief(s.cpu[r], a.cpu[r], a.cpu_need[w]) + _relief(s.storage[r], a.storage[r], a.output[w])
    row = a.quota_row[a.app[w], r]
    if row >= 0:
        delta += _relief(s.quota[row], a.quota[row], a.cpu_need[w])
    return delta


@kernel
def _has_room(a: Arrays, s: State, w, r):
    if r >= s.place.shape[1]:
        return True
    if s.cpu[r] + a.cpu_need[w] > a.cpu[r]:
        return False
    if a.output[w] > 0 and s.storage[r] + a.output[w] > a.storage[r]:
        return False
    row = a.quota_row[a.app[w], r]
    return row < 0 or s.quota[row] + a.cpu_need[w] <= a.quota[row]


@kernel
def _following(a: Arrays, s: State, w, r0, r1):
    """What ``_follow`` would return, without moving anything; most changes are only priced."""
    regions = s.place.shape[1]
    delta = 0.0
    storage = s.storage[r1] + a.output[w] if r1 < regions else 0
    ingress = s.ingress[r1] if r1 < regions else 0
    relieved = r0 < regions and s.storage[r0] > a.storage[r0]
    for n in range(a.read_start[w], a.read_start[w + 1]):
        i, volume = a.read_dataset[n], a.read_volume[n]
        copies, drop, left, old = s.copies[i], False, 0.0, 0.0
        if r0 < regions:
            if not s.place[i, r0]:
                delta -= volume * a.remote_price
            else:
                left, old = (s.volume[i, r0] - volume) * a.remote_price, _replica_price(a, i, r0)
                drop = not a.pinned[i, r0] and left < old
        if r1 < regions and not s.place[i, r1]:
            before, price, size = s.volume[i, r1], _replica_price(a, i, r1), a.size[i]
            if (
                (copies < a.copies_max[i] or drop)
                and (before + volume) * a.remote_price > price
                and not a.forbidden[i, r1]
                and storage + size <= a.storage[r1]
                and (a.stored[i, r1] or ingress + size <= a.ingress[r1])
            ):
                delta += price - before * a.remote_price
                storage += size
                copies += 1
                if not a.stored[i, r1]:
                    ingress += size
            else:
                delta += volume * a.remote_price
        if drop and copies > a.copies_min[i]:
            delta += left - old
            if relieved:
                delta += _relief(s.storage[r0], a.storage[r0], a.size[i])
    return delta


@kernel
def move(a: Arrays, s: State, w, o1, r1, temperature, action):
    """Run w on option o1 in region r1 (R: leave it out)."""
    o0, r0 = s.option[w], s.region[w]
    regions = s.place.shape[1]
    if r0 != r1 and not _has_room(a, s, w, r1):
        return 0.0
    k0, g0, k1, g1 = a.option_type[o0], a.option_mgpu[o0], a.option_type[o1], a.option_mgpu[o1]
    threshold = allowance(s.random, temperature)
    delta = _gpu(a, s, a.tier[w], r0, k0, g0, r1, k1, g1, False)
    if r0 != r1:
        delta += _today(a, w, r0) - _today(a, w, r1)
        if r1 == regions:
            delta += a.refuse_price[w]
        elif r0 == regions:
            delta -= a.refuse_price[w]
        delta += _leaving(a, s, w, r0)
        if delta - a.stakes[w] > threshold:
            return 0.0
        delta += _following(a, s, w, r0, r1)
    if delta > threshold:
        return 0.0
    if r0 != r1:
        _enter(a, s, w, r0, -1)
        _enter(a, s, w, r1, 1)
        _follow(a, s, w, r0, r1, action)
    _gpu(a, s, a.tier[w], r0, k0, g0, r1, k1, g1, True)
    s.option[w], s.region[w] = o1, r1
    return delta


@kernel
def _swap_room(a: Arrays, s: State, w, v, r):
    """May w take v's place in r, which v leaves?"""
    if r >= s.place.shape[1]:
        return True
    cpu = s.cpu[r] + a.cpu_need[w] - a.cpu_need[v]
    if cpu > a.cpu[r] and cpu > s.cpu[r]:
        return False
    if a.output[w] > a.output[v] and s.storage[r] + a.output[w] - a.output[v] > a.storage[r]:
        return False
    into, out = a.quota_row[a.app[w], r], a.quota_row[a.app[v], r]
    if into < 0:
        return True
    quota = s.quota[into] + a.cpu_need[w] - (a.cpu_need[v] if out == into else 0)
    return quota <= a.quota[into] or quota <= s.quota[into]


@kernel
def swap(a: Arrays, s: State, w, ow, v, ov, temperature, action, second):
    """Exchange the regions of two workloads; w then runs on its option ow, v on its option ov."""
    rw, rv = s.region[w], s.region[v]
    if rw == rv or not a.option_region[ow, rv] or not a.option_region[ov, rw]:
        return 0.0
    if not _swap_room(a, s, w, v, rv) or not _swap_room(a, s, v, w, rw):
        return 0.0
    regions = s.place.shape[1]
    threshold = allowance(s.random, temperature)
    delta = _today(a, w, rw) + _today(a, v, rv) - _today(a, w, rv) - _today(a, v, rw)
    if rw == regions:
        delta += a.refuse_price[v] - a.refuse_price[w]
    elif rv == regions:
        delta += a.refuse_price[w] - a.refuse_price[v]
    kw, gw, kv, gv = _gpus_of(a, s.option[w], s.option[v])
    nw, hw, nv, hv = _gpus_of(a, ow, ov)
    neutral = nw == kv and hw == gv and nv == kw and hv == gw and a.tier[w] == a.tier[v]
    if not neutral:
        delta += _gpu(a, s, a.tier[w], rw, kw, gw, rv, nw, hw, True)
        delta += _gpu(a, s, a.tier[v], rv, kv, gv, rw, nv, hv, True)
    # Priced one by one first: exact unless the two share a dataset or room, and most swaps end here.
    if delta + _following(a, s, w, rw, rv) + _following(a, s, v, rv, rw) <= threshold:
        _enter(a, s, w, rw, -1)
        _enter(a, s, v, rv, -1)
        _enter(a, s, w, rv, 1)
        _enter(a, s, v, rw, 1)
        delta += _follow(a, s, w, rw, rv, action)
        delta += _follow(a, s, v, rv, rw, second)
        if delta <= threshold:
            s.option[w], s.option[v] = ow, ov
            s.region[w], s.region[v] = rv, rw
            return delta
        _unfollow(a, s, v, rv, rw, second)
        _unfollow(a, s, w, rw, rv, action)
        _enter(a, s, v, rw, -1)
        _enter(a, s, w, rv, -1)
        _enter(a, s, v, rv, 1)
        _enter(a, s, w, rw, 1)
    if not neutral:
        _gpu(a, s, a.tier[v], rw, nv, hv, rv, kv, gv, True)
        _gpu(a, s, a.tier[w], rv, nw, hw, rw, kw, gw, True)
    return 0.0


@kernel
def _gpus_of(a: Arrays, o, q):
    return a.option_type[o], a.option_mgpu[o], a.option_type[q], a.option_mgpu[q]


@kernel
def toggle(a: Arrays, s: State, i, r, temperature):
    """Add the replica of i in r, or drop it."""
    price = _replica_price(a, i, r)
    remote = s.volume[i, r] * a.remote_price
    if s.place[i, r]:
        if a.pinned[i, r] or s.copies[i] <= a.copies_min[i]:
            return 0.0
        delta = remote - price + _relief(s.storage[r], a.storage[r], a.size[i])
        if not a.stored[i, r]:
            delta += _relief(s.ingress[r], a.ingress[r], a.size[i])
    else:
        if s.copies[i] >= a.copies_max[i] or not _fits(a, s, i, r, 0):
            return 0.0
        delta = price - remote
        if s.copies[i] < a.copies_min[i]:
            delta -= RELIEF
    if not accepted(s.random, delta, temperature):
        return 0.0
    _set_replica(a, s, i, r, not s.place[i, r])
    return delta


@kernel
def shift(a: Arrays, s: State, i, r0, r1, temperature):
    """Move the replica of i from r0 to r1."""
    if not s.place[i, r0] or s.place[i, r1] or a.pinned[i, r0] or not _fits(a, s, i, r1, 0):
        return 0.0
    delta = (s.volume[i, r0] - s.volume[i, r1]) * a.remote_price
    delta += _replica_price(a, i, r1) - _replica_price(a, i, r0)
    delta += _relief(s.storage[r0], a.storage[r0], a.size[i])
    if not accepted(s.random, delta, temperature):
        return 0.0
    _set_replica(a, s, i, r0, False)
    _set_replica(a, s, i, r1, True)
    return delta


@kernel
def exchange(a: Arrays, s: State, i, j, r, temperature):
    """In region r, drop the replica of i to make room for one of j."""
    if not s.place[i, r] or s.place[j, r] or a.pinned[i, r] or s.copies[i] <= a.copies_min[i]:
        return 0.0
    if s.copies[j] >= a.copies_max[j] or not _fits(a, s, j, r, a.size[i]):
        return 0.0
    delta = (s.volume[i, r] - s.volume[j, r]) * a.remote_price
    delta += _replica_price(a, j, r) - _replica_price(a, i, r)
    if not accepted(s.random, delta, temperature):
        return 0.0
    _set_replica(a, s, i, r, False)
    _set_replica(a, s, j, r, True)
    return delta

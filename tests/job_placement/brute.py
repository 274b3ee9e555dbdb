"""Job placement by enumeration, straight from the statement of the problem and the raw fields of an instance.

Plain Python throughout: this is the oracle that formulation, solvers and verifier are held against, and it shares
no code with any of them but the reading of what quotas do to tiers and of the devices that running jobs hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from mast_opt.problems.job_placement import JobPlacement

Gang = tuple[tuple[int, int], ...] | None
"""(server, tasks) of an admitted job; None for one that is not."""


class Brute:
    def __init__(self, problem: JobPlacement) -> None:
        p = self.p = problem.standing
        self.J, self.S, self.V, self.P = len(p.jobs), len(p.servers), len(p.running), len(p.tiers)
        self.cluster = [int(p.racks.cluster[b]) for b in p.servers.rack.tolist()]
        self.region = [int(p.clusters.region[c]) for c in self.cluster]
        self.kind = p.servers.gpu_type.tolist()
        self.rack = p.servers.rack.tolist()
        self.supply = p.servers.supply.tolist()
        self.tier = p.jobs.tier.tolist()
        self.tasks = p.jobs.tasks.tolist()
        self.need = {}
        for j, k, mgpu in zip(p.options.job.tolist(), p.options.gpu_type.tolist(), p.options.mgpu.tolist()):
            self.need[j, k] = (mgpu, int(p.jobs.cpu_mcores[j]), int(p.jobs.memory_mib[j]))
        self.reads = [
            [
                (i, mb)
                for jj, i, mb in zip(p.reads.job.tolist(), p.reads.dataset.tolist(), p.reads.mb_per_day.tolist())
                if jj == j
            ]
            for j in range(self.J)
        ]
        self.runs: dict[tuple[int, int], int] = {}
        """(running job, server) → tasks."""
        self.shape: dict[int, list[int]] = {}
        """Running job → needs of a task of it."""
        self.held = {(v, s): [0, 0, 0] for v in range(self.V) for s in range(self.S)}
        for v, s, n, need in zip(
            p.allocations.running.tolist(),
            p.allocations.server.tolist(),
            p.allocations.tasks.tolist(),
            p.allocations.need.tolist(),
        ):
            self.held[v, s] = [had + n * more for had, more in zip(self.held[v, s], need)]
            self.runs[v, s] = self.runs.get((v, s), 0) + n
            self.shape[v] = need
        self.on_device: dict[tuple[int, int, int], int] = {}
        devices = p.held_devices
        for row, d, mgpu in zip(devices.row.tolist(), devices.device.tolist(), devices.mgpu.tolist()):
            key = (int(p.allocations.running[row]), int(p.allocations.server[row]), d)
            self.on_device[key] = self.on_device.get(key, 0) + mgpu
        self.tier_weight = [p.objective.tier_weights.get(t, 4.0**-rank) for rank, t in enumerate(p.tiers)]
        self.fewest = [self.fewest_racks(j) for j in range(self.J)]
        self.restart = dict(zip(p.movable.running.tolist(), p.movable.restart_mgpu_hours.tolist()))
        self.moves: dict[int, tuple[tuple[int, int], ...]] = {}
        """Running job → where it is moved to; what else is worked out takes it into account."""

    def optimum(self) -> tuple[float, list[Gang], tuple[bool, ...]]:
        """The smallest objective, and a plan that has it, whose moves are then in ``moves``."""
        best = None
        best_moves = {}
        choices = [[None, *self.gangs(j)] for j in range(self.J)]
        may_stop = [[False, True] if self.p.running.preemptible[v] else [False] for v in range(self.V)]
        targets = [[None, *self.targets(v)] for v in self.restart]
        for chosen, stopped in product(list(product(*targets)), list(product(*may_stop))):
            self.moves = {v: gang for v, gang in zip(self.restart, chosen) if gang is not None}
            if not self.allowed() or any(stopped[v] for v in self.moves):
                continue
            for gangs in product(*choices):
                value = self.objective(gangs, stopped)
                if (best is None or value < best[0] - 1e-12) and self.feasible(gangs, stopped):
                    best, best_moves = (value, list(gangs), stopped), dict(self.moves)
        assert best is not None
        self.moves = best_moves
        return best

    def allowed(self) -> bool:
        """Whether the moves keep the limits on them."""
        amounts = (1000 * len(self.moves), sum(self.restart[v] for v in self.moves))
        limits = self.p.move_limits
        return all(amounts[at] <= most for at, most in zip(limits.limit.tolist(), limits.most_milli.tolist()))

    def targets(self, v: int) -> Iterator[tuple[tuple[int, int], ...]]:
        """Every way to spread the tasks of a running job over servers of its region and type, as close as they are."""
        now = [s for s in range(self.S) if v in self.shape and (v, s) in self.runs]
        total = sum(self.runs[v, s] for s in now)
        for c in range(len(self.p.clusters)):
            servers = [s for s in range(self.S) if self.cluster[s] == c and self.kind[s] == self.kind[now[0]]]
            if not servers or self.region[servers[0]] != self.region[now[0]]:
                continue
            for split in compositions(total, len(servers)):
                gang = tuple((s, n) for s, n in zip(servers, split) if n)
                spread = [(len(gang), len(now))]
                spread.append((len({self.rack[s] for s, _ in gang}), len({self.rack[s] for s in now})))
                if all(after == 1 or before > 1 for after, before in spread):
                    yield gang

    def gangs(self, j: int) -> Iterator[tuple[tuple[int, int], ...]]:
        """Every way to spread the tasks of j over servers of one cluster and type that it may use."""
        for c in range(len(self.p.clusters)):
            for k in range(len(self.p.gpu_types)):
                servers = [s for s in range(self.S) if (self.cluster[s], self.kind[s]) == (c, k)]
                if not servers or (j, k) not in self.need or not self.data(j, servers[0]):
                    continue
                for split in compositions(self.tasks[j], len(servers)):
                    gang = tuple((s, n) for s, n in zip(servers, split) if n)
                    racks = {self.rack[s] for s, _ in gang}
                    limit = int(self.p.jobs.within[j])
                    if not ((limit == 0 and len(gang) > 1) or (limit == 1 and len(racks) > 1)):
                        yield gang

    def data(self, j: int, s: int) -> bool:
        r = self.region[s]
        homes = [[q for q, home in enumerate(self.p.datasets.residency[i].tolist()) if home] for i, _ in self.reads[j]]
        resident = all(not regions or r in regions for regions in homes)
        exists = all(self.p.datasets.stored[i].any() for i, _ in self.reads[j])
        return (
            resident and exists and (self.p.remote_reads or all(self.p.datasets.stored[i, r] for i, _ in self.reads[j]))
        )

    def feasible(self, gangs: tuple[Gang, ...], stopped: tuple[bool, ...]) -> bool:
        together = all(self.together(g, gangs) for g in range(len(self.p.multipart_jobs)))
        return together and all(self.server_feasible(s, gangs, stopped) for s in range(self.S))

    def together(self, g: int, gangs: tuple[Gang, ...]) -> bool:
        """Whether all parts of a job run within its level, or none runs."""
        parts = [gangs[j] for j, of in zip(self.p.parts.job.tolist(), self.p.parts.whole.tolist()) if of == g]
        servers = [s for gang in parts for s, _ in gang or ()]
        place = (range(self.S), self.rack, self.cluster, self.region)[int(self.p.multipart_jobs.within[g])]
        return not servers or (all(parts) and len({place[s] for s in servers}) == 1)

    def server_feasible(self, s: int, gangs: tuple[Gang, ...], stopped: tuple[bool, ...]) -> bool:
        here = [
            (self.need[j, self.kind[s]], n, self.tier[j])
            for j, gang in enumerate(gangs)
            if gang
            for at, n in gang
            if at == s
        ]
        moved = ((self.shape[v], n) for v, gang in self.moves.items() for at, n in gang if at == s)
        here += [((need[0], need[1], need[2]), n, self.P - 1) for need, n in moved]
        if not here:
            return True
        for p in range(self.P):
            for n in range(3):
                asked = sum(need[n] * tasks for need, tasks, tier in here if tier >= p)
                if asked > self.room(s, p, stopped, n):
                    return False
        tasks = [(need[0], tier) for need, number, tier in here for _ in range(number)]
        room = [[self.device_room(s, d, p, stopped) for p in range(self.P)] for d in range(self.supply[s][0] // 1000)]
        return devices_hold([task for task in tasks if task[0]], room)

    def room(self, s: int, p: int, stopped: tuple[bool, ...], n: int) -> int:
        left = self.supply[s][n] - sum(self.held[v, s][n] for v in range(self.V) if v not in self.moves)
        freed = (self.held[v, s][n] for v in range(self.V) if stopped[v] and self.p.running.tier[v] > p)
        return int(left + sum(freed))

    def device_room(self, s: int, d: int, p: int, stopped: tuple[bool, ...]) -> int:
        return 1000 - sum(
            mgpu
            for (v, at, e), mgpu in self.on_device.items()
            if (at, e) == (s, d) and v not in self.moves and not (stopped[v] and self.p.running.tier[v] > p)
        )

    def fewest_racks(self, j: int) -> int:
        best = None
        for (jj, k), need in self.need.items():
            for c in range(len(self.p.clusters)):
                servers = [s for s in range(self.S) if (self.cluster[s], self.kind[s]) == (c, k) and jj == j]
                if servers and self.data(j, servers[0]):
                    racks = sorted({self.rack[s] for s in servers})
                    for number in range(1, len(racks) + 1):
                        for chosen in combinations(racks, number):
                            holds = sum(self.empty_tasks(s, need) for s in servers if self.rack[s] in chosen)
                            if holds >= self.tasks[j] and (best is None or number < best):
                                best = number
        return best or 1

    def empty_tasks(self, s: int, need: tuple[int, int, int]) -> int:
        mgpu, cpu, mem = need
        gpus, cores, memory = self.supply[s]
        by_gpu = 99 if not mgpu else gpus // mgpu if mgpu >= 1000 else gpus // 1000 * (1000 // mgpu)
        return min(by_gpu, cores // cpu if cpu else 99, memory // mem if mem else 99)

    def objective(self, gangs: tuple[Gang, ...], stopped: tuple[bool, ...]) -> float:
        return sum(self.p.objective.weights[name] * value for name, value in self.terms(gangs, stopped).items())

    def terms(self, gangs: tuple[Gang, ...], stopped: tuple[bool, ...]) -> dict[str, float]:
        p = self.p
        worth = [self.tier_weight[self.tier[j]] * int(p.jobs.value_milli[j]) for j in range(self.J)]
        lost = sum(w for w, gang in zip(worth, gangs) if gang is None)
        gpus = sum(row[0] for row in self.supply)
        price = sum(
            self.tier_weight[p.running.tier[v]]
            * (int(p.running.at_risk_mgpu_hours[v]) + sum(self.held[v, s][0] for s in range(self.S)))
            for v in range(self.V)
            if stopped[v]
        ) + sum(self.tier_weight[p.running.tier[v]] * self.restart[v] for v in self.moves)
        stays = [v for v in range(self.V) if not stopped[v] and v not in self.moves]
        used = [[sum(self.held[v, s][n] for v in stays) for n in range(3)] for s in range(self.S)]
        for v, target in self.moves.items():
            for s, tasks in target:
                used[s] = [had + tasks * more for had, more in zip(used[s], self.shape[v])]
        for j, gang in enumerate(gangs):
            for s, tasks in gang or ():
                used[s] = [had + tasks * more for had, more in zip(used[s], self.need[j, self.kind[s]])]
        racks = [len({self.rack[s] for s, _ in gang}) - self.fewest[j] for j, gang in enumerate(gangs) if gang]
        volume = sum(mb for reads in self.reads for _, mb in reads)
        far = sum(
            mb
            for j, gang in enumerate(gangs)
            if gang
            for i, mb in self.reads[j]
            if not p.datasets.stored[i, self.region[gang[0][0]]]
        )
        prices = zip(p.costs.job.tolist(), p.costs.cluster.tolist(), p.costs.cost_micro.tolist())
        cost = sum(micro for j, c, micro in prices if gangs[j] and self.cluster[gangs[j][0][0]] == c)
        return {
            "rejected": lost / sum(worth) if sum(worth) else 0.0,
            "preemption": price / gpus if gpus else 0.0,
            "balance": self.balance([u[0] for u in used]) / gpus if gpus else 0.0,
            "spread": sum(racks) / sum(self.tasks),
            "remote": far / volume if volume else 0.0,
            "fragmentation": self.fragmented(used) / gpus if gpus else 0.0,
            "cost": cost / 1e6,
        }

    def balance(self, used: list[int]) -> float:
        off = 0.0
        for k in range(len(self.p.gpu_types)):
            of_type = [s for s in range(self.S) if self.kind[s] == k]
            supply = sum(self.supply[s][0] for s in of_type)
            for r in range(len(self.p.regions)):
                here = [s for s in of_type if self.region[s] == r]
                part = sum(self.supply[s][0] for s in here)
                if part:
                    off += part * abs(sum(used[s] for s in here) / part - sum(used[s] for s in of_type) / supply)
        return off

    def fragmented(self, used: list[list[int]]) -> int:
        total = 0
        for s in range(self.S):
            shape = self.commonest(self.kind[s], self.supply[s][0])
            left = [have - taken for have, taken in zip(self.supply[s], used[s])]
            if shape and any(asked > have for asked, have in zip(shape, left)):
                total += left[0]
        return total

    def commonest(self, k: int, gpus: int) -> tuple[int, int, int] | None:
        shapes = [self.need.get((j, k)) for j in range(self.J)]
        number = {
            shape: sum(self.tasks[j] for j in range(self.J) if shapes[j] == shape)
            for shape in shapes
            if shape and gpus and shape[0] == gpus
        }
        return max(number, key=lambda shape: (number[shape], -shapes.index(shape)), default=None)


def devices_hold(tasks: list[tuple[int, int]], room: list[list[int]]) -> bool:
    """Whether (milli-GPUs, tier) tasks find devices; ``room[d][p]`` is what tier p and less important work may use."""
    if not tasks:
        return True
    (mgpu, tier), rest = tasks[0], tasks[1:]
    take = 1000 if mgpu >= 1000 else mgpu
    for chosen in combinations(range(len(room)), mgpu // 1000 if mgpu >= 1000 else 1):
        left = [[have - take * (d in chosen and p <= tier) for p, have in enumerate(row)] for d, row in enumerate(room)]
        if all(have >= 0 for row in left for have in row) and devices_hold(rest, left):
            return True
    return False


def compositions(total: int, places: int) -> Iterator[tuple[int, ...]]:
    """Every way to write total as an ordered sum of that many non-negative integers."""
    if places == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in compositions(total - first, places - 1))

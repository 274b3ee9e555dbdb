"""Random certificates, and what a certificate proves in plain loops: for tiny instances only."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.tetris.kept_certificate import kept_certificate
from mast_opt.problems.data_placement.verification.certificate import Certificate
from mast_opt.problems.data_placement.verification.certificate_bound import LEVELS
from mast_opt.problems.data_placement.verification.certificate_tree_cuts import KeptTrees
from mast_opt.problems.data_placement.verification.peak_bound import bin_packing_peak_bound
from tests.data_placement.brute import Brute


def boxes(problem: DataPlacement) -> dict[str, np.ndarray]:
    """The largest price of every row; scales of our own where there is no limit."""
    p, weight = problem, problem.objective.weights
    supplied = (p.regions.supply_mgpu > 0)[:, :, None]
    per_gpu = 1 / np.maximum(p.regions.supply_mgpu.sum(axis=0), 1)
    volume = p.reads.mb_per_day / max(int(p.reads.mb_per_day.sum()), 1)
    regions, tiers = len(p.regions), len(p.tiers)
    return {
        "read": np.repeat((weight["remote"] * volume if p.remote_reads else 3 * volume)[:, None], regions, axis=1),
        "worst": (supplied * np.ones(tiers) * weight["peak"] * p.tier_weight)[..., None],
        "over": (supplied * weight["overload"] * p.tier_weight * per_gpu[None, :, None])[..., None],
        "under": supplied[:, :, 0] * weight["idle"] * per_gpu,
        "cpu": 1 / np.maximum(p.regions.cpu_mcores, 1000),
        "storage": 1 / np.maximum(p.usable_storage_mb, 1),
        "ingress": np.where(p.regions.ingress_limited, 1 / np.maximum(p.ingress_mb, 1), 0.0),
        "quota": 1 / np.maximum(p.cpu_quotas.cpu_mcores, 1000),
    }


def random_prices(problem: DataPlacement, seed: int) -> SimpleNamespace:
    """Prices inside their boxes, many of them at an end."""
    rng = np.random.default_rng(seed)

    def within(most: np.ndarray) -> np.ndarray:
        share = np.clip(rng.uniform(-0.5, 1.5, most.shape), 0, 1)
        return np.asarray(most * share * rng.choice([0.0, 0.1, 1.0]))

    most = boxes(problem)
    roundings = int(rng.integers(0, 3))
    sizes = np.unique(np.append(problem.options.mgpu[problem.options.mgpu > 0], [1, 1500]))
    gang = rng.choice(sizes, (len(problem.gpu_types), roundings)).astype(np.int64)
    for name in ("worst", "over"):  # shared out among the row and its roundings
        most[name] = most[name] * rng.dirichlet(np.ones(1 + roundings), most[name].shape[:3])
    prices = {name: within(value) for name, value in most.items()}
    prices["worst"] = prices["worst"] / max(len(problem.regions), 1)
    return SimpleNamespace(**prices, gang=gang)


def random_trees(problem: DataPlacement, rng: np.random.Generator, price: float) -> KeptTrees:
    """A few trees that grow by one random read at a time."""
    p = problem
    datasets = len(p.datasets)
    ends = np.stack([p.reads.dataset, datasets + p.reads.workload], axis=1)
    whole = np.concatenate([np.ones(datasets, np.bool_), ~p.workloads.splittable])
    roots, start, reads, parents = [], [0], [], []
    for root in rng.choice(np.flatnonzero(whole), min(4, int(whole.sum())), replace=False).tolist():
        led = {root: -1}
        for n in rng.permutation(np.repeat(np.arange(len(ends)), 2)).tolist():
            one, other = ends[n].tolist() if rng.random() < 0.5 else ends[n][::-1].tolist()
            if one in led and other not in led and whole[other] and rng.random() < 0.9:
                led[other] = len(led) - 1
                reads.append(n)
                parents.append(led[one])
        roots.append(root)
        start.append(len(reads))
    count = len(roots)
    return KeptTrees(
        root=np.array(roots, np.int64),
        region=rng.integers(0, len(p.regions), count),
        limit=rng.integers(0, 2, count),
        price=price * rng.uniform(0, 1, count) / max(p.workloads.cpu_mcores.sum(), p.datasets.size_mb.sum(), 1),
        start=np.array(start, np.int64),
        read=np.array(reads, np.int32),
        parent=np.array(parents, np.int32),
    )


def random_certificate(problem: DataPlacement, seed: int) -> Certificate:
    prices = random_prices(problem, seed)
    rng = np.random.default_rng(seed)
    trees = random_trees(problem, rng, rng.choice([0.0, 0.1, 1.0, 10.0])) if rng.random() < 0.7 else None
    return kept_certificate(problem, problem.objective.weights, prices, prices.gang, trees)


def charged(problem: DataPlacement, c: Certificate) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What trees charge reads downwards and upwards [N, R], and credit roots [I + W, R], node by node."""
    p, datasets = problem, len(problem.datasets)
    down, up = np.zeros((2, len(p.reads), len(p.regions)))
    lift = np.zeros((datasets + len(p.workloads), len(p.regions)))
    needs = (
        [0] * datasets + p.workloads.cpu_mcores.tolist(),
        p.datasets.size_mb.tolist() + p.workloads.output_mb.tolist(),
    )
    for t in range(len(c.trees.root)):
        root, r = int(c.trees.root[t]), int(c.trees.region[t])
        need = needs[c.trees.limit[t]]
        arcs = range(int(c.trees.start[t]), int(c.trees.start[t + 1]))
        nodes = [root]
        paths: list[list[int]] = [[]]
        for arc in arcs:
            before = int(c.trees.parent[arc]) + 1
            n = int(c.trees.read[arc])
            ends = {int(p.reads.dataset[n]), datasets + int(p.reads.workload[n])}
            (node,) = ends - {nodes[before]}
            nodes.append(node)
            paths.append([*paths[before], arc - arcs.start])
        room = int(p.regions.cpu_mcores[r]) if c.trees.limit[t] == 0 else int(p.usable_storage_mb[r])
        spare = max(0, sum(need[node] for node in nodes) - room)
        lift[root, r] += c.trees.price[t] * spare
        for arc in arcs:
            below = sum(need[node] for node, path in zip(nodes, paths) if arc - arcs.start in path)
            leads_down = nodes[arc - arcs.start + 1] >= datasets
            (down if leads_down else up)[c.trees.read[arc], r] += c.trees.price[t] * min(below, spare)
    return down, up, lift


def rounded(amount: float, by: int, limit: float) -> float:
    """e(amount) of a row with this limit."""
    rest = limit % by
    return amount // by * (by - rest) + max(0.0, amount % by - rest)


def lagrangian(problem: DataPlacement, c: Certificate) -> float:
    """The bound in plain loops, straight from the statement of the problem; only for tiny instances."""
    p, weight = problem, c.weights
    R, K, P = range(len(p.regions)), range(len(p.gpu_types)), range(len(p.tiers))
    down, up, lift = charged(p, c)
    read = np.maximum(c.read_level * (c.read_cap / LEVELS)[:, None], down)
    volume = p.reads.mb_per_day / max(int(p.reads.mb_per_day.sum()), 1)
    excess = np.maximum(read + up - weight["remote"] * volume[:, None], 0.0).sum() if p.remote_reads else 0.0
    reads = list(zip(p.reads.workload.tolist(), p.reads.dataset.tolist()))
    refused = [float(p.tier_weight[p.workloads.tier[w]] * p.demand_mgpu[w]) for w in range(len(p.workloads))]
    today = list(
        zip(p.current_runs.workload.tolist(), p.current_runs.region.tolist(), (p.current_runs.share / 1000).tolist())
    )
    kinds = p.current_runs.gpu_type.tolist()
    typed = [(w, k, share) for (w, _, share), k in zip(today, kinds) if k in K]
    floor = bin_packing_peak_bound(p)
    J = range(c.gang.shape[1])
    dollars = {
        "stored": weight["running_cost"] * p.regions.storage_price_micro / 1e6,
        "arriving": weight["migration_cost"] * p.regions.copy_price_micro / 1e6,
    }
    total, item = 0.0, weight["moved_items"] / (len(p.datasets) + len(p.workloads))
    for w in range(len(p.workloads)):
        move = weight["moved_work"] * float(p.demand_mgpu[w]) / float(p.demand_mgpu.sum()) + item
        leave = sum(share for v, _, share in today if v == w) * move
        retype = weight["retyped_work"] * float(p.demand_mgpu[w]) / float(p.demand_mgpu.sum())
        leave += sum(share for v, _, share in typed if v == w) * retype
        choices = [weight["unserved"] * refused[w] / (sum(refused) or 1.0)] if p.may_refuse else []
        for o, r in zip(*(axis.tolist() for axis in np.nonzero(p.option_regions))):
            if p.options.workload[o] != w:
                continue
            k, g = int(p.options.gpu_type[o]), int(p.options.mgpu[o])
            price = float(p.workloads.cpu_mcores[w]) * float(c.cpu[r]) + float(p.workloads.output_mb[w]) * float(
                c.storage[r]
            )
            price += sum(
                float(p.workloads.cpu_mcores[w] * c.quota[n])
                for n in range(len(p.cpu_quotas))
                if p.cpu_quotas.region[n] == r and p.cpu_quotas.app[n] == p.workloads.app[w]
            )
            price += sum(float(read[n, r]) for n, (v, _) in enumerate(reads) if v == w)
            price += float(lift[len(p.datasets) + w, r])
            if k in K:
                for t in P:
                    if t >= p.workloads.tier[w]:
                        supply = float(p.regions.supply_mgpu[r, k])
                        price += g * float(c.over[r, k, t, 0]) + g * float(c.worst[r, k, t, 0]) / max(supply, 1)
                        for j, d in enumerate(c.gang[k].tolist() if not p.workloads.splittable[w] else [], start=1):
                            price += rounded(g, d, supply) * float(c.over[r, k, t, j])
                            lowest = supply * float(floor[k, t])
                            price += rounded(g, d, lowest) * float(c.worst[r, k, t, j]) / max(supply, 1)
                price -= g * float(c.under[r, k])
                price += weight["running_cost"] * 730 * g / 1000 * float(p.regions.gpu_price_micro[r, k]) / 1e6
            price += float(p.workloads.output_mb[w]) / 1e6 * dollars["stored"][r]
            there = [share for v, q, share in today if v == w and q == r]
            if there:
                price -= move * (1.0 if p.workloads.splittable[w] else sum(there))
            kept = sum(share for v, kind, share in typed if (v, kind) == (w, k))
            if kept:
                price -= retype * (1.0 if p.workloads.splittable[w] else kept)
            choices.append(price)
        total += min(choices) + leave if choices else 0.0
    whole = max(int(p.datasets.size_mb.sum()), 1)
    for i in range(len(p.datasets)):
        size = int(p.datasets.size_mb[i])
        cost = []
        for r in R:
            value = weight["storage"] * size / whole + size * float(c.storage[r]) + float(lift[i, r])
            value += size / 1e6 * dollars["stored"][r]
            if not p.datasets.stored[i, r]:
                value += weight["copy"] * size / whole + item + size * float(c.ingress[r])
                value += size / 1e6 * dollars["arriving"][r]
            cost.append(value - sum(float(read[n, r]) for n, (_, j) in enumerate(reads) if i == j))
        sets = [sum(cost[r] for r in holders) for holders in Brute(p, 1).holders_of(i)]
        total += min(sets, default=0.0)
    for k in K:
        for t in P:
            spent, least = float(c.worst[:, k, t].sum()), float(floor[k, t])
            price = weight["peak"] * float(p.tier_weight[t])
            total += max(price - spent, 0.0) * least - price * p.objective.peak_levels[p.tiers[t]]
            for r in R:
                supply = float(p.regions.supply_mgpu[r, k])
                total -= float(c.over[r, k, t, 0]) * supply
                for j in J:
                    d = int(c.gang[k, j])
                    total -= float(c.over[r, k, t, j + 1]) * rounded(supply, d, supply)
                    held = rounded(supply * least, d, supply * least) / max(supply, 1)
                    total += float(c.worst[r, k, t, j + 1]) * (least - held)
        total += sum(float(c.under[r, k]) * float(p.regions.supply_mgpu[r, k]) for r in R)
    for r in R:
        total -= float(c.cpu[r]) * float(p.regions.cpu_mcores[r]) + float(c.storage[r]) * float(p.usable_storage_mb[r])
        total -= float(c.ingress[r]) * float(p.ingress_mb[r]) if p.regions.ingress_limited[r] else 0.0
    return (
        total
        - float(excess)
        - sum(float(c.quota[n]) * float(p.cpu_quotas.cpu_mcores[n]) for n in range(len(p.cpu_quotas)))
    )

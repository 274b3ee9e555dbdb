"""Tiny instances of every kind whose optimum is found by enumeration, in unusual units.

Each begins with a generated instance that has every table; then a generator with a seed mixes what makes arithmetic
hard: amounts of 1 next to amounts of billions, capacities that an exact sum fills or misses by 1, prices of 0 and of a
micro-dollar, weights from 0.001 to a million, limits on the whole plan, and the rules.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

import mast_opt
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.limits import LIMITS
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.kind.header import Objective
from mast_opt.problems.resource_allocation import ResourceAllocation
from mast_opt.problems.server_assignment import ServerAssignment
from mast_opt.problems.task_reassignment import Plan, TaskReassignment
from tests.data_placement.brute import Brute as DataBrute
from tests.job_placement.brute import Brute as JobBrute
from tests.resource_allocation.reference import every_choice, value_of
from tests.resource_allocation.support import with_policy
from tests.server_assignment.brute import Brute as ServerBrute

Rng = np.random.Generator
UNITS = (1, 1, 1000, 10**6, 10**9)
WEIGHTS = (0.0, 1e-3, 0.3, 1.0, 7.0, 1e3, 1e6)


@dataclass(frozen=True)
class Case:
    """An instance and how its optimum is found."""

    problem: Any
    optimum: Callable[[], float | None] | None
    """By enumeration: None where there is no plan. Not known (None) where shares are continuous."""


def drawn(kind: str, seed: int) -> Case:
    """The case of a kind with a seed."""
    return DRAW[kind](np.random.default_rng([*kind.encode(), seed]))


def data(rng: Rng) -> Case:
    whole = bool(rng.random() < 0.7)
    p: DataPlacement = mast_opt.generate(
        "data-placement",
        "features",
        seed=int(rng.integers(10**6)),
        datasets=int(rng.integers(1, 4)),
        workloads=int(rng.integers(1, 4)),
        regions=2,
    )
    R, D, W = len(p.regions), len(p.datasets), len(p.workloads)
    size, read, mgpu = _amounts(rng, D), _amounts(rng, len(p.reads)), _amounts(rng, len(p.options))
    mgpu[p.options.gpu_type == len(p.gpu_types)] = 0
    cpu, output = _amounts(rng, W), _amounts(rng, W) * (rng.random(W) < 0.3)
    roomy = bool(rng.random() < 0.6)
    supply = _room(rng, mgpu, p.regions.supply_mgpu.shape, roomy=roomy) * (
        rng.random(p.regions.supply_mgpu.shape) < 0.9
    )
    prices = (0, 1, 20_000_000, 10**12)
    columns: dict[str, object] = {
        "datasets.size_mb": size,
        "reads.mb_per_day": read,
        "options.mgpu": mgpu,
        "workloads.cpu_mcores": cpu,
        "workloads.output_mb": output.astype(np.int64),
        "regions.storage_mb": _room(rng, np.append(size, output.astype(np.int64)), (R,), roomy=roomy),
        "regions.cpu_mcores": _countable(_room(rng, cpu, (R,), roomy=True), supply, cpu),
        "regions.supply_mgpu": supply,
        "regions.ingress_mb_per_day": _room(rng, size, (R,), roomy=True),
        "regions.headroom_milli": rng.choice((0, 0, 1, 333), R),
        **{
            f"regions.{one.array.name}": rng.choice(prices, R)
            for one in p.regions.STATED
            if one.column.name.startswith("usd_")
        },
        "regions.gpu_price_micro": rng.choice(prices, supply.shape) * (supply > 0),
        "cpu_quotas.cpu_mcores": _room(rng, cpu, (len(p.cpu_quotas),), roomy=True),
    }
    if whole:
        columns |= {"links": None, "workloads.splittable": np.zeros(W, np.bool_)}
    elif p.links is not None:
        many = (len(p.links),)
        columns["links.capacity_mb_per_day"] = _room(rng, np.append(size, read), many, roomy=roomy)
        columns["links.price_usd_per_tb"] = rng.choice((0.0, 1e-6, 20.0, 1e6), many)
    p = p.with_columns(columns)
    p = replace(
        p,
        objective=Objective(_weights(rng, p.objective.weights), p.objective.tier_weights),
        remote_reads=bool(rng.random() < 0.7),
        may_refuse=bool(rng.random() < 0.5),
        days=Fraction(rng.choice(("1", "1/2", "7", "3/10"))),
        limits=_limits(rng, tuple(LIMITS), _sums(size)),
    )
    return Case(p, DataBrute(p, parts=1).optimum if whole else None)


def jobs(rng: Rng) -> Case:
    p: JobPlacement = mast_opt.generate(
        "job-placement",
        "features",
        seed=int(rng.integers(10**6)),
        regions=int(rng.integers(1, 3)),
        clusters=int(rng.integers(1, 3)),
        servers=1,
        jobs=int(rng.integers(1, 4)),
    )
    J, V = len(p.jobs), len(p.running)
    cpu, memory = _amounts(rng, J), _amounts(rng, J)
    supply, held = p.servers.supply.copy(), np.zeros_like(p.servers.supply)
    np.add.at(held, p.allocations.server, p.allocations.need * p.allocations.tasks[:, None])
    for resource, need in ((1, cpu), (2, memory)):
        room = _room(rng, need * p.jobs.tasks, (len(supply),), roomy=bool(rng.random() < 0.6))
        supply[:, resource] = np.minimum(held[:, resource] + room, 10**12)
    worths = (0, 1, 1000, 10**6, 10**9)
    p = p.with_columns(
        {
            "jobs.cpu_mcores": cpu,
            "jobs.memory_mib": memory,
            "jobs.value_milli": rng.choice(worths, J) if not len(p.parts) else p.jobs.value_milli,
            "servers.supply": supply,
            "running.at_risk_mgpu_hours": rng.choice(worths, V),
            "costs.cost_micro": rng.choice((1, 1000, 10**6, 10**12), len(p.costs)),
            "reads.mb_per_day": np.where(p.reads.mb_per_day > 0, _amounts(rng, len(p.reads)), 0),
        }
    )
    p = replace(p, objective=Objective(_weights(rng, p.objective.weights)), remote_reads=bool(rng.random() < 0.5))
    return Case(p, lambda: JobBrute(p).optimum()[0])


def servers(rng: Rng) -> Case:
    p: ServerAssignment = mast_opt.generate(
        "server-assignment",
        str(rng.choice(("features", "scarce", "crowded"))),
        seed=int(rng.integers(10**6)),
        servers=int(rng.integers(2, 7)),
        reservations=int(rng.integers(1, 3)),
        datacenters=int(rng.integers(1, 3)),
    )
    Q, A = len(p.reservations), len(p.affinities)
    value = _amounts(rng, p.reservations.value_mrru.size).reshape(p.reservations.value_mrru.shape)
    weights = _weights(rng, p.objective.weights)
    weights["moves_in_use"] = max(weights["moves_in_use"], weights["moves_idle"])  # idle servers move first
    p = p.with_columns(
        {
            "reservations.value_mrru": value,
            "reservations.asked_mrru": _room(rng, np.repeat(value.ravel(), 2), (Q,), roomy=False),
            "affinities.share_milli": rng.choice((0, 1, 333, 500, 1000), A),
            "affinities.tolerance_milli": rng.choice((0, 1, 100), A),
        }
    )
    p = replace(p, objective=Objective(weights))
    return Case(p, ServerBrute(p).optimum)


def tasks(rng: Rng) -> Case:
    p: TaskReassignment = mast_opt.generate(
        "task-reassignment",
        str(rng.choice(("challenge", "containers"))),
        seed=int(rng.integers(10**6)),
        processes=int(rng.integers(2, 5)),
        machines=int(rng.integers(2, 4)),
        resources=2,
    )
    M, P = len(p.machines), len(p.processes)
    need = np.stack([_amounts(rng, P) for _ in range(2)], axis=1)
    capacity = np.stack([_room(rng, need[:, k], (M,), roomy=bool(rng.random() < 0.6)) for k in range(2)], axis=1)
    moves = (0, 1, 1000, 10**6)
    p = p.with_columns(
        {
            "processes.need": need,
            "processes.move_cost": rng.choice(moves, P),
            "machines.capacity": capacity,
            "machines.safety": (capacity * rng.choice((0, 50, 80, 100), capacity.shape)) // 100,
            "balances.target": rng.choice((1, 2, 1000), len(p.balances)),
        }
    )
    p = replace(p, objective=Objective(_weights(rng, p.objective.weights)))

    def optimum() -> float | None:
        plans = (Plan(np.array(at, np.int64)) for at in itertools.product(range(M), repeat=P))
        verdicts = (mast_opt.verify(p, plan) for plan in plans)
        return min((verdict.objective for verdict in verdicts if verdict.ok), default=None)

    return Case(p, optimum)


POLICIES = ("total-rate", "max-min", "rate-per-cost", "cost", "makespan", "nash", "harmonic", "finish-time-fairness")


def shares(rng: Rng) -> Case:
    policy, whole = str(rng.choice(POLICIES)), bool(rng.random() < 0.7)
    p: ResourceAllocation = mast_opt.generate(
        "resource-allocation", "features", seed=int(rng.integers(10**6)), jobs=int(rng.integers(1, 5)), types=2
    )
    J, C, K = len(p.jobs), len(p.configurations), len(p.resources)
    unit = rng.choice((1e-3, 1.0, 1e6), K)
    used = rng.integers(1, 4, len(p.uses)) * unit[p.uses.resource]
    speed = rng.choice((1e-3, 1.0, 1e3), J)
    p = p.with_columns(
        {
            "uses.amount": used,
            "resources.amount": rng.integers(1, 9, K) * unit,
            "members.rate": p.members.rate * speed[p.members.job],
            "jobs.fair_rate": p.jobs.fair_rate * speed,
            "jobs.min_rate": np.where(rng.random(J) < 0.7, 0.0, p.jobs.min_rate * speed),
            "jobs.weight": rng.choice((0.01, 1.0, 100.0), J),
            "configurations.cost": rng.choice((1e-3, 1.0, 1e3), C) * rng.integers(1, 9, C),
        }
    )
    p = replace(with_policy(p, policy), whole=whole)

    def optimum() -> float | None:
        values = [value_of(p, share) for share in every_choice(p)]
        finite = [value for value in values if math.isfinite(value)]
        return p.sense.best(*finite) if finite else None

    return Case(p, optimum if whole else None)


DRAW: Mapping[str, Callable[[Rng], Case]] = {
    "data-placement": data,
    "job-placement": jobs,
    "server-assignment": servers,
    "task-reassignment": tasks,
    "resource-allocation": shares,
}


def _amounts(rng: Rng, count: int) -> np.ndarray:
    """Whole amounts of at least 0, each in a unit of its own, or all in one."""
    unit = rng.choice(UNITS, count) if rng.random() < 0.5 else np.full(count, rng.choice(UNITS))
    return np.asarray(rng.integers(0, 10, count) * unit)


def _room(rng: Rng, amounts: np.ndarray, shape: tuple[int, ...], *, roomy: bool) -> np.ndarray:
    """Capacities that some of the amounts fill exactly, or miss by 1; twice all of them where there is room."""
    sums = np.array([amounts[rng.random(len(amounts)) < 0.6].sum() for _ in range(math.prod(shape))], np.int64)
    exact = np.maximum(sums + rng.choice((0, 0, 0, 1, -1), len(sums)), 0)
    ample = rng.random(len(sums)) < (0.7 if roomy else 0.3)
    return np.asarray(np.where(ample, 2 * amounts.sum() + 1, exact).reshape(shape))


def _countable(cores: np.ndarray, supply: np.ndarray, cpu: np.ndarray) -> np.ndarray:
    """Cores, and more of them where work on so few would be worth more GPUs than 64 bits can count."""
    worth = float(supply.sum()) * float(cpu.sum()) / max(int(cores.sum()), 1)
    return cores if worth < 2.0**62 else np.maximum(cores, supply.sum())


def _sums(amounts: np.ndarray) -> list[int]:
    return [sum(chosen) for n in (1, 2) for chosen in itertools.combinations(amounts.tolist(), n)]


def _weights(rng: Rng, default: Mapping[str, float]) -> dict[str, float]:
    if rng.random() < 0.4:
        return dict(default)
    few = rng.choice(WEIGHTS, 3)
    return {name: float(rng.choice(few)) for name in default}


def _limits(rng: Rng, names: Sequence[str], sums_mb: Sequence[int]) -> dict[str, Fraction]:
    """No limit, one or two: 0, tiny, an amount that data sum up to, and ample ones."""
    chosen = rng.choice(names, int(rng.choice((0, 0, 1, 2))), replace=False)
    exact = [Fraction(total, 10**6) for total in sums_mb] or [Fraction(1)]
    common = [Fraction(0), Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(3, 2), Fraction(10**6)]
    return {str(name): _one(rng, exact if rng.random() < 0.4 else common) for name in chosen}


def _one(rng: Rng, values: Sequence[Fraction]) -> Fraction:
    return values[int(rng.integers(len(values)))]

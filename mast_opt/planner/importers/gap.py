"""A job-placement instance from the generalised assignment problem: the least cost at which every item has an agent.

An agent is a cluster with one server whose GPUs are its capacity; an item is a job of one task that needs, on each
agent's GPU type, its weight there. The cost matrix is the ``costs`` table, and cost is the only term in addition to
rejection. Files are those of the OR-Library (Beasley; Chu and Beasley, A genetic algorithm for the generalised
assignment problem, Computers & Operations Research 24, 1997) and of Yagiura, Ibaraki and Glover (2004): whole
numbers apart by white space, m agents, n items, m × n costs, m × n weights, m capacities.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mast_opt.core.errors import SourceError
from mast_opt.core.units import MICRO
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.readers.base import read_bytes
from mast_opt.problems.job_placement.entities import Clusters, Costs, Racks, Servers
from mast_opt.problems.job_placement.generate.blank import GeneratedFleet, Pending, Running, assemble, labels
from mast_opt.problems.job_placement.problem import TERMS, JobPlacement
from mast_opt.problems.job_placement.units import WHOLE, Ints
from mast_opt.problems.kind.header import Objective

LARGEST = 10**9
"""Largest number that a file may hold; sums stay exact in 64 bits."""
MOST_DIGITS = 20
"""Leading zeros among them; Python refuses to read a number of thousands."""


@dataclass(frozen=True)
class Settings:
    """The knobs of the importer."""

    name: str = setting("", "name of the instance; empty = that of the file")


@dataclass(frozen=True)
class Gap:
    """A generalised assignment instance: m agents, n items."""

    cost: Ints
    """[m, n]"""
    weight: Ints
    """[m, n]"""
    capacity: Ints
    """Capacity of each agent, [m]."""


def read_gap(path: Path) -> Gap:
    """The instance in a file. Raises SourceError, which names what is wrong with it."""
    faults = Faults()
    data = read_bytes(path, path.name, faults)
    numbers = _numbers(path.name, (data or b"").split(), faults)
    if not faults and len(numbers) < 2:
        faults.add(path.name, "the numbers of agents and items first")
    if faults:
        raise SourceError(faults.found)
    agents, items = (int(number) for number in numbers[:2])
    cells, expected = agents * items, 2 + 2 * agents * items + agents
    if agents < 1 or items < 1 or len(numbers) != expected:
        words = f"{agents} and {items} as numbers of agents and items, then costs, weights and capacities"
        faults.add(path.name, f"{max(expected, 2)} numbers ({words})", value=len(numbers))
        raise SourceError(faults.found)
    tables = numbers[2 : 2 + 2 * cells].reshape(2, agents, items)
    gap = Gap(tables[0], tables[1], numbers[2 + 2 * cells :])
    for item in np.flatnonzero((gap.weight > gap.capacity[:, None]).all(axis=0)).tolist():
        faults.add(path.name, f"an agent with room for item {item + 1}", value=gap.weight[:, item].tolist())
    if faults:
        raise SourceError(faults.found)
    return gap


def _numbers(file: str, tokens: Sequence[bytes], faults: Faults) -> Ints:
    """Numbers of a file of the generalised assignment problem; a fault for what is none."""
    for position, token in enumerate(tokens, start=1):
        if not token.isdigit() or len(token) > MOST_DIGITS or int(token) > LARGEST:
            value = token.decode("ascii", "replace")
            faults.add(f"{file}, number {position}", f"a whole number from 0 to {LARGEST:,}", value=value)
            return np.zeros(0, np.int64)
    return np.array([int(token) for token in tokens], np.int64)


def job_placement(gap: Gap, name: str) -> JobPlacement:
    """The generalised assignment problem as job placement: an optimal plan that admits every job costs the optimum."""
    agents, items = gap.cost.shape
    names = labels("agent", agents)
    each = np.arange(agents)
    supply = np.zeros((agents, 3), np.int64)
    supply[:, 0] = gap.capacity * WHOLE
    fleet = GeneratedFleet(
        regions=("everywhere",),
        gpu_types=names,
        clusters=Clusters(names, np.zeros(agents, np.int64)),
        racks=Racks(names, each),
        servers=Servers(names, each, each, supply),
    )
    nothing = np.zeros(items, np.int64)
    item, agent = np.nonzero((gap.weight <= gap.capacity[:, None]).T)
    waiting = Pending(
        tier=nothing,
        tasks=nothing + 1,
        mgpu=nothing,
        mcores=nothing,
        mib=nothing,
        value_milli=nothing + WHOLE,
        options=(item, agent),
    )
    weights = {**dict.fromkeys(TERMS, 0.0), "cost": 1.0, "rejected": float(items * penalty(gap))}
    problem = assemble(name, fleet, Running(), waiting)
    return replace(
        problem,
        jobs=replace(problem.jobs, labels=labels("item", items), submitted_ms=nothing),
        options=replace(problem.options, mgpu=gap.weight[agent, item] * WHOLE),
        costs=Costs(np.tile(np.arange(items), agents), np.repeat(each, items), gap.cost.reshape(-1) * MICRO),
        objective=Objective(weights),
        provenance=f"generalised assignment instance {name}: {agents} agents, {items} items",
    )


def penalty(gap: Gap) -> int:
    """Cost, in the imported assignment problem, of a rejected job with which no plan gains by rejecting one.

    Any plan costs at least Σ of the least costs of the jobs that it admits. So one that rejects a job j pays more
    than a plan that admits all of them at U if the price is above U − Σ_j least_j + max_j least_j. U is the cost of
    a plan found greedily, or else Σ of the highest costs. A price as low as that keeps the program well scaled.
    """
    least = gap.cost.min(axis=0)
    found = _greedy(gap)
    upper = int(gap.cost.max(axis=0).sum()) if found is None else found
    return upper - int(least.sum()) + int(least.max()) + 1


def _greedy(gap: Gap) -> int | None:
    """Cost, in the generalised assignment problem, of giving each item, those with most to regret first, the cheapest
    agent with room; None if one is left.
    """
    two = np.sort(gap.cost, axis=0)[:2]
    left = gap.capacity.copy()
    total = 0
    for item in np.argsort(two[0] - two[-1], kind="stable").tolist():
        fits = np.flatnonzero(gap.weight[:, item] <= left)
        if not len(fits):
            return None
        agent = int(fits[np.argmin(gap.cost[fits, item])])
        left[agent] -= gap.weight[agent, item]
        total += int(gap.cost[agent, item])
    return total


def build(paths: Sequence[Path], settings: Settings, rng: np.random.Generator) -> JobPlacement:
    """The job-placement instance from a file of the generalised assignment problem; nothing in it is drawn. Raises
    SourceError for a file that is not what it should be.
    """
    (path,) = paths
    return job_placement(read_gap(path), settings.name or path.stem)


GAP = Importer(
    kind=JobPlacement.kind,
    help="the generalised assignment problem (least cost, every item assigned), as in the OR-Library",
    inputs=(Input("file", "one instance: m n, m × n costs, m × n weights, m capacities"),),
    settings_type=Settings,
    build=build,
)

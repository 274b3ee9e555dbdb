"""Generated task-reassignment instances in the manner of the ROADEF/EURO challenge 2012; today breaks no rule."""

import numpy as np

from mast_opt.problems.kind.header import Objective
from mast_opt.problems.task_reassignment import entities
from mast_opt.problems.task_reassignment.generate.distributions import machine_sizes, needs, random_fit
from mast_opt.problems.task_reassignment.problem import TERMS, Ints, TaskReassignment, labels

FILL = 0.84
"""Use over capacity, all machines together; use over safety capacity is about 1."""
NEIGHBOURHOODS = 5
SINGLE = 0.5
"""Share of the processes that are a service of their own."""
LARGEST_SERVICE = 25
DEPENDENCIES_PER_SERVICE = 2.0
"""Drawn for services of several processes; those that today's assignment breaks are dropped."""
RACK = 4
"""Machines in one location."""


def challenge(rng: np.random.Generator, *, processes: int, machines: int, resources: int) -> TaskReassignment:
    """Half of the processes in services of 2 to 25 that spread and depend on one another; a third of the resources
    transient; one balance goal between the first two resources."""
    service = _services(rng, processes, machines)
    need = needs(rng, processes, resources)
    size = machine_sizes(rng, machines, resources)
    capacity = np.ceil(size * need.sum(axis=0) / (size.sum(axis=0) * FILL)).astype(np.int64)
    initial, capacity = random_fit(rng, need, service, capacity)
    neighbourhoods, locations = min(NEIGHBOURHOODS, machines), max(1, machines // RACK)
    location = rng.permutation(machines) % locations
    neighbourhood = rng.permutation(machines) % neighbourhoods
    spread_min = _spread(rng, service, location[initial])
    dependent, dependency = _dependencies(rng, service, neighbourhood[initial])
    transient = np.arange(resources) % 3 == 2
    pair, group = np.unique(np.stack([neighbourhood, location]), axis=1, return_inverse=True)
    far = pair[0][:, None] != pair[0]
    apart = pair[1][:, None] != pair[1]
    goals = 1 if resources > 1 else 0
    return TaskReassignment(
        name=f"challenge-{processes}x{machines}x{resources}",
        provenance="generated: family challenge",
        resources=entities.Resources(
            labels=labels("r", resources), transient=transient, load_weight=np.full(resources, 10)
        ),
        machines=entities.Machines(
            labels=labels("m", machines),
            location=location,
            neighbourhood=neighbourhood,
            balanced=np.ones(machines, np.bool_),
            move_group=group,
            capacity=capacity,
            safety=(capacity * rng.uniform(0.7, 0.95, capacity.shape)).astype(np.int64),
        ),
        locations=labels("l", locations),
        neighbourhoods=labels("n", neighbourhoods),
        move_groups=entities.MoveGroups(
            labels=labels("g", pair.shape[1]), move_cost=np.where(apart, np.where(far, 2, 1), 0)
        ),
        services=entities.Services(labels=labels("s", int(service.max()) + 1), spread_min=spread_min),
        processes=entities.Processes(
            labels=labels("p", processes),
            service=service,
            need=need,
            move_cost=np.ones(processes, np.int64),
            initial=initial,
        ),
        dependencies=entities.Dependencies(service=dependent, needs=dependency),
        balances=entities.Balances(
            first=np.zeros(goals, np.int64),
            second=np.ones(goals, np.int64),
            target=np.full(goals, 2),
            weight=np.full(goals, 10),
        ),
        objective=Objective(dict(TERMS)),
    )


def _services(rng: np.random.Generator, processes: int, machines: int) -> Ints:
    """[P] the service of each: some of several processes, then the single ones."""
    left = int(processes * (1 - SINGLE))
    largest = min(LARGEST_SERVICE, machines)
    sizes = []
    while left > 1 and largest > 1:
        sizes.append(min(int(rng.integers(2, largest + 1)), left))
        left -= sizes[-1]
    grouped = np.repeat(np.arange(len(sizes)), sizes)
    service = np.concatenate([grouped, np.arange(processes - len(grouped)) + len(sizes)])
    return rng.permutation(service)


def _spread(rng: np.random.Generator, service: Ints, location: Ints) -> Ints:
    """[S] for each generated service, a number of locations up to the one that it is in today."""
    pairs = np.unique(np.stack([service, location]), axis=1)
    today = np.bincount(pairs[0])
    return rng.integers(1, today + 1)


def _dependencies(rng: np.random.Generator, service: Ints, neighbourhood: Ints) -> tuple[Ints, Ints]:
    """Pairs of generated services, the second of them in every neighbourhood where the first one is today."""
    hosts = np.zeros((int(service.max()) + 1, int(neighbourhood.max()) + 1), np.bool_)
    hosts[service, neighbourhood] = True
    several = np.flatnonzero(np.bincount(service) > 1)
    if not len(several):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    drawn = int(DEPENDENCIES_PER_SERVICE * len(hosts))
    pairs = np.unique(np.stack([rng.integers(len(hosts), size=drawn), rng.choice(several, drawn)]), axis=1)
    kept = (pairs[0] != pairs[1]) & (hosts[pairs[1]] | ~hosts[pairs[0]]).all(axis=1)
    return pairs[0][kept], pairs[1][kept]

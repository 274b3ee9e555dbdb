"""Generated task-reassignment instances of bin-packing type: many objects in unequal containers, capacities only."""

import numpy as np

from mast_opt.problems.kind.header import Objective
from mast_opt.problems.task_reassignment import entities
from mast_opt.problems.task_reassignment.generate.distributions import machine_sizes, needs
from mast_opt.problems.task_reassignment.problem import TERMS, TaskReassignment, labels

FILL = 0.8


def containers(rng: np.random.Generator, *, processes: int, machines: int, resources: int) -> TaskReassignment:
    """Each process a service of its own, on a random machine today, large ones more often; that assignment may
    break capacities. The load term is use above 80% of the capacity."""
    need = needs(rng, processes, resources)
    size = machine_sizes(rng, machines, resources)
    capacity = np.ceil(size * need.sum(axis=0) / (size.sum(axis=0) * FILL)).astype(np.int64)
    capacity = np.maximum(capacity, need.max(axis=0))
    chance = size.mean(axis=1) / size.mean(axis=1).sum()
    none = np.zeros(0, np.int64)
    return TaskReassignment(
        name=f"containers-{processes}x{machines}x{resources}",
        provenance="generated: family containers",
        resources=entities.Resources(
            labels=labels("r", resources), transient=np.zeros(resources, np.bool_), load_weight=np.full(resources, 10)
        ),
        machines=entities.Machines(
            labels=labels("m", machines),
            location=np.zeros(machines, np.int64),
            neighbourhood=np.zeros(machines, np.int64),
            move_group=np.zeros(machines, np.int64),
            capacity=capacity,
            safety=capacity * 4 // 5,
            balanced=np.ones(machines, np.bool_),
        ),
        locations=("l0",),
        neighbourhoods=("n0",),
        move_groups=entities.MoveGroups(labels=("g0",), move_cost=np.zeros((1, 1), np.int64)),
        services=entities.Services(labels=labels("s", processes), spread_min=np.ones(processes, np.int64)),
        processes=entities.Processes(
            labels=labels("p", processes),
            service=np.arange(processes),
            need=need,
            move_cost=np.ones(processes, np.int64),
            initial=rng.choice(machines, processes, p=chance),
        ),
        dependencies=entities.Dependencies(service=none, needs=none.copy()),
        balances=entities.Balances(first=none.copy(), second=none.copy(), target=none.copy(), weight=none.copy()),
        objective=Objective(dict(TERMS)),
    )

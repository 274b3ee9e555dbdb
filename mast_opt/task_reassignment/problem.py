"""The task-reassignment problem (Twine): which machine runs which process.

It is the machine reassignment problem of the ROADEF/EURO challenge 2012, set by Google. Index letters,
here and everywhere: p process, m machine, k resource, s service, b balance goal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import Arrays, amounts, flags, positions, scalars
from mast_opt.core.errors import InstanceError
from mast_opt.kind.header import Objective, term_faults
from mast_opt.kind.problem import Problem

if TYPE_CHECKING:
    from mast_opt.task_reassignment.plan import Plan  # noqa: F401 - named in a string below

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

TERMS: Mapping[str, float] = {
    "load": 1.0,
    "balance": 1.0,
    "process_move": 1.0,
    "service_move": 10.0,
    "machine_move": 100.0,
}
"""Objective term → its default weight. What each measures: ``docs/problems/task-reassignment.md``."""
SCALARS = {"name": str, "objective": Objective, "provenance": str}
# Capacities may be negative: the part of an instance that a heuristic solves exactly lacks what other processes hold.
COLUMNS = (
    flags("transient", "resources"),
    amounts("load_weight", "resources", total=False),
    positions("location", "machines", "locations"),
    positions("neighbourhood", "machines", "neighbourhoods"),
    positions("move_group", "machines", "move_groups"),
    amounts("capacity", "machines", "resources", least=None),
    amounts("safety", "machines", "resources", least=None, total=False),
    amounts("group_move_cost", "move_groups", "move_groups", total=False),
    flags("balanced", "machines"),
    amounts("spread_min", "services", total=False),
    positions("dependent", "dependencies", "services"),
    positions("dependency", "dependencies", "services"),
    positions("service", "processes", "services"),
    amounts("need", "processes", "resources"),
    amounts("move_cost", "processes", total=False),
    positions("initial", "processes", "machines"),
    positions("balance_first", "balances", "resources"),
    positions("balance_second", "balances", "resources"),
    amounts("balance_target", "balances", total=False),
    amounts("balance_weight", "balances", total=False),
)


@dataclass(frozen=True, eq=False)
class TaskReassignment(Problem["Plan"]):
    """One instance, validated. Arrays are read-only; P, M, K, S count processes, machines, resources, services.

    Amounts of a resource are integers in whatever unit the instance uses for it.

    Raises:
        InstanceError: arrays that do not fit one another or hold values out of range; it lists every fault.
    """

    kind: ClassVar[str] = "task-reassignment"

    name: str
    resources: tuple[str, ...]
    machines: tuple[str, ...]
    locations: tuple[str, ...]
    neighbourhoods: tuple[str, ...]
    move_groups: tuple[str, ...]
    """Groups of machines between which moving costs the same."""
    services: tuple[str, ...]
    processes: tuple[str, ...]

    transient: Bools
    """[K] does a moved process hold this resource on its old machine too?"""
    load_weight: Ints
    """[K] cost of a unit of use above the safety capacity."""

    location: Ints
    """[M]"""
    neighbourhood: Ints
    """[M]"""
    move_group: Ints
    """[M]"""
    capacity: Ints
    """[M, K]"""
    safety: Ints
    """[M, K] use up to here costs nothing."""
    group_move_cost: Ints
    """[G, G] cost of moving a process from a machine of the first group to one of the second."""
    balanced: Bools
    """[M] do the balance goals count on the machine?"""

    spread_min: Ints
    """[S] fewest locations that a service runs in."""
    dependent: Ints
    """[D] each process of this service …"""
    dependency: Ints
    """[D] … has a process of this service in its neighbourhood."""

    service: Ints
    """[P]"""
    need: Ints
    """[P, K]"""
    move_cost: Ints
    """[P] cost of moving this process anywhere."""
    initial: Ints
    """[P] the machine that runs it today."""

    balance_first: Ints
    """[B] resource whose free amount asks for …"""
    balance_second: Ints
    """[B] … free amounts of this resource,"""
    balance_target: Ints
    """[B] so many units of it for each unit of the first;"""
    balance_weight: Ints
    """[B] cost of a unit that is missing on a machine."""

    objective: Objective
    provenance: str = ""

    def __post_init__(self) -> None:
        check = Arrays(self)
        for name in ("resources", "machines", "locations", "neighbourhoods", "services", "processes"):
            check.labels(name)
        check.labels("move_groups", empty=True)
        check.faults += scalars(self, SCALARS)
        check.faults += term_faults(self.objective, TERMS)
        check.take(*COLUMNS)
        if not check.faults:
            check.key("dependent", "dependency")
            check.key("balance_first", "balance_second", "balance_target")
        if check.faults:
            raise InstanceError(check.faults)

    @cached_property
    def service_size(self) -> Ints:
        """[S] number of processes."""
        return np.bincount(self.service, minlength=len(self.services))

    @cached_property
    def held(self) -> Ints:
        """[M, K] need of the processes that run on each machine today."""
        total = np.zeros_like(self.capacity)
        np.add.at(total, self.initial, self.need)
        return total


def labels(letter: str, count: int) -> tuple[str, ...]:
    """Names for things that have only a number, as in p0, p1."""
    return tuple(f"{letter}{position}" for position in range(count))

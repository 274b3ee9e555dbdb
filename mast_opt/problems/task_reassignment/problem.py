"""The task-reassignment problem (Twine): which machine runs which process.

It is the machine reassignment problem of the ROADEF/EURO challenge 2012, set by Google. Index letters,
here and everywhere: p process, m machine, k resource, s service, b balance goal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mast_opt.problems.kind.header import Objective, Term
from mast_opt.problems.kind.problem_data import Bools, GroupedProblem, Ints
from mast_opt.problems.task_reassignment import entities

if TYPE_CHECKING:
    from mast_opt.problems.task_reassignment.plan import Plan  # noqa: F401 - named in a string below

__all__ = ["OBJECTIVE", "TERMS", "Bools", "Ints", "TaskReassignment", "labels"]

OBJECTIVE: Mapping[str, Term] = {
    "load": Term(1.0, "resource units, weighted"),
    "balance": Term(1.0, "resource units, weighted"),
    "process_move": Term(1.0, "move cost"),
    "service_move": Term(10.0, "processes"),
    "machine_move": Term(100.0, "move cost"),
}
"""Terms of the objective. What each measures: ``docs/problems/task-reassignment.md``. "weighted": by ``load_weight``,
or by the weight of the balance."""
TERMS = {name: term.weight for name, term in OBJECTIVE.items()}
"""Objective term → its default weight."""


@dataclass(frozen=True, eq=False, repr=False)
class TaskReassignment(GroupedProblem["Plan"]):
    """One instance, validated and read-only.

    Raises:
        InstanceError: groups that do not fit one another; it lists every fault.
    """

    kind: ClassVar[str] = "task-reassignment"
    WEIGHTS = TERMS
    LABELS: ClassVar[Mapping[str, bool]] = {"locations": False, "neighbourhoods": False}

    name: str
    resources: entities.Resources
    locations: tuple[str, ...]
    neighbourhoods: tuple[str, ...]
    move_groups: entities.MoveGroups
    machines: entities.Machines
    services: entities.Services
    dependencies: entities.Dependencies
    processes: entities.Processes
    balances: entities.Balances
    objective: Objective
    provenance: str = ""

    @cached_property
    def service_size(self) -> Ints:
        """[S] number of processes."""
        return np.bincount(self.processes.service, minlength=len(self.services))

    @cached_property
    def held(self) -> Ints:
        """[M, K] need of the processes that run on each machine today."""
        return self.used(self.processes.initial)

    def used(self, machine: Ints) -> Ints:
        """[M, K] need of the processes on each machine, where each process is on this machine [P]."""
        total = np.zeros_like(self.machines.capacity)
        np.add.at(total, machine, self.processes.need)
        return total


def labels(letter: str, count: int) -> tuple[str, ...]:
    """Names for things that have only a number: p0, p1, and so on."""
    return tuple(f"{letter}{position}" for position in range(count))

"""What a task-reassignment problem is made of: its groups of arrays, one class for each entity or relation.

P, M, K, S, G count processes, machines, resources, services, move groups. Amounts of a resource are integers in
whatever unit the instance uses for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.core.arrays import amounts, flags, positions
from mast_opt.kind.problem_data import Bools, Entities, Ints, Relation


@dataclass(frozen=True, eq=False, repr=False)
class Resources(Entities):
    """What processes need and machines have: cores, memory, disk and so on."""

    AXIS = "resources"
    COLUMNS = (flags("transient", "resources"), amounts("load_weight", "resources", total=False))

    transient: Bools
    """[K] does a moved process hold this resource on its old machine too?"""
    load_weight: Ints
    """[K] cost of a unit of use above the safety capacity."""


@dataclass(frozen=True, eq=False, repr=False)
class Machines(Entities):
    """Machines, where they are and what they have.

    Capacities may be negative: the part of an instance that a heuristic solves exactly lacks what other processes hold.
    """

    AXIS = "machines"
    COLUMNS = (
        positions("location", "machines", "locations"),
        positions("neighbourhood", "machines", "neighbourhoods"),
        positions("move_group", "machines", "move_groups"),
        amounts("capacity", "machines", "resources", least=None),
        amounts("safety", "machines", "resources", least=None, total=False),
        flags("balanced", "machines"),
    )

    location: Ints
    """[M] position in ``locations``."""
    neighbourhood: Ints
    """[M] position in ``neighbourhoods``."""
    move_group: Ints
    """[M] position in ``move_groups``."""
    capacity: Ints
    """[M, K] what a machine has."""
    safety: Ints
    """[M, K] use up to here costs nothing."""
    balanced: Bools
    """[M] do the balance goals count on the machine?"""


@dataclass(frozen=True, eq=False, repr=False)
class MoveGroups(Entities):
    """Groups of machines between which moving costs the same. An empty label stands for machines that name none."""

    AXIS = "move_groups"
    MAY_BE_EMPTY = True
    COLUMNS = (amounts("move_cost", "move_groups", "move_groups", total=False),)

    move_cost: Ints
    """[G, G] cost of moving a process from a machine of the first group to one of the second."""


@dataclass(frozen=True, eq=False, repr=False)
class Services(Entities):
    """Sets of processes, no two of a set on one machine."""

    AXIS = "services"
    COLUMNS = (amounts("spread_min", "services", total=False),)

    spread_min: Ints
    """[S] fewest locations that a service runs in."""


@dataclass(frozen=True, eq=False, repr=False)
class Dependencies(Relation):
    """Services that have to be near others."""

    AXIS = "dependencies"
    KEY = ("service", "needs")
    COLUMNS = (positions("service", "dependencies", "services"), positions("needs", "dependencies", "services"))

    service: Ints
    """[·] each process of this service …"""
    needs: Ints
    """[·] … has a process of this service in its neighbourhood."""


@dataclass(frozen=True, eq=False, repr=False)
class Processes(Entities):
    """Running tasks."""

    AXIS = "processes"
    COLUMNS = (
        positions("service", "processes", "services"),
        amounts("need", "processes", "resources"),
        amounts("move_cost", "processes", total=False),
        positions("initial", "processes", "machines"),
    )

    service: Ints
    """[P] service of each process."""
    need: Ints
    """[P, K] what a process needs."""
    move_cost: Ints
    """[P] cost of moving this process anywhere."""
    initial: Ints
    """[P] the machine that runs it today."""


@dataclass(frozen=True, eq=False, repr=False)
class Balances(Relation):
    """Balance goals: free amounts that should stand in a proportion on every machine."""

    AXIS = "balances"
    KEY = ("first", "second", "target")
    COLUMNS = (
        positions("first", "balances", "resources"),
        positions("second", "balances", "resources"),
        amounts("target", "balances", total=False),
        amounts("weight", "balances", total=False),
    )

    first: Ints
    """[B] resource whose free amount asks for …"""
    second: Ints
    """[B] … free amounts of this resource,"""
    target: Ints
    """[B] so many units of it for each unit of the first;"""
    weight: Ints
    """[B] cost of a unit that is missing on a machine."""

"""Entities of task reassignment: groups of arrays, one class for each entity or relation.

P, M, K, S, G count processes, machines, resources, services, move groups. Amounts of a resource are integers in
whatever unit the instance uses for it.
"""

from dataclasses import dataclass

from mast_opt.core.arrays import amounts, positions
from mast_opt.problems.kind.problem_data import Bools, Entities, Ints, Relation
from mast_opt.problems.kind.schema import boolean, integer, label
from mast_opt.problems.kind.stated_columns import array, stated


@dataclass(frozen=True, eq=False, repr=False)
class Resources(Entities):
    """Resources that processes need and machines have: cores, memory, disk and so on."""

    AXIS = "resources"

    transient: Bools = stated(
        boolean("transient", default=False, required=False, help="held on the old machine too during a move?")
    )
    """[K] does a moved process hold this resource on its old machine too?"""
    load_weight: Ints = stated(
        integer("load_weight", default=1, required=False, help="cost of a unit above the safety capacity"), total=False
    )
    """[K] cost of a unit of use above the safety capacity."""


@dataclass(frozen=True, eq=False, repr=False)
class Machines(Entities):
    """Machines, where they are and what they have.

    Capacities may be negative: the part of an instance that a heuristic solves exactly lacks what other processes hold.
    """

    AXIS = "machines"

    capacity: Ints = array(amounts, "resources", least=None)
    """[M, K] what a machine has."""
    safety: Ints = array(amounts, "resources", least=None, total=False)
    """[M, K] use up to here costs nothing."""
    location: Ints = stated(label("location", "location", help="a service spreads over several locations"))
    """[M] position in ``locations``."""
    neighbourhood: Ints = stated(
        label("neighbourhood", "neighbourhood", help="a service finds the ones it depends on in its own")
    )
    """[M] position in ``neighbourhoods``."""
    move_group: Ints = stated(
        label("move_group", "move_group", required=False, help="see move_costs; empty = moving costs nothing"),
        positions("move_group", "machines", "move_groups"),
    )
    """[M] position in ``move_groups``."""
    balanced: Bools = stated(
        boolean("balanced", default=True, required=False, later=True, help="do balances count on the machine?")
    )
    """[M] do the balance goals count on the machine?"""


@dataclass(frozen=True, eq=False, repr=False)
class MoveGroups(Entities):
    """Groups of machines between which moving costs the same. An empty label stands for machines that name none."""

    AXIS = "move_groups"
    MAY_BE_EMPTY = True

    move_cost: Ints = array(amounts, "move_groups", total=False)
    """[G, G] cost of moving a process from a machine of the first group to one of the second."""


@dataclass(frozen=True, eq=False, repr=False)
class Services(Entities):
    """Sets of processes, no two of a set on one machine."""

    AXIS = "services"

    spread_min: Ints = stated(
        integer("spread_min", default=1, required=False, help="fewest locations that it runs in"), total=False
    )
    """[S] fewest locations that a service runs in."""


@dataclass(frozen=True, eq=False, repr=False)
class Dependencies(Relation):
    """Services that have to be near others."""

    AXIS = "dependencies"
    KEY = ("service", "needs")

    service: Ints = stated(label("service", "service"))
    """[·] each process of this service …"""
    needs: Ints = stated(label("needs", "service", help="the service that must be near"))
    """[·] … has a process of this service in its neighbourhood."""


@dataclass(frozen=True, eq=False, repr=False)
class Processes(Entities):
    """Running tasks."""

    AXIS = "processes"

    need: Ints = array(amounts, "resources")
    """[P, K] what a process needs."""
    service: Ints = stated(label("service", "service"))
    """[P] service of each process."""
    initial: Ints = stated(label("machine", "machine", help="where it runs today"))
    """[P] the machine that runs it today."""
    move_cost: Ints = stated(integer("move_cost", default=1, required=False, help="cost of moving it"), total=False)
    """[P] cost of moving this process anywhere."""


@dataclass(frozen=True, eq=False, repr=False)
class Balances(Relation):
    """Balance goals: free amounts that should stand in a proportion on every machine."""

    AXIS = "balances"
    KEY = ("first", "second", "target")

    first: Ints = stated(label("first", "resource", help="the resource whose free amount asks for the second"))
    """[B] resource whose free amount asks for …"""
    second: Ints = stated(label("second", "resource"))
    """[B] … free amounts of this resource,"""
    target: Ints = stated(
        integer("target", minimum=1, help="free units of the second wanted for each free unit of the first"),
        amounts("target", "balances", total=False),
    )
    """[B] so many units of it for each unit of the first;"""
    weight: Ints = stated(
        integer("weight", default=1, required=False, help="cost of a unit that is missing on a machine"), total=False
    )
    """[B] cost of a unit that is missing on a machine."""

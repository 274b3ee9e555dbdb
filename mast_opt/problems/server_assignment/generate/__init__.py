"""Generated server-assignment instances, by family.

A family, its sizes and the state of a NumPy ``Generator`` determine the instance, array by array.

    standard           a fleet that RAS keeps: today's assignment is nearly right, demand has drifted a little
    variants           the same fleet from nothing, with too little, with today's assignment crowded
    features           every optional table and column, and today's oddities; for tests
    fleets             what they are made of: servers in their racks
"""

from collections.abc import Callable

from mast_opt.problems.kind.family import Family
from mast_opt.problems.server_assignment.generate.standard import standard
from mast_opt.problems.server_assignment.generate.variants import crowded, features, fresh, scarce
from mast_opt.problems.server_assignment.problem import ServerAssignment


def _family(
    make: Callable[..., ServerAssignment], servers: int, reservations: int, datacenters: int, help: str
) -> Family[ServerAssignment]:
    """Family of generated server-assignment instances."""
    return Family(make, {"servers": servers, "reservations": reservations, "datacenters": datacenters}, help)


FAMILIES = {
    "standard": _family(standard, 2000, 20, 3, "today's assignment is nearly right, demand has drifted a little"),
    "fresh": _family(fresh, 2000, 20, 3, "standard before anybody has a server"),
    "scarce": _family(scarce, 2000, 20, 3, "standard with demand for a quarter more than there is"),
    "crowded": _family(crowded, 2000, 20, 3, "standard with every reservation at few switchboards today"),
    "features": _family(features, 40, 6, 2, "every optional table and column at once; for tests"),
}
"""name → family. Every one takes servers, reservations and datacenters."""

__all__ = ["FAMILIES", "standard"]

"""Generated task-reassignment instances, by family.

A family, its sizes and the state of a NumPy ``Generator`` determine the instance, array by array.

    challenge     in the manner of the ROADEF/EURO challenge 2012: every kind of constraint and cost
    containers    many objects in unequal containers, nothing but capacities and safety capacities
"""

from mast_opt.problems.kind.family import Family
from mast_opt.problems.task_reassignment.generate.challenge import challenge
from mast_opt.problems.task_reassignment.generate.containers import containers

FAMILIES = {
    "challenge": Family(
        challenge,
        {"processes": 200, "machines": 20, "resources": 4},
        "in the manner of the ROADEF/EURO challenge 2012: services, spread, dependencies, transient resources",
    ),
    "containers": Family(
        containers,
        {"processes": 2000, "machines": 50, "resources": 3},
        "objects in unequal containers, 80% full, at random to begin with; safety capacity 80%",
    ),
}

__all__ = ["FAMILIES", "challenge", "containers"]

"""Entities of resource allocation: groups of arrays, one class for each entity or relation.

K, G, J, C count resources, groups, jobs and configurations. Unlike in the other kinds, all quantities are floats: rates
are in steps a second (or any other unit of progress), amounts in the resource's own unit.
"""

from dataclasses import dataclass

from mast_opt.core.arrays import Arrays, flags
from mast_opt.problems.kind.problem_data import Bools, Entities, Floats, Ints, Relation
from mast_opt.problems.kind.schema import boolean, label, real
from mast_opt.problems.kind.stated_columns import stated

LARGEST = 1e15
"""No quantity is larger, so that products of two stay finite and sums keep nine digits."""
ABOVE_0 = "a number above 0"


@dataclass(frozen=True, eq=False, repr=False)
class Resources(Entities):
    """Resources that configurations use together: GPUs of a type, cores, memory, tickets."""

    AXIS = "resources"

    amount: Floats = stated(real("amount", maximum=LARGEST, help="how much there is, in any unit"))
    """[K] how much there is."""


@dataclass(frozen=True, eq=False, repr=False)
class Groups(Entities):
    """Sets of jobs, such as tenants."""

    AXIS = "groups"

    weight: Floats = stated(
        real("weight", above=True, maximum=LARGEST, default=1, required=False, help="share of the group")
    )
    """[G] share of the group in hierarchical policies, > 0."""
    min_rate: Floats = stated(
        real("min_rate", maximum=LARGEST, default=0, required=False, help="floor of the sum of its jobs' rates")
    )
    """[G] floor of the sum of its jobs' rates."""

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of groups of jobs: weights that are not above 0."""
        check.wrong("weight", self.weight <= 0, ABOVE_0)


@dataclass(frozen=True, eq=False, repr=False)
class Jobs(Entities):
    """Jobs, and what the policies need to know of them."""

    AXIS = "jobs"

    weight: Floats = stated(real("weight", above=True, maximum=LARGEST, default=1, required=False, help="importance"))
    """[J] > 0"""
    group: Ints = stated(label("group", "group", required=False, help="empty = in no group"))
    """[J] G for a job in no group."""
    required: Bools = stated(
        boolean("required", default=False, required=False, help="must its shares add up to 1?"),
        flags("required", "jobs"),
    )
    """[J] do its shares add up to 1, and not just to at most 1?"""
    min_rate: Floats = stated(real("min_rate", maximum=LARGEST, default=0, required=False, help="floor of its rate"))
    """[J] floor of its rate."""
    fair_rate: Floats = stated(
        real(
            "fair_rate",
            above=True,
            maximum=LARGEST,
            default=1,
            required=False,
            help="its rate under an equal split, by which policies normalise",
        )
    )
    """[J] the rate under an equal split, by which policies normalise; > 0."""
    steps: Floats = stated(real("steps", maximum=LARGEST, default=0, required=False, help="work left; empty = unknown"))
    """[J] work that is left; 0 where it is not known."""
    elapsed_s: Floats = stated(
        real("elapsed_s", maximum=LARGEST, default=0, required=False, help="seconds since it was submitted")
    )
    """[J] time since it was submitted."""
    fair_elapsed_s: Floats = stated(
        real(
            "fair_elapsed_s",
            maximum=LARGEST,
            default=0,
            required=False,
            help="seconds that the work done so far would have taken under an equal split",
        )
    )
    """[J] the time that the work done so far would have taken under an equal split."""
    submitted_s: Floats = stated(
        real("submitted_s", maximum=LARGEST, default=0, required=False, help="when it was submitted, seconds")
    )
    """[J] when it was submitted."""

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of jobs that share resources: weights or fair rates that are not above 0."""
        for name in ("weight", "fair_rate"):
            check.wrong(name, getattr(self, name) <= 0, ABOVE_0)


@dataclass(frozen=True, eq=False, repr=False)
class Configurations(Entities):
    """Ways to run one job, or several together."""

    AXIS = "configurations"

    cost: Floats = stated(real("cost", maximum=LARGEST, default=0, required=False, help="of running it all the time"))
    """[C] of running it all the time."""


@dataclass(frozen=True, eq=False, repr=False)
class Members(Relation):
    """The jobs of a configuration."""

    AXIS = "members"
    KEY = ("configuration", "job")

    configuration: Ints = stated(label("configuration", "configuration"))
    """Configuration of each member, [M]."""
    job: Ints = stated(label("job", "job"))
    """[M] runs in that configuration …"""
    rate: Floats = stated(real("rate", maximum=LARGEST, help="steps a second, or another unit of progress"))
    """[M] … at this rate."""


@dataclass(frozen=True, eq=False, repr=False)
class Uses(Relation):
    """The resources that a configuration holds."""

    AXIS = "uses"
    KEY = ("configuration", "resource")

    configuration: Ints = stated(label("configuration", "configuration"))
    """Configuration of each use, [U]."""
    resource: Ints = stated(label("resource", "resource"))
    """Resource of each use, [U]."""
    amount: Floats = stated(real("amount", maximum=LARGEST, help="held while the configuration runs"))
    """[U] of the resource, while the configuration runs."""

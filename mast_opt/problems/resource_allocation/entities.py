"""Entities of resource allocation: groups of arrays, one class for each entity or relation.

K, G, J, C count resources, groups, jobs and configurations. Unlike in the other kinds, all quantities are floats: rates
are in steps a second (or any other unit of progress), amounts in the resource's own unit.
"""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.core.arrays import Arrays, flags, positions, reals
from mast_opt.problems.kind.problem_data import Bools, Entities, Floats, Ints, Relation

LARGEST = 1e15
"""No quantity is larger, so that products of two stay finite and sums keep nine digits."""
ABOVE_0 = "a number above 0"


@dataclass(frozen=True, eq=False, repr=False)
class Resources(Entities):
    """Resources that configurations use together: GPUs of a type, cores, memory, tickets."""

    AXIS = "resources"
    COLUMNS = (reals("amount", "resources", most=LARGEST),)

    amount: Floats
    """[K] how much there is."""


@dataclass(frozen=True, eq=False, repr=False)
class Groups(Entities):
    """Sets of jobs, such as tenants."""

    AXIS = "groups"
    COLUMNS = (reals("weight", "groups", most=LARGEST), reals("min_rate", "groups", most=LARGEST))

    weight: Floats
    """[G] share of the group in hierarchical policies, > 0."""
    min_rate: Floats
    """[G] floor of the sum of its jobs' rates."""

    def _check_rows(self, check: Arrays) -> None:
        check.wrong("weight", self.weight <= 0, ABOVE_0)


@dataclass(frozen=True, eq=False, repr=False)
class Jobs(Entities):
    """Jobs, and what the policies need to know of them."""

    AXIS = "jobs"
    COLUMNS = (
        reals("weight", "jobs", most=LARGEST),
        positions("group", "jobs", "groups", beyond=1),
        flags("required", "jobs"),
        reals("min_rate", "jobs", most=LARGEST),
        reals("fair_rate", "jobs", most=LARGEST),
        reals("steps", "jobs", most=LARGEST),
        reals("elapsed_s", "jobs", most=LARGEST),
        reals("fair_elapsed_s", "jobs", most=LARGEST),
        reals("submitted_s", "jobs", most=LARGEST),
    )

    weight: Floats
    """[J] > 0"""
    group: Ints
    """[J] G for a job in no group."""
    required: Bools
    """[J] do its shares add up to 1, and not just to at most 1?"""
    min_rate: Floats
    """[J] floor of its rate."""
    fair_rate: Floats
    """[J] the rate under an equal split, by which policies normalise; > 0."""
    steps: Floats
    """[J] work that is left; 0 where it is not known."""
    elapsed_s: Floats
    """[J] time since it was submitted."""
    fair_elapsed_s: Floats
    """[J] the time that the work done so far would have taken under an equal split."""
    submitted_s: Floats
    """[J] when it was submitted."""

    def _check_rows(self, check: Arrays) -> None:
        for name in ("weight", "fair_rate"):
            check.wrong(name, getattr(self, name) <= 0, ABOVE_0)


@dataclass(frozen=True, eq=False, repr=False)
class Configurations(Entities):
    """Ways to run one job, or several together."""

    AXIS = "configurations"
    COLUMNS = (reals("cost", "configurations", most=LARGEST),)

    cost: Floats
    """[C] of running it all the time."""


@dataclass(frozen=True, eq=False, repr=False)
class Members(Relation):
    """The jobs of a configuration."""

    AXIS = "members"
    KEY = ("configuration", "job")
    COLUMNS = (
        positions("configuration", "members", "configurations"),
        positions("job", "members", "jobs"),
        reals("rate", "members", most=LARGEST),
    )

    configuration: Ints
    """Configuration of each member, [M]."""
    job: Ints
    """[M] runs in that configuration …"""
    rate: Floats
    """[M] … at this rate."""


@dataclass(frozen=True, eq=False, repr=False)
class Uses(Relation):
    """The resources that a configuration holds."""

    AXIS = "uses"
    KEY = ("configuration", "resource")
    COLUMNS = (
        positions("configuration", "uses", "configurations"),
        positions("resource", "uses", "resources"),
        reals("amount", "uses", most=LARGEST),
    )

    configuration: Ints
    """Configuration of each use, [U]."""
    resource: Ints
    """Resource of each use, [U]."""
    amount: Floats
    """[U] of the resource, while the configuration runs."""

"""The resource-allocation problem: jobs choose among configurations under shared capacities.

A configuration is a way to run one job, or several packed together; its share is a part of the time, or a choice.
Index letters, here and everywhere: k resource, g group, j job, c configuration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from mast_opt.core.arrays import Arrays
from mast_opt.core.sense import Sense
from mast_opt.problems.kind.header import Objective, policy_faults
from mast_opt.problems.kind.problem_data import Floats, GroupedProblem
from mast_opt.problems.resource_allocation import entities, policies
from mast_opt.problems.resource_allocation.arrays import Columns, groups_of

if TYPE_CHECKING:
    from mast_opt.problems.resource_allocation.plan import Plan  # noqa: F401 - named in a string below

NEAR_0 = 1e-4
"""Part of the fastest job's normalised rate that is close to 0 for the smallest: solvers prove nine digits."""


@dataclass(frozen=True, eq=False, repr=False)
class ResourceAllocation(GroupedProblem["Plan"]):
    """One instance, validated and read-only. K, G, J, C count resources, groups, jobs, configurations.

    Raises:
        InstanceError: groups that do not fit one another, a job without a configuration, a configuration without a
            job, or what the policy needs and the jobs do not state; it lists every fault.
    """

    kind: ClassVar[str] = "resource-allocation"
    WEIGHTS: ClassVar[Mapping[str, float]] = {}
    """The objective is a policy, and has no weighted terms."""

    name: str
    resources: entities.Resources
    groups: entities.Groups
    jobs: entities.Jobs
    configurations: entities.Configurations
    members: entities.Members
    uses: entities.Uses
    whole: bool
    """True if every share has to be 0 or 1."""
    objective: Objective
    """Names the policy, one of ``POLICIES``."""
    provenance: str = ""

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of a resource allocation: policy, and jobs or configurations without a member."""
        check.faults += policy_faults(self.objective, policies.POLICIES)
        for axis, other in (("job", "configuration"), ("configuration", "job")):
            labels = self.labels_of(f"{axis}s")
            lone = np.flatnonzero(np.bincount(getattr(self.members, axis), minlength=len(labels)) == 0)
            if len(lone):
                words = f"a {other} in members for each {axis}"
                check.fault(f"{axis}s[{labels[lone[0]]}]", words, f"{len(lone)} without")
        policy = self.objective.policy
        if policy in policies.NEEDS_STEPS:
            check.wrong("jobs.steps", self.jobs.steps <= 0, f"{entities.ABOVE_0}: {policy} needs the work that is left")
        if policy == policies.RATE_PER_COST:
            check.wrong(
                "configurations.cost", self.configurations.cost <= 0, f"{entities.ABOVE_0}: {policy} divides by it"
            )
        if policy == policies.HIERARCHICAL and self.whole:
            check.fault("whole", f"fractional shares: {policy} fills by parts", "True")
        if policy == policies.HIERARCHICAL:
            check.wrong("jobs.group", self.jobs.group >= len(self.groups), f"a group for each job: {policy} needs it")

    @classmethod
    def from_arrays(  # noqa: PLR0913 - a group each, and the header
        cls,
        policy: str,
        *,
        resources: Columns | int,
        jobs: Columns | int,
        configurations: Columns | int,
        members: Columns,
        uses: Columns,
        groups: Columns | int = 0,
        whole: bool = False,
        inside: str = "",
        mechanism: str = "",
        name: str = "instance",
        provenance: str = "",
    ) -> Self:
        """A problem from arrays, without tables on the way. Arrays are checked and copied.

        Each group is a mapping from the names of its columns to arrays, as on the page of groups. Columns that are left
        out have the defaults of the tables, labels that are left out are a letter and a number, and a single number
        stands for all rows. Entities of which nothing else is known are their number. Positions count from 0.

        Example::

            ResourceAllocation.from_arrays(
                "max-min",
                resources={"amount": [4.0, 2.0]},
                jobs={"fair_rate": [1.5, 2.0]},
                configurations=3,
                members={"configuration": [0, 1, 2], "job": [0, 0, 1], "rate": [2.0, 1.0, 3.0]},
                uses={"configuration": [0, 1, 2], "resource": [0, 1, 1], "amount": [1.0, 1.0, 1.0]},
            )

        Args:
            policy: one of ``POLICIES``.
            resources: ``amount`` [K].
            jobs: [J] ``weight``, ``group``, ``required``, ``min_rate``, ``fair_rate``, ``steps``, ``elapsed_s``,
                ``fair_elapsed_s``, ``submitted_s``.
            configurations: ``cost`` [C].
            members: ``configuration``, ``job``, ``rate`` [M].
            uses: ``configuration``, ``resource``, ``amount`` [U].
            groups: ``weight``, ``min_rate`` [G].
            whole: is every share 0 or 1?
            inside: policy inside of groups; the default of the policy unless given.
            mechanism: on top of the policy.
            name, provenance: of the instance.

        Raises:
            UsageError: a column that there is not, or one without a default that is not given.
            InstanceError: arrays that are not sound, or do not fit one another; it lists every fault.
        """
        given: dict[str, Any] = {
            "resources": resources,
            "groups": groups,
            "jobs": jobs,
            "configurations": configurations,
            "members": members,
            "uses": uses,
        }
        default = policies.POLICIES[policy].inside if policy in policies.POLICIES else ()
        objective = Objective({}, policy=policy, mechanism=mechanism, inside=inside or next(iter(default), ""))
        return cls(name=name, **groups_of(given), whole=whole, objective=objective, provenance=provenance)

    @property
    def sense(self) -> Sense:
        """Whether the policy maximises or minimises."""
        return policies.POLICIES[self.objective.policy].sense

    @property
    def gap_scale(self) -> float:
        """Denominator of an allocation's gap where the objective is closer to 0.

        Of nash the sum of weights: a sum of logarithms may be 0, and gap · Σ weight is the gap of the mean. Of a level,
        which is 0 where some job cannot run, a part of the fastest job's.
        """
        policy = self.objective.policy
        if policy in (policies.MAX_MIN, policies.HIERARCHICAL):
            return NEAR_0 * float((self.members.rate / self.normal_rate[self.members.job]).max())
        return float(self.jobs.weight.sum()) if policy == policies.NASH else 0.0

    @property
    def fifo(self) -> bool:
        """Whether the policy serves the jobs of a group one after another."""
        return self.objective.inside == policies.FIFO

    @cached_property
    def normal_rate(self) -> Floats:
        """[J] the rate at which a job's normalised rate is 1 in ``max-min``: weight · fair_rate."""
        return self.jobs.weight * self.jobs.fair_rate

    @cached_property
    def fair_finish_s(self) -> Floats:
        """[J] when the job would finish under an equal split: fair_elapsed_s + steps/fair_rate."""
        return self.jobs.fair_elapsed_s + self.jobs.steps / self.jobs.fair_rate

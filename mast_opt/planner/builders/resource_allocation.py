"""Builder of resource allocation instances."""

from collections.abc import Mapping
from typing import Self

from mast_opt.planner.builders.base import Cell, Number, ProblemBuilder, Row, pairs
from mast_opt.problems.resource_allocation.problem import ResourceAllocation


class ResourceAllocationBuilder(ProblemBuilder[ResourceAllocation]):
    """A resource allocation instance, one resource, group, job and configuration after another.

    Example::

        from mast_opt import ResourceAllocationBuilder

        builder = ResourceAllocationBuilder("two jobs", policy="max-min")
        builder.add_resource("v100", amount=1).add_resource("k80", amount=1)
        builder.add_job("bert", fair_rate=1.25).add_job("resnet", fair_rate=2)
        builder.add_configuration("bert on v100", rates={"bert": 2}, uses={"v100": 1})
        builder.add_configuration("bert on k80", rates={"bert": 0.5}, uses={"k80": 1})
        builder.add_configuration("resnet on v100", rates={"resnet": 3}, uses={"v100": 1})
        builder.add_configuration("both on v100", rates={"bert": 1.5, "resnet": 2}, uses={"v100": 1})
        problem = builder.build()

    Args:
        name: of the instance.
        policy: what is maximised or minimised, as ``mast-opt solve`` names it.
        shares: ``fractional``, parts of the time, or ``whole``: each is 0 or 1.
        mechanism: ``partial-allocation`` on top of ``nash``; none unless given.
        inside: the policy inside of groups under ``hierarchical``: ``max-min`` unless given, or ``fifo``.
        provenance: where the data come from, in words.

    Raises:
        InstanceError: by each method, for a label or number that cannot be, or by the class, for a policy or rule that
            there is not; nothing of the call is then taken.
    """

    def __init__(
        self,
        name: str = "instance",
        *,
        policy: str,
        shares: str = "fractional",
        mechanism: str | None = None,
        inside: str | None = None,
        provenance: str = "",
    ) -> None:
        stated = {"policy": policy, "mechanism": mechanism, "inside": inside}
        objective = {setting: value for setting, value in stated.items() if value is not None}
        super().__init__(ResourceAllocation.kind, name, {"shares": shares}, objective, provenance)

    def add_resource(self, resource: str, *, amount: Number) -> Self:
        """Add what configurations use together: GPUs of a type, cores, memory.

        Args:
            amount: how much there is, in any unit.
        """
        return self._add([("resources", {"resource": resource, "amount": amount})])

    def add_group(self, group: str, *, weight: Number | None = None, min_rate: Number | None = None) -> Self:
        """Add a set of jobs, such as a tenant.

        Args:
            weight: its share under ``hierarchical``, above 0; 1 unless given.
            min_rate: floor of the sum of its jobs' rates; 0 unless given.
        """
        return self._add([("groups", {"group": group, "weight": weight, "min_rate": min_rate})])

    def add_job(self, job: str, **columns: Cell) -> Self:
        """Add a job that shares the resources.

        Args:
            columns: of the table ``jobs``:

                - ``weight``: importance, above 0; 1 unless given.
                - ``required``: must its shares add up to 1, and not just to at most 1?
                - ``min_rate``: floor of its rate; 0 unless given.
                - ``fair_rate``: its rate under an equal split, above 0, by which policies normalise; 1 unless given.
                - ``steps``: work that is left; ``makespan`` and ``finish-time-fairness`` need it.
                - ``elapsed_s``: time since it was submitted; 0 unless given.
                - ``fair_elapsed_s``: time that the work done so far would have taken under an equal split; 0 unless
                  given.
                - ``submitted_s``: when it was submitted; 0 unless given.
        """
        return self._add([("jobs", {**columns, "job": job})])

    def add_configuration(
        self,
        configuration: str,
        *,
        rates: Mapping[str, Number],
        uses: Mapping[str, Number] | None = None,
        cost: Number | None = None,
    ) -> Self:
        """Add a way to run one job, or several packed together.

        Args:
            rates: job → steps a second, or another unit of progress, that it makes there.
            uses: resource → how much of it the configuration holds while it runs.
            cost: of running it all the time; 0 unless given.
        """
        rows: list[Row] = [("configurations", {"configuration": configuration, "cost": cost})]
        for job, rate in pairs("rates", rates):
            rows.append(("members", {"configuration": configuration, "job": job, "rate": rate}))
        for resource, amount in pairs("uses", uses):
            rows.append(("uses", {"configuration": configuration, "resource": resource, "amount": amount}))
        return self._add(rows)

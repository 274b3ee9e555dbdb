"""Builder of task reassignment instances."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from mast_opt.planner.builders.base import ProblemBuilder, Row, names, pairs
from mast_opt.problems.task_reassignment.problem import TaskReassignment


class TaskReassignmentBuilder(ProblemBuilder[TaskReassignment]):
    """A task reassignment instance, one machine, service and process after another.

    Example::

        from mast_opt import TaskReassignmentBuilder

        builder = TaskReassignmentBuilder("two machines")
        builder.add_resource("cpu")
        builder.add_machine("m1", capacities={"cpu": 8}, safety={"cpu": 6})
        builder.add_machine("m2", capacities={"cpu": 8}, safety={"cpu": 6})
        builder.add_service("web")
        builder.add_process("p1", service="web", machine="m1", needs={"cpu": 3})
        builder.add_process("p2", service="web", machine="m2", needs={"cpu": 1})
        problem = builder.build()

    Args:
        name: of the instance.
        objective: as in ``[objective]`` of ``instance.toml``.
        provenance: where the data come from, in words.

    Raises:
        InstanceError: by each method, for a label or number that cannot be; nothing of the call is then taken.
    """

    def __init__(
        self, name: str = "instance", *, objective: Mapping[str, Any] | None = None, provenance: str = ""
    ) -> None:
        super().__init__(TaskReassignment.kind, name, {}, objective, provenance)

    def add_resource(self, resource: str, *, transient: bool | None = None, load_weight: int | None = None) -> Self:
        """Add what processes need and machines have: cores, memory, disk.

        Args:
            transient: is it held on the old machine too during a move? No unless given.
            load_weight: cost of a unit above the safety capacity; 1 unless given.
        """
        return self._add([("resources", {"resource": resource, "transient": transient, "load_weight": load_weight})])

    def add_machine(
        self,
        machine: str,
        *,
        capacities: Mapping[str, int],
        safety: Mapping[str, int] | None = None,
        location: str = "location",
        neighbourhood: str = "neighbourhood",
        move_group: str | None = None,
        balanced: bool | None = None,
    ) -> Self:
        """Add a machine that runs processes.

        Args:
            capacities: resource → hard limit; a resource without one is not there.
            safety: resource → use up to here costs nothing; the capacity unless given.
            location: a service spreads over several locations.
            neighbourhood: a service finds the ones that it depends on in its own.
            move_group: see ``add_move_cost``; moving costs nothing unless given.
            balanced: do balances count on the machine? Yes unless given.
        """
        cells = {"location": location, "neighbourhood": neighbourhood, "move_group": move_group, "balanced": balanced}
        rows: list[Row] = [("machines", {"machine": machine, **cells})]
        limits = dict(pairs("safety", safety))
        for resource, capacity in pairs("capacities", capacities):
            amounts = {"capacity": capacity, "safety": limits.pop(resource, None)}
            rows.append(("capacities", {"machine": machine, "resource": resource, **amounts}))
        rows += [("capacities", {"machine": machine, "resource": one, "safety": limits[one]}) for one in limits]
        return self._add(rows)

    def add_service(self, service: str, *, spread_min: int | None = None, needs: Iterable[str] = ()) -> Self:
        """Add a set of processes, no two of them on one machine.

        Args:
            spread_min: fewest locations that it runs in; 1 unless given.
            needs: services of which one process must be in the neighbourhood of each process of this one.
        """
        rows: list[Row] = [("services", {"service": service, "spread_min": spread_min})]
        rows += [("dependencies", {"service": service, "needs": needed}) for needed in names("needs", needs)]
        return self._add(rows)

    def add_process(
        self, process: str, *, service: str, machine: str, needs: Mapping[str, int], move_cost: int | None = None
    ) -> Self:
        """Add a running task.

        Args:
            machine: where it runs today.
            needs: resource → amount that it holds, in the resource's unit.
            move_cost: cost of moving it; 1 unless given.
        """
        cells = {"service": service, "machine": machine, "move_cost": move_cost}
        rows: list[Row] = [("processes", {"process": process, **cells})]
        for resource, amount in pairs("needs", needs):
            rows.append(("needs", {"process": process, "resource": resource, "amount": amount}))
        return self._add(rows)

    def add_balance(self, first: str, second: str, *, target: int, weight: int | None = None) -> Self:
        """Add free amounts that should stand in a proportion on every machine.

        Args:
            first, second: resources.
            target: free units of the second that are wanted for each free unit of the first.
            weight: cost of a unit that is missing on a machine; 1 unless given.
        """
        return self._add([("balances", {"first": first, "second": second, "target": target, "weight": weight})])

    def add_move_cost(self, src: str, dst: str, *, cost: int) -> Self:
        """Add the cost of moving a process from one group of machines to another; 0 where there is none."""
        return self._add([("move_costs", {"src": src, "dst": dst, "cost": cost})])

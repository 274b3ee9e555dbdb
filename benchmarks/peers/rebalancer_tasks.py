"""Meta's Rebalancer on task reassignment: processes are objects, machines are containers; it was made for that.

How to call it: rebalancer_common.py next to this file.

Hard: capacity per resource, for transient resources while moving too, and at most one process of a service on a
machine. Goals, with the instance's own weights: use above the safety capacity, and the cost of moved processes. Spread,
dependencies, balance goals, service and machine moves have no counterpart: instances with any of the first three are
refused, the last two are left for the verifier to count.

Machines are declared similar where capacities are of one size class, so that a sample is drawn from every class.
"""

from __future__ import annotations

import math
from collections import defaultdict

from rebalancer import ProblemSolver
from rebalancer_common import Json, Question, run

AFTER, DURING_AND_AFTER = 1, 2
ABSOLUTE = 1
"""Its numbers for when a capacity holds and how a limit counts; it refuses the names that its stubs list."""


def refuse_what_has_no_counterpart(instance: Json) -> None:
    if instance.get("dependencies") or instance.get("balances"):
        raise SystemExit("Rebalancer cannot express dependencies and balance goals; this adapter refuses them")
    if any(row["spread_min"] > 1 for row in instance["services"]):
        raise SystemExit("this adapter does not express spread over locations")


def question(instance: Json) -> Question:
    """The instance in Rebalancer's words."""
    refuse_what_has_no_counterpart(instance)
    machines = [row["machine"] for row in instance["machines"]]
    inside: dict[str, list[str]] = {machine: [] for machine in machines}
    for row in instance["processes"]:
        inside[row["machine"]].append(row["process"])
    solver = ProblemSolver(service_name="mast-opt", service_scope="task-reassignment")
    solver.set_object_name("process").set_container_name("machine").set_assignment(inside)
    solver.disable_scuba_logging().disable_solution_summary()
    weights = defaultdict(float, instance["instance"]["objective"]["weights"])
    _loads(solver, instance, weights["load"], len(machines))
    _conflicts(solver, instance)
    costs = {row["process"]: float(row["move_cost"]) for row in instance["processes"] if row["move_cost"]}
    if costs and weights["process_move"] > 0:
        solver.add_object_dimension("move cost", costs)
        goal: Json = {"name": "moves", "scope": "machine", "dimension": "move cost"}
        goal |= {"magicScaling": False, "doNotNormalize": True}
        solver.add_goal({"minimizeMovementSpec": goal}, weight=weights["process_move"])
    solver.add_similar_containers(_size_classes(instance))
    return Question(solver, "machine", machines, tables_of)


def tables_of(assignment: dict[str, str]) -> dict[str, list[Json]]:
    """The table of a plan."""
    return {"assignments": [{"process": process, "machine": machine} for process, machine in assignment.items()]}


def _loads(solver: ProblemSolver, instance: Json, weight: float, machines: int) -> None:
    """Capacity of each resource as a constraint, use above safety as a goal.

    Rebalancer divides an excess by the mean capacity of all containers.
    """
    for row in instance["resources"]:
        name = row["resource"]
        need = {each["process"]: each["amount"] for each in instance["needs"] if each["resource"] == name}
        rooms = [each for each in instance["capacities"] if each["resource"] == name]
        solver.add_object_dimension(name, need)
        solver.add_container_dimension(name, {each["machine"]: each["capacity"] for each in rooms})
        when = DURING_AND_AFTER if row["transient"] else AFTER
        limit = {"name": f"capacity {name}", "scope": "machine", "dimension": name, "definition": when}
        solver.add_constraint({"capacitySpec": limit})
        safe = f"safe {name}"
        solver.add_object_dimension(safe, need)
        solver.add_container_dimension(safe, {each["machine"]: max(each["safety"], 1) for each in rooms})
        mean = sum(max(each["safety"], 1) for each in rooms) / machines
        goal = {"name": f"above {safe}", "scope": "machine", "dimension": safe}
        solver.add_goal({"capacitySpec": goal}, weight=weight * row["load_weight"] * mean)


def _conflicts(solver: ProblemSolver, instance: Json) -> None:
    of_service: dict[str, list[str]] = defaultdict(list)
    for row in instance["processes"]:
        of_service[row["service"]].append(row["process"])
    several = {service: processes for service, processes in of_service.items() if len(processes) > 1}
    if several:
        solver.add_partition("service", several)
        one = {"type": ABSOLUTE, "globalLimit": 1}
        limit = {"name": "conflict", "scope": "machine", "partitionName": "service", "limit": one}
        solver.add_constraint({"groupCountSpec": limit})


def _size_classes(instance: Json) -> list[list[str]]:
    """Machines whose total capacity has the same power of two."""
    total: dict[str, float] = defaultdict(float)
    for row in instance["capacities"]:
        total[row["machine"]] += row["capacity"]
    classes: dict[int, list[str]] = defaultdict(list)
    for machine, capacity in total.items():
        classes[math.ceil(math.log2(max(capacity, 1)))].append(machine)
    return [classes[size] for size in sorted(classes)]


if __name__ == "__main__":
    run(__doc__, "task-reassignment", question)

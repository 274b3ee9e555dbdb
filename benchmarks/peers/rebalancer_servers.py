"""Meta's Rebalancer on server assignment: servers are objects, reservations are containers, and so is nobody.

How to call it: rebalancer_common.py next to this file.

Goals, with the weights of the instance's own terms: what a reservation lacks, with an embedded buffer after the loss of
each switchboard; what the loss of its worst switchboard takes; what stands above a spread limit; servers taken from a
reservation, and servers handed out. What is lacking after a loss is Rebalancer's own ``SRBufferCapacitySpec``, between
the reservation and a container that stays empty; it adds up over switchboards where our term takes the worst. A pool is
held to the largest loss of each reservation that shares it, not to that of all of them, which it cannot express.
Affinities are left for the verifier to count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from rebalancer import ProblemSolver
from rebalancer_common import Json, Question, run

NOBODY = "nobody"
MIN = 2
"""Its number for a bound from below."""
LIMIT_ABSOLUTE = 1


def question(instance: Json) -> Question:
    """The instance in Rebalancer's words."""
    servers, rows = instance["servers"], instance["reservations"]
    names = [row["reservation"] for row in rows]
    empty = {
        row["reservation"]: f"loss of {row['reservation']}" for row in rows if row["buffer"] in ("embedded", "pool")
    }
    inside: dict[str, list[str]] = {container: [] for container in (*names, NOBODY, *empty.values())}
    for row in servers:
        inside[row.get("reservation") or NOBODY].append(row["server"])
    solver = ProblemSolver(service_name="mast-opt", service_scope="server-assignment")
    solver.set_object_name("server").set_container_name("reservation").set_assignment(inside)
    solver.disable_scuba_logging().disable_solution_summary()
    for partition in ("type", "switchboard"):
        groups: dict[str, list[str]] = defaultdict(list)
        for row in servers:
            groups[row[partition]].append(row["server"])
        solver.add_partition(partition, groups)
    worth: dict[str, dict[str, float]] = defaultdict(dict)
    for row in instance["values"]:
        worth[row["reservation"]][row["type"]] = row["rru"]
    solver.add_dynamic_object_dimension_by_partition("rru", "reservation", "type", worth, 0.0)
    _closed(solver, servers, names, worth, list(empty.values()))
    weights = defaultdict(float, instance["instance"]["objective"]["weights"])
    _needs(solver, rows, empty, held_today(servers, worth), weights)
    _moves(solver, servers, names, list(inside), weights)
    solver.add_similar_containers([[*names, NOBODY]])
    return Question(solver, "reservation", [*names, NOBODY], lambda assignment: tables_of(assignment, set(names)))


def _closed(
    solver: ProblemSolver, servers: list[Json], names: list[str], worth: dict[str, dict[str, float]], empty: list[str]
) -> None:
    """Nobody gains a server that is worth nothing to it."""
    worthless = {
        kind: [name for name in names if not worth[name].get(kind)] for kind in {row["type"] for row in servers}
    }
    closed = [
        {
            "object": row["server"],
            "scopeItems": [name for name in worthless[row["type"]] if name != row.get("reservation")] + empty,
        }
        for row in servers
    ]
    never = [each for each in closed if each["scopeItems"]]
    if never:
        solver.add_constraint(
            {"avoidAssignmentsSpec": {"name": "worthless", "scope": "reservation", "assignments": never}}
        )


def held_today(servers: list[Json], worth: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Reservation → switchboard → what it has there today."""
    held: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in servers:
        if row.get("reservation"):
            held[row["reservation"]][row["switchboard"]] += worth[row["reservation"]].get(row["type"], 0.0)
    return held


def _needs(
    solver: ProblemSolver,
    rows: list[Json],
    empty: dict[str, str],
    held: dict[str, dict[str, float]],
    weights: dict[str, float],
) -> None:
    """What is lacking, never more than today; what the worst switchboard takes; what stands above a spread limit."""
    asked = {row["reservation"]: row["rru"] for row in rows}
    unit = max(sum(asked.values()), 1e-9)
    capacity = asked | dict.fromkeys([NOBODY, *empty.values()], 0.0)
    solver.add_container_dimension("rru", capacity)
    mean = sum(capacity.values()) / len(capacity)  # by which Rebalancer divides
    lacking = {"name": "lacking", "scope": "reservation", "dimension": "rru", "bound": MIN}
    solver.add_goal({"capacitySpec": lacking}, weight=weights["shortfall"] / unit * mean)
    sure = {name: min(asked[name], sum(held[name].values())) for name in asked}
    never = {"type": LIMIT_ABSOLUTE, "scopeItemLimits": sure}
    solver.add_constraint({"capacitySpec": {**lacking, "name": "no shorter", "limit": never, **only(sure)}})
    backed = {"scope": "reservation", "dimension": "rru", "partitionName": "switchboard"}
    pool = next((row["reservation"] for row in rows if row["buffer"] == "pool"), None)
    pairs = [{"scopeItem1": empty[name], "scopeItem2": name} for name in empty]
    least = {empty[name]: -asked[name] for name in empty}
    if pool is not None:
        shared = [row["reservation"] for row in rows if row["buffer"] == "shared"]
        pairs += [{"scopeItem1": name, "scopeItem2": pool} for name in shared]
        least |= dict.fromkeys(shared, -asked[pool])
    if pairs:
        loss = {**backed, "name": "after a loss", "scopeItemPairs": pairs, "lowerBoundMatchingErrors": least}
        solver.add_goal({"srBufferCapacitySpec": loss}, weight=weights["shortfall"] / unit)
        kept = {first: max(-least[first], 0.0) for first in least}
        for pair in pairs:
            lost, stands = held[pair["scopeItem1"]], held[pair["scopeItem2"]]
            left = sum(stands.values()) - max([lost[b] + stands[b] for b in {*lost, *stands}], default=0.0)
            kept[pair["scopeItem1"]] = min(kept[pair["scopeItem1"]], left)
        enough = {name: -amount for name, amount in kept.items()}
        same = {**loss, "name": "no shorter after a loss", "lowerBoundMatchingErrors": enough}
        solver.add_constraint({"srBufferCapacitySpec": same})
        worst = {**backed, "name": "buffer", **only(empty)}
        solver.add_goal({"sumOfMaxSpec": worst}, weight=weights["buffer"] / unit)
    limits = {
        row["reservation"]: row["spread_limit"] * row["rru"] for row in rows if row.get("spread_limit") is not None
    }
    if limits:
        most = {"type": LIMIT_ABSOLUTE, "scopeItemLimits": limits}
        dense = {**backed, "name": "spread", "limit": most, **only(limits)}
        solver.add_goal({"groupCountSpec": dense}, weight=weights["spread"] / unit)


def _moves(
    solver: ProblemSolver, servers: list[Json], names: list[str], containers: list[str], weights: dict[str, float]
) -> None:
    """Servers that are taken from somebody, and servers that are handed out."""
    price = {
        row["server"]: weights["moves_in_use" if row["in_use"] else "moves_idle"] if row.get("reservation") else 0.0
        for row in servers
    }
    solver.add_object_dimension("taken", price)
    moved: Json = {"name": "moves", "scope": "reservation", "dimension": "taken"}
    moved |= {"magicScaling": False, "doNotNormalize": True}
    solver.add_goal({"minimizeMovementSpec": moved}, weight=1 / len(servers))
    solver.add_object_dimension("one", {row["server"]: 1 for row in servers})
    solver.add_container_dimension("one", dict.fromkeys(containers, len(servers)))  # by whose mean Rebalancer divides
    used = {"name": "use", "scope": "reservation", "dimension": "one", **only(names)}
    none = {"type": LIMIT_ABSOLUTE, "globalLimit": 0}
    solver.add_goal({"capacitySpec": {**used, "limit": none}}, weight=weights["use"])


def only(containers: Iterable[str]) -> Json:
    """The part of a specification that leaves all other containers out."""
    return {"filter": {"itemsWhitelist": list(containers)}}


def tables_of(assignment: dict[str, str], names: set[str]) -> dict[str, list[Json]]:
    """The table of a plan: servers that somebody has."""
    rows = [{"server": server, "reservation": at} for server, at in assignment.items() if at in names]
    return {"assignments": rows}


if __name__ == "__main__":
    run(__doc__, "server-assignment", question)

"""Meta's Rebalancer on what it can express of data placement. Runs in an environment of its own (Python 3.12 or newer):

    python3.12 -m venv .venv-rebalancer && .venv-rebalancer/bin/pip install rebalancer==1.0.4
    mast-opt export my-instance my-instance.json
    .venv-rebalancer/bin/python -P benchmarks/peers/rebalancer.py my-instance.json my-plan.json --time-limit 60
    mast-opt verify my-instance my-plan.json

In a suite: a contestant with ``peer = "../peers/rebalancer.py"``; the verifier then has the last word.

Rebalancer gives each object exactly one container. So every dataset gets one replica and every workload one region and
its first acceptable GPU type. Where remote reads are forbidden, what is linked by reads has to move as one object;
where they have a price, dataset and workload are a pair that likes to be together, weighed by volume. Storage and cores
are hard capacities; GPU demand above supply, the highest demand over supply and bytes copied are goals with the
weights of the instance's own terms; a region that lacks the GPU type is no destination. Quotas, links and
ingress are refused, and nothing is split.

Settings: stratified single moves and sampled swaps (single moves and full swaps of its README stall), ``solveTime``
as the limit, the seed as ``randomSeed``. It tells no bound, and holds the interpreter while it solves.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rebalancer import ProblemSolver

Row = dict[str, Any]
SAMPLES = (10, 100)
"""Of single moves and of swaps: few while that helps, then many. Of seven settings the best on two instances."""
END = {1: "optimal", 2: "time limit", 3: "move limit", 5: "plateau", 8: "exception", 9: "unable to find more moves"}
"""Its numbers for why it stopped."""
UNIT = 1000
"""Base units to the unit of the files: dimensions are whole thousandths, which floats carry exactly."""


class Groups:
    """Union-find over names."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def find(self, name: str) -> str:
        while self._parent.setdefault(name, name) != name:
            self._parent[name] = name = self._parent[self._parent[name]]
        return name

    def join(self, one: str, other: str) -> None:
        self._parent[self.find(one)] = self.find(other)


class Placement:
    """A data placement as objects in containers."""

    def __init__(self, instance: dict[str, Any]) -> None:
        for table in ("links", "cpu_quota"):
            if instance.get(table):
                raise SystemExit(f"Rebalancer cannot express the table {table}; this adapter refuses it")
        if any(row.get("ingress_tb_per_day") is not None for row in instance["regions"]):
            raise SystemExit("Rebalancer cannot express ingress; this adapter refuses it")
        self.instance = instance
        header = instance["instance"]
        self.weights = defaultdict(float, header["objective"]["weights"])
        self.tier_weights = {int(p): float(w) for p, w in header["objective"].get("tier_weights", {}).items()}
        self.together = header.get("rules", {}).get("remote_reads", "price") == "forbid"
        self.regions = [row["region"] for row in instance["regions"]]
        self.supply = {
            (row["region"], row["gpu_type"]): row["gpus"] for row in instance["gpu_supply"] if row["gpus"] > 0
        }
        self.need: dict[str, tuple[str, float]] = {}
        for row in instance["gpu_demand"]:
            if row["gpus"] > 0:
                self.need.setdefault(row["workload"], (row["gpu_type"], row["gpus"]))
        self.tier = {row["workload"]: int(row["tier"]) for row in instance["workloads"]}
        self.objects = self._objects()

    def _objects(self) -> dict[str, list[tuple[str, str]]]:
        """Object → its members, ("dataset" or "workload", label)."""
        groups = Groups()
        members = [("dataset", row["dataset"]) for row in self.instance["datasets"]]
        members += [("workload", row["workload"]) for row in self.instance["workloads"]]
        if self.together:
            for row in self.instance["reads"]:
                groups.join(f"workload {row['workload']}", f"dataset {row['dataset']}")
        objects = defaultdict(list)
        for what, label in members:
            objects[groups.find(f"{what} {label}")].append((what, label))
        return dict(objects)

    def total(self, value: dict[tuple[str, str], float]) -> dict[str, float]:
        """Object → sum over its members."""
        return {name: sum(value.get(member, 0.0) for member in members) for name, members in self.objects.items()}

    def forbidden(self) -> dict[str, list[str]]:
        """Object → regions where it must not be."""
        out: dict[tuple[str, str], set[str]] = defaultdict(set)
        for table, what in (("rules", "dataset"), ("workload_rules", "workload")):
            for row in self.instance.get(table) or []:
                others = [region for region in self.regions if region != row["region"]]
                out[what, row[what]].update(others if row["rule"] == "pinned" else [row["region"]])
        for workload, (gpu_type, _) in self.need.items():
            out["workload", workload].update(r for r in self.regions if (r, gpu_type) not in self.supply)
        found = {name: sorted(set().union(*(out[m] for m in members))) for name, members in self.objects.items()}
        return {name: regions for name, regions in found.items() if regions}

    def start(self, forbidden: dict[str, list[str]]) -> dict[str, list[str]]:
        """Region → objects, as they are today where the instance tells it, elsewhere where they may be."""
        home: dict[tuple[str, str], str] = {}
        for row in self.instance.get("current_runs") or []:
            home.setdefault(("workload", row["workload"]), row["region"])
        for row in self.instance["replicas"]:
            home.setdefault(("dataset", row["dataset"]), row["region"])
        largest: dict[str, tuple[float, str]] = {}
        for row in self.instance["reads"]:
            at = home.get(("dataset", row["dataset"]))
            if at is not None:
                largest[row["workload"]] = max(largest.get(row["workload"], (-1.0, at)), (row["tb_per_day"], at))
        for workload, (_, at) in largest.items():
            home.setdefault(("workload", workload), at)
        inside: dict[str, list[str]] = {region: [] for region in self.regions}
        for position, (name, members) in enumerate(self.objects.items()):
            allowed = [region for region in self.regions if region not in forbidden.get(name, ())]
            if not allowed:
                raise SystemExit(f"{name} may be nowhere")
            wanted = [home[member] for member in members if member in home]
            first = next((region for region in wanted if region in allowed), allowed[position % len(allowed)])
            inside[first].append(name)
        return inside


def solver_of(p: Placement, time_limit_s: float, seed: int) -> ProblemSolver:
    """The placement in Rebalancer's words."""
    forbidden = p.forbidden()
    solver = ProblemSolver(service_name="mast-opt", service_scope="data-placement")
    solver.set_object_name("item").set_container_name("region").set_assignment(p.start(forbidden))
    solver.disable_scuba_logging().disable_solution_summary()
    size = {("dataset", row["dataset"]): row["size_tb"] for row in p.instance["datasets"]}
    output = {("workload", row["workload"]): row.get("output_tb") or 0.0 for row in p.instance["workloads"]}
    cores = {("workload", row["workload"]): row["cpu_cores"] for row in p.instance["workloads"]}
    room = {row["region"]: row["storage_tb"] * (1 - (row.get("headroom") or 0.0)) for row in p.instance["regions"]}
    _capacity(solver, "storage", p.total({**size, **output}), room)
    _capacity(solver, "cpu", p.total(cores), {row["region"]: row["cpu_cores"] for row in p.instance["regions"]})
    if forbidden:
        assignments = [{"object": name, "scopeItems": regions} for name, regions in forbidden.items()]
        solver.add_constraint(
            {"avoidAssignmentsSpec": {"name": "closed", "scope": "region", "assignments": assignments}}
        )
    _gpu_goals(solver, p)
    _copy_goal(solver, p, size)
    if not p.together:
        _locality_goal(solver, p)
    anywhere = {"moveToScopeItems": {"defaultScopeItems": {"scopeName": "region", "scopeItems": p.regions}}}
    moves = []
    for sample in SAMPLES:
        single = {"destinationsToExplore": anywhere, "stratifiedSampleSize": {"defaultSampleSize": sample}}
        moves += [{"singleRandomStratifiedMoveTypeSpec": single}]
        moves += [{"swapMoveTypeSpec": {"sampleSize": {"defaultSampleSize": sample}}}]
    solver.add_similar_containers([p.regions])
    settings = {"solveTime": max(1, int(time_limit_s)), "randomSeed": seed, "moveTypeList": moves}
    return solver.add_solver({"localSearchSolverSpec": settings})


def _capacity(solver: ProblemSolver, name: str, need: dict[str, float], room: dict[str, float]) -> None:
    solver.add_object_dimension(name, {item: round(value * UNIT * UNIT) for item, value in need.items()})
    solver.add_container_dimension(name, {region: round(value * UNIT * UNIT) for region, value in room.items()})
    solver.add_constraint({"capacitySpec": {"name": name, "scope": "region", "dimension": name}})


def _gpu_goals(solver: ProblemSolver, p: Placement) -> None:
    """For each type and cumulative tier: the sum of what exceeds supply, and the highest demand over supply.

    Rebalancer divides an excess by the mean capacity of all containers, and counts the largest utilisation as n = 0.
    """
    for kind in sorted({kind for _, kind in p.supply}):
        there = [region for region in p.regions if (region, kind) in p.supply]
        for tier in sorted(set(p.tier.values())):
            weight = p.tier_weights.get(tier, 1.0)
            name = f"gpu {kind} {tier}"
            users = {("workload", w): gpus for w, (k, gpus) in p.need.items() if k == kind and p.tier[w] <= tier}
            solver.add_object_dimension(name, p.total(users))
            # A capacity of 0 would divide by zero; no user of the type can be in such a region.
            solver.add_container_dimension(name, {region: p.supply.get((region, kind), 1.0) for region in p.regions})
            only = {"itemsWhitelist": there}
            goal = {"name": f"over {name}", "scope": "region", "dimension": name, "filter": only}
            solver.add_goal({"capacitySpec": goal}, weight=p.weights["overload"] * weight / len(p.regions))
            worst = {**goal, "name": f"peak {name}", "n": 0}
            solver.add_goal({"minimizeNthLargestUtilizationSpec": worst}, weight=p.weights["peak"] * weight)


def _copy_goal(solver: ProblemSolver, p: Placement, size: dict[tuple[str, str], float]) -> None:
    all_tb = sum(size.values())
    if p.weights["copy"] > 0 and all_tb > 0:
        solver.add_object_dimension("moved", {name: tb / all_tb for name, tb in p.total(size).items()})
        goal = {"name": "copy", "scope": "region", "dimension": "moved", "magicScaling": False, "doNotNormalize": True}
        solver.add_goal({"minimizeMovementSpec": goal}, weight=p.weights["copy"])


def _locality_goal(solver: ProblemSolver, p: Placement) -> None:
    """Pairs of a workload and a dataset; Rebalancer counts a pair that is apart twice, once for each of its ends."""
    volume = sum(row["tb_per_day"] for row in p.instance["reads"])
    pairs = [
        {
            "pair": {"object1": f"workload {row['workload']}", "object2": f"dataset {row['dataset']}"},
            "affinity": row["tb_per_day"] / volume,
        }
        for row in p.instance["reads"]
        if row["tb_per_day"] > 0
    ]
    if pairs and p.weights["remote"] > 0:
        goal = {"name": "remote", "scope": "region", "affinities": pairs}
        solver.add_goal({"pairAffinitiesSpec": goal}, weight=p.weights["remote"] / 2)


def plan_of(p: Placement, assignment: dict[str, str]) -> dict[str, Any]:
    """A plan as mast-opt reads it from JSON."""
    placements, runs = [], []
    for name, members in p.objects.items():
        for what, label in members:
            if what == "dataset":
                placements.append({"dataset": label, "region": assignment[name]})
            else:
                gpu_type = p.need[label][0] if label in p.need else None
                runs.append({"workload": label, "region": assignment[name], "gpu_type": gpu_type, "share": 1})
    head = {"format": "mast-opt/1", "kind": "data-placement"}
    return {"plan": head, "placements": placements, "runs": runs, "copies": [], "remote_reads": []}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instance", type=Path)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for the search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="it takes the processors that its process may use")
    chosen = parser.parse_args()
    instance = json.loads(chosen.instance.read_text(encoding="utf-8"))
    kind = instance["instance"]["kind"]
    if kind != "data-placement":
        raise SystemExit(f"this adapter takes data-placement, not {kind}")
    placement = Placement(instance)
    began = time.perf_counter()
    solution = solver_of(placement, chosen.time_limit, chosen.seed).solve()
    spent = time.perf_counter() - began
    chosen.plan.write_text(json.dumps(plan_of(placement, solution["assignment"])), encoding="utf-8")
    ends = [END.get(report.get("endReason"), "unknown end") for report in solution.get("solverSummaries", [])]
    told = {"versions": {"rebalancer": version("rebalancer")}, "message": ", ".join(ends), "solve_s": spent}
    print(json.dumps(told))


if __name__ == "__main__":
    main()

"""Meta's Rebalancer on what it can express of data placement. How to call it: rebalancer_common.py next to this file.

Every dataset gets one replica and every workload one region and its first acceptable GPU type. Where remote reads are
forbidden, what is linked by reads has to move as one object; where they have a price, dataset and workload are a pair
that likes to be together, weighed by volume. Storage and cores are hard capacities; GPU demand above supply, the
highest demand over supply and bytes copied are goals with the weights of the instance's own terms; a region that lacks
the GPU type is no destination. Quotas, links and ingress are refused, and nothing is split.
"""

from __future__ import annotations

from collections import defaultdict

from rebalancer import ProblemSolver
from rebalancer_common import Json, Question, run

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

    def __init__(self, instance: Json) -> None:
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
        """Region → objects, as they are today where the instance gives it, elsewhere where they may be."""
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

    def tables_of(self, assignment: dict[str, str]) -> dict[str, list[Json]]:
        """The tables of a plan."""
        placements, runs = [], []
        for name, members in self.objects.items():
            for what, label in members:
                if what == "dataset":
                    placements.append({"dataset": label, "region": assignment[name]})
                else:
                    gpu_type = self.need[label][0] if label in self.need else None
                    runs.append({"workload": label, "region": assignment[name], "gpu_type": gpu_type, "share": 1})
        return {"placements": placements, "runs": runs, "copies": [], "remote_reads": []}


def question(instance: Json) -> Question:
    """The placement in Rebalancer's words."""
    p = Placement(instance)
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
    solver.add_similar_containers([p.regions])
    return Question(solver, "region", p.regions, p.tables_of)


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


if __name__ == "__main__":
    run(__doc__, "data-placement", question)

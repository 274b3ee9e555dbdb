"""The experiment of FGD (Weng et al., ATC 2023): how much of a real fleet gets allocated, pod by pod.

    mast-opt bench fgd --data FOLDER
    python benchmarks/fgd.py --method fleet [--seeds 10] [POD_LIST | --servers 24]
    python -m benchmarks.fgd_page benchmarks/results/fgd.jsonl docs/benchmarks

FOLDER has openb_node_list_all_node.csv and openb_pod_list_*.csv(.gz) of alibaba/clusterdata (cluster-trace-gpu-v2023).
The pods of a list come in random order, then pods are drawn from it again until 130% of the GPUs have been asked for.
One pod at a time; one that fits nowhere is refused for good. Without a list, a small one is generated.

Methods: ``fleet``, the live fleet as it is by default, and ``fleet best-fit``; ``fleet, 2% moved`` and the like, where
pods that run are moved for one that fits nowhere, at most 2% of those admitted so far; ``fleet, scarcity 60%`` and the
like, with another weight of scarce room; any solver of job placement that takes jobs one after another, which gets all
pods as one queue. Prints one JSON object: percent of all GPUs that are
allocated when so many percent have been asked for (``at_80`` … ``at_130``), means over the seeds, next to the published
means at 130%; and with moves, their number in percent of the admitted pods, and an upper bound on what can be allocated
at 130% by a placement that admits the same pods and perhaps others.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

import mast_opt

Row = dict[str, str]
NODES = "openb_node_list_all_node.csv"
ASKED = 1.3
"""Of the GPUs, when the experiment ends."""
MARKS = tuple(range(80, 131, 5))
"""Percent of the GPUs that are asked for, where the allocation is noted."""
LIVE = {"fleet": "fragmentation", "fleet best-fit": "best-fit"}
MOVED = {f"fleet, {share:g}% moved": share for share in (0.0, 0.5, 1.0, 2.0, 5.0)}
"""Method → most pods that are moved, in percent of those admitted so far."""
SCARCE = {f"fleet, scarcity {percent}%": percent for percent in (0, 20, 60)}
"""Method → ``FillSampling.scarcity_percent``."""
PAUSE = 30
"""Pods that are admitted before moves for a pod of the same size are tried again, when there were none."""
SIZE = ("num_gpu", "gpu_milli", "cpu_milli", "memory_mib", "gpu_spec")
GPU = 1000
"""Milli-GPUs of a GPU."""
UNMET = 10.0
"""Price of a required milli-GPU that no pattern of ``bound`` has yet, as opposed to 1 for one that is allocated."""
ROUND_OFF = 1e-6
PUBLISHED = Path(__file__).parents[1] / "mast_opt/planner/bench/suite_files/fgd-published.csv"


def rows(path: Path) -> list[Row]:
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    return list(csv.DictReader(text.decode().splitlines()))


def generated(servers: int) -> tuple[list[Row], list[Row]]:
    """Nodes and pods in the form of the published ones, drawn: three in four nodes have 8 GPUs of one of two types."""
    rng = random.Random(servers)
    nodes = [
        {"sn": f"node-{n}", "cpu_milli": "96000", "memory_mib": "524288", "gpu": gpus, "model": model}
        for n in range(servers)
        for gpus, model in [("8", "G2") if rng.random() < 0.5 else ("8", "T4") if rng.random() < 0.5 else ("0", "")]
    ]
    sizes = [("0", "0"), *(("1", str(milli)) for milli in (200, 500, 810)), ("1", "1000"), ("2", "1000"), ("8", "1000")]
    pods = [
        {"cpu_milli": str(rng.choice((4000, 8000, 24_000))), "memory_mib": "16384", "num_gpu": gpus, "gpu_milli": milli}
        | {"gpu_spec": rng.choice(("", "", "T4", "G2|T4"))}
        for gpus, milli in rng.choices(sizes, (1, 2, 2, 1, 4, 2, 1), k=3 * servers)
    ]
    return nodes, pods


def asked(pod: Row) -> int:
    """Milli-GPUs of a pod; only one of a single GPU may take a fraction."""
    return int(pod["num_gpu"]) * (int(pod["gpu_milli"]) if int(pod["num_gpu"]) == 1 else 1000)


def models(nodes: list[Row]) -> list[str]:
    """GPU types."""
    return sorted({node["model"] for node in nodes if node["model"]})


def wanted(pod: Row, types: list[str]) -> list[str]:
    """GPU types that a pod insists on; none if it takes any."""
    return [model for model in (pod.get("gpu_spec") or "").split("|") if model in types] if asked(pod) else []


def arrivals(pods: list[Row], capacity: int, seed: int) -> list[Row]:
    rng = random.Random(seed)
    order = pods[:]
    rng.shuffle(order)
    total = sum(map(asked, order))
    while True:
        pod = rng.choice(pods)
        total += asked(pod)
        if total > ASKED * capacity:
            return order
        order.append(pod)


def admitted_live(nodes: list[Row], queue: list[Row], method: str) -> Iterator[tuple[bool, int]]:
    """Whether the live fleet takes each pod, when it comes, and how many others are moved for it."""
    usual = mast_opt.FillSampling()
    sampling = usual._replace(scarcity_percent=SCARCE.get(method, usual.scarcity_percent))
    placement, share = LIVE.get(method, "fragmentation"), MOVED.get(method, 0.0)
    fleet = mast_opt.Fleet(map(server_of, nodes), tiers=(0,), placement=placement, sampling=sampling)
    types, taken, moved = models(nodes), 0, 0
    failed: dict[tuple[str, ...], int] = {}
    for number, pod in enumerate(queue):
        job, count = job_of(f"pod-{number}", pod, types), 0
        admitted = isinstance(fleet.place_and_commit(job), mast_opt.Bid)
        left, size = int(share / 100 * taken) - moved, tuple(str(pod.get(key)) for key in SIZE)
        if not admitted and asked(pod) and left > 0 and taken >= failed.get(size, 0):
            plan = fleet.defragment(mast_opt.MoveBudget(moves=left), [job])
            if plan.starts:
                fleet.apply(plan)
                admitted, count = True, len(plan.moves)
            else:
                failed[size] = taken + PAUSE
        taken, moved = taken + admitted, moved + count
        yield admitted, count


def server_of(row: Row) -> mast_opt.Server:
    return mast_opt.Server(
        row["sn"],
        "region",
        "cluster",
        "rack",
        row["model"] or "CPU",
        gpus=int(row["gpu"]),
        cpu_mcores=int(row["cpu_milli"]),
        memory_mib=int(row["memory_mib"]),
    )


def job_of(name: str, pod: Row, types: list[str]) -> mast_opt.Job:
    return mast_opt.Job(
        name,
        0,
        mgpu=asked(pod),
        cpu_mcores=int(pod["cpu_milli"]),
        memory_mib=int(pod["memory_mib"]),
        gpu_types={model: asked(pod) for model in wanted(pod, types)} or None,
        preemptible=True,
    )


def admitted(nodes: list[Row], queue: list[Row], solver: str, seed: int) -> list[bool]:
    """Whether a solver admits each pod of the queue."""
    solution = mast_opt.solve(problem_of(nodes, queue), solver, time_limit_s=3600, seed=seed)
    if solution.plan is None:
        raise RuntimeError(f"{solver} found no plan: {solution.message}")
    placed = set(solution.plan.job.tolist())
    return [number in placed for number in range(len(queue))]


def problem_of(nodes: list[Row], queue: list[Row]) -> mast_opt.JobPlacement:
    """One cluster, all pods of one tier and the same value, in the order of the queue."""
    types = models(nodes)
    servers = [
        {
            "server": node["sn"],
            "cluster": "cluster",
            "rack": "rack",
            "gpu_type": node["model"] or None,
            "gpus": int(node["gpu"]),
            "cpu_cores": int(node["cpu_milli"]) / 1000,
            "memory_gb": int(node["memory_mib"]) / 1024,
        }
        for node in nodes
    ]
    jobs = [
        {
            "job": f"pod-{number}",
            "tier": 0,
            "tasks": 1,
            "value": 1,
            "submitted_s": number,
            "gpus": asked(pod) / 1000,
            "cpu_cores": int(pod["cpu_milli"]) / 1000,
            "memory_gb": int(pod["memory_mib"]) / 1024,
        }
        for number, pod in enumerate(queue)
    ]
    accepted = [
        {"job": f"pod-{number}", "gpu_type": kind} for number, pod in enumerate(queue) for kind in wanted(pod, types)
    ]
    tables = {
        "regions": [{"region": "region"}],
        "clusters": [{"cluster": "cluster", "region": "region"}],
        "servers": servers,
        "jobs": jobs,
        "job_gpu_types": accepted,
        **{name: [] for name in ("job_datasets", "replicas", "running", "allocations")},
    }
    return mast_opt.from_tables("job-placement", tables, name="fgd")


@dataclass(frozen=True)
class Replay:
    """What became of a queue."""

    capacity: int
    """Milli-GPUs of the fleet."""
    size: np.ndarray
    """Milli-GPUs of each pod."""
    taken: np.ndarray
    """Whether it was admitted."""
    moved: int
    """Moves of pods."""

    def curve(self) -> list[float]:
        """Percent of the GPUs that are allocated at each of ``MARKS``."""
        come, used = np.cumsum(self.size), np.cumsum(self.size * self.taken)
        at = np.searchsorted(come, np.array(MARKS) / 100 * self.capacity, side="right") - 1
        return [100 * float(value) / self.capacity for value in used[at]]

    def bound(self) -> float:
        """The most percent of the GPUs that could be allocated with all admitted pods, and any of the others."""
        return 100 * bound(self.size.tolist(), self.taken.tolist(), self.capacity // 1000) / self.capacity


def replay(nodes: list[Row], pods: list[Row], method: str, seed: int) -> Replay:
    """The experiment with one method and one order of the pods."""
    capacity = 1000 * sum(int(node["gpu"]) for node in nodes)
    queue = arrivals(pods, capacity, seed)
    if method in (*LIVE, *MOVED, *SCARCE):
        answers = list(admitted_live(nodes, queue, method))
    else:
        answers = [(taken, 0) for taken in admitted(nodes, queue, method, seed)]
    taken = np.array([admitted for admitted, _ in answers])
    return Replay(capacity, np.array([asked(pod) for pod in queue]), taken, sum(moved for _, moved in answers))


def bound(sizes: Iterable[int], required: Iterable[bool], gpus: int) -> float:
    """The most milli-GPUs that are allocated if all required pods are placed, and any of the others.

    A linear relaxation: every GPU holds a whole GPU's worth of one pod, or a set of parts that fits (a pattern).
    Servers, types, cores and memory do not count. It is the cutting-stock program of Gilmore and Gomory (1961), with
    columns by demand.

    Args:
        sizes: milli-GPUs of each pod.
        required: whether it must be placed.
    """
    most, least = Counter[int](), Counter[int]()
    for size, must in zip(sizes, required):
        part, count = (size, 1) if size < GPU else (GPU, size // GPU)
        if size:
            most[part] += count
            least[part] += count * must
    parts = np.array(sorted(most))
    limits = np.array([gpus, *(most[part] for part in parts), *(-least[part] for part in parts)], np.float64)
    unmet = np.vstack([np.zeros((1 + len(parts), len(parts))), -np.eye(len(parts))])
    patterns = np.diag(GPU // parts)
    while True:
        rows = np.vstack([np.ones((1, patterns.shape[1])), patterns, -patterns])
        cost = np.concatenate([-(parts @ patterns).astype(np.float64), UNMET * parts])
        result = linprog(cost, np.hstack([rows, unmet]), limits, method="highs")
        if not result.success:
            raise RuntimeError(f"the relaxation ended with: {result.message}")
        price = -result.ineqlin.marginals
        worth = parts - price[1 : 1 + len(parts)] + price[1 + len(parts) :]
        value, pattern = _best_pattern(parts, worth)
        if value <= price[0] + ROUND_OFF:
            if result.x[patterns.shape[1] :].sum() > ROUND_OFF:
                raise ValueError("the GPUs do not hold all required pods")
            return float(-result.fun)
        patterns = np.hstack([patterns, pattern[:, None]])


def _best_pattern(parts: np.ndarray, worth: np.ndarray) -> tuple[float, np.ndarray]:
    """The parts of a GPU that are worth most together, by dynamic programming over milli-GPUs."""
    unit = int(np.gcd.reduce([GPU, *parts.tolist()]))
    sizes = parts // unit
    best, last = np.zeros(GPU // unit + 1), np.full(GPU // unit + 1, -1)
    for room in range(1, len(best)):
        best[room] = best[room - 1]
        for at in np.flatnonzero(sizes <= room).tolist():
            if best[room - sizes[at]] + worth[at] > best[room] + ROUND_OFF:
                best[room], last[room] = best[room - sizes[at]] + worth[at], at
    pattern, room = np.zeros(len(parts), np.int64), len(best) - 1
    while room > 0:
        at = int(last[room])
        if at < 0:
            room -= 1
        else:
            pattern[at] += 1
            room -= int(sizes[at])
    return float(best[-1]), pattern


def published(pod_list: str) -> dict[str, float]:
    """Policy → mean percent of the GPUs that are allocated at 130%, by the paper's own results."""
    found = [row for row in rows(PUBLISHED) if row["pod_list"] == pod_list]
    return {policy: float(value) for row in found for policy, value in row.items() if policy != "pod_list"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pod_list", type=Path, nargs="?", help=f"a pod list; {NODES} is next to it")
    parser.add_argument("--method", required=True)
    parser.add_argument("--seed", type=int, default=42, help="the first")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--servers", type=int, default=24, help="of the generated fleet")
    given = parser.parse_args()
    if given.pod_list is None:
        (nodes, pods), name = generated(given.servers), "generated"
    else:
        nodes, pods = rows(given.pod_list.parent / NODES), rows(given.pod_list)
        name = given.pod_list.name.partition(".")[0].removeprefix("openb_pod_list_")
    runs = [replay(nodes, pods, given.method, given.seed + n) for n in range(given.seeds)]
    curves = [run.curve() for run in runs]
    figures = {f"at_{mark}": round(statistics.mean(values), 3) for mark, values in zip(MARKS, zip(*curves))}
    figures["least_at_130"] = round(min(values[-1] for values in curves), 3)
    if given.method in MOVED:
        figures["moved_percent"] = round(statistics.mean(100 * run.moved / run.taken.sum() for run in runs), 3)
        figures["bound_at_130"] = round(statistics.mean(run.bound() for run in runs), 3)
    known = published(name)
    figures |= {
        key: known[policy] for key, policy in (("published", given.method), ("published_fgd", "fgd")) if policy in known
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

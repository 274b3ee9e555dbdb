"""The experiment of FGD (Weng et al., ATC 2023): how much of a real fleet gets allocated, pod by pod.

    mast-opt bench fgd --data FOLDER
    python benchmarks/fgd.py --method fleet [--seeds 10] [POD_LIST | --servers 24]
    python -m benchmarks.fgd_page benchmarks/results/fgd.jsonl docs/benchmarks

FOLDER has openb_node_list_all_node.csv and openb_pod_list_*.csv(.gz) of alibaba/clusterdata (cluster-trace-gpu-v2023).
The pods of a list come in random order, then pods are drawn from it again until 130% of the GPUs have been asked for.
One pod at a time; one that fits nowhere is refused for good. Without a list, a small one is generated.

Methods: ``fleet``, the live fleet as it is by default, and ``fleet best-fit``; any solver of job placement that takes
jobs one after another, which gets all pods as one queue. Prints one JSON object: percent of all GPUs that are
allocated when so many percent have been asked for (``at_80`` … ``at_130``), means over the seeds, next to the published
means at 130%.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import mast_opt

Row = dict[str, str]
NODES = "openb_node_list_all_node.csv"
ASKED = 1.3
"""Of the GPUs, when the experiment ends."""
MARKS = tuple(range(80, 131, 5))
"""Percent of the GPUs that are asked for, where the allocation is noted."""
LIVE = {"fleet": "fragmentation", "fleet best-fit": "best-fit"}
PUBLISHED = Path(__file__).parent / "suites/fgd-published.csv"


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


def admitted_live(nodes: list[Row], queue: list[Row], placement: str) -> Iterator[bool]:
    """Whether the live fleet takes each pod, when it comes."""
    fleet = mast_opt.Fleet(map(server_of, nodes), tiers=(0,), placement=placement)
    types = models(nodes)
    for number, pod in enumerate(queue):
        yield isinstance(fleet.place_and_commit(job_of(f"pod-{number}", pod, types)), mast_opt.Bid)


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
    build, types = mast_opt.JobPlacementBuilder("fgd"), models(nodes)
    build.add_cluster("cluster", region="region")
    for node in nodes:
        cores, gib = int(node["cpu_milli"]) / 1000, int(node["memory_mib"]) / 1024
        gpus, gpu_type = int(node["gpu"]), node["model"] or None
        build.add_server(node["sn"], "cluster", gpus=gpus, gpu_type=gpu_type, cpu_cores=cores, memory_gb=gib)
    for number, pod in enumerate(queue):
        build.add_job(
            f"pod-{number}",
            tier=0,
            tasks=1,
            value=1,
            submitted_s=number,
            gpus=asked(pod) / 1000,
            gpu_types=wanted(pod, types),
            cpu_cores=int(pod["cpu_milli"]) / 1000,
            memory_gb=int(pod["memory_mib"]) / 1024,
        )
    return build.build()


def curve(nodes: list[Row], pods: list[Row], method: str, seed: int) -> list[float]:
    """Percent of the GPUs that are allocated at each of ``MARKS``."""
    capacity = 1000 * sum(int(node["gpu"]) for node in nodes)
    queue = arrivals(pods, capacity, seed)
    taken = admitted_live(nodes, queue, LIVE[method]) if method in LIVE else admitted(nodes, queue, method, seed)
    size = np.array([asked(pod) for pod in queue])
    come, used = np.cumsum(size), np.cumsum(size * np.fromiter(taken, np.bool_, len(queue)))
    at = np.searchsorted(come, np.array(MARKS) / 100 * capacity, side="right") - 1
    return [100 * float(value) / capacity for value in used[at]]


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
    curves = [curve(nodes, pods, given.method, given.seed + n) for n in range(given.seeds)]
    figures = {f"at_{mark}": round(statistics.mean(values), 3) for mark, values in zip(MARKS, zip(*curves))}
    figures["least_at_130"] = round(min(values[-1] for values in curves), 3)
    known = published(name)
    figures |= {
        key: known[policy] for key, policy in (("published", given.method), ("published_fgd", "fgd")) if policy in known
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

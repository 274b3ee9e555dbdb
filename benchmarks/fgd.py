"""The experiment of FGD (Weng et al., ATC 2023) on the live fleet: how much of a real fleet gets allocated.

    python benchmarks/fgd.py FOLDER --published allocation.csv [--seeds 10] [--lists default multigpu20] [--csv OUT]

FOLDER has openb_node_list_all_node.csv and openb_pod_list_*.csv(.gz) of alibaba/clusterdata
(cluster-trace-gpu-v2023). The pods of a list come in random order, then pods are drawn from it again until 130% of the
GPUs have been asked for. One pod at a time; one that fits nowhere is refused for good. Prints the percentage of all
GPUs that is allocated in the end, the mean over the seeds, for each placement of ``Fleet``, next to the published means
of other policies. ``--csv`` keeps the curves.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import random
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import mast_opt

Row = dict[str, str]
FIRST_SEED = 42
ASKED = 1.3
"""Of the GPUs, when the experiment ends."""
PLACEMENTS = ("fragmentation", "best-fit")


def rows(path: Path) -> list[Row]:
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    return list(csv.DictReader(text.decode().splitlines()))


def asked(pod: Row) -> int:
    """Milli-GPUs of a pod; only one of a single GPU may take a fraction."""
    return int(pod["num_gpu"]) * (int(pod["gpu_milli"]) if int(pod["num_gpu"]) == 1 else 1000)


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


def job_of(name: str, pod: Row, models: set[str]) -> mast_opt.Job:
    wanted = [model for model in (pod.get("gpu_spec") or "").split("|") if model in models]
    return mast_opt.Job(
        name,
        0,
        mgpu=asked(pod),
        cpu_mcores=int(pod["cpu_milli"]),
        memory_mib=int(pod["memory_mib"]),
        gpu_types={model: asked(pod) for model in wanted} if wanted and asked(pod) else None,
    )


def replay(nodes: list[Row], pods: list[Row], seed: int, placement: str) -> Iterator[tuple[float, float]]:
    """Shares of the GPUs that are asked for and allocated, after each arrival."""
    fleet = mast_opt.Fleet(map(server_of, nodes), tiers=(0,), placement=placement)
    models = {node["model"] for node in nodes if node["model"]}
    capacity, come, used = fleet.gpus()[1], 0, 0
    for number, pod in enumerate(arrivals(pods, capacity, seed)):
        come += asked(pod)
        if isinstance(fleet.place_and_commit(job_of(f"pod-{number}", pod, models)), mast_opt.Bid):
            used += asked(pod)
        yield come / capacity, used / capacity


def published_means(path: Path) -> dict[str, dict[str, float]]:
    """List → policy → percent of the GPUs that are allocated at 130%."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows(path):
        found[row["pod_list"]][row["policy"].partition("-")[2]].append(float(row["allocated_percent_at_130"]))
    return {name: {policy: statistics.mean(some) for policy, some in of.items()} for name, of in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--published", type=Path, help="table of published allocations: pod_list, policy, …")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--lists", nargs="*", default=[], help="ends of names of pod lists; all if none is given")
    parser.add_argument("--placements", nargs="*", default=PLACEMENTS)
    parser.add_argument("--csv", type=Path, help="file for the curves: list, placement, seed, asked, allocated")
    given = parser.parse_args()
    nodes = rows(given.folder / "openb_node_list_all_node.csv")
    published = published_means(given.published) if given.published else {}
    curves = []
    for path in sorted(given.folder.glob("openb_pod_list_*.csv*")):
        name = path.name.partition(".")[0]
        if given.lists and name.removeprefix("openb_pod_list_") not in given.lists:
            continue
        pods, means = rows(path), dict(published.get(name, {}))
        for placement in given.placements:
            ends = []
            for seed in range(FIRST_SEED, FIRST_SEED + given.seeds):
                curve = list(replay(nodes, pods, seed, placement))
                ends.append(100 * curve[-1][1])
                curves += [(name, placement, seed, *point) for point in curve[:: len(curve) // 100]]
            means[f"Fleet {placement}"] = statistics.mean(ends)
        print(name, *(f"{policy} {mean:.2f}" for policy, mean in means.items()), sep="  ", flush=True)
    if given.csv:
        with given.csv.open("w", newline="") as file:
            csv.writer(file).writerows([("list", "placement", "seed", "asked", "allocated"), *curves])


if __name__ == "__main__":
    main()

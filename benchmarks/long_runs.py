"""Who will run long, learned from a log of pods, and whether it helps to keep long and short pods on different servers.

    python -m benchmarks.long_runs FOLDER/openb_pod_list_default.csv

Ridge regression of the logarithm of a pod's duration on its sizes and class of service, learned from the first half of
the log and used on the second. Pods of the second half then arrive at random, run as long as they did in the log, and
leave; one that fits nowhere is refused. A pod goes to the server with the least free GPUs (best fit); ``apart``
prefers servers without pods of the other class, long or short, by the model or as if durations were known.
"""

from __future__ import annotations

import heapq
import json
import statistics
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.fgd import GPU, NODES, Row, asked, rows

Floats = NDArray[np.float64]
RIDGE = 1.0
"""Weight of the squared coefficients, of standardised features."""
STEP = 8
"""The fleet has every eighth server."""
LOAD = 1.3
"""GPU time that is asked for, as a share of what the fleet has."""
LONGEST = 90
"""Percentile at which durations are cut off: others run for weeks, and the fleet would not fill."""
ARRIVALS, SEEDS = 8000, 3
RULES = ("best fit", "apart, learned", "apart, known")
FAR = 1e6
"""Milli-GPUs that a server counts as more if pods of the other class run there."""


def durations_s(pods: list[Row]) -> Floats:
    lived = np.array([int(pod["deletion_time"]) - int(pod["creation_time"]) for pod in pods], np.float64)
    kept: Floats = np.clip(lived, 1, np.percentile(lived, LONGEST))
    return kept


def features(pods: list[Row], classes: list[str]) -> Floats:
    """[pods, F] sizes, their logarithms, whether a GPU is shared, and the class of service."""
    sizes = np.array([[asked(pod), int(pod["cpu_milli"]), int(pod["memory_mib"])] for pod in pods], np.float64)
    flags = [[0 < asked(pod) < GPU, *(pod["qos"] == name for name in classes)] for pod in pods]
    return np.hstack([sizes, np.log1p(sizes), np.array(flags, np.float64)])


def ridge(known: Floats, answers: Floats, new: Floats) -> Floats:
    """Predictions for the new rows."""
    centre, spread = known.mean(axis=0), np.maximum(known.std(axis=0), 1e-9)
    scaled = (known - centre) / spread
    weights = np.linalg.solve(
        scaled.T @ scaled + RIDGE * np.eye(scaled.shape[1]), scaled.T @ (answers - answers.mean())
    )
    predicted: Floats = (new - centre) / spread @ weights + answers.mean()
    return predicted


def rank_quality(predicted: Floats, long: NDArray[np.bool_]) -> float:
    """Chance that a long pod is ranked above a short one; ties count half."""
    ours, others = predicted[long][:, None], predicted[~long][None, :]
    return float(((ours > others) + 0.5 * (ours == others)).mean())


def admitted_share(
    nodes: list[Row], pods: list[Row], lived_s: Floats, long: NDArray[np.bool_] | None, seed: int
) -> float:
    """Percent of the GPU time asked for that is admitted; ``long`` [pods] is each pod's class, None for best fit."""
    rng = np.random.default_rng(seed)
    size = np.array([[int(node["cpu_milli"]), int(node["memory_mib"])] for node in nodes])
    device = np.array([[GPU * (d < int(node["gpu"])) for d in range(8)] for node in nodes])
    running = np.zeros((2, len(nodes)), np.int64)
    work = np.array([asked(pod) for pod in pods]) * lived_s
    pause_s = work.mean() / (LOAD * device.sum())
    ends: list[tuple[float, int, int, int, NDArray[np.int64]]] = []
    now, got, wanted = 0.0, 0.0, 0.0
    for n in range(ARRIVALS):
        now += rng.exponential(pause_s)
        at = int(rng.integers(len(pods)))
        while ends and ends[0][0] <= now:
            _, _, s, which, taken = heapq.heappop(ends)
            device[s] += taken
            size[s] += [int(pods[which]["cpu_milli"]), int(pods[which]["memory_mib"])]
            running[int(long[which]) if long is not None else 0, s] -= 1
        pod, ask, settled = pods[at], asked(pods[at]), n > ARRIVALS // 2
        each, gpus = (ask, 1) if 0 < ask < GPU else (GPU, ask // GPU)
        needs = [int(pod["cpu_milli"]), int(pod["memory_mib"])]
        fits = (size >= needs).all(axis=1) & ((device >= each).sum(axis=1) >= gpus)
        wanted += work[at] * settled
        if not fits.any():
            continue
        left = device.sum(axis=1).astype(np.float64)
        if long is not None:
            left += FAR * (running[1 - int(long[at])] > 0)
        s = int(np.argmin(np.where(fits, left, np.inf)))
        chosen = np.argsort(np.where(device[s] >= each, device[s], 2 * GPU), kind="stable")[:gpus]
        taken = np.zeros(8, np.int64)
        taken[chosen] = each
        device[s] -= taken
        size[s] -= needs
        running[int(long[at]) if long is not None else 0, s] += 1
        got += work[at] * settled
        heapq.heappush(ends, (now + float(lived_s[at]), n, s, at, taken))
    return 100 * got / wanted


def main(path: Path) -> None:
    pods = sorted(rows(path), key=lambda pod: int(pod["creation_time"]))
    nodes, classes = rows(path.parent / NODES)[::STEP], sorted({pod["qos"] for pod in pods})
    lived_s, half = durations_s(pods), len(pods) // 2
    seen = features(pods, classes)
    predicted = ridge(seen[:half], np.log(lived_s[:half]), seen[half:])
    actual = np.log(lived_s[half:])
    explained = 1 - ((actual - predicted) ** 2).sum() / ((actual - actual.mean()) ** 2).sum()
    border = np.log(np.percentile(lived_s[:half], 75))
    long = actual > border
    guessed = predicted > np.quantile(predicted, 1 - long.mean())
    figures = {"explained": round(float(explained), 3), "rank_quality": round(rank_quality(predicted, long), 3)}
    for rule, classed in zip(RULES, (None, guessed, long)):
        shares = [admitted_share(nodes, pods[half:], lived_s[half:], classed, seed) for seed in range(1, SEEDS + 1)]
        figures |= {rule: round(statistics.fmean(shares), 2), f"{rule}, deviation": round(statistics.stdev(shares), 2)}
    print(json.dumps(figures))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

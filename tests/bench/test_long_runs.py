"""Who will run long, from a log of pods."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.fgd import Row
from benchmarks.long_runs import admitted_share, durations_s, features, rank_quality, ridge

NODE = {"sn": "a", "cpu_milli": "64000", "memory_mib": "1024", "gpu": "2", "model": "T4"}


def pod(gpus: int, qos: str, lived_s: int) -> Row:
    sizes = {"num_gpu": str(gpus), "gpu_milli": "1000", "cpu_milli": "1000", "memory_mib": "1"}
    return {**sizes, "qos": qos, "creation_time": "10", "deletion_time": str(10 + lived_s)}


def test_ridge_finds_who_runs_long() -> None:
    pods = [pod(1 + n % 2, "LS" if n % 3 else "BE", 1000 if n % 3 else 10) for n in range(60)]
    logs, seen = np.log(durations_s(pods)), features(pods, ["BE", "LS"])
    predicted = ridge(seen[:30], logs[:30], seen[30:])
    assert rank_quality(predicted, logs[30:] > np.log(100)) == 1
    assert predicted == pytest.approx(logs[30:], abs=1)


def test_ties_are_worth_a_half() -> None:
    assert rank_quality(np.array([1.0, 1.0]), np.array([True, False])) == 0.5


def test_pods_leave() -> None:
    pods = [pod(1, "LS", 100)] * 4
    share = admitted_share([NODE], pods, np.full(4, 100.0), None, 1)
    assert 50 < share < 90
    assert share == admitted_share([NODE], pods, np.full(4, 100.0), np.full(4, True), 1)

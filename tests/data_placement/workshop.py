"""A small instance in which every rule of data placement has something to say, and a plan that keeps them all.

    region  usable  cores  h100  a100      dataset  size  today  rules               readers
    a       20 TB   100    8     –         logs     4 TB  a      forbidden in c      train, etl
    b       18 TB   100    8     16        images   6 TB  b      pinned in b         train
    c       20 TB   100    –     8         video    9 TB  –      –                   view

``train`` runs on h100 in b next to copies of its data; ``etl`` needs no GPU and is split, so that its part in c
reads logs from a; ``view`` is pinned to c, where video is uploaded.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from mast_opt.problems.data_placement import DataPlacement, Links, Plan
from mast_opt.problems.data_placement.entities import (
    CpuQuotas,
    CurrentRuns,
    Datasets,
    Options,
    Reads,
    Regions,
    Workloads,
)
from mast_opt.problems.data_placement.generate.blank import WEIGHTS
from mast_opt.problems.kind.header import Objective

TB = 1_000_000
A, B, C = 0, 1, 2
LOGS, IMAGES, VIDEO = 0, 1, 2
TRAIN, ETL, VIEW = 0, 1, 2
H100, A100, NO_GPU = 0, 1, 2


def ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def grid(*cells: tuple[int, int], shape: tuple[int, int] = (3, 3)) -> np.ndarray:
    true = np.zeros(shape, np.bool_)
    for cell in cells:
        true[cell] = True
    return true


LINKS = Links(
    source=ints(A, A, B, B),
    target=ints(B, C, A, C),
    capacity_mb_per_day=ints(4 * TB, TB, 10 * TB, 10 * TB),
    price_usd_per_tb=np.array([20.0, 50.0, 10.0, 10.0]),
)

PROBLEM = DataPlacement(
    name="workshop",
    regions=Regions(
        labels=("a", "b", "c"),
        storage_mb=ints(20, 20, 20) * TB,
        headroom_milli=ints(0, 100, 0),
        cpu_mcores=ints(100, 100, 100) * 1000,
        ingress_mb_per_day=ints(0, 4 * TB, 0),
        ingress_limited=np.array([False, True, False]),
        supply_mgpu=ints((8, 0), (8, 16), (0, 8)) * 1000,
        storage_price_micro=ints(20, 30, 25) * 1_000_000,
        copy_price_micro=ints(0, 2, 5) * 1_000_000,
        gpu_price_micro=ints((10, 0), (11, 3), (0, 2)) * 1_000_000,
    ),
    gpu_types=("h100", "a100"),
    datasets=Datasets(
        labels=("logs", "images", "video"),
        size_mb=ints(4, 6, 9) * TB,
        copies_min=ints(1, 1, 1),
        copies_max=ints(2, 3, 3),
        stored=grid((LOGS, A), (IMAGES, B)),
        pinned=grid((IMAGES, B)),
        forbidden=grid((LOGS, C)),
        residency=grid(),
    ),
    workloads=Workloads(
        labels=("train", "etl", "view"),
        tier=ints(0, 1, 1),
        cpu_mcores=ints(10, 50, 5) * 1000,
        app=ints(0, 1, 1),
        splittable=np.array([False, True, False]),
        output_mb=ints(0, 0, TB),
        pinned=grid((VIEW, C)),
        forbidden=grid((TRAIN, C)),
    ),
    apps=("ads", ""),
    tiers=(0, 1),
    options=Options(
        workload=ints(TRAIN, TRAIN, ETL, VIEW), gpu_type=ints(H100, A100, NO_GPU, A100), mgpu=ints(8, 20, 0, 4) * 1000
    ),
    reads=Reads(
        workload=ints(TRAIN, TRAIN, ETL, VIEW),
        dataset=ints(LOGS, IMAGES, LOGS, VIDEO),
        mb_per_day=ints(2, 3, 1, 4) * TB,
    ),
    current_runs=CurrentRuns(
        workload=ints(TRAIN, ETL), region=ints(A, A), gpu_type=ints(H100, NO_GPU), share=ints(1000, 1000)
    ),
    cpu_quotas=CpuQuotas(region=ints(B), app=ints(0), cpu_mcores=ints(10) * 1000),
    links=LINKS,
    objective=Objective(WEIGHTS, peak_levels={0: 0.0, 1: 0.0}),
    remote_reads=True,
    may_refuse=False,
    days=Fraction(1),
)

PLAN = Plan(
    place=grid((LOGS, A), (LOGS, B), (IMAGES, B), (VIDEO, C)),
    run_workload=ints(TRAIN, ETL, ETL, VIEW),
    run_region=ints(B, A, C, C),
    run_type=ints(H100, NO_GPU, NO_GPU, A100),
    run_share=ints(1000, 600, 400, 1000),
    copy_dataset=ints(LOGS),
    copy_source=ints(A),
    copy_target=ints(B),
    copy_share=ints(1000),
    remote_workload=ints(ETL),
    remote_dataset=ints(LOGS),
    remote_source=ints(A),
    remote_target=ints(C),
    remote_share=ints(400),
)

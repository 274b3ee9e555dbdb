"""Small migrations of data placement, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from mast_opt.problems.data_placement.problem import TERMS
from mast_opt.problems.kind.header import Objective
from tests.data_placement.workshop import ints

TB = 1_000_000
EAST, WEST = 0, 1
NONE = np.zeros(0, np.int64)


def bools(*rows: tuple[int, ...]) -> np.ndarray:
    return np.array(rows, np.bool_)


def two_regions() -> tuple[DataPlacement, Plan]:
    """w reads a (1 TB) and b (100 TB), both only in east; no remote reads; 10 TB a day; the plan moves w to west."""
    problem = DataPlacement(
        name="two-regions",
        regions=Regions(
            labels=("east", "west"),
            storage_mb=ints(200 * TB, 200 * TB),
            headroom_milli=ints(0, 0),
            cpu_mcores=ints(10_000, 10_000),
            ingress_mb_per_day=ints(0, 0),
            ingress_limited=np.zeros(2, np.bool_),
            supply_mgpu=ints([8_000], [8_000]),
            storage_price_micro=ints(0, 0),
            copy_price_micro=ints(0, 0),
            gpu_price_micro=ints([0], [0]),
        ),
        gpu_types=("h100",),
        datasets=Datasets(
            labels=("a", "b"),
            size_mb=ints(TB, 100 * TB),
            copies_min=ints(1, 1),
            copies_max=ints(1, 1),
            stored=bools((1, 0), (1, 0)),
            pinned=np.zeros((2, 2), np.bool_),
            forbidden=np.zeros((2, 2), np.bool_),
            residency=np.zeros((2, 2), np.bool_),
        ),
        workloads=Workloads(
            labels=("w",),
            tier=ints(0),
            cpu_mcores=ints(1_000),
            app=ints(0),
            splittable=np.zeros(1, np.bool_),
            output_mb=ints(0),
            pinned=np.zeros((1, 2), np.bool_),
            forbidden=np.zeros((1, 2), np.bool_),
        ),
        apps=("",),
        tiers=(0,),
        options=Options(workload=ints(0), gpu_type=ints(0), mgpu=ints(8_000)),
        reads=Reads(workload=ints(0, 0), dataset=ints(0, 1), mb_per_day=ints(TB, TB)),
        current_runs=CurrentRuns(workload=ints(0), region=ints(EAST), gpu_type=ints(0), share=ints(1000)),
        cpu_quotas=CpuQuotas(region=NONE, app=NONE, cpu_mcores=NONE),
        links=Links(ints(0), ints(1), ints(10 * TB), np.zeros(1)),
        objective=Objective(TERMS),
        remote_reads=False,
        may_refuse=False,
        days=Fraction(20),
    )
    plan = Plan(
        bools((0, 1), (0, 1)),
        *(ints(0), ints(WEST), ints(0), ints(1000)),
        *(ints(0, 1), ints(0, 0), ints(1, 1), ints(1000, 1000)),
        *(NONE.copy() for _ in range(5)),
    )
    return problem, plan


def crowd(gpus: tuple[int, ...]) -> tuple[DataPlacement, Plan]:
    """Workloads without data, each in east or west in turn, which all change sides; no GPU is free."""
    problem, plan = two_regions()
    W = len(gpus)
    size = np.array(gpus, np.int64) * 1000
    now = np.arange(W) % 2
    supply = np.array([max(size[now == r].sum(), size[now == 1 - r].sum()) for r in (0, 1)])
    problem = problem.with_columns(
        {
            "workloads.labels": tuple(f"w{w}" for w in range(W)),
            "workloads.tier": np.zeros(W, np.int64),
            "workloads.cpu_mcores": np.zeros(W, np.int64),
            "workloads.app": np.zeros(W, np.int64),
            "workloads.splittable": np.zeros(W, np.bool_),
            "workloads.output_mb": np.zeros(W, np.int64),
            "workloads.pinned": np.zeros((W, 2), np.bool_),
            "workloads.forbidden": np.zeros((W, 2), np.bool_),
            "regions.cpu_mcores": ints(10**6, 10**6),
            "regions.supply_mgpu": supply[:, None],
            "options.workload": np.arange(W),
            "options.gpu_type": np.zeros(W, np.int64),
            "options.mgpu": size,
            "reads.workload": NONE,
            "reads.dataset": NONE,
            "reads.mb_per_day": NONE,
            "current_runs.workload": np.arange(W),
            "current_runs.region": now,
            "current_runs.gpu_type": np.zeros(W, np.int64),
            "current_runs.share": np.full(W, 1000),
        }
    )
    runs = (np.arange(W), 1 - now, np.zeros(W, np.int64), np.full(W, 1000))
    return problem, replace(
        plan, **dict(zip(("run_workload", "run_region", "run_type", "run_share"), runs, strict=True))
    )


Row = tuple[int, int | None, int | None, tuple[int, ...]]
"""(GPUs, region today, region of the plan, datasets that it reads, 10 MB a day of each)"""


def case(
    room: tuple[int, ...],
    data: list[tuple[int, tuple[int, ...], tuple[int, ...]]],
    work: list[Row],
    gpus: tuple[int, ...],
    links: dict[tuple[int, int], int] | None = None,
    changes: dict[str, Any] | None = None,
) -> tuple[DataPlacement, Plan]:
    """An instance and a plan.

    Args:
        room: MB of each region.
        data: (MB, regions today, regions of the plan); copies come from the first of today's.
        gpus: of each region.
        links: (source, target) → MB a day.
        changes: columns of the instance.
    """
    R, D, W = len(room), len(data), len(work)

    def held(regions: Sequence[tuple[int, ...]]) -> np.ndarray:
        cells = np.zeros((D, R), np.bool_)
        for i, those in enumerate(regions):
            cells[i, list(those)] = True
        return cells

    def runs(side: int) -> tuple[np.ndarray, ...]:
        rows = [(w, row[side], 0, 1000) for w, row in enumerate(work) if row[side] is not None]
        return tuple(column.copy() for column in np.array(rows, np.int64).reshape(-1, 4).T)

    stored, place = held([today for _, today, _ in data]), held([then for *_, then in data])
    copies = [(i, data[i][1][0], int(r), 1000) for i, r in np.argwhere(place & ~stored) if data[i][1]]
    ends = np.array([*(links or {})], np.int64).reshape(-1, 2)
    reads = np.array([(w, i) for w, row in enumerate(work) for i in row[3]], np.int64).reshape(-1, 2)
    now = runs(1)
    problem = two_regions()[0].with_columns(
        {
            "regions.labels": tuple(f"r{r}" for r in range(R)),
            "datasets.labels": tuple(f"d{i}" for i in range(D)),
            "workloads.labels": tuple(f"w{w}" for w in range(W)),
            "regions.storage_mb": ints(*room),
            "regions.headroom_milli": np.zeros(R, np.int64),
            "regions.storage_price_micro": np.zeros(R, np.int64),
            "regions.copy_price_micro": np.zeros(R, np.int64),
            "regions.gpu_price_micro": np.zeros((R, 1), np.int64),
            "regions.cpu_mcores": np.full(R, 10**6),
            "regions.ingress_mb_per_day": np.zeros(R, np.int64),
            "regions.ingress_limited": np.zeros(R, np.bool_),
            "regions.supply_mgpu": 1000 * np.array(gpus, np.int64)[:, None],
            "datasets.size_mb": ints(*(row[0] for row in data)),
            "datasets.copies_min": np.ones(D, np.int64),
            "datasets.copies_max": np.full(D, R),
            "datasets.stored": stored,
            "datasets.pinned": np.zeros((D, R), np.bool_),
            "datasets.forbidden": np.zeros((D, R), np.bool_),
            "datasets.residency": np.zeros((D, R), np.bool_),
            "workloads.tier": np.zeros(W, np.int64),
            "workloads.cpu_mcores": np.zeros(W, np.int64),
            "workloads.app": np.zeros(W, np.int64),
            "workloads.splittable": np.zeros(W, np.bool_),
            "workloads.output_mb": np.zeros(W, np.int64),
            "workloads.pinned": np.zeros((W, R), np.bool_),
            "workloads.forbidden": np.zeros((W, R), np.bool_),
            "options.workload": np.arange(W),
            "options.gpu_type": np.zeros(W, np.int64),
            "options.mgpu": 1000 * np.array([row[0] for row in work], np.int64),
            "reads.workload": reads[:, 0].copy(),
            "reads.dataset": reads[:, 1].copy(),
            "reads.mb_per_day": np.full(len(reads), 10),
            "current_runs.workload": now[0],
            "current_runs.region": now[1],
            "current_runs.gpu_type": now[2],
            "current_runs.share": now[3],
            "links": None
            if links is None
            else Links(ends[:, 0].copy(), ends[:, 1].copy(), ints(*links.values()), np.zeros(len(ends))),
            "remote_reads": True,
        }
    )
    rows = np.array(copies if links is not None else [], np.int64).reshape(-1, 4).T
    plan = Plan(place, *runs(2), *(column.copy() for column in rows), *(NONE.copy() for _ in range(5)))
    return problem.with_columns(changes or {}), plan

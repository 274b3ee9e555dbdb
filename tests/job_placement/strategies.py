"""Random job-placement instances for property-based tests.

Instances are tiny, so that brute force keeps up, and every feature of the problem turns up in some of them: several
regions, types, tiers and racks, gangs, levels, fractions of a GPU, CPU-only jobs, victims with and without a named
GPU, datasets, quotas, costs, priced remote reads, uneven servers and scarce cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.entities import (
    Allocations,
    Clusters,
    Costs,
    Datasets,
    Jobs,
    Movable,
    MoveLimits,
    MultipartJobs,
    Options,
    Parts,
    Racks,
    Reads,
    RunningJobs,
    Servers,
    TenantQuotas,
)
from mast_opt.problems.job_placement.gpu_assignment import read_devices
from mast_opt.problems.job_placement.problem import TERMS, one_gang
from mast_opt.problems.kind.header import Objective

Draw = Callable[[st.SearchStrategy[Any]], Any]

ODD_LABELS = ("eu west", "9z", "été", "none", "quo\"t'e", "a[b,c]", "x" * 150, "y" * 48, "two\nlines", "-", "#", "a\\b")
"""Labels that MathProg cannot print as they are."""
FRACTIONS = (500, 400, 300)


def array(draw: Draw, size: int | tuple[int, ...], values: Sequence[int]) -> np.ndarray:
    """An array of draws from the values; shrinks to the first of them."""
    count = int(np.prod(size))
    drawn = draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))
    return np.array(drawn, np.int64).reshape(size)


@st.composite
def problems(
    draw: Draw,
    *,
    servers: int = 3,
    jobs: int = 3,
    running: int = 3,
    fractions: bool = True,
    odd_labels: bool = False,
    moves: bool = False,
    parts: bool = False,
) -> JobPlacement:
    """An instance of at most the given sizes; with ``moves``, running jobs that are gangs may be movable; with
    ``parts``, some jobs are parts of one."""
    R = draw(st.integers(1, 2))
    C = draw(st.integers(R, R + 1))
    S = draw(st.integers(1, servers))
    K = draw(st.integers(1, 2))
    J = draw(st.integers(1, jobs))
    V = draw(st.integers(0, running))
    cluster_region = np.concatenate([np.arange(R), array(draw, C - R, range(R))])
    racks = array(draw, S, range(2 * C))
    used, server_rack = np.unique(racks, return_inverse=True)
    server_type = np.unique(array(draw, S, range(K)), return_inverse=True)[1]
    K = int(server_type.max()) + 1
    supply = np.stack([array(draw, S, (2, 1, 3, 0)) * 1000, array(draw, S, (8, 4, 2)), array(draw, S, (16, 4))], axis=1)
    tiers = draw(st.sampled_from(((0,), (0, 1), (1, 3), (0, 1, 2))))
    drawn_tier = array(draw, J + V, range(len(tiers)))
    present, tier = np.unique(drawn_tier, return_inverse=True)

    gpus = (1000, 2000, *FRACTIONS, 0) if fractions else (1000, 2000, 0)
    accepts = array(draw, (J, K), (1, 0)) > 0
    accepts[~accepts.any(axis=1)] = True
    option_job, option_type = np.nonzero(accepts)
    base = array(draw, J, gpus)
    mgpu = np.where(array(draw, len(option_job), (0, 0, 1)) > 0, array(draw, len(option_job), gpus), base[option_job])

    held = _allocations(draw, V, supply, fractions)
    datasets = draw(st.integers(0, 2))
    reads = np.nonzero(array(draw, (J, datasets), (0, 1)))
    tenants = ("t1", "t2", "")
    quotas = draw(st.booleans())
    costs = np.nonzero(array(draw, (J, C), (0, 0, 1)))
    names = _labels(draw, odd_labels)
    problem = JobPlacement(
        name="random",
        regions=names("r", R),
        clusters=Clusters(labels=names("c", C), region=cluster_region),
        racks=Racks(labels=names("b", len(used)), cluster=used // 2),
        servers=Servers(
            labels=names("s", S),
            rack=server_rack.astype(np.int64),
            gpu_type=server_type.astype(np.int64),
            supply=supply,
        ),
        gpu_types=names("k", K),
        jobs=Jobs(
            labels=names("j", J),
            tier=tier[:J].astype(np.int64),
            value_milli=array(draw, J, (1000, 2000, 3000, 0)),
            tasks=array(draw, J, (1, 2, 3)),
            cpu_mcores=array(draw, J, (1, 0, 2)),
            memory_mib=array(draw, J, (1, 0, 4)),
            within=array(draw, J, (2, 1, 0)),
            prefer=array(draw, J, (0, 1, 2)),
            tenant=array(draw, J, (2, 0, 1)),
            credit_milli=array(draw, J, (0, 1000, -1000)),
            submitted_ms=array(draw, J, (0, 1, 2)),
        ),
        running=RunningJobs(
            labels=names("v", V),
            tier=tier[J:].astype(np.int64),
            preemptible=array(draw, V, (1, 1, 0)) > 0,
            at_risk_mgpu_hours=array(draw, V, (1000, 0, 500, 7000)),
            tenant=array(draw, V, (2, 0, 1)),
        ),
        datasets=Datasets(
            labels=names("i", datasets),
            stored=array(draw, (datasets, R), (1, 0)) > 0,
            residency=(array(draw, (datasets, R), (1, 0)) > 0) & (array(draw, (datasets, 1), (0, 0, 1)) > 0),
        ),
        tenants=tenants,
        tiers=tuple(np.array(tiers)[present].tolist()),
        options=Options(job=option_job, gpu_type=option_type, mgpu=mgpu),
        reads=Reads(job=reads[0], dataset=reads[1], mb_per_day=array(draw, len(reads[0]), (10, 0, 25))),
        allocations=held,
        quotas=TenantQuotas(
            tenant=np.array([0, 1] if quotas else [], np.int64),
            gpu_type=np.array([0, K - 1] if quotas else [], np.int64),
            typed=np.array([False, True] if quotas else [], np.bool_),
            mgpu=array(draw, 2 if quotas else 0, (1000, 0, 3000)),
            parent=np.full(2 if quotas else 0, len(tenants)),
            **dict.fromkeys(("borrowing_mgpu", "lending_mgpu"), np.full(2 if quotas else 0, -1)),
        ),
        costs=Costs(job=costs[0], cluster=costs[1], cost_micro=array(draw, len(costs[0]), (1000, 500_000))),
        objective=Objective({name: draw(st.sampled_from((weight, 1.0, 0.0))) for name, weight in TERMS.items()}),
        remote_reads=draw(st.booleans()),
    )
    problem = _with_parts(draw, problem) if parts else problem
    return _with_moves(draw, problem) if moves else problem


def _with_parts(draw: Draw, problem: JobPlacement) -> JobPlacement:
    """The same with jobs next to one another joined to jobs of parts."""
    p, jobs, reads = problem, problem.jobs, problem.reads
    joins = np.append(False, array(draw, len(jobs) - 1, (1, 0)) > 0)
    is_part = joins | np.append(joins[1:], False) | (array(draw, len(jobs), (0, 0, 1)) > 0)
    part = np.flatnonzero(is_part)
    first = np.maximum.accumulate(np.where(joins, 0, np.arange(len(jobs))))
    whole = np.unique(first[part], return_inverse=True)[1].reshape(-1)
    number = int(whole.max(initial=-1)) + 1
    lists = [np.flatnonzero(reads.job == j) for j in first.tolist()]
    row, reader = np.concatenate(lists), np.repeat(np.arange(len(jobs)), [len(rows) for rows in lists])
    same = {name: getattr(jobs, name)[first] for name in ("tier", "tenant", "credit_milli", "submitted_ms", "prefer")}
    present, tier = np.unique(np.concatenate([same["tier"], p.running.tier]), return_inverse=True)
    same["tier"] = tier[: len(jobs)]
    names = [f"g{whole[at]}/p{at}" for at in range(len(part))]
    labels = list(jobs.labels)
    for at, name in zip(part.tolist(), names):
        labels[at] = name
    return replace(
        p,
        tiers=tuple(p.tiers[at] for at in present.tolist()),
        jobs=replace(jobs, labels=tuple(labels), value_milli=np.where(joins, 0, jobs.value_milli), **same),
        running=replace(p.running, tier=tier[len(jobs) :]),
        reads=Reads(reader, reads.dataset[row], np.where(joins[reader], 0, reads.mb_per_day[row])),
        costs=p.costs.rows(~joins[p.costs.job]),
        multipart_jobs=MultipartJobs(tuple(f"g{g}" for g in range(number)), array(draw, number, (3, 2, 1, 0))),
        parts=Parts(tuple(f"p{at}" for at in range(len(part))), part, whole),
    )


def _with_moves(draw: Draw, problem: JobPlacement) -> JobPlacement:
    """The same with movable jobs, and limits on moves, where it has running jobs whose tasks are equal."""
    p, a = problem, problem.allocations
    place = np.stack([p.server_cluster[a.server], p.servers.gpu_type[a.server]], axis=1)
    gangs = one_gang(len(p.running), a.running, np.concatenate([a.need, place], axis=1))
    others = np.array([label not in p.jobs.labels for label in p.running.labels], np.bool_)
    running = np.flatnonzero(gangs & others & (array(draw, len(p.running), (1, 1, 1, 0)) > 0))
    limited = np.flatnonzero(array(draw, 2, (0, 0, 1)))
    return replace(
        p,
        movable=Movable(running, array(draw, len(running), (500, 0, 2000))),
        move_limits=MoveLimits(limited, array(draw, len(limited), (1000, 2000, 0))),
    )


def _allocations(draw: Draw, running: int, supply: np.ndarray, fractions: bool) -> Allocations:
    """Rows that fit on the servers; a running job may hold rows on several servers, or none."""
    rows: list[tuple[int, int, int, int, int, int, int, bool]] = []
    gpus = (1000, 2000, 300, 500, 0) if fractions else (1000, 2000, 0)
    for v in range(running):
        for s in draw(st.lists(st.integers(0, len(supply) - 1), max_size=2, unique=True)):
            index, indexed = draw(st.integers(0, 2)), draw(st.booleans())
            need = (draw(st.sampled_from(gpus)), draw(st.integers(0, 2)), draw(st.integers(0, 2)))
            row = (v, s, draw(st.integers(1, 2)), *need, index if indexed else 0, indexed)
            if _fits([*rows, row], supply):
                rows.append(row)
    table = np.array([row[:7] for row in rows], np.int64).reshape(-1, 7)
    indexed = np.array([row[7] for row in rows], np.bool_)
    return Allocations(table[:, 0], table[:, 1], table[:, 2], table[:, 3:6], table[:, 6], indexed)


def _fits(rows: list[tuple[int, int, int, int, int, int, int, bool]], supply: np.ndarray) -> bool:
    table = np.array([row[:7] for row in rows], np.int64)
    used = np.zeros_like(supply)
    np.add.at(used, table[:, 1], table[:, 3:6] * table[:, 2:3])
    indexed = np.array([row[7] for row in rows], np.bool_)
    devices = read_devices(supply[:, 0], table[:, 1], table[:, 2], table[:, 3:6], table[:, 6], indexed)
    return bool((used <= supply).all()) and not devices.misfits


def _labels(draw: Draw, odd: bool) -> Callable[[str, int], tuple[str, ...]]:
    def names(stem: str, count: int) -> tuple[str, ...]:
        plain = tuple(f"{stem}{n}" for n in range(count))
        if not odd:
            return plain
        strange = draw(st.lists(st.sampled_from(ODD_LABELS), max_size=count, unique=True))
        return (*strange, *plain[len(strange) :])

    return names

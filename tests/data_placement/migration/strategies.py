"""Hypothesis strategies: instances of data placement with a plan to carry out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from mast_opt.core.solve_result import Status
from mast_opt.problems.data_placement import DataPlacement, Links, Plan
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.verification.verifier import verify
from tests.data_placement.migration.handmade import two_regions
from tests.data_placement.strategies import problems
from tests.data_placement.support import proven
from tests.data_placement.workshop import ints
from tests.narrowing import some


@st.composite
def migrations(draw: st.DrawFn) -> tuple[DataPlacement, Plan]:
    """An instance with every feature, and the best plan for the weights that were drawn."""
    problem = draw(problems(regions=3, datasets=4, workloads=5, roomy=draw(st.booleans())))
    program = base(problem)
    result = proven(program.mip)
    assume(result.status is Status.OPTIMAL)
    plan = program.decode(some(result.x))
    assume(verify(problem, plan).ok)
    return problem, plan


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[DataPlacement, Plan]:
    """Work and data between two random states, and regions that have hardly more than each of the two needs."""
    R, D, W = draw(st.integers(2, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 5))

    def number(low: int, high: int, count: int) -> Ints:
        return ints(*(draw(st.integers(low, high)) for _ in range(count)))

    remote = draw(st.booleans())
    size, gpus, cores, output = number(1, 4, D), number(0, 4, W), number(0, 3, W), number(0, 1, W)
    reads = np.array([[draw(st.integers(0, 2)) == 0 for _ in range(D)] for _ in range(W)])
    splittable = np.array([draw(st.integers(0, 3)) == 0 for _ in range(W)])

    def state() -> tuple[np.ndarray, dict[tuple[int, int], int]]:
        held = np.array([[draw(st.integers(0, 2)) == 0 for _ in range(R)] for _ in range(D)])
        held[np.arange(D), number(0, R - 1, D)] = True
        runs: dict[tuple[int, int], int] = {}
        for w in range(W):
            regions = number(0, R - 1, 2 if splittable[w] else 1).tolist()
            for r in regions:
                runs[w, r] = runs.get((w, r), 0) + 1000 // len(regions)
                held[reads[w], r] |= not remote
        return held, runs

    (stored, now), (place, then) = state(), state()
    known = {cell: share for cell, share in now.items() if draw(st.integers(0, 9))}
    slack = draw(st.sampled_from((0, 0, 1, 3)))

    def room(need: np.ndarray, place_need: np.ndarray | int) -> np.ndarray:
        most = []
        for runs, held in ((now, stored), (then, place)):
            used = np.zeros(R, np.int64)
            for (w, r), share in runs.items():
                used[r] += need[w] * share
            most.append(-(-used // 1000) + (size @ held if np.ndim(place_need) else 0))
        return np.maximum(*most) + slack

    def relation(runs: dict[tuple[int, int], int]) -> tuple[np.ndarray, ...]:
        rows = np.array([(w, r, 0, share) for (w, r), share in sorted(runs.items())], np.int64).reshape(-1, 4)
        return tuple(column.copy() for column in rows.T)

    residency = np.zeros_like(stored)
    for i in range(D):
        if not draw(st.integers(0, 4)):
            residency[i] = place[i]
            for w, r in then:
                residency[i, r] |= reads[w, i]
    links = far = None
    before = relation(known)
    copies = [(i, q, r) for i, r in zip(*np.nonzero(place & ~stored)) for q in np.flatnonzero(stored[i])[:1]]
    distant = [
        (w, i, int(np.flatnonzero(place[i])[0]), r, share)
        for (w, r), share in then.items()
        for i in np.flatnonzero(reads[w]).tolist()
        if not place[i, r]
    ]
    if draw(st.booleans()):
        source, target = np.nonzero(~np.eye(R, dtype=bool))
        used = np.zeros((R, R), np.int64)
        for _, _, q, r, share in distant:
            used[q, r] += share
        for i, q, r in copies:
            used[q, r] += 10 * size[i]
        links = Links(
            source, target, 1 + -(-used[source, target] // 1000) + number(0, 2, len(source)), np.zeros(len(source))
        )
        far = np.array(distant, np.int64).reshape(-1, 5).T
    who, what = np.nonzero(reads)
    problem = two_regions()[0].with_columns(
        {
            "regions.labels": tuple(f"r{r}" for r in range(R)),
            "datasets.labels": tuple(f"d{i}" for i in range(D)),
            "workloads.labels": tuple(f"w{w}" for w in range(W)),
            "regions.storage_mb": room(output, size),
            "regions.headroom_milli": np.zeros(R, np.int64),
            "regions.storage_price_micro": np.zeros(R, np.int64),
            "regions.copy_price_micro": np.zeros(R, np.int64),
            "regions.gpu_price_micro": np.zeros((R, 1), np.int64),
            "regions.cpu_mcores": room(cores, 0),
            "regions.ingress_mb_per_day": number(1, 3, R),
            "regions.ingress_limited": np.array([draw(st.integers(0, 2)) == 0 for _ in range(R)]),
            "regions.supply_mgpu": number(1, 6, R)[:, None],
            "datasets.size_mb": size,
            "datasets.copies_min": np.minimum(number(1, 2, D), place.sum(axis=1)),
            "datasets.copies_max": np.full(D, R),
            "datasets.stored": stored,
            "datasets.pinned": np.zeros_like(stored),
            "datasets.forbidden": np.zeros_like(stored),
            "datasets.residency": residency,
            "workloads.tier": np.zeros(W, np.int64),
            "workloads.cpu_mcores": cores,
            "workloads.app": np.zeros(W, np.int64),
            "workloads.splittable": splittable,
            "workloads.output_mb": output,
            "workloads.pinned": np.zeros((W, R), np.bool_),
            "workloads.forbidden": np.zeros((W, R), np.bool_),
            "options.workload": np.arange(W),
            "options.gpu_type": np.zeros(W, np.int64),
            "options.mgpu": gpus,
            "reads.workload": who,
            "reads.dataset": what,
            "reads.mb_per_day": np.ones(len(who), np.int64),
            "current_runs.workload": before[0],
            "current_runs.region": before[1],
            "current_runs.gpu_type": before[2],
            "current_runs.share": before[3],
            "links": links,
            "remote_reads": remote,
            "days": Fraction(100),
        }
    )
    rows = np.array([(i, q, r, 1000) for i, q, r in copies], np.int64).reshape(-1, 4).T if links is not None else None
    flows = [np.zeros(0, np.int64)] * 9 if rows is None or far is None else [*rows, *far]
    plan = Plan(place, *relation(then), *(column.copy() for column in flows))
    assume(verify(problem, plan).ok)
    return problem, plan

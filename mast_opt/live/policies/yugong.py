"""Yugong (VLDB'19): which datacenter holds each project, how many days of a table other ones keep, where a job goes.

Three decisions that save traffic between datacenters. ``solve`` places projects, each with all its tables and its work
in one datacenter: a data placement with one copy of everything. ``replicate`` chooses lifespans of replicas in one
datacenter: a multiple-choice knapsack, as a resource allocation; ``replicate_greedily`` does so by ratios.
``outsource`` sends jobs away where waiting less is worth the traffic.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_limits import SolveLimits
from mast_opt.core.solve_result import Status
from mast_opt.core.units import MB_PER_TB, MILLI
from mast_opt.live.policies.arguments import numbers
from mast_opt.live.policies.program import Program
from mast_opt.planner.solving import solve as solve_problem
from mast_opt.problems.data_placement.generate.blank import plain
from mast_opt.problems.data_placement.problem import TERMS, DataPlacement
from mast_opt.problems.kind.header import Objective
from mast_opt.problems.resource_allocation.arrays import names


@dataclass(frozen=True)
class Placement:
    """Datacenters of the projects; what is solved for is None where there is no placement."""

    status: Status
    datacenter: IntArray | None
    """Datacenter of each project, [P]."""
    traffic_tb: float | None
    """Read from other datacenters, TB a day."""
    bound_tb: float | None
    """Proven limit from below on ``traffic_tb``."""
    moved_tb: float | None
    """Copied to datacenters other than today's."""


@dataclass(frozen=True)
class Lifespans:
    """Time for which a datacenter keeps replicas of the tables of others."""

    status: Status
    choice: IntArray
    """[T] position of the lifespan, −1 for no replica."""
    net: float
    """Traffic saved, less that of replication."""
    size: float
    """Storage used."""
    bound: float | None
    """Proven limit from above on ``net``; None if unknown."""


def tables(
    size_tb: ArrayLike,
    storage_tb: ArrayLike,
    reader: ArrayLike,
    owner: ArrayLike,
    tb_per_day: ArrayLike,
    *,
    cores: ArrayLike = 0.0,
    core_limit: ArrayLike | None = None,
    home: ArrayLike | None = None,
    migration_tb: float | None = None,
    movable: ArrayLike = True,
) -> DataPlacement:
    """Yugong's projects as a data placement whose objective is the traffic between datacenters, TB a day.

    A project is a dataset with one copy, and a workload that reads both sides for each pair that exchanges anything.
    Where cores are limited, a project's own work reads its dataset at a volume above all traffic together, so that it
    is never worth while to place it elsewhere.

    Args:
        size_tb: [P] of the tables of each project.
        storage_tb: [D] of each datacenter.
        reader, owner, tb_per_day: [E] the reading project, the one that is read, and the volume.
        cores: [P] that the work of each project needs.
        core_limit: [D] cores of each datacenter; None for no limit.
        home: [P] datacenter of each project today; None where there is none.
        migration_tb: the most that may be copied from today's datacenters; None for no limit.
        movable: [P] may the project move? Yugong leaves light projects where they are.

    Raises:
        UsageError: arrays that do not fit one another; a migration budget or immovable projects without ``home``.
    """
    size = numbers("size_tb", size_tb, (None,))
    storage = numbers("storage_tb", storage_tb, (None,))
    projects, centers = len(size), len(storage)
    volume = numbers("tb_per_day", tb_per_day, (None,))
    left, right, traffic_mb = _pairs(
        _positions("reader", reader, len(volume), projects), _positions("owner", owner, len(volume), projects), volume
    )
    moves = np.broadcast_to(np.asarray(movable, np.bool_), (projects,))
    stored = np.zeros((projects, centers), np.bool_)
    if home is not None:
        stored[np.arange(projects), _positions("home", home, projects, centers)] = True
    elif migration_tb is not None or not moves.all():
        raise UsageError("home is None; expected today's datacenters, since projects may not move freely")
    need = _units(numbers("cores", cores, (projects,)), MILLI, np.ceil)
    pairs, own = len(left), projects if core_limit is not None else 0
    limit = numbers("core_limit", 0.0 if core_limit is None else core_limit, (centers,))
    work = pairs + own
    at = np.concatenate([np.arange(pairs), np.arange(pairs), pairs + np.arange(own)])
    dataset = np.concatenate([left, right, np.arange(own)])
    read_mb = np.concatenate([traffic_mb, traffic_mb, np.full(own, _above(traffic_mb))])
    order = np.lexsort((dataset, at))
    weights = dict.fromkeys(TERMS, 0.0) | {"remote": max(int(read_mb.sum()), 1) / MB_PER_TB}
    columns = {
        "name": "yugong",
        "regions.labels": names("d", centers),
        "gpu_types": (),
        "datasets.labels": names("p", projects),
        "workloads.labels": names("w", work),
        "regions.storage_mb": _units(storage, MB_PER_TB, np.floor),
        "regions.cpu_mcores": _units(limit, MILLI, np.floor),
        "regions.supply_mgpu": np.zeros((centers, 0), np.int64),
        "datasets.size_mb": _units(size, MB_PER_TB, np.ceil),
        "datasets.stored": stored,
        "datasets.pinned": stored & ~moves[:, None],
        "datasets.copies_max": np.ones(projects, np.int64),
        "workloads.cpu_mcores": np.concatenate([np.zeros(pairs, np.int64), need[:own]]),
        "options.workload": np.arange(work),
        "options.gpu_type": np.zeros(work, np.int64),
        "options.mgpu": np.zeros(work, np.int64),
        "reads.workload": at[order],
        "reads.dataset": dataset[order],
        "reads.mb_per_day": read_mb[order],
        "objective": Objective(weights=weights),
    }
    problem = plain(work_tier=np.zeros(work, np.int64), columns=columns)
    return problem if migration_tb is None else problem.with_limits({"copied_tb": migration_tb})


def solve(problem: DataPlacement, *, solver: str = "highs", **limits: Unpack[SolveLimits]) -> Placement:
    """Yugong's placement of projects with the least traffic between datacenters.

    Args:
        problem: from ``tables``.
        solver, limits: as in ``mast_opt.solve``; ``tetris`` takes tens of thousands of projects.
    """
    found = solve_problem(problem, solver, **limits)
    if found.plan is None or found.verdict is None:
        return Placement(found.status, None, None, None, None)
    traffic = found.verdict.terms["remote"] * problem.objective.weights["remote"]
    pairs = problem.reads.mb_per_day[: 2 * np.count_nonzero(np.bincount(problem.reads.workload) == 2)]
    if traffic > pairs.sum() / 2 / MB_PER_TB + 1e-6:  # the work of a project is not where its tables are
        proven = found.bound is not None and found.bound > pairs.sum() / 2 / MB_PER_TB
        return Placement(Status.INFEASIBLE if proven else Status.NO_SOLUTION, None, None, None, None)
    place = found.plan.place
    stored = problem.datasets.stored
    moved = problem.datasets.size_mb @ (place & ~stored & stored.any(axis=1, keepdims=True))
    return Placement(found.status, place.argmax(axis=1), traffic, found.bound, float(moved.sum()) / MB_PER_TB)


def lifespans(read_tb: ArrayLike, daily_tb: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """(size, net), both [T, L], of keeping (Yugong) the latest 1 … L daily partitions of each table.

    Every day one partition is copied, whatever the lifespan; the net is what jobs here read of the partitions kept,
    less that copy.

    Args:
        read_tb: [T, L] what jobs here read a day of the partitions that are 1 … L days old.
        daily_tb: [T] size of a partition.
    """
    read = numbers("read_tb", read_tb, (None, None))
    daily = numbers("daily_tb", daily_tb, (len(read),))[:, None]
    return daily * np.arange(1, read.shape[1] + 1), read.cumsum(axis=1) - daily


def replicate(size: ArrayLike, net: ArrayLike, storage: float, *, solver: str = "highs") -> Lifespans:
    """Yugong's lifespans of replicas of the highest net within the storage, by a solver.

    Args:
        size: [T, L] storage of each choice of each table.
        net: [T, L] what it saves; a choice that saves nothing is never taken.
        storage: of the datacenter.
        solver: as in ``mast_opt.solve``.
    """
    room, worth = _choices(size, net, storage)
    choice = np.full(len(room), -1)
    if not (worth > 0).any():
        return _lifespans(Status.OPTIMAL, choice, room, worth, 0.0)
    found = replication_tables(room, worth, storage).solve(solver)
    if found.share is not None:
        table, at = np.nonzero(worth > 0)
        taken = found.share > 0.5
        choice[table[taken]] = at[taken]
    return _lifespans(found.status, choice, room, worth, found.bound)


def replication_tables(size: ArrayLike, net: ArrayLike, storage: float) -> Program:
    """The program of the policy Yugong, phase of replicas: tables with a lifespan that saves something, a configuration
    for each of those.
    """
    room, worth = _choices(size, net, storage)
    table, at = np.nonzero(worth > 0)
    useful, job = np.unique(table, return_inverse=True)
    uses = np.flatnonzero(room[table, at] > 0)
    return Program(
        policy="total-rate",
        whole=True,
        resources={"labels": ["storage"], "amount": np.array([storage], np.float64)},
        jobs={"labels": [f"t{t}" for t in useful.tolist()]},
        configurations={"labels": [f"t{t}-l{c}" for t, c in zip(table.tolist(), at.tolist())]},
        members={"configuration": np.arange(len(table)), "job": job, "rate": worth[table, at]},
        uses={
            "configuration": uses,
            "resource": np.zeros(len(uses), np.int64),
            "amount": room[table, at][uses],
        },
    )


def replicate_greedily(size: ArrayLike, net: ArrayLike, storage: float) -> Lifespans:
    """Yugong's longer lifespans of replicas in turn, those first that save most for the storage they add, wherever that
    fits.

    Steps lead along the upper concave hull of each table's choices (Sinha & Zoltners, 1979), whose ratios fall. The
    bound is that of the linear relaxation: the last step in part.
    """
    room, worth = _choices(size, net, storage)
    steps = sorted(step for t in range(len(room)) for step in _hull(t, room[t], worth[t]))
    choice, left, whole, bound = np.full(len(room), -1), float(storage), float(storage), 0.0
    for ratio, t, at, more in steps:
        bound += -ratio * min(more, whole) if more > 0 else worth[t, at]
        whole -= min(more, whole)
        extra = room[t, at] - (room[t, choice[t]] if choice[t] >= 0 else 0.0)
        if extra <= left:
            choice[t], left = at, left - extra
    return _lifespans(Status.FEASIBLE, choice, room, worth, bound)


def outsource(wait_s: ArrayLike, remote_tb: ArrayLike, home: ArrayLike, *, seconds_per_tb: float) -> IntArray:
    """[J] the datacenter of each job: that with the highest score, home unless another one has a score above 0.

    The score of a datacenter is the waiting time that it saves, less λ for each TB that the job then reads from
    elsewhere beyond what it does at home.

    Args:
        wait_s: [J, D] waiting time of each job in each datacenter; infinite where it may not run.
        remote_tb: [J, D] what it would read from other datacenters.
        home: [J] datacenter of the job's project.
        seconds_per_tb: λ.
    """
    wait = numbers("wait_s", wait_s, (None, None), infinite=True)
    remote = numbers("remote_tb", remote_tb, wait.shape)
    price = float(numbers("seconds_per_tb", seconds_per_tb, ()))
    at = _positions("home", home, len(wait), wait.shape[1])
    cost = wait + price * remote
    best = cost.argmin(axis=1)
    rows = np.arange(len(wait))
    return np.where(cost[rows, best] < cost[rows, at], best, at)


def _pairs(reader: IntArray, owner: IntArray, volume: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """(project, project, MB a day in both directions) of each pair that exchanges anything."""
    count = int(max(reader.max(initial=0), owner.max(initial=0))) + 1
    key, at = np.unique(np.minimum(reader, owner) * count + np.maximum(reader, owner), return_inverse=True)
    total = np.rint(np.bincount(at, weights=volume, minlength=len(key)) * MB_PER_TB).astype(np.int64)
    left, right = key // count, key % count
    kept = (left != right) & (total > 0)
    return left[kept], right[kept], total[kept]


def _units(amount: FloatArray, units: int, rounded: Callable[[FloatArray], FloatArray]) -> IntArray:
    """Amounts in whole units, rounded but for what is an error of arithmetic."""
    return rounded(np.round(amount * units, 3)).astype(np.int64)


def _above(traffic_mb: IntArray) -> int:
    """Amount, MB, above the traffic of all of Yugong's projects together."""
    return int(traffic_mb.sum()) + MB_PER_TB


def _positions(name: str, value: ArrayLike, length: int, below: int) -> IntArray:
    """An argument of a policy, checked: positions [length] below a number. Raises UsageError."""
    found = numbers(name, value, (length,))
    whole = found.astype(np.int64)
    if (whole != found).any() or (whole >= below).any():
        raise UsageError(f"{name} is {found.tolist()[:8]}; expected positions from 0 to {below - 1}")
    return whole


def _choices(size: ArrayLike, net: ArrayLike, storage: float) -> tuple[FloatArray, FloatArray]:
    """Sizes and nets [T, L] of replicas of tables (Yugong), checked. Raises UsageError."""
    room = numbers("size", size, (None, None))
    numbers("storage", storage, ())
    return room, numbers("net", net, (room.shape[0], room.shape[1]), least=-np.inf)


def _hull(table: int, room: FloatArray, worth: FloatArray) -> list[tuple[float, int, int, float]]:
    """(− worth for each unit, table, choice, units more) of each step along the concave hull from no replica on."""
    points: list[tuple[float, float, int]] = [(0.0, 0.0, -1)]
    useful: BoolArray = worth > 0
    for at in np.lexsort((-worth, room)).tolist():
        if not useful[at] or worth[at] <= points[-1][1]:
            continue
        while len(points) > 1 and _ratio(points[-2], (room[at], worth[at], at)) >= _ratio(points[-2], points[-1]):
            points.pop()
        points.append((float(room[at]), float(worth[at]), at))
    return [(-_ratio(before, after), table, after[2], after[0] - before[0]) for before, after in pairwise(points)]


def _ratio(before: tuple[float, float, int], after: tuple[float, float, int]) -> float:
    """Worth of a step along a table's hull for each unit of storage; infinite where it needs none."""
    more = after[0] - before[0]
    return np.inf if more <= 0 else (after[1] - before[1]) / more


def _lifespans(status: Status, choice: IntArray, room: FloatArray, worth: FloatArray, bound: float | None) -> Lifespans:
    """Yugong's lifespans for the choice of each table, with worth, storage and bound."""
    kept = np.flatnonzero(choice >= 0)
    at = choice[kept]
    return Lifespans(status, choice, float(worth[kept, at].sum()), float(room[kept, at].sum()), bound)

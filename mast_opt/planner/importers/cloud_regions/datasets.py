"""Data that the traces lack, drawn from published distributions: datasets, who reads them, and where all of it is
today."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.planner.importers.cloud_regions.workloads import CloudWork
from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.data_placement.generate.teams import Teams

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

OWN_READS = 0.4
"""Share of a dataset's readers that belong to the group that owns it, where the rest is drawn from everyone; about 60%
of reads cross projects at Alibaba."""
FULL_TODAY = 0.9
"""Share of a region that the data at home there fills at most today; the rest is elsewhere."""


@dataclass(frozen=True, eq=False)
class CloudData:
    """Datasets [I] of the instance, and the reads of its workloads."""

    names: tuple[str, ...]
    owner: Ints
    """[I] the group it belongs to."""
    size_mb: Ints
    """Size of each dataset, [I]."""
    read_workload: Ints
    read_dataset: Ints
    read_mb_per_day: Ints


def datasets_and_readers(rng: np.random.Generator, count: int, work: CloudWork) -> CloudData:
    """Lognormal sizes, the published number of readers, and owners in proportion to their workloads."""
    number = len(work.names)
    size = draws.lognormal(rng, count, median=draws.MEDIAN_SIZE_MB, sigma=1.4, step=draws.GB)
    owner = work.group[rng.integers(number, size=count)]
    readers = draws.reader_counts(rng, count, number)
    chance = np.full((len(work.groups), number), (1 - OWN_READS) / number)
    members = np.bincount(work.group, minlength=len(work.groups))
    chance[work.group, np.arange(number)] += OWN_READS / members[work.group]
    chance /= chance.sum(axis=1, keepdims=True)
    drawn = [rng.choice(number, k, replace=False, p=chance[g]) for k, g in zip(readers.tolist(), owner.tolist())]
    workload, dataset = draws.by_workload(np.concatenate(drawn), np.repeat(np.arange(count), readers), count)
    return _cloud_data(rng, work, owner, size, workload, dataset)


def datasets_of_teams(rng: np.random.Generator, count: int, work: CloudWork) -> CloudData:
    """Every group a team with namespaces and tables of its own, as in family ``organisation``: datasets in proportion
    to its workloads, which read mostly these. A dataset has at most as many readers as its group has workloads."""
    number = len(work.names)
    members = np.bincount(work.group, minlength=len(work.groups))
    teams = Teams.of_sizes(rng, 1 + draws.shared_out(count - len(members), members.astype(np.float64)))
    owner = teams.team[teams.namespace]
    readers = np.minimum(draws.reader_counts(rng, count, number), members[owner])
    _, workload, dataset = teams.readers(rng, readers, number, members)
    workload, dataset = draws.by_workload(np.argsort(work.group, kind="stable")[workload], dataset, count)
    size = teams.sizes_mb(rng)
    return _cloud_data(rng, work, owner, size, workload, dataset)


def _cloud_data(
    rng: np.random.Generator, work: CloudWork, owner: Ints, size: Ints, workload: Ints, dataset: Ints
) -> CloudData:
    order = draws.names("data", len(size))
    names = tuple(f"{work.groups[g]}-{name}" for g, name in zip(owner.tolist(), order))
    return CloudData(names, owner, size, workload, dataset, draws.read_volumes(rng, size[dataset]))


def near_home(rng: np.random.Generator, amount: Ints, home: Ints, capacity: Ints, allowed: Bools) -> tuple[Ints, Ints]:
    """A region for every item, the largest first: its home while that is not nearly full, else where there is room;
    and the capacities, enlarged where an item fitted nowhere. ``allowed`` [n, R]."""
    limit = capacity * FULL_TODAY
    room = limit.copy()
    region = home.copy()
    away = []
    for item in np.argsort(-amount, kind="stable").tolist():
        if allowed[item, home[item]] and room[home[item]] >= amount[item]:
            room[home[item]] -= amount[item]
        else:
            away.append(item)
    left = capacity - np.rint(limit - room).astype(np.int64)
    region[away], grown = draws.settle(rng, amount[away], left, allowed[away], np.arange(len(away)))
    return region, capacity + grown - left

"""Teams, their namespaces and tables, and which workload reads which partition."""

from dataclasses import dataclass

import numpy as np

from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.data_placement.problem import Bools, Ints

PARTITIONS_PER_TEAM, PARTITIONS_PER_NAMESPACE, PARTITIONS_PER_TABLE = 25, 8, 4
"""Mean numbers of partitions for each team, namespace and table."""
PARETO_INDEX = 1.5
"""Pareto index of the teams' sizes, in partitions, and of the demand of namespaces."""
TABLE_SIGMA, PARTITION_SIGMA = 1.2, 0.72
"""Lognormal σ of the tables' sizes, and of the partitions around their table's; 1.4 together."""
OWN_NAMESPACE, OWN_TEAM = 0.80, 0.15
"""Shares of a partition's readers that are of its namespace, and of another namespace of its team."""
HOT_SHARE = 0.25
"""Share of a namespace's partitions, the most read ones, that its first-time work reads; at least one."""


@dataclass(frozen=True)
class Teams:
    """The namespace and the table of each partition, the team of each namespace; all ascending."""

    namespace: Ints
    """Namespace of each dataset, [I]."""
    table: Ints
    """Table of each dataset, [I]."""
    team: Ints
    """Team of each namespace, [N]."""

    @classmethod
    def drawn(cls, rng: np.random.Generator, partitions: int) -> "Teams":
        """Teams that own generated datasets, by Pareto, their partitions in runs: namespaces, and tables
        within them.
        """
        team_count = max(1, partitions // PARTITIONS_PER_TEAM)
        weight = rng.pareto(PARETO_INDEX, team_count) + 1
        return cls.of_sizes(rng, 1 + draws.shared_out(partitions - team_count, weight))

    @classmethod
    def of_sizes(cls, rng: np.random.Generator, of_team: Ints) -> "Teams":
        """Teams that own generated datasets with these numbers of partitions, at least one each."""
        of_namespace, team = _parts(rng, of_team, PARTITIONS_PER_NAMESPACE)
        of_table, _ = _parts(rng, of_namespace, PARTITIONS_PER_TABLE)
        namespace = np.repeat(np.arange(len(of_namespace)), of_namespace)
        return cls(namespace, np.repeat(np.arange(len(of_table)), of_table), team)

    def labels(self) -> tuple[str, ...]:
        """Team, namespace, table and number of each partition, a dataset."""
        teams, namespaces, tables = (
            draws.names(prefix, int(part[-1]) + 1)
            for prefix, part in (("team", self.team), ("ns", self.namespace), ("table", self.table))
        )
        number = np.arange(len(self.table)) - np.searchsorted(self.table, self.table)
        rows = zip(self.namespace.tolist(), self.table.tolist(), number.tolist())
        return tuple(f"{teams[self.team[n]]}.{namespaces[n]}.{tables[t]}.p{part}" for n, t, part in rows)

    def sizes_mb(self, rng: np.random.Generator) -> Ints:
        """[I] sizes of datasets, lognormal (median 10 TB, σ 1.4 over all), alike within a table."""
        table = rng.normal(0.0, TABLE_SIGMA, int(self.table[-1]) + 1)
        size = draws.MEDIAN_SIZE_MB * np.exp(table[self.table] + rng.normal(0.0, PARTITION_SIGMA, len(self.table)))
        return np.ceil(size / draws.GB).astype(np.int64) * draws.GB

    def hot(self, readers: Ints) -> Bools:
        """[I] the most read partitions (datasets) of each namespace."""
        order = np.lexsort((-readers, self.namespace))
        first = np.searchsorted(self.namespace, self.namespace)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order)) - first[order]
        members = np.bincount(self.namespace)[self.namespace]
        hot: Bools = rank < np.maximum(1, np.floor(HOT_SHARE * members))
        return hot

    def readers(
        self, rng: np.random.Generator, counts: Ints, workloads: int, team_workloads: Ints | None = None
    ) -> tuple[Ints, Ints, Ints]:
        """([W] namespace of each workload, workload and dataset of every read): partition i has ``counts[i]`` readers.

        ``team_workloads`` is how many workloads each team has; by default teams have as many as their data attracts.

        Every workload reads something, so that partitions drawn at random have more readers where there are more
        workloads than reads. A workload that is drawn twice for a partition is replaced by one of its team, or else by
        any: a partition may have more readers than its namespace has workloads.
        """
        missing = max(0, workloads - int(counts.sum()))
        counts = counts + np.bincount(rng.integers(len(counts), size=missing), minlength=len(counts))
        dataset = np.repeat(np.arange(len(counts)), counts)
        namespace = self._origins(rng, self.namespace[dataset])
        order = np.lexsort((rng.random(len(dataset)), namespace))
        dataset, namespace = dataset[order], namespace[order]
        wanted = np.bincount(namespace, minlength=len(self.team)).astype(np.float64)
        if team_workloads is None:
            members = draws.shared_out(workloads, wanted)
        else:
            members = np.concatenate(
                [
                    draws.shared_out(size, wanted[self.team == team] + 1)
                    for team, size in enumerate(team_workloads.tolist())
                ]
            )
        owner = np.repeat(np.arange(len(members)), members)
        start = np.cumsum(members) - members
        rank = np.arange(len(dataset)) - np.searchsorted(namespace, namespace)
        reader = np.where(rank < members[namespace], start[namespace] + rank, workloads)
        rest = np.flatnonzero(reader == workloads)
        reader[rest] = _one_of(rng, start, members, namespace[rest], workloads)
        again = _repeated(reader, dataset, rank)
        of_team = np.bincount(self.team, weights=members).astype(np.int64)
        first = np.cumsum(of_team) - of_team
        reader[again] = _one_of(rng, first, of_team, self.team[namespace[again]], workloads)
        while len(again := _repeated(reader, dataset, rank)):
            reader[again] = rng.integers(workloads, size=len(again))
        return owner, reader, dataset

    def _origins(self, rng: np.random.Generator, namespace: Ints) -> Ints:
        """[reads] the namespace of the workload that reads a partition of ``namespace``."""
        first = np.searchsorted(self.team, self.team)
        members = np.bincount(self.team)[self.team]
        of_team = first[namespace] + rng.integers(members[namespace])
        anywhere = rng.integers(len(self.team), size=len(namespace))
        chance = rng.random(len(namespace))
        return np.select(
            [chance < OWN_NAMESPACE, chance < OWN_NAMESPACE + OWN_TEAM], [namespace, of_team], default=anywhere
        )


def _one_of(rng: np.random.Generator, start: Ints, members: Ints, group: Ints, workloads: int) -> Ints:
    """[·] a workload of each group, or any workload where the group has none."""
    inside = start[group] + rng.integers(np.maximum(members[group], 1))
    return np.where(members[group] > 0, inside, rng.integers(workloads, size=len(group)))


def _repeated(reader: Ints, dataset: Ints, rank: Ints) -> Ints:
    """The reads that repeat another one of lower rank."""
    order = np.lexsort((rank, dataset, reader))
    same = (np.diff(reader[order]) == 0) & (np.diff(dataset[order]) == 0)
    repeated: Ints = order[1:][same]
    return repeated


def _parts(rng: np.random.Generator, members: Ints, mean: int) -> tuple[Ints, Ints]:
    """(size, owner) of parts of teams that add up to each owner's members, of about ``mean`` members, at
    least 1 each.
    """
    count = np.maximum(1, np.rint(members / mean).astype(np.int64))
    owner = np.repeat(np.arange(len(members)), count)
    weight = rng.exponential(size=len(owner))
    weight *= ((members - count) / np.bincount(owner, weights=weight))[owner]
    edges = np.floor(np.cumsum(weight) + 0.5).astype(np.int64)
    last = np.cumsum(count) - 1
    edges[last] = np.cumsum(members - count)
    return 1 + np.diff(edges, prepend=0), owner

"""Rows for jobs of several parts in the job-placement MIP: all parts or none, within the level of their job."""

from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.problems.job_placement.formulation.index_sets import IndexSets, JobOptions, unique_rows
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import RACK, REGION, SERVER, Ints
from mast_opt.problems.mip import MipBuilder

_NO_PARTS = -1


def whole_of(problem: JobPlacement) -> tuple[Ints, Ints]:
    """([J] job of several parts of each row, [J] the level that it must stay within); −1 for rows that are no part."""
    whole = np.full(len(problem.jobs), _NO_PARTS)
    whole[problem.parts.job] = problem.parts.whole
    return whole, np.append(problem.multipart_jobs.within, _NO_PARTS)[whole]


def same_place(problem: JobPlacement, options: JobOptions, assign: IntArray, m: MipBuilder) -> None:
    """same_region, same_cluster: Σ_k assign[j,c,k] of a part = that of the first part, for the clusters of one region
    together where the level is the region."""
    p, o = problem, options
    level = whole_of(p)[1]
    further = np.flatnonzero(~p.counts_once)
    for name, labels, place, jobs in (
        ("same_region", p.regions, p.clusters.region, further[level[further] == REGION]),
        ("same_cluster", p.clusters.labels, np.arange(len(p.clusters)), further[level[further] != REGION]),
    ):
        places = len(labels)
        cells = [np.repeat(jobs, places), np.tile(np.arange(places), len(jobs))]
        rows = m.equals(name, [p.jobs.labels, labels], cells)
        for of, sign in ((jobs, 1), (p.first_part[jobs], -1)):
            begin, end = np.searchsorted(o.job, of), np.searchsorted(o.job, of, side="right")
            number = end - begin
            at = np.repeat(np.arange(len(jobs)), number)
            option = begin[at] + np.arange(len(at)) - np.repeat(np.cumsum(number) - number, number)
            rows.add(at * places + place[o.cluster[option]], assign[option], sign)


@dataclass(frozen=True, eq=False)
class WholePlaces:
    """The columns whole_rack[g,b], or whole_server[g,s], of the jobs whose parts must stay within one."""

    level: int
    """``RACK`` or ``SERVER``."""
    cell: Ints
    """[·] positions of the cells of their parts."""
    at: Ints
    """[·] for each of those, the position in ``columns``."""
    whole: Ints
    """[n] job of several parts of each column."""
    columns: IntArray
    """Column of each place, [n]."""


def whole_places(problem: JobPlacement, cells: IndexSets, m: MipBuilder) -> tuple[WholePlaces, WholePlaces]:
    """The columns for racks, and for servers."""
    p, c = problem, cells
    whole, level = whole_of(p)
    found = []
    for at_level, name, labels, place in (
        (RACK, "whole_rack", p.racks.labels, p.servers.rack),
        (SERVER, "whole_server", p.servers.labels, np.arange(len(p.servers))),
    ):
        cell = np.flatnonzero(level[c.job] == at_level)
        pairs, at = unique_rows(whole[c.job[cell]], place[c.server[cell]])
        columns = m.columns(name, [p.multipart_jobs.labels, labels], [pairs[:, 0], pairs[:, 1]], upper=1, integral=True)
        found.append(WholePlaces(at_level, cell, at, pairs[:, 0], columns))
    return found[0], found[1]


def one_place(problem: JobPlacement, cells: IndexSets, count: IntArray, m: MipBuilder, places: WholePlaces) -> None:
    """in_whole_rack: count[j,s] ≤ tasks[j] · whole_rack[g,rack(s)] for the parts j of g; one_whole_rack: at most one;
    or the same of servers."""
    p, c = problem, cells
    name = "rack" if places.level == RACK else "server"
    job, server = c.job[places.cell], c.server[places.cell]
    inside = m.rows(f"in_whole_{name}", [p.jobs.labels, p.servers.labels], [job, server], upper=0)
    inside.add(np.arange(len(job)), count[places.cell], 1)
    inside.add(np.arange(len(job)), places.columns[places.at], -p.jobs.tasks[job])
    limited = np.flatnonzero(p.multipart_jobs.within == places.level)
    one = m.rows(f"one_whole_{name}", [p.multipart_jobs.labels], [limited], upper=1)
    one.add(np.searchsorted(limited, places.whole), places.columns, 1)

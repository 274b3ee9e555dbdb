"""Memory layout of servers in the job-placement engine: sorted by cluster, type, rack and listed order.

A group consists of the servers of one cluster and one GPU type, on which a gang can run. The servers of a group are
neighbours, and so are those of a rack within it, so that a search reads memory in one direction.
"""

from dataclasses import dataclass

import numpy as np

from mast_opt.problems.job_placement.units import Ints


@dataclass(frozen=True, eq=False)
class Layout:
    """S servers in G groups in R regions; a *position* is a place in memory, a *server* is the number in the
    instance."""

    server: Ints
    """[S] the server at each position."""
    position: Ints
    """[S] the position of each server."""
    rack: Ints
    """[S] rack of the server at each position."""
    group: Ints
    """[S] group of the server at each position."""
    group_start: Ints
    """[G + 1] first position of each group."""
    group_cluster: Ints
    group_type: Ints
    group_region: Ints
    region_start: Ints
    """[R + 1] first entry of each region in ``region_groups``."""
    region_groups: Ints
    """[G] groups sorted by region, and within it by their first listed servers."""
    region_rank: Ints
    """[R] rank of each region by its first listed server."""


def lay_out(
    server_cluster: Ints,
    server_type: Ints,
    server_rack: Ints,
    cluster_region: Ints,
    regions: int,
) -> Layout:
    """Lay out servers with these clusters, types and racks in memory.

    The order of the servers decides between equal ones, and that of their first servers between equal racks, groups
    and regions.
    """
    number = np.arange(len(server_rack))
    rack_first = _first_of(server_rack, int(server_rack.max(initial=-1)) + 1)
    server = np.lexsort((number, rack_first[server_rack], server_type, server_cluster))
    pair = np.stack([server_cluster[server], server_type[server]], axis=1)
    first = np.ones(len(server), np.bool_)
    first[1:] = (pair[1:] != pair[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    group_cluster, group_type = pair[starts, 0], pair[starts, 1]
    group_region = cluster_region[group_cluster]
    position = np.empty_like(server)
    position[server] = number
    group = np.cumsum(first) - 1
    by_region = np.lexsort((_first_of(group[position], len(starts)), group_region))
    region_first = _first_of(cluster_region[server_cluster], regions)
    return Layout(
        server=server,
        position=position,
        rack=server_rack[server],
        group=group,
        group_start=np.append(starts, len(server)),
        group_cluster=group_cluster,
        group_type=group_type,
        group_region=group_region,
        region_start=np.searchsorted(group_region[by_region], np.arange(regions + 1)),
        region_groups=by_region,
        region_rank=np.argsort(np.argsort(region_first, kind="stable")),
    )


def _first_of(at: Ints, length: int) -> Ints:
    """[length] first position of each number in ``at``; ``len(at)`` for a number that does not occur."""
    first = np.full(length, len(at))
    np.minimum.at(first, at, np.arange(len(at)))
    return first

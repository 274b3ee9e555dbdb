"""Memory layout of servers in the job-placement engine: cluster by cluster, type by type, rack by rack, as listed.

A group is the servers of one cluster and one GPU type, which is where a gang can run. The servers of a group are
neighbours, and so are those of a rack within it, so that a search reads memory in one direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mast_opt.job_placement.units import Ints


@dataclass(frozen=True, eq=False)
class Layout:
    """S servers in G groups in R regions; *position* is a server's place in memory, *server* its number outside."""

    server: Ints
    """[S] the server at each position."""
    position: Ints
    """[S] the position of each server."""
    rack: Ints
    """[S] by position."""
    group: Ints
    """[S] by position."""
    group_start: Ints
    """[G + 1] first position of each group."""
    group_cluster: Ints
    group_type: Ints
    group_region: Ints
    region_start: Ints
    """[R + 1] first entry of each region in ``region_groups``."""
    region_groups: Ints
    """[G] groups by region, and by name of cluster and type within it."""
    region_rank: Ints
    """[R] place of each region by name."""


def lay_out(
    server_cluster: Ints,
    server_type: Ints,
    server_rack: Ints,
    cluster_region: Ints,
    regions: Sequence[str],
    clusters: Sequence[str],
    types: Sequence[str],
) -> Layout:
    """The layout of servers with these clusters, types and racks.

    Labels decide ties between equal bids; the order of the servers decides between equal servers, and that of their
    first servers between equal racks.
    """
    region_rank, cluster_rank, type_rank = (_ranks(labels) for labels in (regions, clusters, types))
    number = np.arange(len(server_rack))
    rack_first = np.full(int(server_rack.max(initial=-1)) + 1, len(server_rack))
    np.minimum.at(rack_first, server_rack, number)
    server = np.lexsort((number, rack_first[server_rack], server_type, server_cluster))
    pair = np.stack([server_cluster[server], server_type[server]], axis=1)
    first = np.ones(len(server), np.bool_)
    first[1:] = (pair[1:] != pair[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    group_cluster, group_type = pair[starts, 0], pair[starts, 1]
    group_region = cluster_region[group_cluster]
    by_name = np.lexsort((type_rank[group_type], cluster_rank[group_cluster], group_region))
    position = np.empty_like(server)
    position[server] = np.arange(len(server))
    return Layout(
        server=server,
        position=position,
        rack=server_rack[server],
        group=np.cumsum(first) - 1,
        group_start=np.append(starts, len(server)),
        group_cluster=group_cluster,
        group_type=group_type,
        group_region=group_region,
        region_start=np.searchsorted(group_region[by_name], np.arange(len(regions) + 1)),
        region_groups=by_name,
        region_rank=region_rank,
    )


def _ranks(labels: Sequence[str]) -> Ints:
    """[·] the place of each label in alphabetical order."""
    ranks = np.empty(len(labels), np.int64)
    ranks[np.array(sorted(range(len(labels)), key=labels.__getitem__), np.int64)] = np.arange(len(labels))
    return ranks

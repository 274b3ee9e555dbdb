"""Relays of a data-placement migration: copies that come from a new replica, where that costs less."""

from collections import defaultdict

from mast_opt.core.units import MB_PER_TB
from mast_opt.core.wording import NOTICED
from mast_opt.problems.data_placement.migration.replica_moves import Moving, Pair
from mast_opt.problems.data_placement.prices import link_prices, link_room
from mast_opt.problems.data_placement.problem import SHARE

PREFERENCE = 1e-9
"""Weight of the price of reaching a source, so that of links at one price the one nearest to today's replicas is
taken."""


def relays(moving: Moving) -> dict[Pair, int]:
    """(dataset, region) → another region that gets the dataset, from which this copy costs less than in the plan.

    For each dataset a minimum-cost arborescence over the regions that get it, rooted at its replicas of today, within
    the room that links have while copies may take place; large datasets come first [Edmonds, Optimum branchings, 1967].
    None where a region is lost: work that is down waits for its copies.
    """
    p, price = moving.problem, link_prices(moving.problem)
    if not any(price.values()) or p.gone.any():
        return {}
    import networkx as nx

    room, found = link_room(p, moving.plan), dict[Pair, int]()
    direct: dict[int, dict[int, float]] = defaultdict(dict)
    for (i, r), sources in moving.planned.items():
        for q, share in sources:
            room[q, r] -= share * moving.size_mb[i]
        if moving.plan.place[i, r]:
            direct[i][r] = sum(price[q, r] * share for q, share in sources) / SHARE
    for i, usd in sorted(direct.items(), key=lambda one: (-moving.size_mb[one[0]], one[0])):
        size = SHARE * moving.size_mb[i]
        links = [
            (q, r, price[q, r] + PREFERENCE * (1 + usd[q])) for q in usd for r in usd if room.get((q, r), -1) >= size
        ]
        graph = nx.DiGraph()
        graph.add_weighted_edges_from([*((-1, r, cost) for r, cost in usd.items()), *links])
        tree = nx.minimum_spanning_arborescence(graph)
        if (sum(usd.values()) - tree.size("weight")) * moving.size_mb[i] < NOTICED * MB_PER_TB:
            continue
        for q, r in sorted((q, r) for q, r in tree.edges if q >= 0):
            found[i, r] = q
            room[q, r] -= size
            for source, share in moving.planned[i, r]:
                room[source, r] += share * moving.size_mb[i]
    return found

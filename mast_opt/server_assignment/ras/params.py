"""Parameters of ras (server assignment): rounds, prices, rounding, sub-MIPs and racks, with effect, range and reason.

A pair is a stock of servers (a type at a switchboard) with a reservation that may have some of them; the number of
pairs is the size of an instance.
"""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.search.params import Params, group, parameter
from mast_opt.search.sub_mip import SubMipParams


@dataclass(frozen=True)
class RasParams(Params):
    """Parameters of the solver ``ras``."""

    price_steps: int = parameter(
        40,
        "Steps of the volume algorithm in a round, before plans are made from its prices; more of them make prices and "
        "bound better and plans rarer.",
        "Set by hand, so that prices and plans take about the same time.",
        low=1,
    )
    bound_interval: int = parameter(
        10,
        "Price steps between two records of the bound.",
        "A record copies all prices, which takes about as long as a step.",
        low=1,
    )
    pass_tolerance: float = parameter(
        1e-4,
        "A pass over the reservations is followed by another where it lowered the cost by more than this share.",
        "The default gap of a solve: less is not worth a pass.",
        low=0,
    )
    opening_share: float = parameter(
        0.2,
        "Share of the time limit for the first prices, which an aggregated linear program gives.",
        "At sizes where it takes longer the volume algorithm is faster from any prices.",
        above=0,
        high=1,
    )
    lp_round: int = parameter(
        2,
        "The round before which the linear relaxation is solved exactly, once, where gap and size ask for it.",
        "By then the volume algorithm has closed the gap of easy instances.",
        low=0,
    )
    lp_gap: float = parameter(
        0.02,
        "The linear relaxation is solved where the gap is above this.",
        "Below, the volume algorithm is near enough for the bound with whole servers to do the rest.",
        low=0,
    )
    lp_pairs: int = parameter(
        20_000,
        "Most pairs with which the linear relaxation is solved.",
        "Up to there a simplex takes seconds.",
        low=0,
    )
    lp_share: float = parameter(
        0.4,
        "Most of the remaining time for the prices of the linear relaxation, and of what is left then for its plan.",
        "About a third of the time stays for the search.",
        above=0,
        high=1,
    )
    rounding_orders: int = parameter(
        5,
        "Random orders of the reservations in which the plan of the linear relaxation, rounded, is repaired.",
        "Set by hand; the best of them is kept.",
        low=1,
    )
    rounding_passes: int = parameter(
        3, "Passes over the reservations in each of these orders.", "Set by hand; later passes gain little.", low=1
    )
    sub_mip: SubMipParams = group(
        SubMipParams(gap=1e-3, node_limit=300, time_limit_s=3.0),
        "Exact solves of the first prices, of a few reservations together, and of racks. Nodes are limited, so that "
        "answers are the same on every machine; the gap is loose, because sub-problems are many.",
    )
    sub_mip_round: int = parameter(
        12,
        "Rounds of prices before sub-MIPs begin; afterwards both take turns.",
        "Before, rounding better prices gains more in the same time.",
        low=0,
    )
    sub_mip_pairs: int = parameter(
        800, "Pairs in a sub-MIP, about.", "Larger ones seldom end within their nodes.", low=1
    )
    sub_mip_most_pairs: int = parameter(
        400_000,
        "Most pairs of an instance with sub-MIPs, for which the whole program has to be built.",
        "Beyond, the program takes gigabytes.",
        low=0,
    )
    bound_patience: float = parameter(
        2.0,
        "Bounds with whole servers are computed after so many times the time that the last one took; where rounds are "
        "counted, in every round.",
        "They take at most a third of the time then.",
        low=0,
    )
    first_work: float = parameter(
        4e6,
        "Steps (about a nanosecond each) for one knapsack of the first bound with whole servers.",
        "Most reservations need fewer; the others wait until the work has grown.",
        above=0,
    )
    most_work: float = parameter(
        1e9,
        "Steps up to which the work for a knapsack doubles with each bound.",
        "A second for one reservation.",
        above=0,
    )
    lexicographic_weight: float = parameter(
        1e4,
        "Weight of the terms before, in the search for a term of a lexicographic objective.",
        "Larger than what any term can gain by giving up a server's share of an earlier one.",
        above=0,
    )
    rack_reservations: int = parameter(
        5,
        "Reservations whose racks are chosen again at the end, those with the largest share in one rack; 0 for none.",
        "Racks for everybody are too many columns, and most reservations are spread well as they are.",
        low=0,
    )
    rack_time_limit_s: float = parameter(
        5.0, "Most seconds for that choice of racks.", "It changes no term of the objective.", above=0
    )

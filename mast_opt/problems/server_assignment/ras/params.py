"""Parameters of ras (server assignment): rounds, prices, rounding, sub-MIPs and racks, with effect, range and reason.

A pair is a stock of servers (a type at a switchboard) with a reservation that may have some of them; the number of
pairs is the size of an instance.
"""

from dataclasses import dataclass
from typing import ClassVar

from mast_opt.problems.search.params import Params, group, parameter
from mast_opt.problems.search.sub_mip import SubMipParams


@dataclass(frozen=True)
class VolumeParams:
    """Parameters of the volume algorithm, which moves prices towards a better bound."""

    newest_share: ClassVar[float] = 0.1
    """Share of the newest step in the average of what is bought; a larger one swings more. The largest that Barahona
    and Anbil use."""
    growth: ClassVar[float] = 1.1
    """Factor of the step length after an improvement. After Barahona and Anbil."""
    shrinkage: ClassVar[float] = 0.66
    """Factor of the step length after steps without an improvement. After Barahona and Anbil."""
    patience: ClassVar[int] = 10
    """Steps without an improvement after which the step length shrinks. Set by hand; fewer shrink it before the average
    has changed."""
    least_pace: ClassVar[float] = 1e-3
    """Least step length, as a share of the whole. Shorter steps change prices by rounding only."""
    least_reach: ClassVar[float] = 0.02
    """Least distance between bound and target that a step aims at, as a share of the bound. A plan that is nearly as
    good as the bound would stop the prices, although the bound can still rise."""
    improvement: ClassVar[float] = 1e-7
    """Rise of the bound, as a share of it, that counts as an improvement. Less is rounding, and would make the step
    grow for ever."""
    first_price: ClassVar[float] = 2.0
    """First price of capacity, times what the use of a typical server costs, where no linear program gave one. Set by
    hand; at the price of its use alone no server would be worth buying."""
    affinity_step: ClassVar[float] = 10.0
    """Step of the prices of affinity, in relation to those of capacity."""


@dataclass(frozen=True)
class LocalSearchParams:
    """Parameters of the passes in which reservations choose their servers again."""

    level_tries: ClassVar[int] = 3
    """Levels on each side of its own that a reservation tries."""
    levels_above: ClassVar[int] = 3
    """Number of its smallest servers by which a reservation may raise its level where it lacks something."""
    fill_portions: ClassVar[int] = 24
    """Portions, about, in which what is lacking is filled in; more of them choose more carefully and take longer. Set
    by hand; one server at a time is slow where thousands are lacking."""
    repeats: ClassVar[int] = 2
    """Passes over the reservations at the prices of stocks, and at none, at most; a further one follows a pass that
    gained enough."""
    transfers: ClassVar[int] = 8
    """Servers that a reservation takes from others between two looks at the clock. A few, since each exchange looks at
    all stocks."""
    transfer_calls: ClassVar[int] = 50
    """Times that a reservation may take servers from others in a pass. Up to 400 servers: what a reservation lacks."""
    transfer_failures: ClassVar[int] = 5
    """Exchanges that did not pay after which a reservation gives up. Exchanges are tried in the order of their
    estimates, so later ones pay less often."""


@dataclass(frozen=True)
class IntegerBoundParams:
    """Parameters of the bound with whole servers, reservation by reservation."""

    patience: ClassVar[float] = 2.0
    """The bound is computed after so many times the time that the last one took; in every round where rounds are
    counted. It takes at most a third of the time then."""
    cells: ClassVar[int] = 7000
    """Amounts at a switchboard up to which whole servers are counted for every reservation. Beyond, rounding matters
    little."""
    margin: ClassVar[int] = 20
    """Largest servers by which the levels that are tried go beyond the relaxed one and today's."""
    price_strides: ClassVar[tuple[float, ...]] = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
    """Relative changes of the price of capacity that are tried for high levels, each twice up and twice down. Halved
    each time, so that the best price is found within 3%."""
    capacity_prices: ClassVar[int] = 60
    """Prices of capacity that are tried for a reservation, at most. Set by hand; it ends before where prices have
    settled."""
    price_tolerance: ClassVar[float] = 1e-9
    """Another price is looked for while the last one raised the cost by more than this share. Less is rounding."""
    bisections: ClassVar[int] = 40
    """Bisections for a price of capacity. A price to twelve digits."""


@dataclass(frozen=True)
class RasParams(Params):
    """Parameters of the solver ``ras``."""

    price_steps: int = parameter(
        40,
        "Steps of the volume algorithm in a round, before plans are made from its prices; more of them make prices and "
        "bound better and plans rarer.",
        "Set by hand.",
        low=1,
    )
    bound_interval: ClassVar[int] = 10
    """Price steps between two records of the bound."""
    again_steps: ClassVar[int] = 10
    """Price steps that are taken with the prices of an earlier solve."""
    again_share: ClassVar[float] = 0.1
    """Share of the reservations that then choose again."""
    pass_tolerance: ClassVar[float] = 1e-4
    """A pass over the reservations is followed by another where it lowered the cost by more than this share. The
    default gap of a solve: less is not worth a pass."""
    opening_share: ClassVar[float] = 0.2
    """Share of the time limit for the first prices, which an aggregated linear program gives. Set by hand; the rest is
    left to the search."""
    lp_round: ClassVar[int] = 2
    """The round before which the linear relaxation is solved exactly, once, where gap and size ask for it. Set by hand,
    so that easy instances end before."""
    lp_gap: float = parameter(
        0.02,
        "The linear relaxation is solved where the gap is above this.",
        "Set by hand; below, the bound with whole servers is expected to do the rest.",
        low=0,
    )
    lp_pairs: int = parameter(
        20_000,
        "Most pairs with which the linear relaxation is solved.",
        "Up to there a simplex takes seconds.",
        low=0,
    )
    lp_share: ClassVar[float] = 0.4
    """Most of the remaining time for the prices of the linear relaxation, and of what is left then for its plan. About
    a third of the time stays for the search."""
    lp_dual_gap: ClassVar[float] = 1e-6
    """Relative gap at which a linear program for prices counts as solved. Where capacity lacks, prices are needed to
    several digits."""
    rounding_orders: ClassVar[int] = 5
    """Random orders of reservations in which the rounded plan of the linear relaxation is repaired; 0 for none. Set by
    hand; the best of them is kept."""
    rounding_passes: ClassVar[int] = 3
    """Passes over the reservations in each of these orders."""
    volume: ClassVar[VolumeParams] = VolumeParams()
    """Steps of the prices (Barahona and Anbil, 2000)."""
    local_search: ClassVar[LocalSearchParams] = LocalSearchParams()
    """Passes in which reservations choose again."""
    integer_bound: ClassVar[IntegerBoundParams] = IntegerBoundParams()
    """The bound with whole servers."""
    sub_mip: SubMipParams = group(
        SubMipParams(gap=1e-3, node_limit=300, time_limit_s=3.0),
        "Exact solves of the first prices, of a few reservations together, and of racks. Nodes are limited, so that "
        "answers are the same on every machine; the gap is loose, because sub-problems are many.",
    )
    sub_mip_round: ClassVar[int] = 12
    """Rounds of prices before sub-MIPs begin; afterwards both take turns. Set by hand."""
    sub_mip_pairs: ClassVar[int] = 800
    """Pairs in a sub-MIP, about. Set by hand."""
    sub_mip_most_pairs: int = parameter(
        400_000,
        "Most pairs of an instance with sub-MIPs, for which the whole program has to be built.",
        "To save memory.",
        low=0,
    )
    lexicographic_weight: ClassVar[float] = 1e4
    """Weight of the terms before, in the search for a term of a lexicographic objective. Set by hand: earlier terms
    have to outweigh every gain, and sums have to keep their digits."""
    rack_reservations: int = parameter(
        5,
        "Reservations whose racks are chosen again at the end, those with the largest share in one rack; 0 for none.",
        "Racks for everybody are too many columns.",
        low=0,
    )
    rack_time_limit_s: ClassVar[float] = 5.0
    """Most seconds for that choice of racks. It changes no term of the objective."""

"""Parameters of twine (task reassignment): operators, cooling, prices of broken limits, and the schedule.

Temperatures are in the unit of the cost. A cooling falls from the first temperature T0 to the last one; a *power* x
between 0 and 1 means the temperature T0 · ``last_temperature`` ** x on the way.
"""

from dataclasses import dataclass
from typing import ClassVar

from mast_opt.problems.search.params import Params, group, parameter


@dataclass(frozen=True)
class OperatorParams(Params):
    """Shares of the operators among proposed changes, and the lists from which they draw."""

    swaps: float = parameter(
        0.5,
        "Share of swaps of two processes; what swaps and ejections leave are shifts of one process.",
        "Where capacities are nearly full, a process finds room elsewhere only if another makes it.",
        low=0,
        high=1,
    )
    same_service: ClassVar[float] = 0.3
    """Share of swaps and ejections with a process of the same service: spread and dependencies stay as they are."""
    same_service_unlisted: ClassVar[float] = 0.6
    """Share of swaps and ejections within a service, where similar processes are not listed. Other swaps are rarely
    accepted then."""
    ejections: ClassVar[float] = 0.1
    """Share of ejections: a process takes the place of another, which goes to a third machine. With a fiftieth, more
    coolings of a2_2 ended in a trap that only ejections leave."""
    ways_home: ClassVar[float] = 0.5
    """Share of ways home among the shifts and ejections of processes that are away from today's machine. Room of
    transient resources is held on both machines, and would soon be spent on moves that are not worth it."""
    similar_swaps: ClassVar[float] = 0.8
    """Share of swaps and ejections with a process that needs almost the same, where such processes are listed. Few
    others can change places where capacities are nearly full."""
    similar_processes: ClassVar[int] = 64
    """Most similar processes that are listed for each. Nearer ones are drawn more often anyway."""
    similar_below: ClassVar[int] = 10_000
    """Most processes of an instance for which similar ones are listed. With more, twice as many changes are worth
    more than the lists."""
    listed_share: ClassVar[float] = 0.25
    """Processes that fit on fewer machines than this share have them listed; others draw any machine. Where most
    machines are possible, a random one is nearly as good and a list is larger."""
    listed_pairs: ClassVar[int] = 200_000_000
    """Most pairs of process and machine for which such lists are made. A byte for each pair while they are made."""
    table_pairs: ClassVar[int] = 1_000_000
    """Most such pairs of which a table is looked into for every change. It has to stay in a processor's cache."""
    exchange_share: float = parameter(
        0.1,
        "Before a reheat, machines whose load causes more than this share of the cost exchange their largest process "
        "for a set of others; 1 for never.",
        "On containers, 100,000 x 1,000, one of ten seeds left a process on a machine too small for it: 99% of the "
        "cost.",
        low=0,
        high=1,
    )
    exchange_targets: ClassVar[int] = 8
    """Machines that are tried as the new place of such a process, those with most room first."""


@dataclass(frozen=True)
class CoolingParams:
    """Temperatures of a cooling, and which processes move at which."""

    first_temperature: ClassVar[float] = 1 / 6
    """First temperature, over the largest cost that a process alone can cause. Set by hand: the largest processes still
    move freely."""
    last_temperature: ClassVar[float] = 1e-6
    """Last temperature over the first; lower where a process costs little in the best assignment. Below, nothing
    changes on the instances of the challenge."""
    finest_share: ClassVar[float] = 0.01
    """The last temperature is at most this share of what a process costs on average in the best assignment. Where
    almost nothing is left but the moves themselves, each of them counts."""
    slow: ClassVar[float] = 1.4
    """Power of the elapsed part of a cooling to which the temperature falls: above 1, it falls slowly at first. Set by
    hand; what is decided while it is hot is not corrected later."""
    hot_end: ClassVar[float] = 0.75
    """Power at which a cooling from hot ends. What is left below, later coolings settle as well."""
    movable: ClassVar[float] = 2.0
    """Processes move that can cost at least this many temperatures. The large ones find their places first, and small
    ones do not fill up transient room with moves that mean nothing yet."""
    least_movable: ClassVar[int] = 10
    """Processes that move however small they are. Some always have to."""
    freeze_part: ClassVar[float] = 0.1
    """A cooling ends early if over this part of it the cost has fallen by less than `freeze_share`. The time is better
    spent on the next one."""
    freeze_share: ClassVar[float] = 1e-4
    """A cooling ends early if the cost falls by less than this share of it over a tenth of the cooling. The default gap
    of a solve."""


@dataclass(frozen=True)
class PriceParams:
    """Prices of what the search may break on the way: excess over capacities, missing locations and dependencies."""

    excess_first: ClassVar[float] = 3.0
    """Price of a weighted unit of excess over capacities at the first temperature. Set by hand."""
    excess_last: ClassVar[float] = 1e3
    """Price of such a unit at the last temperature; it rises geometrically. Set by hand."""
    broken: ClassVar[float] = 30.0
    """Price of a missing location or dependency at the first temperature, in temperatures; later it falls as the square
    root of the temperature. Set by hand: it is rarely broken while it is hot, and almost never later."""
    urgency: ClassVar[float] = 60.0
    """Power of e by which prices rise over the colder half of a cooling while a rule is broken. A cooling has to end
    with a plan."""
    most_urgency: ClassVar[float] = 1e6
    """Factor up to which prices rise so. Sums stay exact."""
    hopeless_urgency: ClassVar[float] = 1e4
    """Factor on prices at which a cooling that is lost ends early. Some coolings end with a process on a machine too
    small for it, however expensive that is."""
    lost_share: ClassVar[float] = 0.05
    """A cooling that ends with a rule broken is lost if the best known plan costs more than this share above it. Less
    may be the cost of the few changes that are still needed."""
    stricter: ClassVar[float] = 5.0
    """Factor on the price of excess while hot, after a cooling that was lost. None of three coolings of a2_5 was
    lost so."""
    away: ClassVar[float] = 3.0
    """Price of a process that is not on today's machine, in temperatures, where machines hold 80 processes or more.
    There a few large processes are enough to level everything, and the others had better stay."""
    away_processes: ClassVar[int] = 80
    """Processes for each machine from which on `away` applies. On b_5, with 400, and on containers a price made plans
    cheaper."""


@dataclass(frozen=True)
class Schedule:
    """How a search divides its time among coolings."""

    near_share: float = 0.0
    """Share of the time that a cooling close to today's assignment takes, before all others; 0 for none. Where today is
    nearly as cheap as can be, few moves are wanted (a1_3)."""
    hot_least: float = 0.8
    """Least share of the time that a cooling from hot takes; beyond it, it has `changes_per_process`. As slow as
    possible: what it decides while hot is not corrected later."""
    hot_most: float = 0.8
    """Most share of the time that it takes. The rest is for reheats."""
    hot_until: float = 0.8
    """Part of the search at which the second and later coolings from hot are over."""
    reheat_share: float = 0.2
    """Share of the time of each further cooling, from the best assignment; less where it freezes early."""
    reheat_low: float = 0.4
    """Hottest power at which a reheat begins. Measured on a2_3."""
    reheat_high: float = 0.6
    """Coldest power at which a reheat begins. Measured on a2_3."""
    rare_ways_home: float = 1.0
    """Factor on the share of ways home in every second cooling; 1 makes all alike. With many processes there is one
    cooling only."""
    race: bool = False
    """Whether coolings from hot are given up where they fall behind others. With many processes there is one only."""


@dataclass(frozen=True)
class RaceParams:
    """Racing of coolings from hot: asynchronous successive halving (Li et al., MLSys 2020).

    On the instances of the challenge with 1,000 processes what a cooling ends at is decided while large processes find
    their places: among eight to fourteen coolings of an instance, cost at the last rung and at the end had a
    correlation of 0.93 to 0.99, at the first rung one of about 0.7.
    """

    rungs: ClassVar[tuple[float, ...]] = (0.45, 0.6, 0.75)
    """Parts of a cooling after which its energy is compared with that of others. Ends correlate with what is reached
    there."""
    survivors: ClassVar[tuple[float, ...]] = (1 / 2, 1 / 3, 0.0)
    """Share of all coolings that came to a rung so far which goes on from it, at least the best. Successive halving,
    and only the best is finished."""
    window: ClassVar[float] = 0.03
    """Part of a cooling before a rung over which its energy is averaged. It fluctuates."""
    pace_parts: ClassVar[tuple[float, ...]] = (0.0, 0.8, 1.0)
    """Parts of a cooling that races after which it is where others are after `pace_at`. It takes its time where large
    processes find their places."""
    pace_at: ClassVar[tuple[float, ...]] = (0.12, 0.6, 1.0)
    """Parts of the cooling that are done after `pace_parts` of its time. Measured on a1_4 and a2_3."""
    other_turn: ClassVar[int] = 3
    """Every so-manieth cooling offers the way home as did not do best so far. Of the instances of the challenge, a1_2
    wants it rarely and a2_3 often."""


@dataclass(frozen=True)
class TwineParams(Params):
    """Parameters of the solver ``twine``."""

    rounds: int = parameter(
        400, "Rounds where neither a time limit nor a number of rounds is given.", "A few seconds.", low=1
    )
    changes_per_process: int = parameter(
        300_000,
        "Changes for each process in a cooling from hot, unless that takes less or more than its share of the time.",
        "With more, several coolings gain more than a longer one.",
        low=1,
    )
    near_low: ClassVar[float] = 0.4
    """Hottest power at which a cooling close to today's assignment begins. Half-way down, about."""
    near_high: ClassVar[float] = 0.6
    """Coldest power at which it begins. Half-way down, about."""
    near_away: ClassVar[float] = 6.0
    """Price of a process that is not on today's machine in such a cooling, in temperatures. On a1_3 gaps were 0.0001%
    with 6, 0.0002% with 3 and 0.0027% without."""
    many_processes: int = parameter(
        3_000,
        "Processes from which on the schedule `many` holds, otherwise `few`.",
        "Up to there coolings differ much, and several fit into the time.",
        low=0,
    )
    few: ClassVar[Schedule] = Schedule(
        near_share=0.02,
        hot_least=0.15,
        hot_until=0.65,
        reheat_share=0.04,
        reheat_low=0.2,
        reheat_high=0.45,
        rare_ways_home=0.1,
        race=True,
    )
    """Schedule with few processes: several coolings race, and some instances want ways home to be rare."""
    many: ClassVar[Schedule] = Schedule()
    """Schedule with many processes: one cooling as slow as possible, then shorter ones from the best assignment."""
    operators: OperatorParams = group(OperatorParams(), "Operators and their shares.")
    cooling: ClassVar[CoolingParams] = CoolingParams()
    """Temperatures of the annealing."""
    prices: ClassVar[PriceParams] = PriceParams()
    """Limits as prices."""
    racing: ClassVar[RaceParams] = RaceParams()
    """Racing of coolings."""

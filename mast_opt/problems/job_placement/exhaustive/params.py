"""Parameters of exhaustive and exhaustive+repair (job placement), with effect, range and reason of the default."""

from dataclasses import dataclass
from typing import ClassVar

from mast_opt.problems.job_placement.engine.limits import (
    DEFAULT_LIMITS,
    DEFAULT_SAMPLING,
    SAMPLING_RANGES,
    FillSampling,
    SearchLimits,
)
from mast_opt.problems.search.params import Params, group, parameter
from mast_opt.problems.search.sub_mip import SubMipParams

NODES_IN_TURN = 60
"""Nodes of a search that is one of thousands."""


@dataclass(frozen=True)
class VictimSearchParams(Params):
    """Limits of the search for the jobs that are stopped for another one."""

    nodes: int = parameter(
        DEFAULT_LIMITS.nodes,
        "Most nodes of the branch and bound over jobs that lie on several servers; a set that is found within them is "
        "the cheapest.",
        "Set by hand; within them, every bid of benchmarks/job_fleet.py is proven.",
        low=1,
    )
    candidates: ClassVar[int] = DEFAULT_LIMITS.candidates
    """Jobs on one server that are considered, the cheapest ones that free something that is lacking. A subset is the
    bits of one number of 64 bits."""
    subsets: ClassVar[int] = DEFAULT_LIMITS.subsets
    """Most subsets of them that are enumerated, where cores, memory or shared GPUs decide what fits. Set by hand, so
    that one crowded server cannot take all of the time."""
    cells: ClassVar[int] = DEFAULT_LIMITS.cells
    """Most servers of a group times tasks of a gang; in larger ones all that may be stopped and helps is stopped. A
    table of that size takes a gigabyte."""
    work: ClassVar[int] = 1 << 40
    """Most subsets that are enumerated, and servers of a group times tasks of every node, in all; each server gets an
    equal share. No limit: nobody waits for one bid of a batch."""

    def limits(self) -> SearchLimits:
        """Limits of the search in the form that the engine takes."""
        return SearchLimits(self.nodes, self.candidates, self.subsets, self.cells, self.work)


@dataclass(frozen=True)
class FillParams(Params):
    """How the value of free capacity is estimated from the pending jobs."""

    draws: ClassVar[int] = 16
    """Jobs of a sequence. Between 10 and 64, allocation on the lists of FGD differs by less than 0.1 points; with 64
    sequences in place of the default of a live fleet, by less than 0.05."""
    scarcity_percent: int = parameter(
        0,
        "Weight of room for one job more, greater where few servers could hold it, against what a sequence takes; "
        "see FillSampling.",
        "A batch asks for more than fits, so that only what sequences take counts.",
        low=0,
        high=SAMPLING_RANGES["scarcity_percent"][1],
    )

    def sampling(self) -> FillSampling:
        """Sampling of fills in the form that the engine takes."""
        return DEFAULT_SAMPLING._replace(draws=self.draws, scarcity_percent=self.scarcity_percent)


@dataclass(frozen=True)
class ExhaustiveParams(Params):
    """Parameters of the solver ``exhaustive``."""

    placement: str = parameter(
        "fragmentation",
        "Which of equally close and equally priced places a job takes: the one by which free capacity loses the least "
        "value to jobs like those of the batch (fragmentation), or the one in the least loaded region, on the servers "
        "with the fewest free GPUs (best-fit).",
        "A live fleet allocates 1.8 points more by it on real nodes; on the batches of the study the two are equal "
        "within noise (docs/heuristics/exhaustive.md).",
        choices=("fragmentation", "best-fit"),
    )
    fill: FillParams = group(FillParams(), "Estimate of the value of free capacity.")

    victims: VictimSearchParams = group(VictimSearchParams(), "Search for the victims of a bid.")
    chain_victims: VictimSearchParams = group(
        VictimSearchParams(nodes=NODES_IN_TURN),
        "Search for the jobs that a chain pushes out; a chain takes many of them, and need not find the cheapest.",
    )
    chain_tries: int = parameter(
        2,
        "Ejection chains for a refused job, and one more for each GPU that it needs; 0 for none but these.",
        "The job at which a chain fails is not pushed out again, so that each chain is another one.",
        low=0,
    )
    chain_spare: int = parameter(
        30,
        "Further chains that may fail, for all refused jobs together, until one of them is admitted.",
        "Without them the gap on real batches is 2.6% instead of 0.1% (docs/heuristics/exhaustive.md).",
        low=0,
    )
    chain_depth: ClassVar[int] = 10
    """Times that a chain goes on from a job that was pushed out to others that it pushes out in turn. With 4, the gap
    on real batches is 1.1% instead of 0.1%; 16 takes longer for as much."""


@dataclass(frozen=True)
class AssignmentParams(Params):
    """Tabu search where every job is one task of whole GPUs and costs add up."""

    cells: int = parameter(
        200_000,
        "Most jobs times servers of an instance that is searched so; 0 for none.",
        "A step looks at all of them: 2 ms at this size.",
        low=0,
    )
    steps: ClassVar[int] = 1_000
    """Moves and exchanges of a round. Most gains come within 3,000 steps; rounds begin differently."""
    exchanged: ClassVar[int] = 64
    """Jobs whose exchanges with every other one are looked at in a step, drawn at random where there are more.
    Exchanges of all pairs of 200 jobs take most of a step."""
    tabu_least: ClassVar[int] = 3
    """Fewest steps for which a job may not go back. With 10 to 25, 1% worse."""
    tabu_most: ClassVar[int] = 9
    """Most steps for which a job may not go back; at least tabu_least. Set by hand with tabu_least."""
    penalty: ClassVar[float] = 2.0
    """First penalty of a mean server's capacity that is exceeded, in mean costs of a job. It adapts within some dozens
    of steps."""
    penalty_rise: ClassVar[float] = 1.02
    """Factor on the penalty after a step that is infeasible. With 1.05 it finds as much."""
    penalty_fall: ClassVar[float] = 0.9
    """Factor on the penalty after a step that is feasible. With 0.83 and 0.95 it finds as much."""
    core: ClassVar[tuple[int, ...]] = (0, 2, 3)
    """Places a job that a round looks at, the cheapest under the prices; 0 for all. A round draws one of them. Few are
    quick and often enough; all are needed where prices mislead."""
    from_prices: ClassVar[float] = 0.25
    """Share of the rounds that begin with the linear relaxation, the others with the best plan."""
    relaxed_places: ClassVar[int] = 5
    """Places a job in that relaxation, the cheapest under the prices. Of 1,600 jobs and 80 servers, its optimum is that
    of the relaxation over all places within 0.01%."""
    price_steps: ClassVar[int] = 300
    """Most subgradient steps for the prices. They reach the linear relaxation within 0.1%."""
    price_aim: ClassVar[float] = 0.05
    """A first subgradient step aims so far above the best bound, as a share of it. Between 0.02 and 0.2, prices end
    within 0.01% of the linear relaxation on eight published instances."""
    price_failures: ClassVar[int] = 10
    """Subgradient steps without gain before they are halved."""


@dataclass(frozen=True)
class ExhaustiveRepairParams(Params):
    """Parameters of the solver ``exhaustive+repair``."""

    victims: VictimSearchParams = group(VictimSearchParams(), "Search for the victims of a bid, in the first batch.")
    local_victims: VictimSearchParams = group(
        VictimSearchParams(nodes=NODES_IN_TURN),
        "Search for the jobs that the local search evicts; every round takes hundreds of them.",
    )
    relocation_failures: int = parameter(
        8,
        "Attempts in a row to make room by relocating others that may fail; 0 for no relocation.",
        "The ablation shows what relocation buys (docs/benchmarks/ablation.md).",
        low=0,
    )
    relaxation_share: ClassVar[float] = 0.5
    """Share of the remaining time that the linear relaxation may take. The rest is for rounds, without which its
    choices have no servers."""
    whole_from: ClassVar[float] = 0.999
    """The relaxation's choice for a job counts as whole from here. Above the tolerances of a simplex."""
    whole_share: float = parameter(
        0.4,
        "Share of the time that remains after the relaxation for the whole program, solved from the best plan; 0 for "
        "no such solve.",
        "Its bound is far above that of the relaxation wherever tasks do not fill servers exactly "
        "(docs/heuristics/exhaustive.md).",
        low=0,
        high=1,
    )
    whole_nodes: ClassVar[int] = 1
    """Most nodes of that solve where rounds are counted. Most of what the bound gains comes at the root, with its
    cuts."""
    whole_columns: ClassVar[int] = 50_000
    """Most columns (as for sub_mip_columns) of an instance whose whole program is solved. The first linear program of
    larger ones takes most of a minute."""
    unmoved_share: ClassVar[float] = 0.5
    """Share of the time for a plan without moves, where running jobs may be moved; the rest is for sub-MIPs."""
    recreate_noise: float = parameter(
        0.3,
        "Standard deviation of the factor on what a job is worth in the order in which jobs are put back.",
        "Small ones keep the order, large ones leave a bad one; a choice of three gains nothing "
        "(docs/benchmarks/ablation.md).",
        low=0,
    )
    assignment: AssignmentParams = group(
        AssignmentParams(), "Every other round where jobs are single tasks of whole GPUs and costs add up."
    )
    relaxation_passes: int = parameter(
        2,
        "Passes over the clusters from one sub-MIP of the jobs that are not where the relaxation sends them to the "
        "next, at most; one without gain brings it earlier.",
        "Without it, generalised assignment ends higher: later passes keep to what the sub-MIP found.",
        low=1,
    )
    sub_mip_interval: int = parameter(
        8,
        "Rounds from one sub-MIP of clusters to the next.",
        "Set by hand: an exact solve takes far longer than another round.",
        low=1,
    )
    sub_mip_interval_wide: ClassVar[int] = 2
    """Rounds from one sub-MIP of clusters to the next once more than two clusters are solved as one. What taking out
    and putting back can do has been done then."""
    sub_mip: SubMipParams = group(
        SubMipParams(time_limit_s=2.0),
        "Exact solves of the relaxation (which has a time limit of its own) and of some clusters or jobs. Seconds, so "
        "that rounds stay many; with rounds counted, at most 300 nodes.",
    )
    sub_mip_nodes: ClassVar[int] = 300
    """Most nodes of a sub-MIP where rounds are counted, in addition to sub_mip.node_limit, so that the answer does not
    depend on the machine."""
    sub_mip_columns: int = parameter(
        200_000,
        "Most columns (jobs times servers that they accept, about) of an instance with sub-MIPs.",
        "Set by hand: to build and solve larger ones leaves no time for rounds.",
        low=0,
    )
    sub_mip_columns_counted: int = parameter(
        20_000,
        "The same where rounds are counted.",
        "Such a program has no clock, and its first linear program alone may take long.",
        low=0,
    )
    least_gain: ClassVar[float] = 1e-9
    """A round that gains less, as a share of the objective, gains nothing. Rounding errors."""

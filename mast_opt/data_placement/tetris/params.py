"""Parameters of tetris (data placement): annealing, Gibbs sweeps, relaxation, sub-MIPs, and when each is used.

Sizes are counted in cells: reads times regions (``read_cells``), reads times links (``link_cells``), and options times
the regions where they may run (``option_cells``). Temperatures are in units of the mean cost of a workload.
"""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.search.params import Params, group, parameter
from mast_opt.search.sub_mip import SubMipParams


@dataclass(frozen=True)
class CoolingParams(Params):
    """Temperatures of the annealing."""

    hot: float = parameter(
        1.0, "First temperature.", "Set by hand: a workload's mean cost is what a move may cost.", above=0
    )
    cold: float = parameter(
        0.0024, "Last temperature but 0.", "Half and twice of it end within the noise at 20,000 × 30,000 × 20.", above=0
    )
    no_remote_reads: float = parameter(
        4.0,
        "Factor of the first temperature where remote reads are forbidden.",
        "Work moves only with its data there, and most changes cost far more than the mean.",
        above=0,
    )
    gpus_only: float = parameter(
        16.0,
        "Factor of the first temperature where only GPU terms count.",
        "The mean cost of a workload is small compared with what a gang changes.",
        above=0,
    )
    warm: float = parameter(
        0.05,
        "First temperature when a plan is given to start from.",
        "It should be improved, not dissolved.",
        above=0,
    )
    later_stage: float = parameter(
        0.3,
        "First temperature of a later lexicographic term.",
        "Caps on earlier terms are so steep a price that little of the plan can be dissolved.",
        above=0,
    )
    reheat: float = parameter(
        0.5, "First temperature of a later cooling, relative to the first one's.", "Set by hand.", above=0
    )
    longest: int = parameter(
        100_000,
        "Changes per workload beyond which the search cools again from the best plan.",
        "Beyond, slower cooling is no better than that.",
        low=1,
    )
    unhurried: int = parameter(
        1_000,
        "Changes per workload with which cooling begins at the first temperature; with fewer, proportionally colder.",
        "With fewer changes the hot part of a cooling is wasted.",
        low=1,
    )
    most: int = parameter(50, "Most coolings.", "Set by hand.", low=1)
    finish: float = parameter(0.06, "Share of a cooling at temperature 0.", "Set by hand.", low=0, high=0.5)


@dataclass(frozen=True)
class OperatorParams(Params):
    """How often each operator is tried, in proportion, and how it proposes."""

    move: float = parameter(0.5, "Moves of one workload.", "Without them 1,000 × 1,500 × 10 ends 0.8% higher.", low=0)
    twins: float = parameter(
        0.19, "Exchanges of two workloads that ask for the same GPUs.", "Without them it ends 1.7% higher.", low=0
    )
    swap: float = parameter(
        0.14, "Exchanges of any two workloads.", "Without them seven families end 1.0% (± 0.7%) higher.", low=0
    )
    compound_move: float = parameter(
        0.04,
        "Moves of a dataset with its dependency closure, where remote reads are forbidden.",
        "No other change reaches an empty region there.",
        low=0,
    )
    compound_swap: float = parameter(
        0.2,
        "Exchanges of two datasets with their closures, where remote reads are forbidden.",
        "Without them weakly-coupled ends 9% (± 8%) higher.",
        low=0,
    )
    guided_twins: float = parameter(
        0.4,
        "The share of exchanges of twins, where changes are guided.",
        "Guidance makes each of them worth more.",
        low=0,
    )
    guided_below: int = parameter(
        5_000,
        "Changes are guided by a surrogate cost where there is time for fewer of them per workload.",
        "A guided change takes longer, and finds more only while there are few.",
        low=0,
    )
    surrogate_share: float = parameter(
        0.5, "Share of the guided moves whose region the surrogate chooses.", "Set by hand.", low=0, high=1
    )
    holder_share: float = parameter(
        0.6,
        "Share of the other moves that go to a region which holds something that the workload reads.",
        "Set by hand; the rest go to any region.",
        low=0,
        high=1,
    )
    window: int = parameter(
        2_000,
        "Workloads in an active window, which lasts for as many changes.",
        "With fewer, they find too few partners; with more, their data leaves the processor's cache.",
        low=1,
    )
    partners: int = parameter(
        16, "Twins of which the surrogate chooses a partner.", "With eight, equal time leads as far.", low=1
    )
    closure_workloads: int = parameter(48, "Most workloads of a dependency closure.", "Set by hand.", low=1)
    closure_datasets: int = parameter(12, "Most datasets of a dependency closure.", "Set by hand.", low=1)
    slice_changes: int = parameter(
        20_000,
        "Changes of a slice, where rounds are counted or nothing is known of the machine.",
        "A few hundredths of a second.",
        low=1,
    )


@dataclass(frozen=True)
class MultistartParams(Params):
    """Multistart annealing: cooling runs of small instances, from packed gangs and from scratch."""

    most_workloads: int = parameter(
        500,
        "Most workloads of an instance that is searched so.",
        "Beyond, packings lose: 6.320 against 6.237 at 500 × 750 × 10.",
        low=0,
    )
    repacked: float = parameter(
        0.2,
        "Share of the best plan's gangs that are packed again in one cooling of four; the others pack all or none, or "
        "begin without packing.",
        "Plans that share most of their gangs with a good one are often better still.",
        low=0,
        high=1,
    )
    packed: float = parameter(
        0.3,
        "First temperature after packing, relative to the usual.",
        "Data and small work follow, but gangs stay where they were packed.",
        above=0,
    )
    unpacked: tuple[float, ...] = parameter(
        (1.0, 4.0, 1.0, 16.0),
        "First temperatures without packing, in turn, relative to the usual.",
        "A dataset that fills most of a region only moves in a hot cooling.",
        above=0,
    )
    scattered: int = parameter(
        1,
        "Which of these, counted from 0, begins from data in regions drawn at random; a number beyond them: none.",
        "Data that has no room elsewhere stays where it is in all others.",
        low=0,
    )
    beam_width: tuple[float, ...] = parameter(
        (50.0, 400.0),
        "Range in which the width of a beam is drawn, evenly by order of magnitude.",
        "Which width finds the best packing differs among instances.",
        low=1,
    )
    evenness: tuple[float, ...] = parameter(
        (1e-3, 0.1),
        "Range in which a beam's worth of evenness is drawn, evenly by order of magnitude.",
        "Which one finds the best packing differs among instances.",
        above=0,
    )
    noise: float = parameter(0.5, "Most noise of a beam, in mean costs of a workload.", "So that beams differ.", low=0)
    choice: float = parameter(
        0.3,
        "Temperature at which one packing of a beam is drawn, in mean costs of a workload.",
        "The cheapest packing is seldom the best beginning.",
        above=0,
    )
    changes: int = parameter(
        1_500, "Changes per workload of a cooling.", "With 500 to 4,000, a second ends within the noise.", low=1
    )
    least_changes: int = parameter(750, "Least changes of the last cooling.", "Set by hand.", low=1)
    longer_from_workloads: int = parameter(
        100, "Workloads beyond which coolings are longer in proportion.", "So 200 × 300 × 10 ends 1% lower.", low=1
    )
    longer_from_coolings: int = parameter(
        100,
        "Coolings after which further ones are longer in proportion.",
        "So 50 × 80 × 6 ends 1.6% lower after 20 s.",
        low=1,
    )


@dataclass(frozen=True)
class GibbsParams(Params):
    """Gibbs sweeps before the annealing of large instances."""

    workloads: int = parameter(
        2_000,
        "Least workloads with which sweeps come first.",
        "Below, peaks are left for the annealing to balance.",
        low=0,
    )
    gang_share: float = parameter(
        0.1,
        "Most of a region's GPUs that the usual gang may take for sweeps to come first.",
        "Larger gangs stay where they are at prices.",
        low=0,
    )
    share: float = parameter(
        0.8, "Share of the search that is sweeps.", "With 25 or 50 s of a minute, plans end alike.", above=0, high=1
    )
    gang_discount: float = parameter(
        20.0,
        "How much less that share is the more of a region's GPUs a gang takes.",
        "Balancing large gangs is left to the annealing.",
        low=0,
    )
    most_sweeps: int = parameter(
        600, "Most sweeps, if all took as long as the first, the hottest.", "Set by hand.", low=1
    )
    warmer: float = parameter(
        2.0,
        "First temperature of the annealing that follows, for each part of a region's GPUs that a gang takes.",
        "The larger gangs are, the more is left to move.",
        low=0,
    )
    hot: float = parameter(
        0.15, "First temperature of the sweeps.", "Plans with 0.05 to 0.15 are within 0.6%.", above=0
    )
    cold: float = parameter(
        0.005, "Last temperature of the sweeps.", "Plans with 0.002 to 0.01 are within 0.6%.", above=0
    )
    stiffness: float = parameter(
        20.0,
        "By how many times their usual price a region's GPUs cost more, at first, with demand higher by its supply.",
        "With 30 times as much, 200,000 × 200,000 × 30 ends 1.5% higher.",
        above=0,
    )
    gang_stiffness: float = parameter(
        0.02,
        "Demand over supply, in parts of what a gang takes, at which that holds instead where it is less.",
        "Gangs that raise prices by arriving stay where they are.",
        above=0,
    )
    stiffening: float = parameter(5.0, "How many times as much that is in the end.", "Set by hand.", above=0)
    core_stiffness: float = parameter(
        2.5,
        "What a region's cores cost when all are in use, relative to what all work costs, if the price rose evenly.",
        "Set by hand.",
        above=0,
    )
    core_steepness: float = parameter(
        0.0025,
        "Least use above core_level at which the price of cores has risen twice as far as evenly.",
        "Into a full region nothing comes, so whoever came first must be driven out.",
        above=0,
    )
    core_level: float = parameter(
        0.985,
        "Use of a region's cores at which they have the price of the sweeps before.",
        "Set by hand.",
        above=0,
        high=1,
    )
    learning: float = parameter(
        0.1,
        "Share of a step that prices of cores take for the sweeps to come; those of GPUs twice as much.",
        "Set by hand.",
        above=0,
        high=0.5,
    )
    storage_step: float = parameter(
        0.5,
        "How fast prices of storage rise, relative to what copies cost.",
        "A fifth or a twenty-fifth of it changes nothing.",
        low=0,
    )
    storage_level: float = parameter(
        0.995, "Use of storage at which its price stands still.", "Set by hand.", above=0, high=1
    )
    refresh: int = parameter(
        100,
        "Workloads after which the level of the peaks and the prices of cores are recomputed.",
        "Set by hand.",
        low=1,
    )
    ramp: float = parameter(
        0.02,
        "Demand over supply within which overload comes and idleness goes.",
        "A price that jumps would make work jump.",
        above=0,
    )
    repair_every: int = parameter(
        25,
        "Sweeps between two repairs, where rounds are counted; otherwise as many as there is time for.",
        "Set by hand.",
        low=1,
    )


@dataclass(frozen=True)
class RelaxationParams(Params):
    """Steps of the Lagrangian relaxation, and mixed-integer rounding (MIR) of its rows."""

    iterations: int = parameter(5, "Iterations in a round, where rounds are counted.", "Set by hand.", low=1)
    average_every: int = parameter(50, "Iterations between averages.", "With 10 to 100 the bound comes as far.", low=1)
    evaluate_every: int = parameter(5, "Iterations between evaluations of the bound.", "Set by hand.", low=1)
    read_step: float = parameter(
        0.4, "Dual step of the reads' prices.", "Half of it is the most that Pock & Chambolle allow.", above=0
    )
    primal_step: float = parameter(
        1.6,
        "Primal steps, times those of Pock & Chambolle.",
        "At 2 the bounds of eight instances still rose faster, at 2.5 two of them stood still. With 4/3 convergence is "
        "proven (Ma, Cai, Jiang & Han 2023), and rows of reads leave a quarter more.",
        above=0,
    )
    patience: int = parameter(200, "Iterations after which progress is judged.", "Set by hand.", low=1)
    least_iterations: int = parameter(
        400, "Least iterations before the relaxation is said to converge.", "Set by hand.", low=0
    )
    progress: float = parameter(
        3e-4, "Share by which these iterations have to improve the bound.", "Set by hand.", low=0
    )
    roundings: int = parameter(
        8, "Sizes of a GPU type by which rows are rounded: those that most is asked in.", "Set by hand.", low=0
    )
    sizes: int = parameter(64, "Sizes of a type and tier that have a class of their own.", "Set by hand.", low=1)
    crowd: int = parameter(
        12,
        "Whole gangs in a region of a type from which on its rows are not rounded.",
        "Rounding buys 0.4% of the bound at 8 and 0.0% at 19. A gang that may run on several types counts as a part of "
        "each.",
        low=0,
    )
    table_entries: int = parameter(
        4_000_000,
        "Most entries of a table of roundings; beyond, rows are rounded by fewer sizes.",
        "They take 32 MB.",
        low=0,
    )


@dataclass(frozen=True)
class TreeCutParams(Params):
    """Tree cuts of the relaxation."""

    few_cells: int = parameter(
        20_000, "Read cells up to which there are always tree cuts.", "They lift the bound by 1% to 2% there.", low=0
    )
    most_cells: int = parameter(
        500_000,
        "Read cells up to which there are tree cuts at all.",
        "More would take gigabytes, and get nowhere.",
        low=0,
    )
    seconds_per_cell: float = parameter(
        5e-4,
        "Seconds of search for each read cell from which on there are tree cuts.",
        "They prove more then than they cost the plan.",
        low=0,
    )
    round_interval: int = parameter(
        4, "With a single thread, tree cuts have a slice in one of so many rounds.", "The plan has the others.", low=1
    )
    wait_after: int = parameter(
        600,
        "Iterations without tree cuts after which a relaxation waits for the sub-MIPs.",
        "It has said nearly all by then, and its thread helps the search.",
        low=0,
    )
    epoch: int = parameter(30, "Iterations between separations.", "Set by hand.", low=1)
    patience: int = parameter(25, "Separations after which progress is judged.", "Set by hand.", low=1)
    progress: float = parameter(1e-4, "Share by which they have to improve the bound.", "Set by hand.", low=0)
    lower: float = parameter(
        0.95,
        "Factor of the cuts' average prices with which the bound is evaluated too.",
        "At lower prices fewer charges exceed their room.",
        above=0,
        high=1,
    )
    roots: int = parameter(
        60, "Roots of a region that are tried in a separation.", "With 150 the bound gains 0.1% in four minutes.", low=1
    )
    detour: float = parameter(
        0.3,
        "Length of a dataset of mean size on the way of a tree, as a part of the root's share, at first.",
        "Without lengths the first trees are arbitrary.",
        low=0,
    )
    detours: int = parameter(100, "Separations until that length is 0.", "Set by hand.", low=1)
    step: float = parameter(4.0, "Times the safe step of the cuts' rows.", "It is far below what they bear.", above=0)
    violation: float = parameter(
        1e-3, "Least violation of a cut that is added, as a share of what its tree needs.", "Set by hand.", low=0
    )
    most_reads: int = parameter(
        4_000_000, "Room for the reads of trees.", "They take 64 MB, and five times as many gain 0.1%.", low=1
    )
    most_trees: int = parameter(30_000, "Room for trees; those without a price make room.", "Set by hand.", low=1)


@dataclass(frozen=True)
class NeighbourhoodParams(Params):
    """Fix-and-optimise: for links, caps on earlier terms, priced remote reads, and small whole programs."""

    link_cells: int = parameter(
        1_000_000,
        "Most link cells with which neighbourhoods bring a plan within the links.",
        "Larger programs do not fit.",
        low=0,
    )
    read_cells: int = parameter(
        20_000,
        "Most read cells with which neighbourhoods follow the annealing of a later term, or where remote reads have a "
        "price.",
        "Beyond, more annealing is better.",
        low=0,
    )
    whole_cells: int = parameter(
        600,
        "Most read cells with which a program of whole decisions without remote reads is solved as a whole.",
        "CP-SAT ends 6% below the annealing at 60 × 60 × 8, and up to 9% above at 100 × 100 × 10.",
        low=0,
    )
    whole_cells_later: int = parameter(
        2_500,
        "The same for a later term, where remote reads have a price.",
        "Caps on earlier terms leave little freedom.",
        low=0,
    )
    link_surcharge: float = parameter(
        20.0,
        "Times that remote reads and copies are priced while links are taken for wide.",
        "So that few are left to fit in: with 5, cloud-links ends 3% higher, with 50, 1.5%.",
        above=0,
    )
    search_share_links: float = parameter(
        0.3,
        "Share of the time that is annealed before, where links are limited.",
        "With 0.1 most plans are as good, but some instances have none.",
        above=0,
        high=1,
    )
    search_share_later: float = parameter(
        0.2,
        "The same for a later term where remote reads have a price.",
        "Few changes of one or two workloads stay within the caps.",
        above=0,
        high=1,
    )
    search_share_whole: float = parameter(
        0.3, "The same where remote reads are forbidden.", "The program needs the rest.", above=0, high=1
    )
    search_share_multistart: float = parameter(
        0.8,
        "The same where remote reads have a price and several plans are annealed.",
        "They find most of what neighbourhoods do: without these, 100 × 150 × 8 ends 0.9% higher after 8 s.",
        above=0,
        high=1,
    )
    cells_per_search: float = parameter(
        30_000,
        "Read cells for which one plan is annealed all the time, where remote reads have a price; fewer, "
        "proportionally less.",
        "Neighbourhoods are the better the smaller a program is.",
        above=0,
    )
    least_search: float = parameter(0.2, "Least such share of the time.", "Set by hand.", above=0, high=1)
    most_search: float = parameter(0.5, "Largest such share of the time.", "Set by hand.", above=0, high=1)
    whole_share: float = parameter(
        0.7, "Share of the time left that the whole program may take.", "Set by hand.", above=0, high=1
    )
    near_excess: float = parameter(
        10.0,
        "Excess, in units of links' capacities, up to which neighbourhoods bring a plan within the links.",
        "Where links bind, annealed plans exceed them by 50 to 250, elsewhere by 0.1 to 2.",
        low=0,
    )
    near_share: float = parameter(
        0.4, "Share of the time left that this may take.", "It takes two to eight seconds.", above=0, high=1
    )
    excess_price: float = parameter(100.0, "Price of exceeding a link by its own capacity.", "Set by hand.", above=0)
    excess_growth: float = parameter(
        10.0,
        "Times that this price rises after a neighbourhood that left the excess.",
        "A solver's gap may hide what is small.",
        low=1,
    )
    most_excess_price: float = parameter(1e6, "Highest price of the excess.", "Solvers lose precision beyond.", above=0)
    today_share: float = parameter(
        0.5,
        "Share of the time left that may go to finding any plan within the links, with today's replicas.",
        "Set by hand.",
        above=0,
        high=1,
    )
    work_share: float = parameter(
        0.4,
        "Share of the time left that may go to placing all work with those replicas.",
        "Plans with 0.25 to 0.8 are alike; without it 60 × 90 × 6 ends 70% higher.",
        above=0,
        high=1,
    )
    sub_mip: SubMipParams = group(
        SubMipParams(gap=1e-4, time_limit_s=2.0, threads=1), "Exact solves of neighbourhoods."
    )
    first_workloads: int = parameter(6, "Workloads that a neighbourhood frees at first.", "Set by hand.", low=1)
    least_workloads: int = parameter(2, "Workloads that a neighbourhood frees at least.", "Set by hand.", low=1)
    growth: float = parameter(
        1.1,
        "Factor of their number after a neighbourhood that was solved in time; its inverse after another.",
        "Set by hand.",
        above=0,
    )
    patience: int = parameter(
        50,
        "Neighbourhoods in a row without improvement that end the search where there is no time limit.",
        "Set by hand; the whole program then takes no longer than they may.",
        low=1,
    )
    two_regions: float = parameter(
        0.25, "Share of the neighbourhoods that free two regions.", "Set by hand.", low=0, high=1
    )
    reserve: float = parameter(
        0.1, "Share of the time that is reserved for completing the plan.", "Set by hand.", low=0, high=0.5
    )


@dataclass(frozen=True)
class WorkloadsOnlyParams(Params):
    """The sub-MIP of all work with replicas held, where no term depends on data."""

    option_cells: int = parameter(
        20_000,
        "Most option cells with which it beats more annealing.",
        "At 2,000 × 3,000 × 20, with 67,880, it does not.",
        low=0,
    )
    least_search: float = parameter(
        0.1, "Least share of the time that is annealed before.", "A tenth to a fiftieth end alike.", low=0, high=1
    )
    most_search: float = parameter(
        0.6,
        "Largest share of the time that is annealed before.",
        "Larger programs, as of 500 × 750 × 10, gain from it.",
        low=0,
        high=1,
    )
    cells_per_search: float = parameter(
        14_000, "Option cells at which all the time would be annealed, but for that limit.", "Set by hand.", above=0
    )
    reserve: float = parameter(
        0.05, "Share of the time left that is reserved for handing the plan over.", "Set by hand.", low=0, high=0.5
    )
    unhurried_s: float = parameter(60.0, "Seconds where there is no time limit.", "Set by hand.", above=0)


@dataclass(frozen=True)
class CompletionParams(Params):
    """The sub-MIP of shares of splittable work and sources across links."""

    read_cells: int = parameter(
        3_000_000,
        "Most read cells with which sources are chosen by a MIP solver.",
        "Larger programs take gigabytes.",
        low=0,
    )
    least_s: float = parameter(1.0, "Least seconds for it.", "A plan without sources is none.", above=0)
    most_s: float = parameter(30.0, "Seconds where there is no time limit, and the most.", "Set by hand.", above=0)
    nodes: int = parameter(
        300, "Most nodes where rounds are counted.", "So that the answer does not depend on the machine.", low=1
    )
    counted_cells: int = parameter(
        20_000,
        "Most read cells with which a plan is looked for where rounds are counted and the search found none.",
        "On more it takes too long.",
        low=0,
    )


@dataclass(frozen=True)
class TetrisParams(Params):
    """Parameters of the solver ``tetris``."""

    cooling: CoolingParams = group(CoolingParams(), "Temperatures.")
    operators: OperatorParams = group(OperatorParams(), "Proposals of the annealing.")
    multistart: MultistartParams = group(MultistartParams(), "Small instances.")
    gibbs: GibbsParams = group(GibbsParams(), "Large instances.")
    relaxation: RelaxationParams = group(RelaxationParams(), "The bound.")
    tree_cuts: TreeCutParams = group(TreeCutParams(), "Cutting planes of the bound.")
    neighbourhoods: NeighbourhoodParams = group(NeighbourhoodParams(), "Fix-and-optimise.")
    workloads_only: WorkloadsOnlyParams = group(WorkloadsOnlyParams(), "Lexicographic terms of work.")
    completion: CompletionParams = group(CompletionParams(), "What the search leaves open.")
    reserve: float = parameter(
        0.04, "Share of the time that is reserved for handing the plan over.", "Set by hand.", low=0, high=0.5
    )
    handover_s_per_cell: float = parameter(
        1e-7,
        "Seconds for each read cell that are reserved too.",
        "What last pass, certificate and verifier take.",
        low=0,
    )
    lexicographic_weight: float = parameter(
        1e3,
        "Weight of the earlier terms, in the search for a later one.",
        "Caps keep their values; this is a price.",
        above=0,
    )

"""Analysis hooks: what a problem offers to ``explain``, ``whatif``, ``marginal`` and ``pareto``.

``mast_opt.planner.analysis`` asks these questions of every kind; a kind answers those that make sense for it.

How one period of a kind of problem leads to the next: one after another, or all in one program.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.verdict import Violation
from mast_opt.core.wording import listed
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.transforms import Extension


@dataclass(frozen=True, eq=False)
class Stage:
    """One period in a program of several."""

    problem: Any
    mip: Mip
    """Program of the period alone."""
    columns: IntArray
    """Positions of its columns in the joint program."""
    first_row: int
    """Position of its first row in the joint program."""


@dataclass(frozen=True, eq=False)
class Link:
    """Columns and rows that two periods in a row have in common."""

    extension: Extension
    cost: FloatArray
    """Costs of the new columns."""
    values: Callable[[FloatArray], FloatArray]
    """Values of the columns so far → those of the new columns, as cheap as they can be."""


@dataclass(frozen=True)
class JointProgram:
    """How the periods of a kind of problem are stated as one program."""

    fresh: Callable[[Any], Any]
    """The instance of a period without a plan before it."""
    refusal: Callable[[Sequence[Any], Sequence[str]], str]
    """(instances, keys of all changes) → what they have that cannot be stated together; empty for nothing."""
    linked: Callable[[Mip, Stage, Stage], Link]
    """(program so far, a period, the next one) → what joins them."""


@dataclass(frozen=True)
class Rolling:
    """How one period of a kind of problem leads to the next."""

    carried: Callable[[Any, Any], Any]
    """(problem, plan) → the problem in which the plan is the present state."""
    unhurried: Callable[[Any], Any]
    """The problem without limits on how fast the plan is reached."""
    prepared: Callable[[Any, Any], Any]
    """(problem, plan of the next period) → the problem that has to have ready what takes time to make."""
    today: Callable[[Any], Any | None]
    """The present state as a plan; None where it is not known."""
    days: Callable[[Any], Fraction]
    """Problem → days that its copies may take."""
    joint: JointProgram | None = None
    """None where periods are only planned one after another."""


def _no_positions() -> IntArray:
    """No positions: the columns or rows of a limit that has none."""
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class ElasticLimits:
    """One sort of hard limit of an instance (the storage of each region, the pins, …), L members.

    A limit is stated by sides of rows, or by bounds of columns that are open without it. ``upper`` limits hold their
    rows' upper sides, or hold their columns at 0; ``lower`` ones hold their rows' lower sides, or their columns at 1.
    """

    name: str
    side: str
    """``upper`` or ``lower``."""
    price: FloatArray
    """[L] what a repair pays by default for one unit, or for giving the limit up; infinite where that is no repair."""
    describe: Callable[[Sequence[int]], str]
    """Some members in the words of the domain, with amounts: "storage of R2 (4 TB)"."""
    row_member: IntArray = field(default_factory=_no_positions)
    row: IntArray = field(default_factory=_no_positions)
    """[·] rows of the program, each with the member that it states."""
    column_member: IntArray = field(default_factory=_no_positions)
    column: IntArray = field(default_factory=_no_positions)
    advice: Callable[[int, float], str] = lambda member, amount: ""
    """A change of one member, as an advice: "raise storage of R2 by 5 TB"."""
    relax: Callable[[Any, Mapping[int, float]], Any] | None = None
    """(problem, member → amount in units) → the problem with these limits moved or given up. None: never."""
    per_unit: float | None = None
    """Size of one unit in the rows' own unit; None for limits that are kept or given up as a whole."""
    whole: bool = False
    """True if amounts are whole units."""
    step: FloatArray | None = None
    """[L] units in which a limit can be ordered: a repair moves it by whole steps. None: by any amount."""
    most: FloatArray | None = None
    """[L] units by which a limit can be moved at most; None: without end."""
    alone: bool = False
    """True if the least amount by which one of these has to be moved, all else as it is, is an answer of its own."""
    reshapes: bool = False
    """True if giving one up takes something out of the instance, so that plans no longer fit it."""

    @property
    def count(self) -> int:
        """Number of limits of one sort that may be given up, L."""
        return len(self.price)


def row_limits(
    name: str,
    side: str,
    price: FloatArray,
    positions: IntArray,
    rows: IntArray,
    describe: Callable[[int], str],
    advice: Callable[[int, float], str] = lambda position, amount: "",
    relax: Callable[[Any, Mapping[int, float]], Any] | None = None,
    *,
    position_of_row: IntArray | None = None,
    per_unit: float | None = None,
) -> ElasticLimits:
    """Limits that rows state and that are described one by one; further arguments are as of ``ElasticLimits``.

    Args:
        positions: [L] of the members on their axis, ascending; ``describe``, ``advice`` and ``relax`` know them by
            these.
        rows: of the program, one for each member, or as ``position_of_row`` says.
        position_of_row: [·] the position that each row is about.
    """

    def changed(problem: object, amounts: Mapping[int, float]) -> object:
        assert relax is not None
        return relax(problem, {int(positions[member]): units for member, units in amounts.items()})

    return ElasticLimits(
        name,
        side,
        price,
        describe=lambda members: listed([describe(int(positions[member])) for member in members]),
        row_member=np.arange(len(rows)) if position_of_row is None else np.searchsorted(positions, position_of_row),
        row=rows,
        advice=lambda member, amount: advice(int(positions[member]), amount),
        relax=None if relax is None else changed,
        per_unit=per_unit,
    )


@dataclass(frozen=True, eq=False)
class ElasticProgram:
    """The program of an instance without the limits that close columns, and all its limits."""

    mip: Mip
    limits: tuple[ElasticLimits, ...]
    decode: Callable[[FloatArray], Any]
    story: Callable[[Mapping[str, Sequence[int]]], tuple[str, ...]]
    """The limits of a conflict (name → members), described together."""

    @classmethod
    def of(cls, mip: Mip, limits: Iterable[ElasticLimits], decode: Callable[[FloatArray], Any]) -> "ElasticProgram":
        """The elastic program with those limits that have members, which are described one sort after another."""
        by_name = {one.name: one for one in limits if one.count}

        def story(chosen: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
            return tuple(by_name[name].describe(members) for name, members in chosen.items())

        return cls(mip, tuple(by_name.values()), decode, story)


@dataclass(frozen=True)
class Alternative:
    """An alternative for one workload, job, process or reservation, all else left as it is."""

    words: str
    place: str
    """Place where it would run."""
    plan: Any | None
    """The plan with that change made; it may break limits. None where no such plan can be stated."""
    why_not: str = ""
    """Reason why it cannot be stated."""
    freed: Any | None = None
    """The instance without pins and bans of what is questioned, in which the change of terms is measured; None where it
    has none."""


@dataclass(frozen=True)
class Decisions:
    """The single decisions of a plan that can be questioned."""

    noun: str
    """``workload``, ``dataset``, ``job``, ``process`` or ``reservation``."""
    names: Callable[[Any], tuple[str, ...]]
    heaviest: Callable[[Any], Sequence[int]]
    """Positions in ``names``, those with the largest demand first."""
    now: Callable[[Any, Any, int], str]
    """(problem, plan, position) → where it runs, in words."""
    alternatives: Callable[[Any, Any, int], tuple[Alternative, ...]]
    """(problem, plan, position) → everything else that could be done with it, whatever the limits say."""
    phrase: Callable[[Any, Violation], str]
    """(problem, violation) → the broken limit in the words of the domain."""
    verb: str = "runs"
    """Verb between the name and what ``now`` says."""
    lasting: Callable[[Violation], bool] = lambda violation: True
    """True if the limit holds whatever is bought. Such limits, pins and bans, are described before those of
    capacity."""


@dataclass(frozen=True)
class Resource:
    """Something that can be bought by the unit."""

    name: str
    unit: str
    places: Callable[[Any], tuple[str, ...]]
    """Places where there can be more of it."""
    add: Callable[[Any, int, int], Any]
    """(problem, position in ``places``, units) → the problem with so much more there."""


PLAUSIBLE_GROWTH = (0.5, 5.0)
"""Factors of demand outside of these were probably meant as percentages."""


@dataclass(frozen=True)
class Change:
    """A key of a scenario."""

    apply: Callable[[Any, Any], Any]
    """(problem, value) → problem. Raises UsageError that says what is wrong with the value and what is expected."""
    example: str
    """Example of an entry in a file of scenarios."""
    help: str
    plausible: tuple[float, float] | None = None
    """Smallest and largest factor that is likely to be meant as a factor; None for a change by no factor."""


@dataclass(frozen=True)
class Loss:
    """Losses of a scenario: data of which nothing is left, and the work that cannot run without it."""

    datasets: tuple[str, ...] = ()
    tb: float | None = 0.0
    """Size of the datasets; None where the instance states no sizes."""
    work: tuple[str, ...] = ()
    """The workloads or jobs that read any of them."""
    gpus: float | None = None
    """The fewest GPUs that this work accepts together; None where no region is lost or the kind counts jobs."""
    noun: str = "workload"
    """Noun for the items of ``work``: ``workload`` or ``job``."""
    fewer_copies: tuple[str, ...] = ()
    """Datasets that are left with fewer copies than they must have otherwise."""
    unavoidable: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Term → what that work alone costs of it, whatever the plan."""


@dataclass(frozen=True)
class SingleCopy:
    """A dataset of which one replica exists."""

    dataset: str
    region: str
    tb: float
    work: tuple[str, ...]
    """The workloads that read it."""
    gpus: float
    """The fewest GPUs that they accept together."""


@dataclass(frozen=True)
class RegionRisk:
    """Work and data that depend on one region."""

    region: str
    running: tuple[str, ...] | None
    """Workloads that run there, wholly or in part; None where that is not known."""
    running_gpus: float | None
    """GPUs that they use there."""
    loss: Loss
    """Losses if the region failed."""


@dataclass(frozen=True)
class Risk:
    """Data with a single copy, and what depends on each region."""

    of: str
    """``plan`` or ``today``."""
    complete: bool
    """Whether it is known for all work where it runs."""
    gpus: float
    """The fewest GPUs that all workloads accept together."""
    single_copies: tuple[SingleCopy, ...]
    regions: tuple[RegionRisk, ...]


@dataclass(frozen=True)
class TwoStage:
    """How one plan can be made for several scenarios: what is decided before it is known which one comes."""

    decided: str
    """Words for what every scenario shares: "replicas"."""
    formulate: Callable[[Any], Any]
    """Scenario → its Formulation once the shared columns are decided."""
    shared: Callable[[Mip], IntArray]
    """The shared columns of a formulation's program, in the same order for every scenario."""
    alive: Callable[[Any], np.ndarray[Any, Any]]
    """Scenario → which of the shared columns mean something in it (False: 0 there, whatever is decided)."""
    recourse: Callable[[Any, Any, bool], Any]
    """(scenario, plan that decides, is it the base?) → the scenario as an instance in which only the rest is free."""


@dataclass(frozen=True)
class Offer:
    """Something that may be bought, in whole steps."""

    name: str
    what: str
    """"H100 GPUs", "storage"."""
    place: str
    unit: str
    step: float
    """Amount that one step brings, in units."""
    usd: Fraction
    """Price of one step."""
    most_steps: int
    lead_days: int


Steps = NDArray[np.int64]
"""[C] whole steps of each offer."""


class PurchaseProgram(Protocol):
    """The program that chooses steps."""

    @property
    def mip(self) -> Mip:
        """Program that minimises the dollars spent."""

    @property
    def buy(self) -> IntArray:
        """The columns of steps, one an offer."""


@dataclass(frozen=True)
class Expansion:
    """How a kind of problem grows by purchases, until a worst ratio is at a target."""

    offers: Callable[[Any], tuple[Offer, ...]]
    tier: Callable[[Any, int | None], int]
    """(problem, tier or None for all) → position of the last tier that counts."""
    program: Callable[[Any, Steps, Fraction, int, bool], PurchaseProgram]
    """(problem, most steps, ratio, tier, with exact shares?) → the program."""
    relaxation: Callable[[Any, Steps, Fraction, int], PurchaseProgram]
    """A smaller one whose optimum is never higher."""
    bought: Callable[[Any, Steps], Any]
    """(problem, steps) → the problem after the purchase."""
    narrowed: Callable[[Any], tuple[Any, ...]]
    """The problem with part of its plans, of which a good one is found sooner; the least part first."""
    refilled: Callable[[Any, Any], Any]
    """(problem, plan from another present state) → the same decisions from the present state of the problem."""
    within: Callable[[Any, Fraction, int], Any]
    """(problem, ratio, tier) → its Formulation with the ratio as a hard limit."""
    worst: Callable[[Any, Any, int], Fraction]
    """(problem, plan, tier) → the worst ratio, exactly."""
    served: Callable[[Any], Any]
    """The problem in which no work may be refused."""
    next_steps: Callable[[Any, Any, Steps, Steps, Fraction, int], Steps | None]
    """(problem, plan, steps, most steps, ratio, tier) → more steps where the plan is over; None where none are left."""
    stressed: Callable[[Any, Fraction, int, float], Any]
    """(problem, ratio, tier, weight of overload) → the problem for a heuristic, which then avoids above all what is
    over the ratio."""
    bill: Callable[[Any, Any | None], float | None]
    """(problem, plan or None for today) → USD a month of what fits; None without prices or where today is unknown."""
    bill_of_use: Callable[[Any, Steps], float | None]
    """(problem, steps) → USD a month of what is bought while all of it is in use; None without prices."""


@dataclass(frozen=True)
class ChangeGroups:
    """Changes from one plan to another that can be made, or left, one by one."""

    words: tuple[str, ...]
    """Each change in the words of the domain."""
    only: Callable[[frozenset[int]], Any]
    """The first plan with some of the changes made."""


@dataclass(frozen=True)
class AnalysisHooks:
    """Everything that can be asked of a kind of problem; what is empty makes no sense for it."""

    relief: Callable[[Any], ElasticProgram] | None = None
    choices: tuple[Decisions, ...] = ()
    """Sorts of decisions; the first are those that are questioned where nothing is named."""
    resources: tuple[Resource, ...] = ()
    changes: Mapping[str, Change] = field(default_factory=dict)
    priced: Callable[[Any], Any] = lambda problem: problem
    """The instance with work that cannot be served priced instead of forbidden."""
    moved: Callable[[Any, Any, Any, Any], Mapping[str, float]] = lambda problem, scenario, before, after: {}
    """(problem, scenario, plan of the problem, plan of the scenario) → what has to be moved from the first plan to the
    second, by unit."""
    adapted: Callable[[Any, Any], Any] = lambda scenario, plan: plan
    """(scenario, plan of the instance) → the same decisions as a plan of the scenario."""
    guards: Callable[[Any], tuple[str, ...]] = lambda problem: ()
    """Terms that a frontier between two others may not sacrifice: each is minimised first."""
    ahead: Mapping[str, str] = field(default_factory=dict)
    """Term → the term that has to be minimised before a frontier trades it, because a program distinguishes the two
    only where the latter costs more."""
    two_stage: TwoStage | None = None
    loss: Callable[[Any, Any, Mapping[str, Any], Any | None], tuple[Any, Loss]] | None = None
    """(instance, the same after all changes of a scenario, these changes by key, plan or None) → (the changed instance
    without the data that is lost, that loss). The data that is hit is that of the plan, or today's without one. None
    where a kind has no data that can be lost."""
    after_loss: Callable[[Any, Any, str], tuple[Any, Loss]] | None = None
    """(instance, plan, region) → the instance in which only work is placed again after the loss of the region, and that
    loss; None where a kind has no data to lose."""
    placed_soon: Callable[[Any, Any], Any] = lambda instance, plan: plan
    """(instance after a loss, plan) → a plan of it without a solve: what is left, and other work as far as is soon
    seen."""
    first_stage: Callable[[Any], Any | None] | None = None
    """The instance after a loss → that in which work is placed again and no data is copied or deleted, None where no
    work that is down may run; None where a kind has no copies."""
    kept_runs: Callable[[Any, Any], Any] = lambda instance, first: first
    """(instance after a loss, its first stage) → the first stage without moves of running work that gain nothing."""
    kept_replicas: Callable[[Any, Any], Any] = lambda instance, plan: plan
    """(instance, plan) → the plan with replicas of today that it deletes and that no limit forbids."""
    restarted: Callable[[Any, Any, Loss], tuple[Any, Loss]] | None = None
    """(instance after a loss, its first stage, the loss) → the instance once that is carried out, and the loss as
    counted from there."""
    risk: Callable[[Any, Any | None], Risk] | None = None
    """(instance, plan or None for today) → what depends on each region; None where a kind has no data to lose."""
    expansion: Expansion | None = None
    """How it grows by purchases; None where nothing can be bought."""
    rolling: Rolling | None = None
    """How it is planned over periods; None where it is not."""
    change_groups: Callable[[Any, Any, Any], ChangeGroups] | None = None
    """(problem, plan, later plan) → the independent changes between them; None where they depend on one another."""

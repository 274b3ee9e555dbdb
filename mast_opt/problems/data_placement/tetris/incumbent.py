"""Current and best plan of the tetris search: option and region of every workload, cost, and as ``Plan``."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mast_opt.problems.data_placement.plan import Plan, filled
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.state import TetrisState, cost, excess, forbidden, state_of


@dataclass(eq=False)
class SearchPlan:
    """Changes never exceed a hard limit that holds, so a feasible plan stays feasible but for forbidden reads, which
    come back where they save more than the price that stands for one."""

    state: TetrisState
    cost: float
    within_limits: bool = False
    """True if no hard limit was exceeded at the last check."""

    def check_limits(self, a: TetrisArrays, refuse: bool) -> None:
        """Check the limits again while one is exceeded: moves out of it were rewarded beyond their cost."""
        if not self.within_limits:
            self.within_limits = excess(a, self.state, refuse) == 0
            self.cost = cost(a, self.state)

    def feasible(self, a: TetrisArrays) -> bool:
        """Whether the plan is within the hard limits, without a forbidden read."""
        return self.within_limits and forbidden(a, self.state) == 0

    def go_to(self, a: TetrisArrays, snapshot: "Assignment") -> None:
        """Become another plan; the random numbers go on."""
        restore(a, self.state, snapshot)
        self.cost, self.within_limits = cost(a, self.state), False


class Assignment(NamedTuple):
    """The decisions of a state. Region R means left out."""

    option: Ints
    region: Ints
    place: Bools


def decisions(s: TetrisState) -> Assignment:
    """A copy of the decisions of a state."""
    return Assignment(s.option.copy(), s.region.copy(), s.place.copy())


def plan_of(problem: DataPlacement, snapshot: Assignment) -> Plan:
    """The plan, with copies and remote reads from the first region that holds the dataset."""
    runs = np.flatnonzero(snapshot.region < len(problem.regions))
    run = (
        runs,
        snapshot.region[runs],
        problem.options.gpu_type[snapshot.option[runs]],
        np.full(len(runs), SHARE, np.int64),
    )
    return filled(problem, snapshot.place, run)


def restore(a: TetrisArrays, s: TetrisState, snapshot: Assignment) -> None:
    """Make the state that of a snapshot, but for its random numbers."""
    fresh = state_of(a, snapshot.option, snapshot.region, snapshot.place, 1)
    for name in TetrisState._fields:
        if name != "random":
            getattr(s, name)[...] = getattr(fresh, name)


def assignment_of(problem: DataPlacement, plan: Plan) -> Assignment:
    """Assignment from which the search can start: split work is put where most of it runs."""
    workloads, regions = len(problem.workloads), len(problem.regions)
    first = np.searchsorted(problem.options.workload, np.arange(workloads))
    option, region = first.copy(), np.full(workloads, regions)
    order = np.argsort(plan.run_share, kind="stable")
    types = len(problem.gpu_types) + 1
    key = problem.options.workload * types + problem.options.gpu_type
    by_key = np.argsort(key, kind="stable")
    wanted = plan.run_workload[order] * types + plan.run_type[order]
    at = np.minimum(np.searchsorted(key[by_key], wanted), len(key) - 1)
    known = key[by_key][at] == wanted
    option[plan.run_workload[order][known]] = by_key[at][known]
    region[plan.run_workload[order][known]] = plan.run_region[order][known]
    return Assignment(option, region, plan.place)

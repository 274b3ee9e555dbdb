"""Kernel compilation of ras: its phases on a small instance, some parts alone, to share among processes."""

import numpy as np

from mast_opt.core.solve_result import SolveParams
from mast_opt.problems.search.interface import Rehearsal, SearchContext
from mast_opt.problems.server_assignment.generate import FAMILIES
from mast_opt.problems.server_assignment.problem import ServerAssignment
from mast_opt.problems.server_assignment.ras.lagrangian.integer_bound import integer_bound, never
from mast_opt.problems.server_assignment.ras.lagrangian.lp_duals import aggregated_lp_duals
from mast_opt.problems.server_assignment.ras.operators.transfers import transfer_servers
from mast_opt.problems.server_assignment.ras.params import RasParams
from mast_opt.problems.server_assignment.ras.ras_search import RasSearch, ras

SMALL = 6
"""Servers, and reservations, at most."""


def rehearsals() -> tuple[Rehearsal, ...]:
    """Rehearsals that compile the kernels, equal for every problem."""
    return (Rehearsal("turns", _turns), Rehearsal("prices", _price), Rehearsal("settling", _settle))


def _sample() -> ServerAssignment:
    """A small server assignment, with which ras' kernels are compiled."""
    family = FAMILIES["standard"]
    sizes = {size: min(default, SMALL) for size, default in family.sizes.items()}
    problem: ServerAssignment = family.generate(np.random.default_rng(0), **sizes)
    return problem


def _begun(tools: SearchContext) -> RasSearch:
    """A search of ras on a small server assignment."""
    problem = _sample()
    return RasSearch(problem, tools, None, dict(problem.objective.weights), {}, RasParams())


def _turns(tools: SearchContext) -> None:
    """Rehearse a whole run of ``ras``."""
    ras(_sample(), tools, None, RasParams())


def _settle(tools: SearchContext) -> None:
    """Rehearse ras' passes and transfers of servers."""
    turns = _begun(tools)
    state = turns.state(turns.best)
    turns.passes.settle(state)
    local = turns.params.local_search
    transfer_servers(turns.fleet, state, 0, local.transfers, local.transfer_failures)


def _price(tools: SearchContext) -> None:
    """Rehearse ras' bound: prices of the relaxed program, and the integer bound."""
    turns = _begun(tools)
    prices = aggregated_lp_duals(turns.relaxed, turns.sub_mip, SolveParams())
    assert prices is not None
    solved = turns.relaxed.solved(prices)
    turns.relaxed.bought(prices, solved[1])
    integer_bound(turns.relaxed, prices, solved, turns.best, turns.params.integer_bound, never)
